//! Other programs' configuration: one entry is put in, everything else stays as it was written.

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Odd {
    /// Comments, or something broken.
    #[error("it is not plain JSON: {0}")]
    NotJson(String),
    /// Not what such a file looks like.
    #[error("its {0:?} is no object")]
    NoObject(String),
}

/// JSON text in which `text[section][name]` is `entry`.
pub(super) fn json(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, Odd> {
    let mut whole = members(text, "top level")?;
    let at = whole.iter().position(|(key, _)| key == section);
    let mut entries = match at {
        Some(at) => members(&whole[at].1, section)?,
        None => vec![],
    };
    put(&mut entries, name, indented(&entry.to_string(), "    "));
    let entries = written(&entries, "  ");
    put(&mut whole, section, entries);
    Ok(written(&whole, "") + "\n")
}

type Members = Vec<(String, String)>;

fn put(members: &mut Members, name: &str, value: String) {
    match members.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.to_owned(), value)),
    }
}

/// The members of an object in their order, each as it was written.
fn members(text: &str, what: &str) -> Result<Members, Odd> {
    if text.trim().is_empty() {
        return Ok(vec![]);
    }
    let broken = |error: serde_json::Error| Odd::NotJson(error.to_string());
    let raw: &RawValue = serde_json::from_str(text).map_err(broken)?;
    if !raw.get().starts_with('{') {
        return Err(Odd::NoObject(what.to_owned()));
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(InOrder).map_err(broken)
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = vec![];
        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
            members.push((key, value.get().to_owned()));
        }
        Ok(members)
    }
}

fn written(members: &Members, indent: &str) -> String {
    if members.is_empty() {
        return "{}".into();
    }
    let lines: Vec<String> = members
        .iter()
        .map(|(key, value)| format!("{indent}  {}: {value}", Value::from(key.as_str())))
        .collect();
    format!("{{\n{}\n{indent}}}", lines.join(",\n"))
}

/// JSON of ours, over several lines.
fn indented(json: &str, indent: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or(json!({}));
    let pretty = serde_json::to_string_pretty(&value).unwrap_or_default();
    pretty.replace('\n', &format!("\n{indent}"))
}

/// TOML text in which the table `header` has these lines; other tables stay as they are.
pub(super) fn toml(text: &str, header: &str, lines: &[String]) -> String {
    let is_ours = |line: &str| line.trim() == header;
    let is_header = |line: &str| line.trim_start().starts_with('[');
    let mut kept: Vec<&str> = vec![];
    let mut skipping = false;
    for line in text.lines() {
        if is_header(line) {
            skipping = is_ours(line);
        }
        if !skipping {
            kept.push(line);
        }
    }
    let mut whole = kept.join("\n").trim_end().to_owned();
    if !whole.is_empty() {
        whole.push_str("\n\n");
    }
    whole + header + "\n" + &lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_is_put_in_and_everything_else_stays_as_written() {
        let entry = json!({ "command": "airlock" });
        let text = r#"{ "z": 1.0e2, "mcpServers": { "other": {"b":1,  "a":2} }, "a": "é" }"#;
        let expected = r#"{
  "z": 1.0e2,
  "mcpServers": {
    "other": {"b":1,  "a":2},
    "airlock": {
      "command": "airlock"
    }
  },
  "a": "é"
}
"#;
        let once = super::json(text, "mcpServers", "airlock", &entry).unwrap();
        assert_eq!(once, expected);
        assert_eq!(super::json(&once, "mcpServers", "airlock", &entry).unwrap(), expected);
        let fresh = super::json("", "servers", "airlock", &entry).unwrap();
        let value: Value = serde_json::from_str(&fresh).unwrap();
        assert_eq!(value, json!({ "servers": { "airlock": entry } }));
    }

    #[test]
    fn what_is_not_plain_json_is_left_alone() {
        let odd = |text: &str| super::json(text, "servers", "airlock", &json!({})).unwrap_err();
        assert!(matches!(odd("{ // mine\n}"), Odd::NotJson(_)));
        assert_eq!(odd("[1]"), Odd::NoObject("top level".into()));
        assert_eq!(odd(r#"{"servers": 1}"#), Odd::NoObject("servers".into()));
    }

    #[test]
    fn a_table_is_replaced_and_other_tables_and_comments_stay() {
        let text = "# mine\nmodel = \"x\"\n\n[mcp_servers.airlock]\ncommand = \"old\"\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let lines = ["command = \"airlock\"".to_owned()];
        let once = toml(text, "[mcp_servers.airlock]", &lines);
        let expected = "# mine\nmodel = \"x\"\n\n[mcp_servers.other]\ncommand = \"y\"\n\n[mcp_servers.airlock]\ncommand = \"airlock\"\n";
        assert_eq!(once, expected);
        assert_eq!(toml(&once, "[mcp_servers.airlock]", &lines), expected);
        assert_eq!(toml("", "[t]", &lines), "[t]\ncommand = \"airlock\"\n");
    }
}
