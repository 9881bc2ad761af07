//! The tools that a plain host provides, as `execute` carries them.

use super::BadMessage;
use super::text::{RawJson, TextMember, WireText, json_string};
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess};
use std::fmt;

/// One namespace of tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ProviderNames<'a> {
    /// The global under which the guest accesses it.
    #[serde(borrow, deserialize_with = "json_string")]
    pub name: WireText<'a>,
    /// Names of its tools in the host's order. As in execbox's own runner, the key is used, not `safeName`.
    #[serde(borrow, deserialize_with = "keys")]
    pub tools: Vec<WireText<'a>>,
    /// Parsed because a manifest without it is invalid.
    #[serde(borrow, rename = "types", deserialize_with = "json_string")]
    _types: WireText<'a>,
}

impl<'a> ProviderNames<'a> {
    /// Parses a list of manifests. If execbox would refuse one of them, the whole message is invalid and
    /// ignored.
    pub fn read_all(manifests: RawJson<'a>) -> Result<Vec<Self>, BadMessage> {
        Ok(serde_json::from_str(manifests.as_text())?)
    }
}

/// The manifest of one tool: validated, but not stored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolEntry<'a> {
    #[serde(borrow, rename = "safeName", deserialize_with = "json_string")]
    _safe_name: WireText<'a>,
    #[serde(borrow, rename = "originalName", deserialize_with = "json_string")]
    _original_name: WireText<'a>,
    /// Absent or a text; `null` is invalid.
    #[serde(borrow, default, rename = "description", deserialize_with = "json_string")]
    _description: WireText<'a>,
}

fn keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<WireText<'de>>, D::Error> {
    from.deserialize_map(ManifestKeys)
}

struct ManifestKeys;

impl<'de> de::Visitor<'de> for ManifestKeys {
    type Value = Vec<WireText<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tools by their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut keys = Vec::with_capacity(map.size_hint().unwrap_or(0));
        while let Some((TextMember(key), ToolEntry { .. })) = map.next_entry()? {
            keys.push(key);
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<ProviderNames<'_>>, BadMessage> {
        ProviderNames::read_all(RawJson::parse(text).unwrap())
    }

    #[test]
    fn the_key_names_the_tool_and_what_is_more_is_tolerated() {
        let text = r#"[{"name":"p","types":"","more":1,"tools":{"b":{"safeName":"x","originalName":"y"},
            "a\ud800":{"safeName":"x","originalName":"y","description":"d","inputSchema":{}}}}]"#;
        let providers = read(text).unwrap();
        assert_eq!(providers[0].name, "p");
        assert_eq!(providers[0].tools, ["b", "a\u{FFFD}"]);
        assert_eq!(read("[]").unwrap(), []);
    }

    #[test]
    fn a_manifest_that_lacks_something_is_refused() {
        for text in [
            "{}",
            "[1]",
            r#"[{"name":"p","tools":{}}]"#,
            r#"[{"types":"","tools":{}}]"#,
            r#"[{"name":"p","types":"","tools":[]}]"#,
            r#"[{"name":"p","types":"","tools":{"a":{"safeName":"x"}}}]"#,
            r#"[{"name":"p","types":"","tools":{"a":{"safeName":"x","originalName":1}}}]"#,
            r#"[{"name":"p","types":"","tools":{"a":{"safeName":"x","originalName":"y","description":null}}}]"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
