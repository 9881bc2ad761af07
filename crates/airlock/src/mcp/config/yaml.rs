//! Block-style YAML, edited line by line. The edit is verified by parsing the text before and after it: a file that
//! cannot be edited in this way is not changed.

use super::{ConfigError, ENTRY, EntryMember, is_of_command};
use serde_json::{Map, Value, json};
use tools::openapi::yaml_to_json;

/// Longest file as JSON. Such files hold a few pages.
const JSON_BYTES_MAX: usize = 16 << 20;

pub(super) fn with_entry(
    text: &str,
    section: &[&str],
    entry: &[EntryMember],
) -> Result<String, ConfigError> {
    let [section] = section else { return Err(ConfigError::NotBlock(section.join("."))) };
    let before = parse_value(text)?;
    let ours = renewed(&before[section][ENTRY], entry);
    let lines = remove_block(text, section);
    let new = inserted(&lines, section, &ours);
    let mut expected = object(before, "top level")?;
    let mut servers = object(expected.remove(*section).unwrap_or_default(), section)?;
    servers.insert(ENTRY.to_owned(), ours.into_iter().collect());
    expected.insert((*section).to_owned(), servers.into());
    checked(new, &expected.into(), section)
}

pub(super) fn without_entry(text: &str, section: &[&str]) -> Result<String, ConfigError> {
    let [section] = section else { return Err(ConfigError::NotBlock(section.join("."))) };
    let mut expected = parse_value(text)?;
    if let Some(servers) = expected[section].as_object_mut() {
        servers.remove(ENTRY);
        if servers.is_empty() {
            expected[section] = Value::Null; // a block without entries
        }
    }
    let lines = remove_block(text, section);
    checked(lines.concat(), &expected, section)
}

pub(super) fn parse_value(text: &str) -> Result<Value, ConfigError> {
    let has_content = text.lines().any(|line| !is_blank(line));
    if !has_content {
        return Ok(json!({}));
    }
    let json = yaml_to_json(text, JSON_BYTES_MAX).map_err(ConfigError::Unreadable)?;
    serde_json::from_str(&json).map_err(|error| ConfigError::Unreadable(error.to_string()))
}

type YamlMembers = Vec<(String, Value)>;

/// Merges the new entry into the old one: only the command of the old entry changes, and members that its owner added come
/// last.
fn renewed(old: &Value, entry: &[EntryMember]) -> YamlMembers {
    let mut old = old.as_object().cloned().unwrap_or_default();
    let mut ours = YamlMembers::new();
    for (name, value) in entry {
        let there = old.remove(*name).filter(|_| !is_of_command(name));
        ours.push(((*name).to_owned(), there.unwrap_or_else(|| value.clone())));
    }
    ours.extend(old);
    ours
}

fn object(value: Value, name: &str) -> Result<Map<String, Value>, ConfigError> {
    match value {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ConfigError::NotObject(name.to_owned()))
        }
    }
}

fn checked(text: String, expected: &Value, section: &str) -> Result<String, ConfigError> {
    match parse_value(&text) {
        Ok(value) if value == *expected => Ok(text),
        Ok(_) | Err(_) => Err(ConfigError::NotBlock(section.to_owned())),
    }
}

/// The lines, each with its end, without our entry.
fn remove_block<'a>(text: &'a str, section: &str) -> Vec<&'a str> {
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    let Some(at) = section_line(&lines, section) else { return lines };
    let mut kept: Vec<&str> = lines[..=at].to_vec();
    let mut rest = lines[at + 1..].iter().copied().peekable();
    let mut is_within = true;
    while let Some(line) = rest.next() {
        let indent = indent(line);
        is_within &= is_blank(line) || indent > 0;
        if is_within && key(line) == Some(ENTRY) {
            // Blank lines and comments before the next entry belong to that entry.
            while rest.peek().is_some_and(|next| !is_blank(next) && self::indent(next) > indent) {
                rest.next();
            }
        } else {
            kept.push(line);
        }
    }
    kept
}

/// The text with our entry as the first of its section.
fn inserted(lines: &[&str], section: &str, entry: &[(String, Value)]) -> String {
    let at = section_line(lines, section);
    let next = at.and_then(|at| lines[at + 1..].iter().find(|line| !is_blank(line)));
    let width = next.map_or(0, |line| indent(line)).max(if next.is_none() { 2 } else { 0 });
    let width = if width == 0 { 2 } else { width };
    let block = block(entry, width);
    match at {
        None => {
            let mut text = lines.concat();
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            format!("{text}{section}:\n{block}")
        }
        Some(at) => {
            let end = if lines[at].ends_with('\n') { "" } else { "\n" };
            // `extensions: {}` becomes a block.
            let head = lines[at].replacen("{}", "", 1);
            let head = if head == lines[at] { head } else { format!("{}\n", head.trim_end()) };
            format!("{}{head}{end}{block}{}", lines[..at].concat(), lines[at + 1..].concat())
        }
    }
}

/// The entry as lines; its values are JSON, which YAML contains.
fn block(entry: &[(String, Value)], width: usize) -> String {
    let outer = " ".repeat(width);
    let members = entry.iter().map(|(name, value)| format!("{outer}{outer}{name}: {value}\n"));
    format!("{outer}{ENTRY}:\n{}", members.collect::<String>())
}

fn section_line(lines: &[&str], section: &str) -> Option<usize> {
    lines.iter().position(|line| indent(line) == 0 && key(line) == Some(section))
}

/// The plain key with which a line begins.
fn key(line: &str) -> Option<&str> {
    let (key, rest) = line.trim_start().split_once(':')?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(key)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "---"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> [EntryMember; 3] {
        let args = json!(["mcp", "--as", "goose"]);
        [("cmd", json!("/a b/airlock")), ("args", args), ("timeout", json!(300))]
    }

    const OURS: &str = "  airlock:\n    cmd: \"/a b/airlock\"\n    args: [\"mcp\",\"--as\",\"goose\"]\n    timeout: 300\n";

    #[test]
    fn a_block_is_added_renewed_and_removed_and_the_rest_stays() {
        let text = "# mine\nGOOSE_MODEL: x # why\nextensions:\n  # theirs\n  developer:\n    enabled: true\n\n  other:\n    type: stdio\nGOOSE_MODE: auto\n";
        let with = with_entry(text, &["extensions"], &entry()).unwrap();
        assert_eq!(with, text.replace("extensions:\n", &format!("extensions:\n{OURS}")));
        let changed = with.replace("timeout: 300", "timeout: 7").replace("/a b/", "/old/");
        let renewed = with_entry(&changed, &["extensions"], &entry()).unwrap();
        assert_eq!(renewed, with.replace("timeout: 300", "timeout: 7"), "the owner's number stays");
        assert_eq!(without_entry(&with, &["extensions"]).unwrap(), text);
    }

    #[test]
    fn a_section_is_made_where_there_is_none() {
        for text in
            ["", "# mine\n", "a: 1", "a: 1\nextensions: {}\n", "extensions:\n", "extensions:"]
        {
            let with = with_entry(text, &["extensions"], &entry()).unwrap();
            assert!(with.ends_with(&format!("extensions:\n{OURS}")), "{text:?}: {with}");
            let without = parse_value(&without_entry(&with, &["extensions"]).unwrap()).unwrap();
            assert_eq!(without["extensions"], Value::Null);
        }
    }

    #[test]
    fn what_is_not_written_in_blocks_is_left_alone() {
        let refused = |text: &str| with_entry(text, &["extensions"], &entry()).unwrap_err();
        let not_block = ConfigError::NotBlock("extensions".into());
        assert_eq!(refused("extensions: {a: {b: 1}}\n"), not_block);
        assert_eq!(refused("{extensions: {}}\n"), not_block);
        assert_eq!(refused("extensions: 1\n"), ConfigError::NotObject("extensions".into()));
        assert_eq!(refused("- 1\n"), ConfigError::NotObject("top level".into()));
        assert!(matches!(refused("a: [\n"), ConfigError::Unreadable(_)));
        let inline = "extensions:\n  airlock: {cmd: x}\n  \"b\": 1\n";
        assert!(with_entry(inline, &["extensions"], &entry()).unwrap().contains("\"b\": 1"));
    }
}
