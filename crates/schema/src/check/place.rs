//! Where in the value a check is: a chain on the stack, written out only for a misfit.

use crate::defect::joined;
use serde_json::Value;

/// A value, and its location.
pub(crate) struct ValuePlace<'p> {
    pub(crate) value: &'p Value,
    above: Option<(&'p Self, PathStep<'p>)>,
}

#[derive(Clone, Copy)]
enum PathStep<'p> {
    Member(&'p str),
    Item(usize),
}

impl<'p> ValuePlace<'p> {
    pub(crate) fn whole(value: &'p Value) -> Self {
        Self { value, above: None }
    }

    pub(crate) fn member(&'p self, name: &'p str, value: &'p Value) -> Self {
        Self { value, above: Some((self, PathStep::Member(name))) }
    }

    pub(crate) fn item(&'p self, idx: usize, value: &'p Value) -> Self {
        Self { value, above: Some((self, PathStep::Item(idx))) }
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
            PathStep::Member(name) => joined(&path, name),
            PathStep::Item(idx) => format!("{path}/{idx}"),
        })
    }
}
