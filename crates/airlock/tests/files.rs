//! Files through the real server: a program downloads bytes, uploads the same bytes, emits them and returns them, and
//! contains no base64. This holds for every protocol that runs programs.

use crate::repl_client::{self, Spoken};
use crate::server_fixture::Client;
use crate::source_fixture::House;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A picture by its signature, followed by every byte value.
fn picture() -> Vec<u8> {
    b"\x89PNG\r\n\x1a\n".iter().copied().chain(0..=255).collect()
}

/// The uploads: the path, the media type and the bytes.
type Uploads = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

/// An API that serves one picture and accepts any. It ends with the process.
struct Pictures {
    url: String,
    uploads: Uploads,
}

impl Pictures {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let pictures = Self { url: url.clone(), uploads: Arc::default() };
        let uploads = Arc::clone(&pictures.uploads);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, &url, &uploads);
            }
        });
        pictures
    }

    fn taken(&self) -> Vec<(String, String, Vec<u8>)> {
        std::mem::take(&mut *self.uploads.lock().unwrap())
    }
}

fn description(url: &str) -> String {
    let binary = json!({ "schema": { "type": "string", "format": "binary" } });
    let form = json!({ "schema": { "type": "object", "properties": {
        "photo": { "type": "string", "format": "binary" }, "title": { "type": "string" },
    } } });
    let upload = |id: &str, label: &str, content: &Value| json!({ "post": { "operationId": id, "tags": ["p"], "requestBody": { "required": true, "content": { label: content } } } });
    json!({
        "openapi": "3.1.0", "info": { "title": "Pictures", "version": "1" }, "servers": [{ "url": url }],
        "paths": {
            "/picture": { "get": { "operationId": "read", "tags": ["p"], "responses": { "200": { "content": { "image/png": binary } } } } },
            "/bytes": upload("bytes", "application/octet-stream", &json!({})),
            "/form": upload("form", "multipart/form-data", &form),
        },
    })
    .to_string()
}

fn serve(stream: TcpStream, url: &str, uploads: &Uploads) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
        line.map(|line| line[name.len()..].trim().to_owned()).unwrap_or_default()
    };
    let mut body = vec![0; header("content-length:").parse().unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let (label, answer) = match path.as_str() {
        "/openapi.json" => ("application/json", description(url).into_bytes()),
        "/picture" => ("image/png", picture()),
        _ => ("application/json", b"{}".to_vec()),
    };
    if head.starts_with("POST ") {
        uploads.lock().unwrap().push((path, header("content-type:"), body));
    }
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {label}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    let mut stream = reader.into_inner();
    // A client that disconnected does not matter here.
    drop(stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&answer)));
}

/// Downloads, changes a copy, uploads three times, emits, and returns what it received as the last expression.
const PROGRAM: &str = "const api = tools.pictures.org.main.p;
const file = (await api.read({})).data;
const bytes = file.bytes();
bytes[0] = 0;
await api.bytes({ body: file });
await api.bytes({ body: bytes });
await api.form({ body: { photo: new ToolFile(file.bytes(), { name: 'a.png', mimeType: file.mimeType }), title: 't' } });
emit(file);
({ isFile: file instanceof ToolFile, n: bytes.length, last: bytes[bytes.length - 1], type: file.mimeType, file })";

fn returned() -> Value {
    json!({ "isFile": true, "n": 264, "last": 255, "type": "image/png", "file": wire_form() })
}

fn wire_form() -> Value {
    let data = STANDARD.encode(picture());
    json!({ "_tag": "ToolFile", "mimeType": "image/png", "encoding": "base64", "data": data, "byteLength": 264 })
}

#[track_caller]
fn check_uploads(pictures: &Pictures) {
    let mut taken = pictures.taken();
    let (path, label, form) = taken.pop().unwrap();
    let mut changed = picture();
    changed[0] = 0;
    let bytes =
        |bytes: Vec<u8>| ("/bytes".to_owned(), "application/octet-stream".to_owned(), bytes);
    assert_eq!(taken, [bytes(picture()), bytes(changed)]);
    assert_eq!(path, "/form");
    let boundary = label.strip_prefix("multipart/form-data; boundary=").unwrap();
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n"
    );
    let tail = format!(
        "\r\n--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nt\r\n--{boundary}--\r\n"
    );
    assert_eq!(form, [head.as_bytes(), &picture(), tail.as_bytes()].concat());
}

fn mcp_call(client: &Client, code: &str) -> Value {
    let params = json!({ "name": "execute", "arguments": { "code": code } });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let kind = ("Content-Type", "application/json");
    let accept = ("Accept", "application/json, text/event-stream");
    let answer = client.send("POST", "/mcp", &[kind, accept], &call.to_string());
    answer.json()["result"].clone()
}

#[tokio::test]
async fn bytes_come_in_go_out_and_are_shown_without_base64_in_the_program() {
    let pictures = Pictures::start();
    let config = format!("[sources.pictures]\nurl = \"{}/openapi.json\"\n", pictures.url);
    let house = House::with(&config);
    house.ready("pictures");
    let rule = json!({ "owner": "org", "pattern": "pictures.*", "action": "approve" });
    assert_eq!(house.admin().post("/api/policies", &rule.to_string()).status, 200);
    let client = house.served.client("run");
    let explicit = PROGRAM.replace("\n({", "\nreturn ({");

    let answer = client.execute(&explicit);
    assert_eq!(answer.result(), returned());
    assert_eq!(answer.json()["structured"]["items"], json!([wire_form()]));
    check_uploads(&pictures);

    let over_mcp = mcp_call(&client, &explicit);
    assert_eq!(over_mcp["structuredContent"]["result"], returned(), "{over_mcp}");
    let blocks = over_mcp["content"].as_array().unwrap();
    assert_eq!(blocks[0]["text"], "File output: file (image/png, 264 bytes)");
    let shown =
        json!({ "type": "image", "data": STANDARD.encode(picture()), "mimeType": "image/png" });
    assert_eq!(blocks[1], shown);
    check_uploads(&pictures);

    let told = client.post("/sessions", &json!({ "code": PROGRAM }).to_string()).body;
    let last: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(last["payload"]["result"], returned(), "{told}");
    check_uploads(&pictures);

    let file = house.served.data_dir.join("tokens/run");
    let token = std::fs::read_to_string(file).unwrap();
    let mut repl = Spoken::connect(&repl_client::repl_url(&house.served), token.trim()).await;
    assert_eq!(repl.value(PROGRAM).await, returned());
    check_uploads(&pictures);
}

/// An MCP server of a few lines of shell. Its tool returns a picture, and a resource with bytes.
const SCRIPT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"draw","inputSchema":{"type":"object","properties":{"seed":{"type":"string","contentEncoding":"base64"}}},"annotations":{"readOnlyHint":true}}]}}\n' "$id" ;;
    *'"tools/call"'*) seed=$(printf '%s' "$line" | sed -n 's/.*"seed":"\([^"]*\)".*/\1/p'); printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"},{"type":"image","data":"AAH/","mimeType":"image/png"},{"type":"resource","resource":{"uri":"a:b","blob":"aGk="}}]}}\n' "$id" "$seed" ;;
  esac
done
"#;

#[test]
fn bytes_of_mcp_servers_have_the_methods_and_arguments_in_base64_are_given_as_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.sh");
    std::fs::write(&script, SCRIPT).unwrap();
    let config = format!("[sources.artist]\ncommand = {}\n", json!(["/bin/sh", script]));
    let house = House::with(&config);
    house.ready("artist");
    let code = "const { content } = (await tools.artist.org.main.draw({ seed: new Uint8Array([255, 254]) })).data;
        emit(content[1]);
        return [content[0].text, [...content[1].bytes()], content[2].resource.text(), content]";
    let answer = house.served.client("run").execute(code);
    let image = json!({ "type": "image", "data": "AAH/", "mimeType": "image/png" });
    let resource = json!({ "type": "resource", "resource": { "uri": "a:b", "blob": "aGk=" } });
    let content = json!([{ "type": "text", "text": "//4=" }, image, resource]);
    assert_eq!(answer.result(), json!(["//4=", [0, 1, 255], "hi", content]));
    assert_eq!(answer.json()["structured"]["items"], json!([image]));
}
