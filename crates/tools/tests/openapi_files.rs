//! Files as arguments of OpenAPI tools, through the catalogue, against a service that returns the bytes it received.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use axum::routing::any;
use lifecycle::{CallId, CallOutcome, CallerName, Json, ToolPath};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tools::openapi::{Options, import};
use tools::{
    CancelSignal, Catalogue, Connection, ConnectionName, ConnectionOwner, IntegrationSlug,
    PersonHandle, ProgressHandle, SourceCard, ToolCredential, ToolRequest,
};

/// Bytes that are not valid UTF-8.
const BYTES: [u8; 5] = [0, 0xff, b'\r', b'\n', 0xfe];

/// Returns the bytes that arrived, each byte as a character.
async fn echo(headers: HeaderMap, body: Bytes) -> String {
    let label = headers.get(header::CONTENT_TYPE).map(|label| label.to_str().unwrap().to_owned());
    let body: String = body.iter().map(|byte| char::from(*byte)).collect();
    json!({ "type": label, "body": body }).to_string()
}

fn description(server: &str) -> Value {
    let binary = json!({"type": "string", "format": "binary"});
    let form = json!({"type": "object", "properties": {
        "photo": binary, "more": {"type": "array", "items": binary}, "title": {"type": "string"},
    }});
    let operation = |id: &str, content: Value| {
        json!({"post": {"operationId": id, "tags": ["f"], "requestBody": {"required": true, "content": content}, "responses": {
            "200": {"content": {"image/png": {}}},
        }}})
    };
    json!({
        "openapi": "3.1.0", "info": {"title": "Files", "version": "1"}, "servers": [{"url": server}],
        "paths": {
            "/bytes": operation("bytes", json!({"application/octet-stream": {}})),
            "/image": operation("image", json!({"image/png": {"schema": binary}, "image/*": {"schema": binary}})),
            "/form": operation("form", json!({"multipart/form-data": {"schema": form}})),
            "/json": operation("json", json!({"application/json": {"schema": {"type": "object", "properties": {
                "icon": {"type": "string", "format": "byte"}, "photo": binary, "title": {"type": "string"},
            }}}})),
            "/any": operation("any", json!({"application/json": {"schema": {"type": "object"}}, "application/octet-stream": {}})),
        },
    })
}

/// Returns a catalogue of the service's tools. The service ends with the test.
#[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
async fn catalogue() -> Catalogue {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async {
        axum::serve(listener, Router::new().fallback(any(echo))).await.unwrap();
    });
    let catalogue = Catalogue::new(vec![]).unwrap();
    let connection = Connection {
        owner: ConnectionOwner::Org,
        name: ConnectionName::normalised("main").unwrap(),
        proof: Arc::new(ToolCredential::none()),
    };
    let api = import(&description(&url).to_string(), Options::default()).unwrap();
    let card = SourceCard { name: "api".into(), ..SourceCard::default() };
    let slug = IntegrationSlug::parse("api").unwrap();
    catalogue.put(&slug, card, Arc::new(api), vec![Arc::new(connection)]);
    catalogue
}

fn path(tool: &str) -> ToolPath {
    ToolPath::parse(&format!("api.org.main.f.{tool}")).unwrap()
}

async fn call(catalogue: &Catalogue, tool: &str, args: &Value) -> Value {
    let request = ToolRequest {
        execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
        call: CallId(1),
        attempt: 1,
        tool: path(tool),
        args: Json::from_value(args).unwrap(),
        caller: CallerName("test".into()),
        cancelled: CancelSignal::never(),
        person: PersonHandle::absent(),
        progress: ProgressHandle::unwatched(),
    };
    let CallOutcome::Returned { value: Some(told) } = catalogue.call(request).await else {
        panic!("the tool gives an envelope")
    };
    serde_json::from_str(told.as_text()).unwrap()
}

fn file(mime_type: &str) -> Value {
    json!({"_tag": "ToolFile", "name": "a.png", "mimeType": mime_type, "encoding": "base64", "data": "AP8NCv4=", "byteLength": 5})
}

fn bytes_as_text() -> String {
    BYTES.iter().map(|byte| char::from(*byte)).collect()
}

#[tokio::test]
async fn a_file_arrives_as_its_bytes() {
    let catalogue = catalogue().await;
    let image_block = json!({"type": "image", "mimeType": "image/png", "data": "AP8NCv4="});
    for (tool, args, label) in [
        ("bytes", json!({"body": file("image/png")}), "application/octet-stream"),
        ("bytes", json!({"bodyBase64": file("image/png")}), "application/octet-stream"),
        ("bytes", json!({"bodyBase64": "AP8NCv4="}), "application/octet-stream"),
        ("image", json!({"body": file("image/png")}), "image/png"),
        ("image", json!({"body": file("image/webp")}), "image/webp"),
        ("image", json!({"body": image_block}), "image/png"),
        ("any", json!({"body": file("image/png")}), "application/octet-stream"),
    ] {
        let said = call(&catalogue, tool, &args).await;
        let said: Value = serde_json::from_str(said["data"].as_str().unwrap()).unwrap();
        assert_eq!(said, json!({"type": label, "body": bytes_as_text()}), "{tool} {args}");
    }
}

#[tokio::test]
async fn files_in_forms_and_in_json_arrive_as_the_form_has_them() {
    let catalogue = catalogue().await;
    let said = async |tool: &str, body: Value| {
        let said = call(&catalogue, tool, &json!({ "body": body })).await;
        let said: Value = serde_json::from_str(said["data"].as_str().unwrap()).unwrap();
        said["body"].as_str().unwrap().to_owned()
    };
    let form = json!({"photo": file("image/png"), "more": [file("a/b")], "title": "t"});
    let parts = said("form", form).await;
    let bytes = bytes_as_text();
    for (name, label) in [("photo", "image/png"), ("more", "a/b")] {
        let part = format!(
            "name=\"{name}\"; filename=\"a.png\"\r\nContent-Type: {label}\r\n\r\n{bytes}\r\n"
        );
        assert!(parts.contains(&part), "{parts}");
    }
    let fields = json!({"icon": file("image/png"), "photo": file("image/png"), "title": "t"});
    let expected = json!({"icon": "AP8NCv4=", "photo": "AP8NCv4=", "title": "t"});
    assert_eq!(said("json", fields).await, expected.to_string());
}

#[tokio::test]
async fn a_file_where_text_belongs_is_refused_with_advice() {
    let catalogue = catalogue().await;
    let said = call(&catalogue, "json", &json!({"body": {"title": file("text/plain")}})).await;
    let message = said["error"]["message"].as_str().unwrap();
    assert_eq!(said["error"]["code"], "invalid_tool_arguments", "{said}");
    assert!(
        message.contains("at /body/title")
            && message.ends_with("A file is no text: pass its `data` (base64) or its `text()`."),
        "{message}"
    );
}

#[tokio::test]
async fn tools_that_take_and_give_bytes_say_so() {
    let catalogue = catalogue().await;
    let described = |tool: &str| catalogue.find(&path(tool)).unwrap().describe();
    let bytes = described("bytes");
    assert_eq!(bytes.input.unwrap(), "{ body?: ToolFile; bodyBase64?: string; }");
    assert!(bytes.output.unwrap().starts_with("{ ok: true; data: ToolFile; "));
    assert!(bytes.definitions["ToolFile"].contains("bytes(): Uint8Array"));
    let image = described("image").input.unwrap();
    assert!(image.contains("body: string | ToolFile"), "{image}");
}
