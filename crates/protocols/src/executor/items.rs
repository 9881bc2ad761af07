//! How clients show items of `emit`: files and MCP content blocks unchanged, anything else as text.

use lifecycle::Json;
use regex::Regex;
use serde_json::Value;
use std::sync::LazyLock;

/// The item as a file, a content block, or a block of text.
pub(super) fn item_json(item: &Json) -> Json {
    match is_block(item) {
        true => item.clone(),
        false => {
            // A string with half of a surrogate pair has no plain text: it is shown as JSON.
            let text = serde_json::from_str::<String>(item.as_text());
            let text = text.unwrap_or_else(|_| item.as_text().to_owned());
            let block = serde_json::json!({ "type": "text", "text": text });
            Json::from_value(&block).unwrap_or_else(|_| Json::null())
        }
    }
}

/// Whether an item is a file, or a valid block of a kind that MCP defines: clients refuse a whole result
/// for one invalid member.
pub fn is_block(item: &Json) -> bool {
    if !item.as_text().trim_start().starts_with('{') {
        return false;
    }
    let Ok(item) = serde_json::from_str::<Value>(item.as_text()) else { return false };
    if item["_tag"] == "ToolFile" {
        return item["mimeType"].is_string() && item["data"].is_string();
    }
    let is_kind = match item["type"].as_str() {
        Some("text") => item["text"].is_string(),
        Some("image" | "audio") => is_base64(&item["data"]) && item["mimeType"].is_string(),
        Some("resource_link") => is_link(&item),
        Some("resource") => is_resource(&item["resource"]),
        _ => false,
    };
    is_kind
        && is_or_absent(&item["_meta"], Value::is_object)
        && are_annotations(&item["annotations"])
}

fn is_or_absent(value: &Value, is: impl FnOnce(&Value) -> bool) -> bool {
    value.is_null() || is(value)
}

/// As lenient as browsers and the official clients: spaces are ignored, and padding is optional.
fn is_base64(value: &Value) -> bool {
    let text = value.as_str();
    text.is_some_and(|text| base64_simd::forgiving_decode_to_vec(text.as_bytes()).is_ok())
}

fn is_link(item: &Value) -> bool {
    let is_icon = |icon: &Value| icon["src"].is_string();
    let are_icons = |icons: &Value| icons.as_array().is_some_and(|all| all.iter().all(is_icon));
    let texts = ["title", "description", "mimeType"];
    item["uri"].is_string()
        && item["name"].is_string()
        && texts.iter().all(|name| is_or_absent(&item[name], Value::is_string))
        && is_or_absent(&item["size"], Value::is_u64)
        && is_or_absent(&item["icons"], are_icons)
}

fn is_resource(resource: &Value) -> bool {
    resource["uri"].is_string()
        && is_or_absent(&resource["mimeType"], Value::is_string)
        && is_or_absent(&resource["_meta"], Value::is_object)
        && (resource["text"].is_string() || is_base64(&resource["blob"]))
}

fn are_annotations(annotations: &Value) -> bool {
    let is_role = |role: &Value| role == "user" || role == "assistant";
    let is_audience = |all: &Value| all.as_array().is_some_and(|all| all.iter().all(is_role));
    let is_priority = |of: &Value| of.as_f64().is_some_and(|of| (0.0..=1.0).contains(&of));
    let is_time = |at: &Value| at.as_str().is_some_and(is_time);
    is_or_absent(annotations, |given| {
        given.is_object()
            && is_or_absent(&given["audience"], is_audience)
            && is_or_absent(&given["priority"], is_priority)
            && is_or_absent(&given["lastModified"], is_time)
    })
}

/// A time with its zone, such as `2026-07-28T12:00:00Z`, on a valid date.
fn is_time(text: &str) -> bool {
    static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
        let day = r"([0-9]{4})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])";
        let (hour, sixty) = ("([01][0-9]|2[0-3])", "[0-5][0-9]");
        let shape = format!(r"^{day}T{hour}:{sixty}:{sixty}(\.[0-9]+)?(Z|[+-]{hour}:{sixty})$");
        Regex::new(&shape).expect("the shape above is a pattern")
    });
    let Some(found) = SHAPE.captures(text) else { return false };
    let number = |at: usize| found[at].parse::<u32>().unwrap_or_default();
    let (year, month, day) = (number(1), number(2), number(3));
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let n_days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    day <= n_days
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
            assert_eq!(item_json(&item).as_text(), expected);
        }
    }
    #[track_caller]
    fn check(expected: bool, items: &[&str]) {
        for item in items {
            assert_eq!(is_block(&Json::parse((*item).to_owned()).unwrap()), expected, "{item}");
        }
    }

    #[test]
    fn a_block_with_a_member_that_clients_refuse_is_none() {
        check(
            true,
            &[
                r#"{"type":"image","data":"Zm9\nvYg","mimeType":"image/png"}"#,
                r#"{"type":"text","text":"","annotations":{"audience":["user","assistant"],"priority":1}}"#,
                r#"{"type":"text","text":"","annotations":{"lastModified":"2024-02-29T23:59:59.5+02:00"}}"#,
                r#"{"type":"text","text":"","annotations":null,"_meta":{}}"#,
                r#"{"type":"resource","resource":{"uri":"a:b","blob":"Zm9v"}}"#,
            ],
        );
        check(
            false,
            &[
                r#"{"type":"image","data":"!!notb64","mimeType":"image/png"}"#,
                r#"{"type":"image","data":"data:image/png;base64,Zm9v","mimeType":"image/png"}"#,
                r#"{"type":"image","data":"Zm9v=","mimeType":"image/png"}"#,
                r#"{"type":"audio","data":"ä","mimeType":"audio/wav"}"#,
                r#"{"type":"resource","resource":{"uri":"a:b"}}"#,
                r#"{"type":"resource","resource":{"uri":"a:b","blob":"!"}}"#,
                r#"{"type":"resource_link","uri":"a:b","name":"b","size":"large"}"#,
                r#"{"type":"resource_link","uri":"a:b","name":"b","icons":[{}]}"#,
                r#"{"type":"text","text":"","_meta":1}"#,
                r#"{"type":"text","text":"","annotations":[]}"#,
                r#"{"type":"text","text":"","annotations":{"audience":["robot"]}}"#,
                r#"{"type":"text","text":"","annotations":{"priority":7}}"#,
                r#"{"type":"text","text":"","annotations":{"lastModified":"yesterday"}}"#,
                r#"{"type":"text","text":"","annotations":{"lastModified":"2026-07-28"}}"#,
                r#"{"type":"text","text":"","annotations":{"lastModified":"2025-02-29T00:00:00Z"}}"#,
            ],
        );
    }
}
