//! When notes about visits and tokens end: by a clock that was not set back since they were written.

use engine::Engine;
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};

/// The end of a note. After the clock was set back, nothing says how old a note is, and it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteExpiry {
    expires_at: i64,
    /// The clock's generation when it was written. Notes of earlier versions have none.
    #[serde(default)]
    generation: u64,
}

impl NoteExpiry {
    /// So many milliseconds from now.
    pub(crate) fn after(engine: &Engine, ms: i64) -> Self {
        Self::at(engine.clock().now().0.saturating_add(ms), engine)
    }

    /// At a time of the present clock.
    pub(crate) fn at(expires_at: i64, engine: &Engine) -> Self {
        Self { expires_at, generation: engine.clock_generation() }
    }

    pub(crate) fn has_passed(self, engine: &Engine) -> bool {
        self.has_passed_at(engine.clock().now(), engine.clock_generation())
    }

    const fn has_passed_at(self, now: Timestamp, generation: u64) -> bool {
        now.0 >= self.expires_at || generation != self.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_ends_at_its_time_and_when_the_clock_is_set_back() {
        let note = NoteExpiry { expires_at: 1_000, generation: 2 };
        let passed = |now, generation| note.has_passed_at(Timestamp(now), generation);
        assert_eq!([passed(999, 2), passed(1_000, 2), passed(5, 3)], [false, true, true]);
    }

    #[test]
    fn a_note_of_an_earlier_version_is_valid_until_the_clock_is_set_back() {
        let note: NoteExpiry = serde_json::from_str(r#"{"expires_at":1000}"#).unwrap();
        assert!(!note.has_passed_at(Timestamp(999), 0));
        assert!(note.has_passed_at(Timestamp(999), 1));
    }
}
