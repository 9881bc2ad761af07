//! JSON with comments and trailing commas, edited in place.

use super::{ConfigError, ENTRY, EntryMember, is_of_command};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

/// Comments and trailing commas are what editors allow in their settings. Anything else is an error, which the client would
/// refuse, too.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn with_entry(
    text: &str,
    section: &[&str],
    entry: &[EntryMember],
) -> Result<String, ConfigError> {
    let root = parsed(text)?;
    let mut object = root.object_value_or_create().ok_or_else(|| not_object("top level"))?;
    for name in section.iter().chain([&ENTRY]) {
        object = object.object_value_or_create(name).ok_or_else(|| not_object(name))?;
    }
    for (name, value) in entry {
        match object.get(name) {
            None => drop(object.append(name, input(value))),
            Some(member)
                if is_of_command(name) && member.to_serde_value().as_ref() != Some(value) =>
            {
                member.set_value(input(value));
            }
            Some(_) => {}
        }
    }
    let text = root.to_string();
    Ok(if text.ends_with('\n') { text } else { text + "\n" })
}

pub(super) fn without_entry(text: &str, section: &[&str]) -> Result<String, ConfigError> {
    let root = parsed(text)?;
    if let Some(entry) = object_at(&root, section).and_then(|object| object.get(ENTRY)) {
        entry.remove();
    }
    Ok(root.to_string())
}

pub(super) fn parse_value(text: &str) -> Result<Value, ConfigError> {
    Ok(parsed(text)?.to_serde_value().unwrap_or_default())
}

fn object_at(root: &CstRootNode, section: &[&str]) -> Option<CstObject> {
    let mut object = root.object_value()?;
    for name in section {
        object = object.object_value(name)?;
    }
    Some(object)
}

fn parsed(text: &str) -> Result<CstRootNode, ConfigError> {
    // Some editors write a byte order mark, which is not part of a value.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    CstRootNode::parse(text, &OPTIONS).map_err(|error| ConfigError::Unreadable(error.to_string()))
}

fn not_object(name: &str) -> ConfigError {
    ConfigError::NotObject(name.to_owned())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(flag) => CstInputValue::Bool(*flag),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| (name.clone(), input(value));
            CstInputValue::Object(members.iter().map(member).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_spelling_stay_as_they_are_written() {
        let text = r#"// mine
{
  "z": 1.0e2, /* why */
  "mcpServers": {
    "other": {"b":1,  "a":2}, // theirs
  },
  "a": "é",
}
"#;
        let ours = [("command", json!("airlock")), ("args", json!(["mcp"]))];
        let expected = r#"// mine
{
  "z": 1.0e2, /* why */
  "mcpServers": {
    "other": {"b":1,  "a":2}, // theirs
    "airlock": {
      "command": "airlock",
      "args": ["mcp"]
    },
  },
  "a": "é",
}
"#;
        let with = with_entry(text, &["mcpServers"], &ours).unwrap();
        assert_eq!(with, expected);
        assert_eq!(with_entry(&with, &["mcpServers"], &ours).unwrap(), expected);
        assert_eq!(without_entry(&with, &["mcpServers"]).unwrap(), text);
    }

    #[test]
    fn what_the_owner_added_to_the_entry_stays_and_the_command_is_renewed() {
        let text = r#"{ "servers": { "airlock": { "command": "old", "env": { "A": "1" }, "timeout": 5 } } }"#;
        let ours = [("command", json!("new")), ("args", json!(["mcp"])), ("timeout", json!(9))];
        let with = with_entry(text, &["servers"], &ours).unwrap();
        let airlock =
            json!({ "command": "new", "env": { "A": "1" }, "timeout": 5, "args": ["mcp"] });
        assert_eq!(parse_value(&with).unwrap(), json!({ "servers": { "airlock": airlock } }));
    }

    #[test]
    fn an_empty_file_is_an_empty_object_and_other_text_is_refused() {
        let ours = [("command", json!("airlock"))];
        for empty in ["", "\n", "{}"] {
            let with = with_entry(empty, &["a", "b"], &ours).unwrap();
            let expected = json!({ "a": { "b": { "airlock": { "command": "airlock" } } } });
            assert_eq!((parse_value(&with).unwrap(), with.ends_with("}\n")), (expected, true));
        }
        let refused = |text: &str| with_entry(text, &["servers"], &ours).unwrap_err();
        assert!(matches!(refused("{ a: 1 }"), ConfigError::Unreadable(_)));
        assert!(matches!(refused("{"), ConfigError::Unreadable(_)));
        assert_eq!(refused("[1]"), ConfigError::NotObject("top level".into()));
        assert_eq!(refused(r#"{"servers": 1}"#), ConfigError::NotObject("servers".into()));
    }
}
