use super::*;
use crate::json_rpc::{self, INVALID_PARAMS};
use proptest::prelude::*;
use std::path::Path;

#[test]
fn every_method_that_has_a_family_can_be_read() {
    for method in ["initialize", "process/start", "process/list", "fs/walk", "http/request"] {
        assert!(family(method).is_some() && read(method, None).is_some(), "{method}");
    }
    assert!(read("nope/x", None).is_none());
}

#[test]
fn wrong_params_are_named() {
    let cases = [
        ("initialize", "{}", "missing field `clientName`"),
        ("initialize", r#"{"clientName":5}"#, "invalid type: integer `5`, expected a string"),
        ("initialize", "null", "invalid type: null, expected struct InitializeParams"),
        ("process/start", r#"{"processId":"a"}"#, "missing field `argv`"),
        (
            "process/read",
            r#"{"processId":"a","afterSeq":-1}"#,
            "invalid value: integer `-1`, expected u64",
        ),
    ];
    for (method, params, expected) in cases {
        let raw = serde_json::value::RawValue::from_string(params.into()).unwrap();
        let error = read(method, Some(&raw)).unwrap().unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (INVALID_PARAMS, expected));
    }
}

#[test]
fn the_key_alone_tells_the_dialects_apart() {
    let read = |text: &str| -> Option<Option<String>> {
        serde_json::from_str::<InitializeParams>(text).unwrap().resume_session_id
    };
    assert_eq!(read(r#"{"clientName":"a"}"#), None);
    assert_eq!(read(r#"{"clientName":"a","resumeSessionId":null}"#), Some(None));
    assert_eq!(read(r#"{"clientName":"a","resumeSessionId":"s"}"#), Some(Some("s".into())));
}

#[test]
fn output_written_by_hand_reads_as_any_other() {
    let line = output_line(&quoted("a \"b\""), 7, ExecOutputStream::Pty, b"hi\n");
    let Ok(json_rpc::RpcMessage::Notification { method, params: Some(params) }) =
        json_rpc::read(&line)
    else {
        panic!("{line}")
    };
    assert_eq!(method, "process/output");
    let read: ExecOutputDeltaNotification = serde_json::from_str(params.get()).unwrap();
    let expected = ExecOutputDeltaNotification {
        process_id: "a \"b\"".into(),
        seq: Some(7),
        stream: ExecOutputStream::Pty,
        chunk: ByteChunk(b"hi\n".to_vec()),
        repaint: false,
    };
    assert_eq!(read, expected);
    for line in [exited_line(&quoted("p"), 8, 137, &[]), closed_line(&quoted("p"), 9)] {
        assert!(matches!(json_rpc::read(&line), Ok(json_rpc::RpcMessage::Notification { .. })));
    }
}

#[test]
fn a_path_is_a_uri_of_this_machine_or_absolute() {
    let path = |text: &str| path_of(text).map(|path| path.to_str().unwrap().to_owned());
    assert_eq!(path("file:///tmp/a%20b").as_deref(), Ok("/tmp/a b"));
    assert_eq!(path("file:/tmp").as_deref(), Ok("/tmp"));
    assert_eq!(path("file://localhost/tmp").as_deref(), Ok("/tmp"));
    assert_eq!(path("/tmp/x").as_deref(), Ok("/tmp/x"));
    assert!(matches!(path("tmp"), Err(BadPath::Relative(_))));
    assert!(matches!(path("http://x/tmp"), Err(BadPath::Scheme(_))));
    assert!(matches!(path("file://host/tmp"), Err(BadPath::Host(_))));
}

proptest! {
    #[test]
    fn a_path_survives_its_uri(name in "[a-zA-Z0-9 %#?äß☃.-]{1,20}") {
        let path = Path::new("/tmp").join(name);
        prop_assert_eq!(path_of(&uri_of(&path)).unwrap(), path);
    }

    #[test]
    fn bytes_survive_base64(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let chunk = ByteChunk(bytes);
        let text = serde_json::to_string(&chunk).unwrap();
        prop_assert_eq!(serde_json::from_str::<ByteChunk>(&text).unwrap(), chunk);
    }
}

#[test]
fn a_message_of_too_many_values_is_known_by_its_text() {
    assert!(!has_too_many_values(&"[1,".repeat(1_000)));
    let numbers = |n: usize| format!("[{}0]", "1,".repeat(n));
    assert!(has_too_many_values(&numbers(262_144)));
    assert!(!has_too_many_values(&numbers(262_000)));
    // Punctuation within a string does not count as values.
    assert!(!has_too_many_values(&format!("\"{}\\\"\"", ",[{".repeat(400_000))));
}

#[test]
fn a_file_request_carries_its_sandbox_and_one_that_cannot_be_read_is_refused() {
    let ask = |sandbox: &str| {
        let params = format!(r#"{{"path": "file:///tmp/a", "sandbox": {sandbox}}}"#);
        let raw = serde_json::value::RawValue::from_string(params).unwrap();
        let request = read("fs/readFile", Some(&raw)).unwrap().map_err(|error| error.code)?;
        let ExecServerRequest::File(_, sandbox) = request else {
            panic!("another request: {request:?}")
        };
        Ok(sandbox.map(|sandbox| sandbox.confines.rules))
    };
    assert_eq!(ask("null"), Ok(None));
    assert_eq!(ask(r#"{"permissions": {"type": "disabled"}}"#), Ok(None));
    assert_eq!(
        ask(r#"{"writable": []}"#),
        Ok(Some(vec![(FileSystemPlace::Root, PlaceAccess::Read)]))
    );
    let restricted = r#"{"permissions": {"type": "managed", "file_system": {"type": "restricted"}, "network": "enabled"}}"#;
    assert_eq!(ask(restricted), Err(crate::json_rpc::INVALID_PARAMS));
}

#[test]
fn each_method_has_its_family_its_request_and_its_own_params() {
    let id = r#"{"processId":"p"}"#;
    let path = r#"{"path":"/a"}"#;
    let handle = r#"{"handleId":"h"}"#;
    let cases = [
        ("initialize", r#"{"clientName":"a"}"#, "handshake", "Initialize("),
        (
            "process/start",
            r#"{"processId":"p","argv":["a"],"cwd":"/","env":{},"tty":false}"#,
            "exec",
            "ProcessStart(",
        ),
        ("process/read", id, "exec", "ProcessRead("),
        ("process/write", r#"{"processId":"p","chunk":""}"#, "exec", "ProcessWrite("),
        ("process/terminate", id, "exec", "ProcessTerminate("),
        ("process/closeStdin", id, "exec", "ProcessCloseStdin("),
        ("process/terminals", "{}", "exec", "ProcessTerminals"),
        ("process/list", "{}", "exec", "ProcessList"),
        ("environment/info", "{}", "environment info", "EnvironmentInfo"),
        ("environment/status", "{}", "environment info", "EnvironmentStatus"),
        ("fs/readFile", path, "filesystem", "File(ReadFile("),
        ("fs/writeFile", r#"{"path":"/a","dataBase64":""}"#, "filesystem", "File(WriteFile("),
        ("fs/createDirectory", path, "filesystem", "File(CreateDirectory("),
        ("fs/getMetadata", path, "filesystem", "File(GetMetadata("),
        ("fs/canonicalize", path, "filesystem", "File(Canonicalize("),
        ("fs/readDirectory", path, "filesystem", "File(ReadDirectory("),
        ("fs/remove", path, "filesystem", "File(Remove("),
        ("fs/copy", r#"{"sourcePath":"/a","destinationPath":"/b"}"#, "filesystem", "File(Copy("),
        ("fs/open", r#"{"handleId":"h","path":"/a"}"#, "filesystem", "File(Open("),
        ("fs/readBlock", r#"{"handleId":"h","offset":0,"len":1}"#, "filesystem", "File(ReadBlock("),
        ("fs/close", handle, "filesystem", "File(Close("),
        ("fs/watchMissing", r#"{"watchId":1,"missing":[]}"#, "filesystem", "WatchMissing("),
        ("http/request", "{}", "http", ""),
        ("environmentConfig/read", "[]", "environment config", ""),
    ];
    for (method, params, family_name, request) in cases {
        assert_eq!(family(method).map(MethodFamily::name), Some(family_name), "{method}");
        let raw = serde_json::value::RawValue::from_string(params.into()).unwrap();
        let read = read(method, Some(&raw)).unwrap();
        if !request.is_empty() {
            let shown = format!("{:?}", read.unwrap());
            assert!(shown.starts_with(request), "{method}: {shown}");
        }
    }
    for method in ["", "process", "fs/", "process/start "] {
        assert!(family(method).is_none() && read(method, None).is_none(), "{method}");
    }
}

#[test]
fn what_is_on_unless_said_otherwise_is_on() {
    assert_eq!([on(None), on(Some(true)), on(Some(false))], [true, true, false]);
}
