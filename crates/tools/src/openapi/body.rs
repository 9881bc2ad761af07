//! Writes a body in the media type that an operation takes.

use super::plan::{FormFieldPlan, MediaContent};
use super::style::{ParameterStyle, StyleManner, in_query, value_text};
use crate::files::is_file;
use crate::http::{is_json, media_type};
use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The default encoding of a form field.
const USUAL: StyleManner = StyleManner {
    style: ParameterStyle::Form,
    explode: true,
    allow_reserved: false,
    as_json: false,
};

/// A body and its label.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrittenBody {
    pub(crate) label: String,
    pub(crate) bytes: Vec<u8>,
}

/// Encodes `value`, or reports what is wrong with it.
pub(crate) fn write(content: &MediaContent, value: &Value) -> Result<WrittenBody, String> {
    let kind = media_type(&content.label);
    if is_json(&kind) {
        return Ok(written(&content.label, json(content, value).into_bytes()));
    }
    match (kind.as_str(), value) {
        ("application/x-www-form-urlencoded", Value::Object(fields)) => {
            Ok(written(&content.label, form(content, fields).into_bytes()))
        }
        (
            "multipart/form-data" | "multipart/mixed" | "multipart/related",
            Value::Object(fields),
        ) => {
            let boundary = Uuid::new_v4().simple().to_string();
            let bytes = multipart(content, fields, &boundary)?;
            Ok(written(&format!("{kind}; boundary={boundary}"), bytes))
        }
        (_, Value::String(text)) => {
            Ok(written(label_for(&content.label, "text/plain"), text.as_bytes().to_vec()))
        }
        (_, file) if is_file(file) => {
            let (bytes, own) = file_bytes(file)?;
            Ok(written(label_for(&content.label, &own), bytes))
        }
        (_, value) if kind.contains('*') => {
            Ok(written("application/json", value.to_string().into_bytes()))
        }
        (_, Value::Bool(_) | Value::Number(_)) => {
            Ok(written(&content.label, value_text(value).into_bytes()))
        }
        (kind, _) => Err(format!("a body of type {kind} is given as text")),
    }
}

/// Decodes the base64 of a program.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let compact: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let is_url_safe = compact.contains(['-', '_']);
    let alphabet = if is_url_safe { &URL_SAFE } else { &STANDARD };
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let decoded = GeneralPurpose::new(alphabet, lenient).decode(compact);
    decoded.map_err(|_| "it is not base64".into())
}

fn written(label: &str, bytes: Vec<u8>) -> WrittenBody {
    WrittenBody { label: label.to_owned(), bytes }
}

/// A wildcard such as `image/*` cannot label a body.
fn label_for<'l>(label: &'l str, instead: &'l str) -> &'l str {
    if label.contains('*') { instead } else { label }
}

/// A value as JSON, with the base64 of files in the fields that hold bytes.
fn json(content: &MediaContent, value: &Value) -> String {
    let is_ours = |name: &str| value.get(name).is_some_and(is_file);
    if !content.files.iter().any(|name| is_ours(name)) {
        return value.to_string();
    }
    let mut value = value.clone();
    for name in &content.files {
        if let Some(field) = value.get_mut(name).filter(|field| is_file(field)) {
            *field = field["data"].take();
        }
    }
    value.to_string()
}

fn form(content: &MediaContent, fields: &Map<String, Value>) -> String {
    let pairs = fields.iter().flat_map(|(name, value)| {
        let field = field(content, name);
        let is_json =
            field.and_then(|f| f.content_type.as_deref()).is_some_and(|t| is_json(&media_type(t)));
        let manner = field.and_then(|field| field.manner).unwrap_or(USUAL);
        let is_bytes = content.files.iter().any(|file| file == name) && is_file(value);
        let value = if is_bytes { &value["data"] } else { value };
        in_query(name, value, StyleManner { as_json: is_json && !value.is_string(), ..manner })
    });
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn field<'c>(content: &'c MediaContent, name: &str) -> Option<&'c FormFieldPlan> {
    content.fields.iter().find(|(known, _)| known == name).map(|(_, field)| field)
}

fn multipart(
    content: &MediaContent,
    fields: &Map<String, Value>,
    boundary: &str,
) -> Result<Vec<u8>, String> {
    let mut body = vec![];
    for (name, value) in fields {
        let values = match value {
            Value::Null => continue,
            Value::Array(items) if !items.iter().any(Value::is_array) => items.iter().collect(),
            Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => vec![value],
        };
        for value in values {
            let part = part(content, name, value)?;
            body.extend_from_slice(format!("--{boundary}\r\n{}\r\n\r\n", part.head).as_bytes());
            body.extend_from_slice(&part.bytes);
            body.extend_from_slice(b"\r\n");
        }
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok(body)
}

struct FormPart {
    head: String,
    bytes: Vec<u8>,
}

fn part(content: &MediaContent, name: &str, value: &Value) -> Result<FormPart, String> {
    let own = field(content, name).and_then(|field| field.content_type.clone());
    let own = own.map(|label| first_label(&label));
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
    let (bytes, label) = if is_file(value) {
        let (bytes, kind) = file_bytes(value)?;
        let file_name = value.get("name").and_then(Value::as_str).unwrap_or(name);
        head.push_str(&format!("; filename=\"{}\"", quoted(file_name)));
        (bytes, Some(own.unwrap_or(kind)))
    } else if content.files.iter().any(|file| file == name) {
        head.push_str(&format!("; filename=\"{}\"", quoted(name)));
        (
            value_text(value).into_bytes(),
            Some(own.unwrap_or_else(|| "application/octet-stream".into())),
        )
    } else if value.is_object() || value.is_array() {
        (value.to_string().into_bytes(), Some(own.unwrap_or_else(|| "application/json".into())))
    } else {
        (value_text(value).into_bytes(), own)
    };
    if let Some(label) = label {
        head.push_str(&format!("\r\nContent-Type: {}", label.replace(['\r', '\n'], " ")));
    }
    Ok(FormPart { head, bytes })
}

/// Of `image/png, image/jpeg` the first.
fn first_label(labels: &str) -> String {
    labels.split(',').next().unwrap_or_default().trim().to_owned()
}

/// As browsers write names in a part's head.
fn quoted(name: &str) -> String {
    name.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22")
}

fn file_bytes(file: &Value) -> Result<(Vec<u8>, String), String> {
    let data = file.get("data").and_then(Value::as_str).unwrap_or_default();
    let bytes = from_base64(data).map_err(|why| format!("a file's data: {why}"))?;
    let kind = file.get("mimeType").and_then(Value::as_str).unwrap_or("application/octet-stream");
    let is_fine = kind.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    Ok((bytes, if is_fine { kind } else { "application/octet-stream" }.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn content(label: &str) -> MediaContent {
        MediaContent { label: label.into(), fields: vec![], files: vec!["photo".into()] }
    }

    fn body(label: &str, value: &Value) -> String {
        match write(&content(label), value) {
            Ok(written) => format!("{} {}", written.label, String::from_utf8_lossy(&written.bytes)),
            Err(why) => why,
        }
    }

    #[test]
    fn json_text_and_forms_are_written() {
        assert_eq!(body("application/json", &json!({"a": 1})), r#"application/json {"a":1}"#);
        assert_eq!(
            body("application/merge-patch+json", &json!(null)),
            "application/merge-patch+json null"
        );
        assert_eq!(body("text/csv", &json!("a,b")), "text/csv a,b");
        assert_eq!(
            body("application/xml", &json!({"a": 1})),
            "a body of type application/xml is given as text"
        );
        let form = json!({"a": "x y", "b": [1, 2], "c": null, "d": true});
        let expected = "application/x-www-form-urlencoded a=x%20y&b=1&b=2&d=true";
        assert_eq!(body("application/x-www-form-urlencoded", &form), expected);
        let png = json!({"_tag": "ToolFile", "mimeType": "image/png", "data": "aGk="});
        assert_eq!(body("image/*", &png), "image/png hi");
    }

    #[test]
    fn parts_are_labelled_and_names_cannot_break_out() {
        let file = json!({"encoding": "base64", "mimeType": "a/b\r\nX: 1", "name": "a\"\r\nb", "data": "aGk"});
        let fields = json!({"n": 1, "o": {"p": 2}, "photo": "raw", "f": [file], "x\"\r\n": "y"});
        let Value::Object(fields) = fields else { unreachable!() };
        let bytes = multipart(&content("multipart/form-data"), &fields, "B").unwrap();
        let expected = "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a%22%0D%0Ab\"\r\n\
            Content-Type: application/octet-stream\r\n\r\nhi\r\n\
            --B\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n1\r\n\
            --B\r\nContent-Disposition: form-data; name=\"o\"\r\nContent-Type: application/json\r\n\r\n{\"p\":2}\r\n\
            --B\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"photo\"\r\n\
            Content-Type: application/octet-stream\r\n\r\nraw\r\n\
            --B\r\nContent-Disposition: form-data; name=\"x%22%0D%0A\"\r\n\r\ny\r\n--B--\r\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn base64_is_read_however_it_is_written() {
        for text in ["aGk+/w==", "aGk+/w", "aGk-_w", "aGk+\n/w=="] {
            assert_eq!(from_base64(text).unwrap(), b"hi>\xff", "{text}");
        }
        assert!(from_base64("!").is_err());
    }
}
