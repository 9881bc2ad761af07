//! Identifiers, each its own type, so that the compiler distinguishes them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id of the form {prefix}<uuid>")]
pub struct InvalidId {
    prefix: &'static str,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a uuid from a caller that has a source of randomness.
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            /// The uuid inside, for compact storage.
            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.hyphenated())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let bad = InvalidId { prefix: $prefix };
                let uuid = text.strip_prefix($prefix).ok_or(bad.clone())?;
                if uuid.len() != 36 {
                    return Err(bad); // one spelling only: ids are compared as text in stores
                }
                Uuid::try_parse(&uuid).map(Self).map_err(|_| bad)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

uuid_id!(
    /// One run of a program.
    ExecutionId,
    "run_"
);
uuid_id!(
    /// A held call's question. The prefix is what Executor's clients expect of an execution id.
    QuestionId,
    "exec_"
);

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            /// The next number; the largest one stays.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number_id!(
    /// A call's ordinal: the guest's first call is 1.
    CallId,
    u32
);
number_id!(
    /// A timer's ordinal: the guest's first timer is 1.
    TimerId,
    u32
);
number_id!(
    /// How many inputs the guest has received; 0 before the first.
    InputIndex,
    u32
);
number_id!(
    /// An entry's number in its execution's journal: the first entry is 1, 0 means "before all".
    Seq,
    u64
);
number_id!(
    /// Milliseconds since 1970, UTC.
    Timestamp,
    i64
);

impl Timestamp {
    /// This many milliseconds later; saturates.
    #[must_use]
    pub const fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(ms))
    }

    /// Milliseconds from `earlier` until this; 0 where the clock went back.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        let ms = self.0.saturating_sub(earlier.0);
        if ms > 0 { ms.unsigned_abs() } else { 0 }
    }
}

/// The authenticated caller: the name of a token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallerName(pub String);

impl fmt::Display for CallerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself_and_knows_its_kind() {
        let id = ExecutionId::from_uuid(Uuid::from_u128(7));
        assert_eq!(id.to_string(), "run_00000000-0000-0000-0000-000000000007");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.to_string().parse::<QuestionId>().is_err());
        assert!("run_00000000000000000000000000000007".parse::<ExecutionId>().is_err());
    }
}
