//! Compiles the text of a program to the function that the session calls.

use super::{GuestSession, PROGRAM_FILE_NAME};
use crate::failure::PositionShifts;
use crate::loops::{self, CountedProgram, InsertionMark};
use crate::naming::{self, ProgramSource};
use crate::prelude;
use crate::prepare::{self, RunnableText, SyntaxProblem};
use crate::run_order::{HostKind, RunOrder};
use lifecycle::ValueConvention;
use protocols::execbox::wire::Airlock;
use rquickjs::context::EvalOptions;
use rquickjs::{Array, Ctx, FromJs, Function};
use std::borrow::Cow;
use std::rc::Rc;

/// The text before a program: an arrow function, so that `this` is the global object and there is no `arguments`.
const OPENING: &str = "(async () => {";
/// The text after it: the line break ends a trailing comment.
const CLOSING: &str = "\n})";

pub(super) fn ready_text(order: &RunOrder) -> Result<Cow<'_, str>, SyntaxProblem> {
    match &order.manner {
        HostKind::Journalled(Airlock { prepared: true, .. }) => Ok(Cow::Borrowed(&order.code)),
        HostKind::Journalled(_) | HostKind::Hosted(_) => {
            prepare::prepare(&order.code, order.convention())
                .map(|RunnableText(text)| Cow::Owned(text))
        }
    }
}

/// The program as a function. Explicit programs are strict, as modules are; the others are sloppy, as execbox's
/// are.
pub(crate) fn compile<'js>(
    ctx: &Ctx<'js>,
    text: &str,
    convention: ValueConvention,
) -> rquickjs::Result<Function<'js>> {
    evaluate(ctx, [OPENING, text, CLOSING].concat(), convention)
}

fn evaluate<'js, T: FromJs<'js>>(
    ctx: &Ctx<'js>,
    text: String,
    convention: ValueConvention,
) -> rquickjs::Result<T> {
    let mut options = EvalOptions::default();
    options.strict = convention == ValueConvention::ExplicitReturn;
    options.filename = Some(PROGRAM_FILE_NAME.to_owned());
    ctx.eval_with_options(text, options)
}

impl<'js> GuestSession<'_, 'js> {
    /// The program, and the function that returns how many iterations its loops have made. Only enclave's
    /// clients receive that count; only their programs and those of `airlock run` have a completion value:
    /// the last expression.
    pub(super) fn compile(
        &self,
        text: &str,
    ) -> rquickjs::Result<(Function<'js>, Option<Function<'js>>)> {
        let (ctx, convention) = (self.ctx, self.order.convention());
        let first_line = OPENING.len() + prepare::first_line_shift(text);
        *self.host.shifts.borrow_mut() = PositionShifts { first_line, marks: vec![] };
        self.keep_source(text, OPENING.len(), vec![]);
        let counts = self.order.is_journalled() && convention == ValueConvention::LastExpression;
        let rounds_max = self.order.loop_rounds_max();
        let counted =
            if counts { CountedProgram::mark(OPENING, text, CLOSING, rounds_max) } else { None };
        if counts && rounds_max.is_some() {
            // Also if the program itself has no loop: one in code made from text would have no counter.
            prelude::own_function(ctx, loops::NO_CODE_FROM_TEXT)?.call::<_, ()>(())?;
        }
        let Some(counted) = counted else {
            return Ok((compile(ctx, text, convention)?, None));
        };
        *self.host.words.borrow_mut() = Some(counted.words);
        self.hook(&self.world.hooks.hide)?.call::<_, ()>(())?;
        let whole = [&*counted.opening, &counted.text, &counted.closing].concat();
        let both: Array<'js> = match rounds_max {
            None => evaluate(ctx, whole, convention)?,
            Some(_) => {
                let take_stop: Function<'js> = evaluate(ctx, whole, convention)?;
                let host = Rc::clone(&self.world.host);
                take_stop.call((Function::new(ctx.clone(), move || host.stop_looping())?,))?
            }
        };
        let first_line = first_line + counted.opening.len() - OPENING.len();
        self.keep_source(text, counted.opening.len(), counted.marks.clone());
        *self.host.shifts.borrow_mut() = PositionShifts { first_line, marks: counted.marks };
        Ok((both.get(1)?, Some(both.get(0)?)))
    }

    /// Stores the program's text, so that errors can name expressions in it.
    fn keep_source(&self, text: &str, opening_bytes: usize, marks: Vec<InsertionMark>) {
        if self.order.prelude() < naming::PRELUDE_VERSION_MIN || !self.host.has_users_lines.get() {
            return;
        }
        let source = ProgramSource::new(text, opening_bytes, marks, self.order.outside());
        *self.host.program.borrow_mut() = Some(source);
    }

    pub(super) fn note_rounds(&self, rounds: &Function<'js>) {
        match rounds.call::<_, f64>(()) {
            Ok(n) => self.host.rounds.set(Some(n as u64)),
            // A program that used up its memory or its time may make this call fail.
            Err(_) => drop(self.ctx.catch()),
        }
    }
}
