//! Reads parts of a JSON text lazily: unused members are skipped, and members of the wrong type count
//! as absent. Descriptions of APIs are large, and few are without a small mistake.

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Deserializer, Value};
use std::fmt;

/// The members of one JSON object, in the order of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    /// The members of an object; none if `raw` is not an object.
    pub(crate) fn from_raw(raw: &'a RawValue) -> Option<Self> {
        Deserializer::from_str(raw.get()).deserialize_map(MemberCollector).ok().map(Self)
    }

    /// As [`Self::of`], for a whole text, with its syntax error.
    pub(crate) fn of_text(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut reader = Deserializer::from_str(text);
        let members = reader.deserialize_map(MemberCollector)?;
        reader.end()?;
        Ok(Self(members))
    }

    /// A member. The last of two with the same name wins.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, raw)| *raw)
    }

    /// A member that is text.
    pub(crate) fn text_member(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// A member that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    /// A member that is an object.
    pub(crate) fn members(&self, name: &str) -> Option<Self> {
        Self::from_raw(self.raw(name)?)
    }

    /// A member that is a list; empty if there is none.
    pub(crate) fn list_member(&self, name: &str) -> Vec<&'a RawValue> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
    }

    /// Every member.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, raw)| (name.as_str(), *raw))
    }
}

/// One JSON value, parsed completely; none if it is nested too deeply.
pub(crate) fn value(raw: &RawValue) -> Option<Value> {
    serde_json::from_str(raw.get()).ok()
}

struct MemberCollector;

impl<'de> Visitor<'de> for MemberCollector {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = vec![];
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}
