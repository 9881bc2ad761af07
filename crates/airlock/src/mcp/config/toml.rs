//! TOML, edited in place.

use super::{ConfigError, ENTRY, EntryMember, is_of_command};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value as item};

pub(super) fn with_entry(
    text: &str,
    section: &[&str],
    entry: &[EntryMember],
) -> Result<String, ConfigError> {
    let mut document = parsed(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in section {
        let mut fresh = Table::new();
        fresh.set_implicit(true);
        table = table_in(table, name, fresh)?;
    }
    let ours = table_in(table, ENTRY, Table::new())?;
    for (name, value) in entry {
        let is_there = ours.contains_key(name);
        if let (Some(value), true) = (written(value), !is_there || is_of_command(name)) {
            ours.insert(name, value);
        }
    }
    Ok(document.to_string())
}

pub(super) fn without_entry(text: &str, section: &[&str]) -> Result<String, ConfigError> {
    let mut document = parsed(text)?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in section {
        let Some(inner) = table.get_mut(name).and_then(Item::as_table_like_mut) else {
            return Ok(text.to_owned());
        };
        table = inner;
    }
    table.remove(ENTRY);
    Ok(document.to_string())
}

pub(super) fn parse_value(text: &str) -> Result<Value, ConfigError> {
    toml::from_str(text).map_err(|error| unreadable(&error))
}

fn parsed(text: &str) -> Result<DocumentMut, ConfigError> {
    text.parse().map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::fmt::Display) -> ConfigError {
    // Its later lines repeat the position.
    let text = error.to_string();
    ConfigError::Unreadable(text.lines().next().unwrap_or_default().to_owned())
}

fn table_in<'a>(
    outer: &'a mut dyn TableLike,
    name: &str,
    fresh: Table,
) -> Result<&'a mut dyn TableLike, ConfigError> {
    let inner = outer.entry(name).or_insert(Item::Table(fresh));
    inner.as_table_like_mut().ok_or_else(|| ConfigError::NotObject(name.to_owned()))
}

/// A member as TOML; `None` for types that no supported client uses.
fn written(value: &Value) -> Option<Item> {
    match value {
        Value::Bool(flag) => Some(item(*flag)),
        Value::Number(number) => number.as_i64().map(item),
        Value::String(text) => Some(item(text)),
        Value::Array(items) => {
            let texts: Array = items.iter().filter_map(Value::as_str).collect();
            Some(item(texts))
        }
        Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_added_renewed_and_removed_and_the_rest_stays() {
        let text = "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"\n";
        let entry = |command: &str| {
            [
                ("command", json!(command)),
                ("args", json!(["mcp", "a\"b"])),
                ("tool_timeout_sec", json!(120)),
            ]
        };
        let with = with_entry(text, &["mcp_servers"], &entry("old")).unwrap();
        let expected = format!(
            "{text}\n[mcp_servers.airlock]\ncommand = \"old\"\nargs = [\"mcp\", 'a\"b']\ntool_timeout_sec = 120\n"
        );
        assert_eq!(with, expected);
        let changed = with.replace("120", "7");
        let renewed = with_entry(&changed, &["mcp_servers"], &entry("new")).unwrap();
        assert_eq!(renewed, changed.replace("old", "new"), "the owner's number stays");
        assert_eq!(without_entry(&renewed, &["mcp_servers"]).unwrap(), text);
        let fresh = with_entry("", &["mcp_servers"], &entry("x")).unwrap();
        assert!(fresh.starts_with("[mcp_servers.airlock]\n"), "{fresh}");
    }

    #[test]
    fn what_is_no_table_is_left_alone() {
        let refused = |text: &str| with_entry(text, &["a"], &[]).unwrap_err();
        assert_eq!(refused("a = 1"), ConfigError::NotObject("a".into()));
        assert!(matches!(refused("a = "), ConfigError::Unreadable(_)));
    }
}
