//! What `emit` hands out, as clients show it: files and MCP content blocks as they are, anything else as text.

use lifecycle::Json;
use serde_json::Value;

/// The item as a file, a content block, or a block of text.
pub(super) fn shown(item: &Json) -> Json {
    match is_block(item) {
        true => item.clone(),
        false => {
            // A string with half a surrogate pair has no plain text: it is shown as written.
            let text = serde_json::from_str::<String>(item.text());
            let text = text.unwrap_or_else(|_| item.text().to_owned());
            let block = serde_json::json!({ "type": "text", "text": text });
            Json::from_value(&block).unwrap_or_else(|_| Json::null())
        }
    }
}

/// A file, or a block of the kinds that MCP knows, with all that its kind needs.
fn is_block(item: &Json) -> bool {
    if !item.text().trim_start().starts_with('{') {
        return false;
    }
    let Ok(item) = serde_json::from_str::<Value>(item.text()) else { return false };
    let has = |name: &str| item.get(name).is_some_and(Value::is_string);
    if item.get("_tag").is_some_and(|tag| tag == "ToolFile") {
        return has("mimeType") && has("data");
    }
    match item.get("type").and_then(Value::as_str) {
        Some("text") => has("text"),
        Some("image" | "audio") => has("data") && has("mimeType"),
        Some("resource_link") => has("uri") && has("name"),
        Some("resource") => item
            .get("resource")
            .and_then(|resource| resource.get("uri"))
            .is_some_and(Value::is_string),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_blocks_stay_as_they_are_and_the_rest_is_text() {
        let same = [
            r#"{"type":"text","text":"hi"}"#,
            r#"{"type":"image","data":"Zm9v","mimeType":"image/png","more":1}"#,
            r#"{"type":"audio","data":"Zm9v","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","uri":"a:b","name":"b"}"#,
            r#"{"type":"resource","resource":{"uri":"a:b","text":""}}"#,
            r#"{"_tag":"ToolFile","mimeType":"text/csv","encoding":"base64","data":"YQ==","byteLength":1}"#,
        ];
        let text = [
            (r#""plain""#, r#"{"text":"plain","type":"text"}"#),
            ("null", r#"{"text":"null","type":"text"}"#),
            (r#"{"a":1}"#, r#"{"text":"{\"a\":1}","type":"text"}"#),
            (r#"{"type":"text"}"#, r#"{"text":"{\"type\":\"text\"}","type":"text"}"#),
            (r#""\ud800""#, r#"{"text":"\"\\ud800\"","type":"text"}"#),
        ];
        for (item, expected) in same.iter().map(|same| (*same, *same)).chain(text) {
            let item = Json::parse(item.to_owned()).unwrap();
            assert_eq!(shown(&item).text(), expected);
        }
    }
}
