//! Counts loop iterations with a mark at the head of each loop's body. A program can neither name nor see
//! the marks: their counter's name is random, and the source text of functions omits them. If iterations
//! are limited, each loop also has its own counter, which starts at 0 each time the loop is entered.

use crate::host::GuestHost;
use crate::prelude;
use crate::prepare;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    DoWhileStatement, ForInStatement, ForOfStatement, ForStatement, LabeledStatement, Statement,
    WhileStatement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use rquickjs::{Ctx, Function};
use std::cmp::Reverse;
use std::hash::{BuildHasher as _, RandomState};
use std::rc::Rc;

/// Takes the function that removes marks from a text, and patches all functions' source text with it. Ours
/// have no source text.
pub(crate) const HIDE: &str = r#"(function (unmarked) {
  "use strict";
  const { prototype } = Function;
  const show = prototype.toString;
  const { apply, defineProperty } = Reflect;
  const { toString } = { toString() { return unmarked(apply(show, this, [])); } };
  const hidden = { __proto__: null, value: toString, writable: true, enumerable: false, configurable: true };
  return () => { defineProperty(prototype, "toString", hidden); };
})"#;

/// Removes everything that compiles code from text, for programs with limited loops: loops in such code
/// have no marks.
pub(crate) const NO_CODE_FROM_TEXT: &str = r#"(function () {
  "use strict";
  const Error = EvalError;
  const { defineProperty, getPrototypeOf } = Object;
  const refuse = function () {
    throw new Error("code cannot be made from text where the rounds of loops are limited");
  };
  defineProperty(globalThis, "eval", { value: () => refuse(), writable: true, enumerable: false, configurable: true });
  const kinds = [function () {}, async () => {}, function* () {}, async function* () {}];
  for (const prototype of kinds.map((kind) => getPrototypeOf(kind))) {
    const made = function () { refuse(); };
    made.prototype = prototype;
    defineProperty(prototype, "constructor", { value: made, writable: false, configurable: false });
    if (prototype === Function.prototype) {
      defineProperty(globalThis, "Function", { value: made, writable: true, enumerable: false, configurable: true });
    }
  }
})"#;

/// Returns the function that hides marks in this world once there are some. Called while the world is
/// built.
pub(crate) fn hide<'js>(ctx: &Ctx<'js>, host: &Rc<GuestHost>) -> rquickjs::Result<Function<'js>> {
    let host = Rc::clone(host);
    let unmarked = move |text: String| match &*host.words.borrow() {
        Some(words) => words.removed_from(&text),
        None => text,
    };
    let build = prelude::own_function(ctx, HIDE)?;
    build.call((Function::new(ctx.clone(), unmarked)?,))
}

/// A program whose loops are counted.
pub(crate) struct CountedProgram {
    /// The text before the program.
    pub(crate) opening: String,
    /// The program with its marks.
    pub(crate) text: String,
    /// The text after it.
    pub(crate) closing: String,
    /// Where the marks are.
    pub(crate) marks: Vec<InsertionMark>,
    /// The inserted texts.
    pub(crate) words: InsertedText,
}

/// The texts that are inserted into a program.
pub(crate) struct InsertedText {
    mark: String,
    open_and_mark: String,
    close: String,
    enter: String,
    leave: String,
}

/// Inserted text, by line and byte from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InsertionMark {
    line: usize,
    column: usize,
    bytes: usize,
}

impl CountedProgram {
    /// Marks the loops of a program between `opening` and `closing`. The result is an expression of two
    /// functions: one that returns the count, and the program. `None` if no loop can be marked.
    pub(crate) fn mark(
        opening: &str,
        text: &str,
        closing: &str,
        rounds_max: Option<u64>,
    ) -> Option<Self> {
        if !["for", "while"].iter().any(|word| text.contains(word)) {
            return None;
        }
        let mut heads = heads(text, rounds_max.is_some())?;
        // Of several ends at one position, the construct that began last ends first.
        heads.sort_by_key(|head| (head.at, Reverse(head.began), head.what.order()));
        let counter = format!("_{:016x}", RandomState::new().hash_one(0_u8));
        let words = InsertedText::new(&counter, rounds_max);
        let stop = stop_name(&counter);
        let opening = match rounds_max {
            None => format!("(() => {{ var {counter} = 0; return [() => {counter}, {opening}"),
            // The function that stops the program never returns: the engine notices at its next interrupt.
            Some(_) => format!(
                "((stop) => {{ var {counter} = 0; const {stop} = () => {{ stop(); for (;;); }}; return [() => {counter}, {opening}"
            ),
        };
        let mut place = TextPosition { line: 1, column: opening.len() + 1 };
        let (mut marked, mut marks, mut after) = (String::new(), vec![], 0);
        for LoopHead { at, what, .. } in heads {
            let (before, word) = (&text[after..at], words.word(what));
            place.pass(before);
            marks.push(InsertionMark { line: place.line, column: place.column, bytes: word.len() });
            place.pass(word);
            marked.extend([before, word]);
            after = at;
        }
        marked.push_str(&text[after..]);
        let closing = match rounds_max {
            None => format!("{closing}]; }})()"),
            Some(_) => format!("{closing}]; }})"),
        };
        (!marks.is_empty()).then_some(Self { opening, text: marked, closing, marks, words })
    }
}

impl InsertedText {
    fn new(counter: &str, rounds_max: Option<u64>) -> Self {
        let mark = match rounds_max {
            None => format!("{counter}++;"),
            Some(max) => {
                let (own, stop) = (own_name(counter), stop_name(counter));
                format!("{counter}++;if(++{own}>{max}){stop}();")
            }
        };
        let own = own_name(counter);
        Self {
            // Distinguishes it from a bracket of the program's own.
            open_and_mark: format!("/*{counter}*/{{{mark}"),
            close: format!("/*{counter}*/}}"),
            // Inner loops have counters of the same name, whose scope ends with them.
            enter: format!("/*{counter}*/{{let {own}=0;"),
            leave: format!("/*{counter}.*/}}"),
            mark,
        }
    }

    fn word(&self, what: BodyShape) -> &str {
        match what {
            BodyShape::Mark => &self.mark,
            BodyShape::OpenAndMark => &self.open_and_mark,
            BodyShape::Close => &self.close,
            BodyShape::Enter => &self.enter,
            BodyShape::Leave => &self.leave,
        }
    }

    fn removed_from(&self, text: &str) -> String {
        [&self.enter, &self.leave, &self.open_and_mark, &self.close, &self.mark]
            .into_iter()
            .fold(text.to_owned(), |text, word| text.replace(word.as_str(), ""))
    }
}

/// The name of one loop's counter.
fn own_name(counter: &str) -> String {
    format!("{counter}k")
}

/// The name of the function that stops a program whose loop exceeded its limit.
fn stop_name(counter: &str) -> String {
    format!("{counter}s")
}

/// A position in a text, by line and byte from 1.
struct TextPosition {
    line: usize,
    column: usize,
}

impl TextPosition {
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

/// A column as the user counts, with the marks before it on its line subtracted.
pub(crate) fn unmarked_column(marks: &[InsertionMark], line: usize, column: usize) -> usize {
    let before = marks.iter().filter(|mark| mark.line == line && mark.column < column);
    column.saturating_sub(before.map(|mark| mark.bytes).sum())
}

/// What a position needs: a body without brackets gets some.
#[derive(Clone, Copy)]
enum BodyShape {
    Mark,
    OpenAndMark,
    Close,
    /// The block around a whole loop, with its labels.
    Enter,
    Leave,
}

impl BodyShape {
    const fn order(self) -> u8 {
        match self {
            // A loop that is the body of another begins at the same position as that body.
            Self::Leave => 0,
            Self::Close => 1,
            Self::OpenAndMark => 2,
            Self::Enter => 3,
            Self::Mark => 4,
        }
    }
}

struct LoopHead {
    at: usize,
    what: BodyShape,
    /// The beginning of the construct that ends here; `None` for a beginning. Ends come before beginnings.
    began: Option<usize>,
}

fn heads(text: &str, has_own_counters: bool) -> Option<Vec<LoopHead>> {
    let allocator = Allocator::default();
    let program = prepare::parse_prepared(&allocator, text)?;
    let mut heads = LoopHeads { found: vec![], has_own_counters, labelled: None };
    heads.visit_program(&program);
    Some(heads.found)
}

struct LoopHeads {
    found: Vec<LoopHead>,
    /// Whether each loop gets a block with its own counter.
    has_own_counters: bool,
    /// Where the labels of the next statement begin.
    labelled: Option<u32>,
}

impl LoopHeads {
    fn mark_loop(&mut self, whole: Span, body: &Statement<'_>) {
        let span = body.span();
        let (start, end) = (span.start as usize, span.end as usize);
        let labelled = self.labelled.take();
        if self.has_own_counters {
            let first = labelled.unwrap_or(whole.start) as usize;
            self.found.push(LoopHead { at: first, what: BodyShape::Enter, began: None });
            let (at, began) = (whole.end as usize, Some(first));
            self.found.push(LoopHead { at, what: BodyShape::Leave, began });
        }
        if matches!(body, Statement::BlockStatement(_)) {
            self.found.push(LoopHead { at: start + 1, what: BodyShape::Mark, began: None });
        } else {
            self.found.push(LoopHead { at: start, what: BodyShape::OpenAndMark, began: None });
            self.found.push(LoopHead { at: end, what: BodyShape::Close, began: Some(start) });
        }
    }
}

impl<'a> Visit<'a> for LoopHeads {
    fn visit_labeled_statement(&mut self, it: &LabeledStatement<'a>) {
        // A jump to a label must find it at its loop, so the block around the loop begins before all of its
        // labels.
        let first = self.labelled.unwrap_or(it.span.start);
        let mut body = &it.body;
        while let Statement::LabeledStatement(inner) = body {
            body = &inner.body;
        }
        let is_loop = matches!(
            body,
            Statement::ForStatement(_)
                | Statement::ForInStatement(_)
                | Statement::ForOfStatement(_)
                | Statement::WhileStatement(_)
                | Statement::DoWhileStatement(_)
        );
        self.labelled = is_loop.then_some(first);
        walk::walk_labeled_statement(self, it);
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        self.mark_loop(it.span, &it.body);
        walk::walk_for_statement(self, it);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.mark_loop(it.span, &it.body);
        walk::walk_for_in_statement(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.mark_loop(it.span, &it.body);
        walk::walk_for_of_statement(self, it);
    }

    fn visit_while_statement(&mut self, it: &WhileStatement<'a>) {
        self.mark_loop(it.span, &it.body);
        walk::walk_while_statement(self, it);
    }

    fn visit_do_while_statement(&mut self, it: &DoWhileStatement<'a>) {
        self.mark_loop(it.span, &it.body);
        walk::walk_do_while_statement(self, it);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> Option<String> {
        let counted = CountedProgram::mark("(async () => {", text, "\n})", None)?;
        let InsertedText { mark, open_and_mark, close, .. } = &counted.words;
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
    fn a_loop_that_may_only_go_round_so_often_stands_in_a_bracket_with_its_own_counter() {
        let marked = |text: &str| {
            let counted = CountedProgram::mark("(async () => {", text, "\n})", Some(3)).unwrap();
            let InsertedText { mark, open_and_mark, close, enter, leave } = &counted.words;
            assert_eq!(counted.words.removed_from(&counted.text), text, "marks leave no trace");
            let whole = counted.text.replace(enter, "[").replace(leave, "]");
            whole.replace(open_and_mark, "<").replace(close, ">").replace(mark, "#")
        };
        let cases = [
            ("for (;;) { f() }", "[for (;;) {# f() }]"),
            ("if (a) while (b) c(); else d()", "if (a) [while (b) <c();>] else d()"),
            ("while (a) while (b) c();", "[while (a) <[while (b) <c();>]>]"),
            ("a: b: for (;;) { continue a }", "[a: b: for (;;) {# continue a }]"),
            ("a: { for (;;) { break a } }", "a: { [for (;;) {# break a }] }"),
            ("do x++; while (y)", "[do <x++;> while (y)]"),
        ];
        for (text, expected) in cases {
            assert_eq!(marked(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_are_those_of_the_program_without_its_marks() {
        let text = "for (;;) { for (;;) f()\n}";
        let counted = CountedProgram::mark("", text, "", None).unwrap();
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
