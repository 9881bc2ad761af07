//! JSON that is passed on unparsed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// One JSON value as text. Never parsed on the way through: lone surrogates and deep nesting survive.
/// Clones share the text.
#[derive(Clone)]
pub struct Json(Arc<RawValue>);

/// A text that is not exactly one JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a JSON value: {0}")]
pub struct InvalidJson(String);

impl Json {
    /// Checks that `text` is one JSON value and stores it unchanged.
    pub fn parse(text: String) -> Result<Self, InvalidJson> {
        RawValue::from_string(text).map(Self::from).map_err(|e| InvalidJson(e.to_string()))
    }

    /// Renders a value.
    pub fn from_value(value: &impl Serialize) -> Result<Self, InvalidJson> {
        serde_json::value::to_raw_value(value)
            .map(Self::from)
            .map_err(|e| InvalidJson(e.to_string()))
    }

    /// `null`.
    pub fn null() -> Self {
        Self::from(RawValue::NULL.to_owned())
    }

    /// The text.
    pub fn as_text(&self) -> &str {
        self.0.get()
    }

    /// The same value, for serialization.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    /// The same value on one line, without the spaces between its tokens.
    #[must_use]
    pub fn compact(&self) -> Self {
        let (mut within_text, mut escaped) = (false, false);
        let keep = |c: &char| {
            let kept = within_text || !c.is_ascii_whitespace();
            match c {
                '"' if !escaped => within_text = !within_text,
                _ => {}
            }
            escaped = within_text && *c == '\\' && !escaped;
            kept
        };
        let text = self.as_text().chars().filter(keep).collect();
        Self::parse(text).expect("spaces between tokens mean nothing")
    }

    /// A short fingerprint, which distinguishes a repeated value from a different one.
    pub fn digest(&self) -> ArgumentsDigest {
        ArgumentsDigest::from_text(self.as_text())
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(Self::from)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_text() == other.as_text()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_text())
    }
}

/// Reads an optional value so that a present `null` is a value, unlike an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(from).map(Some)
}

/// The revision of a tool that was approved: a fingerprint of its whole description. Sixteen bytes,
/// because the author of a description could search for two that share a shorter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolRevision([u8; 16]);

impl ToolRevision {
    /// The edition that `text` describes.
    pub fn from_text(text: &str) -> Self {
        use sha2::Digest as _;
        let whole = sha2::Sha256::digest(text.as_bytes());
        let mut first = [0; 16];
        first.copy_from_slice(&whole[..16]);
        Self(first)
    }
}

impl fmt::Display for ToolRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl Serialize for ToolRevision {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ToolRevision {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match u128::from_str_radix(&text, 16) {
            Ok(number) if text.len() == 32 => Ok(Self(number.to_be_bytes())),
            Ok(_) | Err(_) => Err(serde::de::Error::custom("a revision is 32 hexadecimal digits")),
        }
    }
}

/// The first eight bytes of SHA-256: enough to notice that a replay has diverged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArgumentsDigest([u8; 8]);

impl ArgumentsDigest {
    /// The fingerprint of `text`.
    pub fn from_text(text: &str) -> Self {
        use sha2::Digest as _;
        let whole = sha2::Sha256::digest(text.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&whole[..8]);
        Self(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compact_value_is_the_same_on_one_line() {
        let cases = [
            ("{ \"a b\" : [ 1 ,\n 2 ] }", r#"{"a b":[1,2]}"#),
            (r#"{"a": "x \" y", "b": "\\", "c": " "}"#, r#"{"a":"x \" y","b":"\\","c":" "}"#),
            (r#""\ud800  ""#, r#""\ud800  ""#),
            (" 1 ", "1"),
        ];
        for (given, expected) in cases {
            assert_eq!(Json::parse(given.into()).unwrap().compact().as_text(), expected);
        }
    }
}
