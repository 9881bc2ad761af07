//! Where in the value a check is: a chain on the stack, written out only for a misfit.

use crate::defect::joined;
use serde_json::Value;

/// A value, and how one comes to it.
pub(crate) struct Place<'p> {
    pub(crate) value: &'p Value,
    above: Option<(&'p Self, Step<'p>)>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p> Place<'p> {
    pub(crate) fn whole(value: &'p Value) -> Self {
        Self { value, above: None }
    }

    pub(crate) fn member(&'p self, name: &'p str, value: &'p Value) -> Self {
        Self { value, above: Some((self, Step::Member(name))) }
    }

    pub(crate) fn item(&'p self, idx: usize, value: &'p Value) -> Self {
        Self { value, above: Some((self, Step::Item(idx))) }
    }

    /// The place as a JSON pointer.
    pub(crate) fn pointer(&self) -> String {
        let mut steps = vec![];
        let mut below = self;
        while let Some((above, step)) = below.above {
            steps.push(step);
            below = above;
        }
        steps.iter().rev().fold(String::new(), |path, step| match step {
            Step::Member(name) => joined(&path, name),
            Step::Item(idx) => format!("{path}/{idx}"),
        })
    }
}
