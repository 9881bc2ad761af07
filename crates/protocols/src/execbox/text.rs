//! Parses single members: texts are made well-formed, payloads are passed unchanged, numbers are accepted
//! in any notation.

use lifecycle::Json;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A text: borrowed from the line unless escapes forced a copy.
pub type WireText<'a> = Cow<'a, str>;

/// One JSON value as text, borrowed from the line.
#[derive(Clone, Copy)]
pub struct RawJson<'a>(&'a RawValue);

impl<'a> RawJson<'a> {
    /// `null`.
    pub const NULL: RawJson<'static> = RawJson(RawValue::NULL);

    /// `text`, if it is exactly one JSON value.
    pub fn parse(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// The text.
    pub fn as_text(self) -> &'a str {
        self.0.get()
    }

    /// An owned copy.
    pub fn to_json(self) -> Json {
        Json::from(self.0.to_owned())
    }
}

impl<'a> From<&'a Json> for RawJson<'a> {
    fn from(json: &'a Json) -> Self {
        Self(json.raw())
    }
}

impl<'a> From<&'a RawValue> for RawJson<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(raw)
    }
}

impl PartialEq for RawJson<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_text() == other.as_text()
    }
}

impl Eq for RawJson<'_> {}

impl fmt::Debug for RawJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_text())
    }
}

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&'a RawValue>::deserialize(from).map(Self)
    }
}

/// A text in which an escape for half of a surrogate pair becomes U+FFFD: refusing the message would make
/// the execution hang.
pub(super) fn json_string<'de, D: Deserializer<'de>>(from: D) -> Result<WireText<'de>, D::Error> {
    from.deserialize_bytes(WellFormed)
}

/// As [`text`], for a member that may be absent or null.
pub(super) fn text_if_any<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<WireText<'de>>, D::Error> {
    Ok(Option::<TextMember<'de>>::deserialize(from)?.map(|TextMember(text)| text))
}

/// A text inside a list or an option.
pub(super) struct TextMember<'a>(pub(super) WireText<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for TextMember<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        json_string(from).map(Self)
    }
}

/// Distinguishes a `null` member from an absent one.
pub(super) fn present<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<RawJson<'de>>, D::Error> {
    RawJson::deserialize(from).map(Some)
}

/// A line number; invalid values of other implementations' runners are ignored.
pub(super) fn line<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(RawJson::deserialize(from)?.as_text().parse().ok())
}

/// A count in any notation: `5000`, `5e3` and `5000.5` are the same, negative numbers are 0.
pub(super) fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let number = f64::deserialize(from)?;
    // `as` saturates, as intended for huge limits.
    Ok(number as u64)
}

struct WellFormed;

impl<'de> de::Visitor<'de> for WellFormed {
    type Value = WireText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<WireText<'de>, E> {
        Ok(match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(well_formed(bytes)),
        })
    }

    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<WireText<'de>, E> {
        Ok(Cow::Owned(well_formed(bytes)))
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<WireText<'de>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WireText<'de>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Half of a surrogate pair arrives as three bytes that are not valid UTF-8; one replacement character
/// replaces them.
fn well_formed(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len());
            for chunk in bytes.utf8_chunks() {
                text.push_str(chunk.valid());
                // The two continuation bytes of a surrogate are reported one by one.
                if chunk.invalid().first().is_some_and(|byte| !(0x80..0xC0).contains(byte)) {
                    text.push(char::REPLACEMENT_CHARACTER);
                }
            }
            text
        }
    }
}
