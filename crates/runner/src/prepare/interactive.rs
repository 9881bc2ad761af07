//! Turns a text typed at a prompt into a script whose definitions persist and can be declared again.
//!
//! At the top level, `let` and `const` become `var`, a class becomes a `var` that holds it. Line numbers
//! stay the same.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::{
    SyntaxProblem, check_size, decorators, depth, fence, problem, read_script_or_module, recover,
    strip, with_code,
};
use lifecycle::ValueConvention;
use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, Statement, VariableDeclaration, VariableDeclarationKind};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan as _, SourceType};

/// Most problems that are reported for one text.
const PROBLEMS_MAX: usize = 20;

/// The script to evaluate, or all problems of the text.
pub(crate) fn interactive(source: &str) -> Result<String, Vec<SyntaxProblem>> {
    check_size(source).map_err(one)?;
    let text = fence::unfenced(source, ValueConvention::LastExpression);
    if let Some(at) = depth::too_deep(&text) {
        return Err(one(problem(&text, at, "the program is nested too deeply")));
    }
    // Braces around members are an object, not a block: this is what people mean.
    if let Some(object) = as_object(&text) {
        return Ok(object);
    }
    let allocator = Allocator::default();
    let program = parse(&allocator, &text)?;
    recover::check_modules(&text, &program).map_err(one)?;
    decorators::refuse_decorators(&text, &program).map_err(one)?;
    match strip::strip(&text, &program).map_err(one)? {
        strip::StripOutcome::Unchanged => Ok(lasting(&text, &program)),
        strip::StripOutcome::Blanked(blanked) => {
            let blanked = String::from_utf8(blanked).map_err(|_| one(unstripped(&text)))?;
            again(&blanked)
        }
        strip::StripOutcome::NeedsCode { blanked, edits } => {
            again(&with_code(&text, &blanked, edits).map_err(one)?)
        }
    }
}

/// Prepares a text that is JavaScript by now.
fn again(text: &str) -> Result<String, Vec<SyntaxProblem>> {
    let allocator = Allocator::default();
    let program = parse(&allocator, text)?;
    Ok(lasting(text, &program))
}

fn one(problem: SyntaxProblem) -> Vec<SyntaxProblem> {
    vec![problem]
}

fn unstripped(text: &str) -> SyntaxProblem {
    problem(text, 0, "the program's types could not be removed")
}

fn as_object(text: &str) -> Option<String> {
    let trimmed = text.trim();
    if !trimmed.starts_with('{') || !trimmed.ends_with('}') {
        return None;
    }
    let wrapped = format!("({text}\n)");
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &wrapped, SourceType::mjs()).parse();
    (!parsed.panicked && parsed.diagnostics.is_empty() && parsed.program.body.len() == 1)
        .then(|| wrapped.clone())
}

/// Parses the text as TypeScript with `await` anywhere, and `return` only within a function.
fn parse<'a>(allocator: &'a Allocator, text: &'a str) -> Result<Program<'a>, Vec<SyntaxProblem>> {
    let read = |language| {
        Parser::new(allocator, text, language).with_options(ParseOptions::default()).parse()
    };
    let parsed = read_script_or_module(read, SourceType::ts());
    if !parsed.panicked && parsed.diagnostics.is_empty() {
        return Ok(parsed.program);
    }
    let mut problems: Vec<_> = parsed
        .diagnostics
        .iter()
        .take(PROBLEMS_MAX)
        .map(|found| {
            let at = found.labels.first().map_or(text.len(), |label| label.offset() as usize);
            problem(text, at, found.message.to_string())
        })
        .collect();
    if problems.is_empty() {
        problems.push(problem(text, 0, "the program cannot be parsed"));
    }
    Err(problems)
}

/// The text with declarations that can be repeated.
fn lasting(text: &str, program: &Program<'_>) -> String {
    let mut edits = InteractiveEdits { text, out: String::with_capacity(text.len() + 32), done: 0 };
    if let Some(hashbang) = &program.hashbang {
        edits.replace(hashbang.span.start, hashbang.span.end, "");
    }
    for statement in &program.body {
        match statement {
            Statement::VariableDeclaration(declaration) => edits.vary(declaration),
            Statement::ClassDeclaration(class) => {
                if let Some(id) = &class.id {
                    edits.replace(class.span.start, class.span.start, &format!("var {}=", id.name));
                    edits.replace(class.span.end, class.span.end, ";");
                }
            }
            _ => {}
        }
    }
    edits.finish()
}

struct InteractiveEdits<'t> {
    text: &'t str,
    out: String,
    done: usize,
}

impl InteractiveEdits<'_> {
    fn replace(&mut self, from: u32, to: u32, with: &str) {
        self.out.push_str(&self.text[self.done..from as usize]);
        self.out.push_str(with);
        self.done = to as usize;
    }

    fn vary(&mut self, declaration: &VariableDeclaration<'_>) {
        let keyword = match declaration.kind {
            VariableDeclarationKind::Let => "let",
            VariableDeclarationKind::Const => "const",
            _ => return,
        };
        let start = declaration.span.start;
        // Of the same length: columns stay the same, too.
        let varied = format!("{:1$}", "var", keyword.len());
        self.replace(start, start + keyword.len() as u32, &varied);
        for declarator in &declaration.declarations {
            if declarator.init.is_none() {
                // A repeated declaration without an initializer resets the value.
                let end = declarator.id.span().end;
                self.replace(end, end, "=void 0");
            }
        }
    }

    fn finish(mut self) -> String {
        self.out.push_str(&self.text[self.done..]);
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_at_the_top_can_be_declared_again() {
        for (typed, script) in [
            ("let a = 1; a", "var a = 1; a"),
            ("const a = 1", "var   a = 1"),
            ("let a, b = 2", "var a=void 0, b = 2"),
            ("class A { x = 1 }\nnew A()", "var A=class A { x = 1 };\nnew A()"),
            ("for (let i = 0; i < 2; i++) i", "for (let i = 0; i < 2; i++) i"),
            ("{ let a = 1 }", "{ let a = 1 }"),
            ("function f() { let x = 1; return x }", "function f() { let x = 1; return x }"),
            ("{a: 1}", "({a: 1}\n)"),
            ("await f()", "await f()"),
            ("let n: number = 1", "var n         = 1"),
            ("", ""),
            ("for await (const x of y) x", "for await (const x of y) x"),
        ] {
            assert_eq!(interactive(typed).as_deref(), Ok(script), "{typed}");
        }
        let enumerated = interactive("enum Color { Red }\nColor.Red").unwrap();
        assert!(
            enumerated.contains("var Color") && enumerated.ends_with("\nColor.Red"),
            "{enumerated}"
        );
    }

    #[test]
    fn what_is_no_program_is_told_with_its_place() {
        let problems = interactive("1;\nlet = = ;").unwrap_err();
        assert_eq!(problems[0].line, 2);
        assert!(interactive("return 1").is_err());
        assert!(interactive("import x from 'y'").is_err());
        assert!(interactive(&"(".repeat(10_000)).is_err());
    }
}
