//! Reads any JSON text into a value that a validator can look at, also text that `serde_json` refuses
//! although JavaScript wrote it. Only validation looks at the result; tools get the text as it was.

use serde_json::Value;

/// Containers nested deeper than this are looked at from outside only. Below the 127 levels that
/// `serde_json` reads, and a stack's worth below what would make a recursive validator overflow.
pub(crate) const NESTING_MAX: usize = 100;

/// A value for validators, and whether it differs from the text it was read from.
pub(crate) struct Readable {
    pub(crate) value: Value,
    pub(crate) is_tamed: bool,
}

/// Reads `text`, which must be one JSON value. Lone surrogates become U+FFFD, numbers beyond `f64`
/// its largest, and containers at [`NESTING_MAX`] empty.
pub(crate) fn read(text: &str) -> Option<Readable> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(Readable { value, is_tamed: false });
    }
    let value = serde_json::from_str(&tame(text)).ok()?;
    Some(Readable { value, is_tamed: true })
}

fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    let mut depth = 0_usize;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(token_bytes(rest, first));
        rest = after;
        if matches!(first, '{' | '[') {
            depth += 1;
        }
        let is_border = matches!(first, '{' | '[' | '}' | ']') && depth == NESTING_MAX;
        if depth < NESTING_MAX || is_border {
            push_tamed(&mut tamed, first, token);
        }
        if matches!(first, '}' | ']') {
            depth = depth.saturating_sub(1);
        }
    }
    tamed
}

/// Length of the string, number or single character that `rest` begins with.
fn token_bytes(rest: &str, first: char) -> usize {
    match first {
        '"' => {
            let mut is_escaped = false;
            let end = rest.bytes().skip(1).position(|byte| {
                let is_end = byte == b'"' && !is_escaped;
                is_escaped = byte == b'\\' && !is_escaped;
                is_end
            });
            end.map_or(rest.len(), |at| at + 2)
        }
        '-' | '0'..='9' => {
            let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
            rest.bytes().position(|byte| !is_number(byte)).unwrap_or(rest.len())
        }
        other => other.len_utf8(),
    }
}

fn push_tamed(tamed: &mut String, first: char, token: &str) {
    match first {
        '"' => push_string(tamed, token),
        '-' | '0'..='9' => match token.parse::<f64>() {
            Ok(number) if number.is_infinite() => {
                tamed.push_str(&f64::MAX.copysign(number).to_string());
            }
            Ok(_) | Err(_) => tamed.push_str(token),
        },
        _ => tamed.push_str(token),
    }
}

/// Copies a string token, replacing each `\ud800`…`\udfff` that has no partner.
fn push_string(tamed: &mut String, mut rest: &str) {
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        tamed.push_str(plain);
        let n_bytes = match (surrogate(escape), surrogate(escape.get(6..).unwrap_or(""))) {
            (Some(Half::Leading), Some(Half::Trailing)) => 12,
            (Some(Half::Leading | Half::Trailing), _) => {
                tamed.push_str("\\ufffd");
                rest = escape.get(6..).unwrap_or("");
                continue;
            }
            // The escaped character goes along, so that `\\` is not taken for two beginnings.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(n_bytes);
        tamed.push_str(kept);
        rest = after;
    }
    tamed.push_str(rest);
}

enum Half {
    Leading,
    Trailing,
}

fn surrogate(escape: &str) -> Option<Half> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::Leading),
        0xdc00..=0xdfff => Some(Half::Trailing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &Value) {
        let readable = read(text).unwrap();
        assert_eq!((&readable.value, readable.is_tamed), (expected, true));
    }

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_kept() {
        check(r#""a\ud800b""#, &json!("a\u{fffd}b"));
        check(r#"["\ud83d\ude00", "\udc00\ud800"]"#, &json!(["😀", "\u{fffd}\u{fffd}"]));
        check(
            r#"["\\ud800", "\ud800\\", "\"\uDFFF\""]"#,
            &json!(["\\ud800", "\u{fffd}\\", "\"\u{fffd}\""]),
        );
        check(r#"{"\ud800é": 1}"#, &json!({"\u{fffd}é": 1}));
    }

    #[test]
    fn numbers_beyond_f64_become_its_largest() {
        check("[1e999, -1e999, 3]", &json!([f64::MAX, f64::MIN, 3]));
    }

    #[test]
    fn deep_nesting_is_cut_and_what_surrounds_it_is_kept() {
        let deep =
            format!(r#"{{"a":{}"]"{},"b":{{"c":1}}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        let value = read(&deep).unwrap().value;
        assert_eq!(value["b"], json!({"c": 1}));
        let mut levels = 0;
        let mut inner = &value["a"];
        while let Some(next) = inner.get(0) {
            inner = next;
            levels += 1;
        }
        assert_eq!((inner, levels), (&json!([]), NESTING_MAX - 2));
    }

    #[test]
    fn what_can_be_read_is_not_touched() {
        let readable = read(r#"{"a": [1, "\ud83d\ude00"]}"#).unwrap();
        assert_eq!((readable.value, readable.is_tamed), (json!({"a": [1, "😀"]}), false));
    }
}
