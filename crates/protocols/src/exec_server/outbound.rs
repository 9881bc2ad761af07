//! Notifications of a process. Output is most of what a server says, so its text is written by hand.

use super::ExecOutputStream;
use serde_json::json;

/// `process/output`. `process_id` is the name as JSON text.
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

/// `process/output` for a client that has missed something: what makes its terminal look as it should.
pub fn repaint_line(process_id: &str, seq: u64, paint: &[u8]) -> String {
    let line = output_line(process_id, seq, ExecOutputStream::Pty, paint);
    format!("{},\"repaint\":true}}}}", &line[..line.len() - 2])
}

/// `process/exited`.
pub fn exited_line(process_id: &str, seq: u64, code: i32, denied: &[String]) -> String {
    let is_denied = !denied.is_empty();
    let what = if is_denied { format!(",\"denied\":{}", json!(denied)) } else { String::new() };
    format!(
        r#"{{"method":"process/exited","params":{{"processId":{process_id},"seq":{seq},"exitCode":{code},"sandboxDenied":{is_denied}{what}}}}}"#
    )
}

/// `process/closed`.
pub fn closed_line(process_id: &str, seq: u64) -> String {
    format!(r#"{{"method":"process/closed","params":{{"processId":{process_id},"seq":{seq}}}}}"#)
}

/// A name as JSON text.
pub fn quoted(name: &str) -> String {
    json!(name).to_string()
}
