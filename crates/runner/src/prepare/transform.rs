//! TypeScript that is more than annotations, turned into JavaScript by the full transformer.

use super::strip::Missing;
use super::{SyntaxProblem, problem};
use oxc_allocator::Allocator;
use oxc_ast::ast::{Program, Statement, TemplateElement};
use oxc_ast_visit::{Visit, walk};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions, Context, Gen as _};
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan as _, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};
use std::path::Path;

/// The same program without TypeScript, printed anew. Fails only if the transformer does.
pub(super) fn to_javascript(text: &str) -> Result<String, SyntaxProblem> {
    let allocator = Allocator::default();
    Ok(Codegen::new().build(&transformed(&allocator, text)?).code)
}

/// `blanked`, which is `text` without its types, byte for byte as long, with the code that is missing in it. Everything
/// else stays in its line.
pub(super) fn splice(
    text: &str,
    blanked: &[u8],
    missing: Missing,
) -> Result<Vec<u8>, SyntaxProblem> {
    let mut pieces: Vec<(Span, String)> =
        missing.inserts.into_iter().map(|(at, code)| (Span::empty(at), code)).collect();
    for (span, code) in codes(text, &missing.declarations)? {
        let joined = joined(code.trim_end());
        let n_lines = text[span.start as usize..span.end as usize].matches('\n').count();
        let n_lines_left = n_lines.saturating_sub(joined.matches('\n').count());
        // Code may begin with a parenthesis: it must not be read as a part of what stands before it.
        pieces.push((span, format!(";{joined}{}", "\n".repeat(n_lines_left))));
    }
    pieces.sort_by_key(|(span, _)| span.start);
    let (mut result, mut done) = (Vec::with_capacity(text.len() * 2), 0);
    for (span, code) in &pieces {
        result.extend_from_slice(&blanked[done..span.start as usize]);
        result.extend_from_slice(code.as_bytes());
        done = span.end as usize;
    }
    result.extend_from_slice(&blanked[done..]);
    Ok(result)
}

/// What the transformer makes of enums and namespaces.
fn codes(text: &str, declarations: &[Span]) -> Result<Vec<(Span, String)>, SyntaxProblem> {
    if declarations.is_empty() {
        return Ok(vec![]);
    }
    let allocator = Allocator::default();
    let program = transformed(&allocator, text)?;
    let mut printer =
        Printer { codes: declarations.iter().map(|it| (*it, String::new())).collect() };
    printer.visit_program(&program);
    Ok(printer.codes)
}

fn transformed<'a>(allocator: &'a Allocator, text: &'a str) -> Result<Program<'a>, SyntaxProblem> {
    let mut program = super::parse_as(allocator, text, SourceType::ts()).program;
    let semantic =
        SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
    let options = TransformOptions::default();
    let scoping = semantic.semantic.into_scoping();
    let transformed = Transformer::new(allocator, Path::new("program.ts"), &options)
        .build_with_scoping(scoping, &mut program);
    let Some(first) = transformed.diagnostics.iter().next() else { return Ok(program) };
    let at = first.labels.first().map_or(0, |label| label.offset() as usize);
    Err(problem(text, at, first.message.to_string()))
}

/// Prints what became of some declarations: the transformer gives their statements the places they came from.
struct Printer {
    /// In the order of their places. A namespace of nothing but types becomes nothing.
    codes: Vec<(Span, String)>,
}

impl<'a> Visit<'a> for Printer {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        let span = it.span();
        match self.codes.binary_search_by_key(&span.start, |(declared, _)| declared.start) {
            Ok(i) if self.codes[i].0 == span => {
                let mut printed = Codegen::new().with_options(without_comments());
                it.print(&mut printed, Context::default());
                self.codes[i].1.push_str(&printed.into_source_text());
            }
            Ok(_) | Err(_) => walk::walk_statement(self, it),
        }
    }
}

pub(super) fn without_comments() -> CodegenOptions {
    CodegenOptions { comments: CommentOptions::disabled(), ..CodegenOptions::default() }
}

/// Printed code in one line, except for the line breaks of its template texts, which are the user's. What is printed
/// has all its semicolons and no comments, so no other line break means anything.
fn joined(code: &str) -> String {
    let allocator = Allocator::default();
    let program = super::parse_as(&allocator, code, SourceType::mjs()).program;
    let mut texts = TemplateTexts(vec![]);
    texts.visit_program(&program);
    texts.0.sort_unstable_by_key(|span| span.start);
    let is_text = |at: usize| {
        let i = texts.0.partition_point(|span| span.end as usize <= at);
        texts.0.get(i).is_some_and(|span| span.start as usize <= at)
    };
    let join = |(at, char)| if char == '\n' && !is_text(at) { ' ' } else { char };
    code.char_indices().map(join).collect()
}

/// Where the texts of templates are.
struct TemplateTexts(Vec<Span>);

impl<'a> Visit<'a> for TemplateTexts {
    fn visit_template_element(&mut self, it: &TemplateElement<'a>) {
        self.0.push(it.span);
    }
}
