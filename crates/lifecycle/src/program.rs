//! Programs, and what makes a run repeatable.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Source code as the caller wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// JavaScript or TypeScript.
    pub source: String,
    /// Which value the program returns.
    pub convention: ValueConvention,
}

/// What counts as a program's value when it has no `return`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueConvention {
    /// Nothing: only `return` gives a value.
    ExplicitReturn,
    /// The last expression statement.
    LastExpression,
}

/// The prepared program, and the versions that it was prepared for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedProgram {
    /// Recovered and stripped of types: what replay runs. `None` if that changed nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Version of the guest globals it ran with.
    pub prelude: u32,
    /// Engine, version and everything else that could change a result.
    pub fingerprint: String,
}

impl PreparedProgram {
    /// The text that runs.
    pub fn program_text<'a>(&'a self, program: &'a Program) -> &'a str {
        self.text.as_deref().unwrap_or(&program.source)
    }

    /// The same, without a text that equals the program's own.
    pub(crate) fn in_short(mut self, program: &Program) -> Self {
        self.text = self.text.filter(|text| *text != program.source);
        self
    }
}

/// Thirty-two random bytes from which everything random in the guest follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RandomSeed(pub [u8; 32]);

const HEX: &[u8; 16] = b"0123456789abcdef";

impl RandomSeed {
    // Without `format!`: it is written twice for every execution, and a formatter takes fifty times as long.
    fn with_digits<R>(self, take: impl FnOnce(&str) -> R) -> R {
        let digits = self.0.map(|byte| [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
        take(std::str::from_utf8(digits.as_flattened()).expect("digits are ASCII"))
    }

    fn of_digits(text: &str) -> Option<Self> {
        let digit =
            |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
        let pairs: &[[u8; 2]; 32] = pairs.try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for RandomSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_digits(|digits| f.write_str(digits))
    }
}

impl fmt::Debug for RandomSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for RandomSeed {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.with_digits(|digits| to.serialize_str(digits))
    }
}

impl<'de> Deserialize<'de> for RandomSeed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct HexDigits;
        impl de::Visitor<'_> for HexDigits {
            type Value = RandomSeed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a seed: 64 hexadecimal digits")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RandomSeed, E> {
                // The invalid text is not repeated: it may be nearly a secret.
                RandomSeed::of_digits(text)
                    .ok_or_else(|| E::custom("a seed is 64 hexadecimal digits"))
            }
        }
        from.deserialize_str(HexDigits)
    }
}

/// The path of a tool, such as `demo.add`: non-empty segments joined by dots.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolPath(String);

/// A text that cannot be a tool's path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToolPath {
    /// No text at all, or two dots in a row.
    #[error("a tool path is made of non-empty names joined by dots")]
    EmptySegment,
    /// Longer than any path that we store.
    #[error("a tool path has at most {} bytes", ToolPath::BYTES_MAX)]
    TooLong,
    /// Line breaks and the like.
    #[error("a tool path has no control characters")]
    ControlCharacter,
}

impl ToolPath {
    /// Longest path that we store.
    pub const BYTES_MAX: usize = 512;

    /// Parses and validates a path.
    pub fn parse(text: &str) -> Result<Self, BadToolPath> {
        if text.len() > Self::BYTES_MAX {
            return Err(BadToolPath::TooLong);
        }
        if text.split('.').any(str::is_empty) {
            return Err(BadToolPath::EmptySegment);
        }
        if text.chars().any(char::is_control) {
            return Err(BadToolPath::ControlCharacter);
        }
        Ok(Self(text.to_owned()))
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names, first to last.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Display for ToolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_64_digits_and_nothing_else() {
        let seed = RandomSeed(std::array::from_fn(|at| (at as u8).wrapping_mul(37)));
        let text = serde_json::to_string(&seed).unwrap();
        assert_eq!(text, format!("\"{seed}\""));
        assert_eq!((text.len(), &text[..9]), (66, "\"00254a6f"));
        assert_eq!(serde_json::from_str::<RandomSeed>(&text).unwrap(), seed);
        assert_eq!(serde_json::from_str::<RandomSeed>(&text.to_uppercase()).unwrap(), seed);
        for wrong in [text.replace("00", "0g"), text.replace("00", "+0"), text.replace("00", "0")] {
            assert!(serde_json::from_str::<RandomSeed>(&wrong).is_err(), "{wrong}");
        }
    }
}
