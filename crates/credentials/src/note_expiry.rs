//! When records of flows and tokens expire: by a clock that was not set back since they were written.

use crate::CredentialHost;
use lifecycle::Timestamp;
use serde::{Deserialize, Serialize};

/// The expiry of a record. After the clock was set back its age is unknown, so it has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NoteExpiry {
    expires_at: i64,
    /// The clock's generation when it was written. Notes of earlier versions have none.
    #[serde(default)]
    generation: u64,
}

impl NoteExpiry {
    /// Expires `ms` milliseconds from now.
    pub(crate) fn after(host: &dyn CredentialHost, ms: i64) -> Self {
        Self::for_expiry(host.now().0.saturating_add(ms), host)
    }

    /// Expires at a time of the present clock.
    pub(crate) fn for_expiry(expires_at: i64, host: &dyn CredentialHost) -> Self {
        Self { expires_at, generation: host.clock_generation() }
    }

    pub(crate) fn has_passed(self, host: &dyn CredentialHost) -> bool {
        self.has_passed_at(host.now(), host.clock_generation())
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
