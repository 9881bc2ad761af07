//! Converts YAML to JSON text. One pass over the parser's events; the output of aliases is counted, so that a
//! small file cannot become a large one.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::collections::HashMap;

/// Deepest nesting: JSON parsers accept no more.
const NESTING_MAX: usize = 120;

/// Writes the first document in `yaml` as JSON of at most `n_bytes_max` bytes.
pub fn to_json(yaml: &str, n_bytes_max: usize) -> Result<String, String> {
    let mut writer = YamlWriter { n_bytes_max, ..YamlWriter::default() };
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event.map_err(|error| error.to_string())?;
        let taken = writer.take(event);
        if taken.map_err(|why| format!("{why} at line {}", span.start.line()))? {
            break;
        }
    }
    if writer.json.is_empty() { Err("there is no YAML document".into()) } else { Ok(writer.json) }
}

#[derive(Default)]
struct YamlWriter {
    json: String,
    open: Vec<YamlContainer>,
    /// The value of each anchor: a range of `json`.
    anchors: HashMap<usize, (usize, usize)>,
    n_bytes_max: usize,
}

struct YamlContainer {
    is_mapping: bool,
    /// Whether the next node is a key.
    expects_key: bool,
    n_nodes: usize,
    anchor: usize,
    start: usize,
}

impl YamlWriter {
    /// Whether the document is complete.
    fn take(&mut self, event: Event<'_>) -> Result<bool, String> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let start = self.begin_node();
                self.scalar(&text, style, tag.as_deref());
                self.end_node(anchor, start);
            }
            Event::Alias(anchor) => self.alias(anchor)?,
            Event::SequenceStart(anchor, _) => self.open(false, anchor)?,
            Event::MappingStart(anchor, _) => self.open(true, anchor)?,
            Event::SequenceEnd => self.close(']'),
            Event::MappingEnd => self.close('}'),
            Event::DocumentEnd => return Ok(true),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
        if self.json.len() > self.n_bytes_max { Err(self.too_large()) } else { Ok(false) }
    }

    fn too_large(&self) -> String {
        format!("more than {} bytes once its aliases are written out", self.n_bytes_max)
    }

    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.is_mapping && open.expects_key)
    }

    fn alias(&mut self, anchor: usize) -> Result<(), String> {
        let (start, end) = *self.anchors.get(&anchor).ok_or("an alias of nothing")?;
        if self.expects_key() && !self.json[start..end].starts_with('"') {
            return Err("a key that is no text".into());
        }
        if self.json.len() + (end - start) > self.n_bytes_max {
            return Err(self.too_large());
        }
        let begin = self.begin_node();
        let piece = self.json[start..end].to_owned();
        self.json.push_str(&piece);
        self.end_node(0, begin);
        Ok(())
    }

    /// Writes the separator before this node, and returns where the node begins.
    fn begin_node(&mut self) -> usize {
        if let Some(open) = self.open.last() {
            let is_value = open.is_mapping && !open.expects_key;
            if is_value {
                self.json.push(':');
            } else if open.n_nodes > 0 {
                self.json.push(',');
            }
        }
        self.json.len()
    }

    fn end_node(&mut self, anchor: usize, start: usize) {
        if anchor > 0 {
            self.anchors.insert(anchor, (start, self.json.len()));
        }
        if let Some(open) = self.open.last_mut() {
            open.n_nodes += 1;
            open.expects_key = open.is_mapping && !open.expects_key;
        }
    }

    fn open(&mut self, is_mapping: bool, anchor: usize) -> Result<(), String> {
        if self.open.len() >= NESTING_MAX {
            return Err(format!("nesting deeper than {NESTING_MAX}"));
        }
        if self.expects_key() {
            return Err("a key that is no text".into());
        }
        let start = self.begin_node();
        self.json.push(if is_mapping { '{' } else { '[' });
        let expects_key = is_mapping;
        self.open.push(YamlContainer { is_mapping, expects_key, n_nodes: 0, anchor, start });
        Ok(())
    }

    fn close(&mut self, bracket: char) {
        self.json.push(bracket);
        if let Some(closed) = self.open.pop() {
            self.end_node(closed.anchor, closed.start);
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>) {
        let is_string_tag = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
        let is_plain = style == ScalarStyle::Plain && !self.expects_key() && !is_string_tag;
        match plain(text).filter(|_| is_plain) {
            Some(literal) => self.json.push_str(&literal),
            None => self.json.push_str(&serde_json::Value::from(text).to_string()),
        }
    }
}

/// The JSON literal of an unquoted scalar; none if it is text. The core schema of YAML 1.2:
/// `yes`, `on` and dates are text.
fn plain(text: &str) -> Option<String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some("null".into()),
        "true" | "True" | "TRUE" => return Some("true".into()),
        "false" | "False" | "FALSE" => return Some("false".into()),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(|number| number.to_string());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(|number| number.to_string());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.to_string());
    }
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|_| is_decimal)?;
    serde_json::Number::from_f64(number).map(|number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(yaml: &str, expected: &Value) {
        let json = to_json(yaml, 10_000).unwrap();
        assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), expected, "{json}");
    }

    #[test]
    fn scalars_are_read_as_yaml_1_2_says() {
        let yaml = "a: 1\nb: '1'\nc: 1.50\nd: yes\ne: ~\nf: true\ng: 2020-01-01\nh: 0x10\n\
                    200: ok\nnull: n\ni: !!str 5\nj: .inf\nk: -x\nl: 1.2.3\nm: |\n  x\n  y\n";
        let expected = json!({
            "a": 1, "b": "1", "c": 1.5, "d": "yes", "e": null, "f": true, "g": "2020-01-01", "h": 16,
            "200": "ok", "null": "n", "i": "5", "j": ".inf", "k": "-x", "l": "1.2.3", "m": "x\ny\n"
        });
        check(yaml, &expected);
    }

    #[test]
    fn containers_nest_and_aliases_repeat() {
        let yaml = "a: &x [1, {b: c}]\nd: *x\ne: {}\nf: []\n";
        let expected = json!({"a": [1, {"b": "c"}], "d": [1, {"b": "c"}], "e": {}, "f": []});
        check(yaml, &expected);
        check("- &k key\n- *k : 1\n", &json!(["key", {"key": 1}]));
    }

    #[test]
    fn a_bomb_of_aliases_is_refused() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let before = vec![format!("*a{}", n - 1); 10].join(",");
            bomb.push_str(&format!("a{n}: &a{n} [{before}]\n"));
        }
        let why = to_json(&bomb, 1 << 20).unwrap_err();
        assert!(
            why.starts_with("more than 1048576 bytes once its aliases are written out"),
            "{why}"
        );
    }

    #[test]
    fn what_is_no_yaml_or_no_json_is_told() {
        assert!(to_json("", 100).is_err());
        assert!(to_json("a: [1", 100).is_err());
        assert!(to_json("{a: b}: c", 100).unwrap_err().starts_with("a key that is no text"));
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(to_json(&deep, 100_000).is_err());
        assert!(to_json("a: &x [*x, 1]\nb: *x", 1_000).is_err());
    }
}
