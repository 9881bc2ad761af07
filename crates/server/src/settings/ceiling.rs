//! The current limit on who may answer: a change takes effect with the next decision.

use lifecycle::AnswerRole;
use std::sync::atomic::{AtomicU8, Ordering};

/// The server's value of `answers`, shared by every request.
#[derive(Debug)]
pub(crate) struct AnswerCeiling(AtomicU8);

impl AnswerCeiling {
    pub(crate) fn new(role: AnswerRole) -> Self {
        Self(AtomicU8::new(index(role)))
    }

    pub(crate) fn get(&self) -> AnswerRole {
        let at = usize::from(self.0.load(Ordering::Acquire));
        AnswerRole::ALL.get(at).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, role: AnswerRole) {
        self.0.store(index(role), Ordering::Release);
    }
}

const fn index(role: AnswerRole) -> u8 {
    match role {
        AnswerRole::Person => 0,
        AnswerRole::Client => 1,
        AnswerRole::Model => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_what_was_set_last() {
        let ceiling = AnswerCeiling::new(AnswerRole::Model);
        for role in AnswerRole::ALL {
            ceiling.set(role);
            assert_eq!(ceiling.get(), role);
        }
    }
}
