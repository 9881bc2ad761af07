//! Input that clients send to the doors: request bodies and WebSocket messages.

use crate::text;
use protocols::enclave::sealing::{DirectionKeys, ServerHello, StreamOpener, StreamSealer};
use protocols::enclave::{EnclaveSessionId, EventFilter, inbound, parse_call_name};
use protocols::exec_server::{family, has_too_many_values};
use protocols::json_rpc::{RpcMessage, read, response_line};
use protocols::{exec_server as exec, executor as code_mode, mcp};
use serde_json::value::RawValue;

/// A message of an exec-server client.
pub fn json_rpc(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = has_too_many_values(text);
    let Ok(message) = read(text) else { return };
    match message {
        RpcMessage::Request { id, method, params } => {
            let outcome = exec::read(&method, params);
            assert_eq!(outcome.is_some(), family(&method).is_some());
            if let Some(Err(error)) = outcome {
                let answered = response_line::<()>(&id, Err(&error));
                assert!(matches!(read(&answered), Ok(RpcMessage::Response { .. })), "{answered}");
            }
        }
        RpcMessage::Notification { method, params } => drop(exec::read(&method, params)),
        RpcMessage::Response { .. } => {}
    }
}

/// Methods whose parameters the target `exec_server` tries: the first byte selects one.
const METHODS: [&str; 29] = [
    "initialize",
    "process/start",
    "process/read",
    "process/write",
    "process/terminate",
    "process/signal",
    "process/resize",
    "process/closeStdin",
    "process/wait",
    "process/waitFor",
    "process/screen",
    "process/attach",
    "environmentConfig/read",
    "fs/readFile",
    "fs/writeFile",
    "fs/createDirectory",
    "fs/getMetadata",
    "fs/canonicalize",
    "fs/readDirectory",
    "fs/walk",
    "fs/remove",
    "fs/copy",
    "fs/open",
    "fs/readBlock",
    "fs/writeBlock",
    "fs/watchMissing",
    "fs/close",
    "http/request",
    "environment/info",
];

/// The parameters of an exec-server method.
pub fn exec_server(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let method = METHODS[usize::from(*first) % METHODS.len()];
    let Some(Ok(params)) = text(rest).map(serde_json::from_str::<&RawValue>) else { return };
    let request = exec::read(method, Some(params)).expect("the method exists");
    if let Ok(request) = request {
        assert_eq!(Some(Ok(request)), exec::read(method, Some(params)), "decoding is a function");
    }
}

/// A frame of a REPL client. A rejected frame has an error message for its sender.
pub fn hotrepl(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Err(refused) = protocols::hotrepl::inbound::decode(text) {
        assert!(!refused.error.message.is_empty());
    }
}

/// Bodies and WebSocket frames of enclave clients.
pub fn enclave(bytes: &[u8]) {
    let _ = inbound::create(bytes);
    let _ = inbound::tool_result(bytes);
    let _ = inbound::cancel_reason(bytes);
    let _ = inbound::message(bytes);
    let _ = inbound::frame(bytes);
    let Some(text) = text(bytes) else { return };
    let _ = EventFilter::parse(text);
    let _ = parse_call_name(text);
    if let Ok(id) = EnclaveSessionId::parse(text) {
        assert_eq!(id.as_str(), text);
    }
}

const SECRET: [u8; 32] = [7; 32];
const KEY_ID: &str = "k";

/// A handshake and envelopes of an enclave client. Only envelopes that were sealed with the key can be opened.
pub fn enclave_envelope(bytes: &[u8]) {
    let session = EnclaveSessionId::parse("s_fuzz").expect("it is an id");
    if let Ok(hello) = serde_json::from_slice(bytes) {
        let answered = ServerHello::answer_handshake(&hello, &SECRET, &session, KEY_ID, None);
        let keys = DirectionKeys::agree(&SECRET, &hello.client_key, &session);
        assert!(answered.is_err() || keys.is_ok(), "an accepted key can be agreed upon");
    }
    let key = [1; 32];
    let opened = |envelope: &_| StreamOpener::messages(&key, KEY_ID, &session).open(envelope);
    if let Some(envelope) = inbound::envelope(bytes) {
        opened(&envelope).expect_err("a stranger cannot seal");
    }
    let sealed = StreamSealer::new(&key, [2; 8], KEY_ID, &session).seal(1, bytes);
    let sealed = sealed.expect("a new stream has room");
    if let Ok(inner) = opened(&sealed) {
        assert_eq!(inner, bytes);
        let _ = inbound::message(&inner);
    }
}

/// Bodies of executor clients, and messages of MCP clients that rmcp cannot read.
pub fn executor(bytes: &[u8]) {
    let _ = code_mode::execute(bytes);
    let _ = code_mode::resume(bytes);
    let _ = code_mode::rider(bytes);
    let _ = code_mode::answers(bytes);
    let _ = mcp::unreadable_message(bytes);
}
