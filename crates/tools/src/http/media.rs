//! Determines the media type of a body from its label and its first bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The type without its parameters, in lower case: `application/json` of `Application/JSON; charset=utf-8`.
pub(crate) fn media_type(label: &str) -> String {
    label.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a type is one JSON value. Several values in lines are text.
pub(crate) fn is_json(media_type: &str) -> bool {
    let is_lines = ["ndjson", "jsonl", "json-seq", "jsonlines", "stream+json"]
        .iter()
        .any(|word| media_type.contains(word));
    let is_value = media_type.ends_with("/json")
        || media_type.ends_with("+json")
        || media_type.ends_with("/x-json")
        || (media_type.starts_with("application/json") && !media_type.contains('*'));
    is_value && !is_lines
}

/// Whether a type is text.
pub(crate) fn is_text(media_type: &str) -> bool {
    let words =
        ["xml", "json", "yaml", "javascript", "ecmascript", "graphql", "x-www-form-urlencoded"];
    media_type.starts_with("text/")
        || media_type
            .strip_prefix("application/")
            .is_some_and(|rest| words.iter().any(|word| rest.contains(word)))
        || media_type == "image/svg+xml"
}

/// A file as programs see one, and as `emit` takes it.
pub(crate) fn file(bytes: &[u8], media_type: &str) -> Value {
    let is_vague =
        matches!(media_type, "" | "application/octet-stream" | "binary/octet-stream" | "*/*");
    let media_type = match sniff(bytes) {
        Some(known) if is_vague => known,
        Some(_) | None if is_vague => "application/octet-stream",
        Some(_) | None => media_type,
    };
    json!({
        "_tag": "ToolFile",
        "mimeType": media_type,
        "encoding": "base64",
        "data": STANDARD.encode(bytes),
        "byteLength": bytes.len(),
    })
}

/// The media type by magic bytes, if they are unambiguous.
fn sniff(bytes: &[u8]) -> Option<&'static str> {
    const SIGNATURES: [(&[u8], &str); 10] = [
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
        (b"PK\x05\x06", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"OggS", "audio/ogg"),
        (b"ID3", "audio/mpeg"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let known = SIGNATURES.iter().find(|(start, _)| bytes.starts_with(start));
    known.map(|(_, name)| *name).or_else(|| {
        let is_plain = |byte: &u8| *byte >= 0x20 || b"\t\n\r\x0c".contains(byte);
        let is_text = !bytes.is_empty() && bytes.iter().all(is_plain);
        (is_text && std::str::from_utf8(bytes).is_ok()).then_some("text/plain")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_without_their_parameters() {
        for json in ["application/json; charset=utf-8", "application/vnd.api+json", "text/json"] {
            assert!(is_json(&media_type(json)), "{json}");
        }
        for text in ["text/csv", "application/xml", "application/x-ndjson", "application/x-yaml"] {
            assert!(is_text(&media_type(text)) && !is_json(&media_type(text)), "{text}");
        }
        for bytes in ["image/png", "application/octet-stream", "application/pdf", "video/mp4"] {
            assert!(!is_text(bytes) && !is_json(bytes), "{bytes}");
        }
    }

    #[test]
    fn a_vague_label_gives_way_to_what_the_bytes_say() {
        let kind = |bytes: &[u8], label| file(bytes, label)["mimeType"].clone();
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n...", "application/octet-stream"), "image/png");
        assert_eq!(kind(b"\x89PNG\r\n\x1a\n...", "image/x-own"), "image/x-own");
        assert_eq!(kind(b"plain", ""), "text/plain");
        assert_eq!(kind(b"\x00\x01", ""), "application/octet-stream");
    }
}
