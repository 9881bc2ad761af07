//! A program's emitted items as content blocks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lifecycle::Json;
use protocols::executor::is_block;
use rmcp::model::{ContentBlock, ResourceContents};
use serde_json::Value;
use std::fmt::Write as _;

/// Maximum length of a file that is shown as text.
const FILE_CHARS_MAX: usize = 64_000;

/// The blocks of one emitted item: a file, a content block unchanged, or its text.
pub(super) fn blocks(item: &Json) -> Vec<ContentBlock> {
    let Ok(value) = serde_json::from_str::<Value>(item.as_text()) else {
        // An unpaired surrogate, or nested too deep: it is shown as it is written.
        return vec![ContentBlock::text(item.as_text())];
    };
    if value["_tag"] == "ToolFile" {
        return file(&value).unwrap_or_else(|| vec![ContentBlock::text(item.as_text())]);
    }
    match value {
        Value::String(text) => vec![ContentBlock::text(text)],
        Value::Object(_) if is_block(item) => {
            let block = serde_json::from_value(value);
            vec![block.unwrap_or_else(|_| ContentBlock::text(item.as_text()))]
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            vec![ContentBlock::text(item.as_text())]
        }
    }
}

/// A line about a file, and the file in the form that suits its type.
fn file(value: &Value) -> Option<Vec<ContentBlock>> {
    let mime = value["mimeType"].as_str()?;
    let data = value["data"].as_str()?;
    let name = value["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("file");
    let bytes = STANDARD.decode(data).ok()?;
    let n_bytes = value["byteLength"].as_u64().unwrap_or(bytes.len() as u64);
    let line = ContentBlock::text(format!("File output: {name} ({mime}, {n_bytes} bytes)"));
    let kind = mime.split(';').next().unwrap_or_default().trim();
    let shown = match kind.split_once('/') {
        Some(("image", _)) => ContentBlock::image(data, mime),
        Some(("audio", _)) => ContentBlock::audio(data, mime),
        _ if is_text(kind) => match String::from_utf8(bytes) {
            Ok(text) => ContentBlock::text(cut(&text, FILE_CHARS_MAX)),
            Err(_) => blob(name, mime, data),
        },
        _ => blob(name, mime, data),
    };
    Some(vec![line, shown])
}

fn is_text(mime: &str) -> bool {
    let structured =
        ["json", "xml", "javascript", "yaml", "x-yaml", "ecmascript", "typescript", "toml"];
    match mime.split_once('/') {
        Some(("text", _)) => true,
        Some(("application", kind)) => {
            structured.contains(&kind)
                || structured.iter().any(|end| kind.ends_with(&format!("+{end}")))
        }
        Some(_) | None => false,
    }
}

fn blob(name: &str, mime: &str, data: &str) -> ContentBlock {
    let mut uri = String::from("executor-file:///");
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            other => write!(uri, "%{other:02X}").expect("a String takes any text"),
        }
    }
    ContentBlock::resource(ResourceContents::BlobResourceContents {
        uri,
        mime_type: Some(mime.to_owned()),
        blob: data.to_owned(),
        meta: None,
    })
}

/// The first characters, and the number of omitted ones.
pub(super) fn cut(text: &str, n_max: usize) -> String {
    match text.char_indices().nth(n_max) {
        None => text.to_owned(),
        Some((at, _)) => {
            let n_missing = text[at..].chars().count();
            format!("{}\n... [truncated {n_missing} chars]", &text[..at])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(item: &Value, expected: &Value) {
        let item = Json::from_value(item).unwrap();
        assert_eq!(serde_json::to_value(blocks(&item)).unwrap(), *expected, "{item:?}");
    }

    #[test]
    fn plain_values_are_text_and_content_blocks_stay_as_they_are() {
        check(&json!("hi"), &json!([{ "type": "text", "text": "hi" }]));
        check(&json!(null), &json!([{ "type": "text", "text": "null" }]));
        check(&json!({ "a": 1 }), &json!([{ "type": "text", "text": "{\"a\":1}" }]));
        let image = json!({ "type": "image", "data": "aGk=", "mimeType": "image/png" });
        check(&image, &json!([image]));
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
        check(&link, &json!([link]));
        let unknown = json!({ "type": "hologram", "data": 1 });
        check(&unknown, &json!([{ "type": "text", "text": unknown.to_string() }]));
        let broken = json!({ "type": "image", "data": "!!notb64", "mimeType": "image/png" });
        check(&broken, &json!([{ "type": "text", "text": broken.to_string() }]));
        let lone = Json::parse(r#""\ud800""#.into()).unwrap();
        let shown = serde_json::to_value(blocks(&lone)).unwrap();
        assert_eq!(shown, json!([{ "type": "text", "text": "\"\\ud800\"" }]));
    }

    #[test]
    fn a_file_is_a_line_about_it_and_the_file_as_its_kind_is_best_shown() {
        let file = |name: &str, mime: &str, data: &str| {
            json!({ "_tag": "ToolFile", "name": name, "mimeType": mime, "encoding": "base64",
                    "data": data, "byteLength": 2 })
        };
        let line = |name: &str, mime: &str| json!({ "type": "text", "text": format!("File output: {name} ({mime}, 2 bytes)") });
        check(
            &file("p.png", "image/png", "aGk="),
            &json!([line("p.png", "image/png"), { "type": "image", "data": "aGk=", "mimeType": "image/png" }]),
        );
        check(
            &file("a.mp3", "audio/mpeg", "aGk="),
            &json!([line("a.mp3", "audio/mpeg"), { "type": "audio", "data": "aGk=", "mimeType": "audio/mpeg" }]),
        );
        check(
            &file("a.json", "application/problem+json", "aGk="),
            &json!([line("a.json", "application/problem+json"), { "type": "text", "text": "hi" }]),
        );
        check(
            &file("r 1.pdf", "application/pdf", "aGk="),
            &json!([line("r 1.pdf", "application/pdf"), { "type": "resource", "resource": {
                "uri": "executor-file:///r%201.pdf", "mimeType": "application/pdf", "blob": "aGk=" } }]),
        );
        let broken = file("x", "image/png", "not base64!");
        check(&broken, &json!([{ "type": "text", "text": broken.to_string() }]));
    }

    #[test]
    fn what_is_cut_is_counted() {
        assert_eq!(cut("äöü€", 2), "äö\n... [truncated 2 chars]");
        assert_eq!(cut("äö", 2), "äö");
    }
}
