//! Encodes a value into a path, a query, a header or a cookie: every style of OpenAPI, and RFC 6570
//! for cases that OpenAPI leaves open.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// Characters that are not encoded in any part of a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Characters that `allowReserved` leaves unencoded. `#` and `&` would end the value, so they are encoded anyway.
const RESERVED: &AsciiSet = &UNRESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The styles of OpenAPI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterStyle {
    Form,
    Simple,
    Label,
    Matrix,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

impl ParameterStyle {
    /// A style by its name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "form" => Self::Form,
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// How one parameter or form field is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StyleManner {
    pub(crate) style: ParameterStyle,
    pub(crate) explode: bool,
    pub(crate) allow_reserved: bool,
    /// Encoded as one JSON text, as `content` requires.
    pub(crate) as_json: bool,
}

impl StyleManner {
    fn encode(self, text: &str) -> String {
        let set = if self.allow_reserved { RESERVED } else { UNRESERVED };
        utf8_percent_encode(text, set).to_string()
    }

    /// Encoded values, joined by an unencoded separator.
    fn joined(self, values: &[String], by: &str) -> String {
        values.iter().map(|value| self.encode(value)).collect::<Vec<_>>().join(by)
    }
}

/// A value in a path, encoded.
pub(crate) fn in_path(name: &str, value: &Value, manner: StyleManner) -> String {
    let name = manner.encode(name);
    if manner.as_json {
        return manner.encode(&value.to_string());
    }
    match (manner.style, value) {
        (ParameterStyle::Label, Value::Array(items)) => {
            format!(".{}", manner.joined(&texts(items), if manner.explode { "." } else { "," }))
        }
        (ParameterStyle::Label, Value::Object(members)) if manner.explode => {
            format!(".{}", pairs(members, manner, ".").unwrap_or_default())
        }
        (ParameterStyle::Label, Value::Object(members)) => {
            format!(".{}", manner.joined(&flat(members), ","))
        }
        (ParameterStyle::Label, value) => format!(".{}", manner.encode(&value_text(value))),
        (ParameterStyle::Matrix, Value::Array(items)) if manner.explode => {
            texts(items).iter().map(|item| format!(";{name}={}", manner.encode(item))).collect()
        }
        (ParameterStyle::Matrix, Value::Array(items)) => {
            format!(";{name}={}", manner.joined(&texts(items), ","))
        }
        (ParameterStyle::Matrix, Value::Object(members)) if manner.explode => {
            format!(";{}", pairs(members, manner, ";").unwrap_or_default())
        }
        (ParameterStyle::Matrix, Value::Object(members)) => {
            format!(";{name}={}", manner.joined(&flat(members), ","))
        }
        (ParameterStyle::Matrix, value) => format!(";{name}={}", manner.encode(&value_text(value))),
        (_, Value::Array(items)) => manner.joined(&texts(items), ","),
        (_, Value::Object(members)) if manner.explode => {
            pairs(members, manner, ",").unwrap_or_default()
        }
        (_, Value::Object(members)) => manner.joined(&flat(members), ","),
        (_, value) => manner.encode(&value_text(value)),
    }
}

/// A value in a query, a form or a cookie: encoded pairs.
pub(crate) fn in_query(name: &str, value: &Value, manner: StyleManner) -> Vec<(String, String)> {
    let key = StyleManner { allow_reserved: false, ..manner }.encode(name);
    if manner.as_json {
        return vec![(key, manner.encode(&value.to_string()))];
    }
    match (manner.style, value) {
        (_, Value::Null) => vec![],
        (ParameterStyle::DeepObject, Value::Array(_) | Value::Object(_)) => {
            let mut found = vec![];
            deep(name, value, manner, &mut found);
            found
        }
        (_, Value::Array(items)) if manner.explode => {
            texts(items).iter().map(|item| (key.clone(), manner.encode(item))).collect()
        }
        (_, Value::Object(members)) if manner.explode => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (manner.encode(name), manner.encode(&value_text(value))))
            .collect(),
        (_, Value::Array(items)) => {
            vec![(key, manner.joined(&texts(items), separator(manner.style)))]
        }
        (_, Value::Object(members)) => {
            vec![(key, manner.joined(&flat(members), separator(manner.style)))]
        }
        (_, value) => vec![(key, manner.encode(&value_text(value)))],
    }
}

/// A value in a header, unencoded.
pub(crate) fn in_header(value: &Value, manner: StyleManner) -> String {
    if manner.as_json {
        return value.to_string();
    }
    match value {
        Value::Array(items) => texts(items).join(","),
        Value::Object(members) if manner.explode => {
            let pairs = members.iter().map(|(name, value)| format!("{name}={}", value_text(value)));
            pairs.collect::<Vec<_>>().join(",")
        }
        Value::Object(members) => flat(members).join(","),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value_text(value),
    }
}

fn separator(style: ParameterStyle) -> &'static str {
    match style {
        ParameterStyle::SpaceDelimited => "%20",
        ParameterStyle::PipeDelimited => "%7C",
        ParameterStyle::Form
        | ParameterStyle::Simple
        | ParameterStyle::Label
        | ParameterStyle::Matrix
        | ParameterStyle::DeepObject => ",",
    }
}

/// `name[key][]=value`, to any depth; lists of objects are numbered, because `[]` would mix them up.
fn deep(name: &str, value: &Value, manner: StyleManner, found: &mut Vec<(String, String)>) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (key, value) in members {
                deep(&format!("{name}[{key}]"), value, manner, found);
            }
        }
        Value::Array(items) => {
            for (idx, item) in items.iter().enumerate() {
                let is_plain = !item.is_object() && !item.is_array();
                let key = if is_plain { String::new() } else { idx.to_string() };
                deep(&format!("{name}[{key}]"), item, manner, found);
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            let key = utf8_percent_encode(name, UNRESERVED).to_string();
            found.push((key, manner.encode(&value_text(value))));
        }
    }
}

fn pairs(members: &Map<String, Value>, manner: StyleManner, by: &str) -> Option<String> {
    let pairs = members.iter().map(|(name, value)| {
        format!("{}={}", manner.encode(name), manner.encode(&value_text(value)))
    });
    let pairs: Vec<_> = pairs.collect();
    (!pairs.is_empty()).then(|| pairs.join(by))
}

fn flat(members: &Map<String, Value>) -> Vec<String> {
    members.iter().flat_map(|(name, value)| [name.clone(), value_text(value)]).collect()
}

fn texts(items: &[Value]) -> Vec<String> {
    items.iter().map(value_text).collect()
}

/// A scalar as text; a value that is nested deeper than the style supports, as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manner(style: ParameterStyle, explode: bool) -> StyleManner {
        StyleManner { style, explode, allow_reserved: false, as_json: false }
    }

    fn path(style: ParameterStyle, explode: bool) -> Vec<String> {
        let values = [json!("blue sky"), json!(["blue", "black"]), json!({"B": 2, "R": 1})];
        values.iter().map(|value| in_path("color", value, manner(style, explode))).collect()
    }

    fn query(style: ParameterStyle, explode: bool) -> Vec<String> {
        let values = [json!("a b"), json!(["blue", "black"]), json!({"B": 2, "R": 1})];
        let line = |value| {
            let pairs = in_query("color", value, manner(style, explode));
            pairs
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join("&")
        };
        values.iter().map(line).collect()
    }

    #[test]
    fn paths_have_three_styles() {
        assert_eq!(path(ParameterStyle::Simple, false), ["blue%20sky", "blue,black", "B,2,R,1"]);
        assert_eq!(path(ParameterStyle::Simple, true), ["blue%20sky", "blue,black", "B=2,R=1"]);
        assert_eq!(path(ParameterStyle::Label, false), [".blue%20sky", ".blue,black", ".B,2,R,1"]);
        assert_eq!(path(ParameterStyle::Label, true), [".blue%20sky", ".blue.black", ".B=2.R=1"]);
        assert_eq!(
            path(ParameterStyle::Matrix, false),
            [";color=blue%20sky", ";color=blue,black", ";color=B,2,R,1"]
        );
        assert_eq!(
            path(ParameterStyle::Matrix, true),
            [";color=blue%20sky", ";color=blue;color=black", ";B=2;R=1"]
        );
    }

    #[test]
    fn queries_have_four_styles() {
        assert_eq!(
            query(ParameterStyle::Form, true),
            ["color=a%20b", "color=blue&color=black", "B=2&R=1"]
        );
        assert_eq!(
            query(ParameterStyle::Form, false),
            ["color=a%20b", "color=blue,black", "color=B,2,R,1"]
        );
        assert_eq!(
            query(ParameterStyle::SpaceDelimited, false),
            ["color=a%20b", "color=blue%20black", "color=B%202%20R%201"]
        );
        assert_eq!(
            query(ParameterStyle::PipeDelimited, false),
            ["color=a%20b", "color=blue%7Cblack", "color=B%7C2%7CR%7C1"]
        );
        assert_eq!(
            query(ParameterStyle::DeepObject, true),
            ["color=a%20b", "color%5B%5D=blue&color%5B%5D=black", "color%5BB%5D=2&color%5BR%5D=1"]
        );
    }

    #[test]
    fn reserved_characters_pass_where_the_parameter_says_so() {
        let reserved = StyleManner { allow_reserved: true, ..manner(ParameterStyle::Form, true) };
        let pairs = in_query("q", &json!("a/b?c=d&e#f%"), reserved);
        assert_eq!(pairs, [("q".into(), "a/b?c=d%26e%23f%25".to_owned())]);
    }

    #[test]
    fn content_is_one_json_text() {
        let json = StyleManner { as_json: true, ..manner(ParameterStyle::Form, true) };
        let pairs = in_query("filter", &json!({"a": [1]}), json);
        assert_eq!(pairs, [("filter".into(), "%7B%22a%22%3A%5B1%5D%7D".to_owned())]);
        assert_eq!(in_header(&json!({"a": 1}), json), "{\"a\":1}");
    }

    #[test]
    fn deep_objects_go_as_deep_as_they_are() {
        let value = json!({"a": {"b": [1, 2]}, "c": [{"d": 1}], "n": null});
        let pairs = in_query("q", &value, manner(ParameterStyle::DeepObject, true));
        let shown: Vec<_> = pairs
            .iter()
            .map(|(n, v)| format!("{}={v}", n.replace("%5B", "[").replace("%5D", "]")))
            .collect();
        assert_eq!(shown, ["q[a][b][]=1", "q[a][b][]=2", "q[c][0][d]=1"]);
    }
}
