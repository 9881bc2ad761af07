//! Notifications of a process. Most of a server's traffic is output, so its text is assembled directly.

use super::ExecOutputStream;
use serde_json::json;

/// A `process/output` notification. `process_id` is the name as JSON text.
pub fn output_line(process_id: &str, seq: u64, stream: ExecOutputStream, bytes: &[u8]) -> String {
    let stream = match stream {
        ExecOutputStream::Stdout => "stdout",
        ExecOutputStream::Stderr => "stderr",
        ExecOutputStream::Pty => "pty",
    };
    let head = format!(
        r#"{{"method":"process/output","params":{{"processId":{process_id},"seq":{seq},"stream":"{stream}","chunk":""#
    );
    let codec = base64_simd::STANDARD;
    let mut line = String::with_capacity(head.len() + codec.encoded_length(bytes.len()) + 4);
    line.push_str(&head);
    codec.encode_append(bytes, &mut line);
    line.push_str("\"}}");
    line
}

/// A `process/output` notification for a client that has missed output: it restores the content of its
/// terminal.
pub fn repaint_line(process_id: &str, seq: u64, paint: &[u8]) -> String {
    let line = output_line(process_id, seq, ExecOutputStream::Pty, paint);
    format!("{},\"repaint\":true}}}}", &line[..line.len() - 2])
}

/// A `process/exited` notification.
pub fn exited_line(process_id: &str, seq: u64, code: i32, denied: &[String]) -> String {
    let is_denied = !denied.is_empty();
    let what = if is_denied { format!(",\"denied\":{}", json!(denied)) } else { String::new() };
    format!(
        r#"{{"method":"process/exited","params":{{"processId":{process_id},"seq":{seq},"exitCode":{code},"sandboxDenied":{is_denied}{what}}}}}"#
    )
}

/// A `process/closed` notification.
pub fn closed_line(process_id: &str, seq: u64) -> String {
    format!(r#"{{"method":"process/closed","params":{{"processId":{process_id},"seq":{seq}}}}}"#)
}

/// A name as JSON text.
pub fn quoted(name: &str) -> String {
    json!(name).to_string()
}
