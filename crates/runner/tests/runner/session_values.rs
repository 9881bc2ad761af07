//! Session values that are longer than the reported part of them.

use lifecycle::{RandomSeed, Timestamp};
use protocols::execbox::ToRunner;
use protocols::execbox::session::{
    EvalOrder, FromSession, GuestTime, OpenSession, TaskEnd, TaskOutcome, ToSession, encode,
};
use runner::GuestWorld;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

const MEMORY_BYTES: u64 = 64 << 20;

/// Evaluates texts one after another in one session and returns their outcomes as JSON.
fn outcomes(texts: &[&str]) -> Vec<serde_json::Value> {
    let (mut link, theirs) = UnixStream::pair().unwrap();
    let session = std::thread::spawn(move || GuestWorld::warm().serve(theirs));
    let mut lines = Vec::new();
    ToRunner::Session(OpenSession {
        memory_bytes: MEMORY_BYTES,
        seed: RandomSeed([0; 32]),
        start_ms: Timestamp(0),
        elements_max: 100,
        value_chars_max: 102_401,
        printed_bytes_max: 102_400,
    })
    .encode(&mut lines);
    for (task, text) in (1..).zip(texts) {
        let now = GuestTime { at: Timestamp(0), frame: 0 };
        encode(&ToSession::Eval(EvalOrder { task, code: (*text).into(), now }), &mut lines);
    }
    link.write_all(&lines).unwrap();
    // A session that died sends nothing more: with the timeout the test fails instead of waiting.
    link.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let mut outcomes = Vec::new();
    for line in BufReader::new(link.try_clone().unwrap()).lines() {
        let line = line.unwrap();
        if let FromSession::Ended(TaskEnd { outcome, fouled, .. }) =
            serde_json::from_str(&line).unwrap()
        {
            assert!(!fouled, "{line}");
            outcomes.push(serde_json::to_value::<TaskOutcome<'_>>(outcome).unwrap());
        }
        if outcomes.len() == texts.len() {
            break;
        }
    }
    link.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(session.join().unwrap(), 0);
    outcomes
}

#[test]
fn a_value_of_nearly_all_the_memory_is_cut_and_definitions_stay() {
    for mebibytes in [17, 24, 28, 30, 36, 48, 60] {
        let text = format!("'x'.repeat({mebibytes} << 20)");
        let ended = outcomes(&["let kept = 7", &text, "kept"]);
        let value = &ended[1]["value"];
        assert_eq!(value["type_name"], "string", "{mebibytes}");
        assert_eq!(value["json"].as_str().map(str::len), Some(102_401), "{mebibytes}");
        let whole: u64 = (mebibytes << 20) + 2;
        assert_eq!(value["bytes"], whole, "what was left out counts");
        assert_eq!(ended[2]["value"]["json"], "7", "{mebibytes}");
    }
}
