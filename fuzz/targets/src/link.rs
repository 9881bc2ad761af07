//! The link between the server and a runner.

use protocols::execbox::session::{FromSession, ToSession, encode};
use protocols::execbox::{FromRunner, ProviderNames, ToRunner, asks_to_multiplex};
use protocols::ndjson::LineBuffer;

/// Returns the only line in `encoded`, without its line break.
fn only_line(encoded: &[u8]) -> &[u8] {
    let line = encoded.strip_suffix(b"\n").expect("a message ends with a line break");
    assert!(!line.contains(&b'\n'), "a message is one line");
    line
}

/// A line from a runner. A decoded message encodes to one line that decodes to the same message.
pub fn execbox_from_runner(bytes: &[u8]) {
    let Ok(message) = FromRunner::decode(bytes) else { return };
    let mut encoded = vec![];
    message.encode(&mut encoded);
    let again = FromRunner::decode(only_line(&encoded)).expect("our own line is a message");
    // Messages that arrive as lines contain no line breaks; in other payloads, line breaks become spaces.
    if !bytes.contains(&b'\n') {
        assert_eq!(again, message);
    }
}

/// A line from a host. A decoded message encodes to one line that decodes to the same message.
pub fn execbox_to_runner(bytes: &[u8]) {
    let _ = asks_to_multiplex(bytes);
    let Ok(message) = ToRunner::decode(bytes) else { return };
    if let ToRunner::Execute(execute) = &message {
        let _ = ProviderNames::read_all(execute.providers);
    }
    let mut encoded = vec![];
    message.encode(&mut encoded);
    let again = ToRunner::decode(only_line(&encoded)).expect("our own line is a message");
    if !bytes.contains(&b'\n') {
        assert_eq!(again, message);
    }
}

/// A line of a REPL session, in either direction.
pub fn repl_session(bytes: &[u8]) {
    let mut encoded = vec![];
    if let Ok(message) = serde_json::from_slice::<FromSession<'_>>(bytes) {
        encode(&message, &mut encoded);
        let again: FromSession<'_> =
            serde_json::from_slice(only_line(&encoded)).expect("our own line is a message");
        assert!(bytes.contains(&b'\n') || again == message);
        encoded.clear();
    }
    if let Ok(message) = serde_json::from_slice::<ToSession<'_>>(bytes) {
        encode(&message, &mut encoded);
        let again: ToSession<'_> =
            serde_json::from_slice(only_line(&encoded)).expect("our own line is a message");
        assert!(bytes.contains(&b'\n') || again == message);
    }
}

/// Longest line of the target `ndjson`; short, so that the fuzzer reaches the limit.
const LINE_BYTES_MAX: usize = 40;

/// A stream of lines. The first byte is the size of the pieces in which the rest arrives; the lines do not depend on it.
pub fn ndjson(bytes: &[u8]) {
    let Some((size, stream)) = bytes.split_first() else { return };
    let size = usize::from(*size).max(1);
    let mut lines = LineBuffer::new(LINE_BYTES_MAX);
    let mut found = vec![];
    let mut is_refused = false;
    for piece in stream.chunks(size) {
        lines.push(piece);
        while !is_refused {
            match lines.take() {
                Ok(Some(line)) => found.push(line.to_vec()),
                Ok(None) => break,
                Err(_) => is_refused = true,
            }
        }
    }
    let mut expected: Vec<_> = stream.split(|byte| *byte == b'\n').collect();
    let unfinished = expected.pop().unwrap_or_default();
    let too_long = expected.iter().position(|line| line.len() > LINE_BYTES_MAX);
    assert_eq!(found, expected[..too_long.unwrap_or(expected.len())]);
    assert_eq!(is_refused, too_long.is_some() || unfinished.len() > LINE_BYTES_MAX);
}
