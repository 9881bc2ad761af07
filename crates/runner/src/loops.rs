//! How often loops go round: a mark at the head of each loop's body counts. A program can neither name nor see the marks:
//! their counter's name is random, and functions that are asked for their text leave them out.

use crate::host::Host;
use crate::prelude;
use crate::prepare;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    DoWhileStatement, ForInStatement, ForOfStatement, ForStatement, Statement, WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;
use rquickjs::{Ctx, Function};
use std::hash::{BuildHasher as _, RandomState};
use std::rc::Rc;

/// Takes what removes marks from a text, and gives what has all functions do so. Those of ours have no text to show.
pub(crate) const HIDE: &str = r#"(function (unmarked) {
  "use strict";
  const { prototype } = Function;
  const show = prototype.toString;
  const { apply, defineProperty } = Reflect;
  const { toString } = { toString() { return unmarked(apply(show, this, [])); } };
  const hidden = { __proto__: null, value: toString, writable: true, enumerable: false, configurable: true };
  return () => { defineProperty(prototype, "toString", hidden); };
})"#;

/// What hides marks in this world once there are some. Called while the world is built.
pub(crate) fn hide<'js>(ctx: &Ctx<'js>, host: &Rc<Host>) -> rquickjs::Result<Function<'js>> {
    let host = Rc::clone(host);
    let unmarked = move |text: String| match &*host.words.borrow() {
        Some(words) => words.removed_from(&text),
        None => text,
    };
    let build = prelude::own_function(ctx, HIDE)?;
    build.call((Function::new(ctx.clone(), unmarked)?,))
}

/// A program whose loops are counted.
pub(crate) struct Counted {
    /// What stands before the program.
    pub(crate) opening: String,
    /// The program with its marks.
    pub(crate) text: String,
    /// What stands after it.
    pub(crate) closing: String,
    /// Where the marks are.
    pub(crate) marks: Vec<Mark>,
    /// What they are.
    pub(crate) words: Words,
}

/// What is put into a program.
pub(crate) struct Words {
    mark: String,
    open_and_mark: String,
    close: String,
}

/// Text that is not the program's own, by line and byte from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    line: usize,
    column: usize,
    bytes: usize,
}

impl Counted {
    /// Marks the loops of a program that stands between `opening` and `closing`. The whole is then an expression of two
    /// functions: one that says the count, and the program. `None` where there is no loop that can be marked.
    pub(crate) fn mark(opening: &str, text: &str, closing: &str) -> Option<Self> {
        if !["for", "while"].iter().any(|word| text.contains(word)) {
            return None;
        }
        let mut heads = heads(text)?;
        heads.sort_by_key(|head| head.at);
        let counter = format!("_{:016x}", RandomState::new().hash_one(0_u8));
        let words = Words::new(&counter);
        let opening = format!("(() => {{ var {counter} = 0; return [() => {counter}, {opening}");
        let mut place = Place { line: 1, column: opening.len() + 1 };
        let (mut marked, mut marks, mut after) = (String::new(), vec![], 0);
        for Head { at, what } in heads {
            let (before, word) = (&text[after..at], words.word(what));
            place.pass(before);
            marks.push(Mark { line: place.line, column: place.column, bytes: word.len() });
            place.pass(word);
            marked.extend([before, word]);
            after = at;
        }
        marked.push_str(&text[after..]);
        let closing = format!("{closing}]; }})()");
        (!marks.is_empty()).then_some(Self { opening, text: marked, closing, marks, words })
    }
}

impl Words {
    fn new(counter: &str) -> Self {
        Self {
            mark: format!("{counter}++;"),
            // Told apart from a bracket of the program's own.
            open_and_mark: format!("/*{counter}*/{{{counter}++;"),
            close: format!("/*{counter}*/}}"),
        }
    }

    fn word(&self, what: What) -> &str {
        match what {
            What::Mark => &self.mark,
            What::OpenAndMark => &self.open_and_mark,
            What::Close => &self.close,
        }
    }

    fn removed_from(&self, text: &str) -> String {
        let text = text.replace(&self.open_and_mark, "").replace(&self.close, "");
        text.replace(&self.mark, "")
    }
}

/// Where one is in a text, by line and byte from 1.
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn pass(&mut self, text: &str) {
        match text.rfind('\n') {
            Some(newline) => {
                self.line += text.matches('\n').count();
                self.column = text.len() - newline;
            }
            None => self.column += text.len(),
        }
    }
}

/// A column as the user counts, where marks stand before it on its line.
pub(crate) fn unmarked_column(marks: &[Mark], line: usize, column: usize) -> usize {
    let before = marks.iter().filter(|mark| mark.line == line && mark.column < column);
    column.saturating_sub(before.map(|mark| mark.bytes).sum())
}

/// What a place needs: a body without brackets gets some.
#[derive(Clone, Copy)]
enum What {
    Mark,
    OpenAndMark,
    Close,
}

struct Head {
    at: usize,
    what: What,
}

fn heads(text: &str) -> Option<Vec<Head>> {
    let allocator = Allocator::default();
    let program = prepare::parse_prepared(&allocator, text)?;
    let mut heads = Heads(vec![]);
    heads.visit_program(&program);
    Some(heads.0)
}

struct Heads(Vec<Head>);

impl Heads {
    fn body(&mut self, body: &Statement<'_>) {
        let span = body.span();
        let (start, end) = (span.start as usize, span.end as usize);
        if matches!(body, Statement::BlockStatement(_)) {
            self.0.push(Head { at: start + 1, what: What::Mark });
        } else {
            self.0.push(Head { at: start, what: What::OpenAndMark });
            self.0.push(Head { at: end, what: What::Close });
        }
    }
}

impl<'a> Visit<'a> for Heads {
    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_statement(self, it);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_in_statement(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.body(&it.body);
        walk::walk_for_of_statement(self, it);
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.body(&it.body);
        walk::walk_while_statement(self, it);
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.body(&it.body);
        walk::walk_do_while_statement(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> Option<String> {
        let counted = Counted::mark("(async () => {", text, "\n})")?;
        let Words { mark, open_and_mark, close } = &counted.words;
        let whole = counted.text.replace(open_and_mark, "<").replace(close, ">");
        assert_eq!(counted.words.removed_from(&counted.text), text, "marks leave no trace");
        Some(whole.replace(mark, "#"))
    }

    #[test]
    fn every_kind_of_loop_is_marked_at_the_head_of_its_body() {
        let cases = [
            ("for (let i = 0; i < 3; i++) { f() }", "for (let i = 0; i < 3; i++) {# f() }"),
            ("for (const x of y) f(x)\ng()", "for (const x of y) <f(x)>\ng()"),
            ("for (k in o);", "for (k in o)<;>"),
            ("while (a) while (b) c();", "while (a) <while (b) <c();>>"),
            ("do x++\nwhile (x < 3)", "do <x++>\nwhile (x < 3)"),
            ("do { x++ } while (x < 3)", "do {# x++ } while (x < 3)"),
            ("l: for (;;) { continue l }", "l: for (;;) {# continue l }"),
            ("if (a) for (;;) b(); else c()", "if (a) for (;;) <b();> else c()"),
            (
                "const f = () => { for (;;) {} }; return f",
                "const f = () => { for (;;) {#} }; return f",
            ),
            (
                "for (const x of `${(() => { while (1) y })()}`) {}",
                "for (const x of `${(() => { while (1) <y> })()}`) {#}",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(marked(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["1 + 1", "const fortune = 'while'", "for (", "[1].forEach(f)"] {
            assert_eq!(marked(text), None, "{text}");
        }
    }

    #[test]
    fn columns_are_those_of_the_program_without_its_marks() {
        let text = "for (;;) { for (;;) f()\n}";
        let counted = Counted::mark("", text, "").unwrap();
        let whole = format!("{}{}", counted.opening, counted.text);
        let column = whole.find("f()").unwrap() + 1;
        let shift = counted.opening.len();
        assert_eq!(
            unmarked_column(&counted.marks, 1, column) - shift,
            text.find("f()").unwrap() + 1
        );
        assert_eq!(unmarked_column(&counted.marks, 2, 1), 1);
        assert_eq!(unmarked_column(&counted.marks, 1, 0), 0);
    }
}
