use super::events::ReceivedOutput;
use super::*;
use protocols::exec_server::ProcessOutputChunk;

fn output(seq: u64) -> ExecServerEvent {
    ExecServerEvent::OutputDelta(ExecOutputDeltaNotification {
        process_id: "p".into(),
        seq: Some(seq),
        stream: ExecOutputStream::Stdout,
        chunk: ByteChunk(vec![0]),
        repaint: false,
    })
}

fn exited(seq: u64) -> ExecServerEvent {
    ExecServerEvent::Exited(ExecExitedNotification {
        process_id: "p".into(),
        seq: Some(seq),
        exit_code: 3,
        sandbox_denied: Some(false),
        denied: vec![],
    })
}

fn closed(seq: u64) -> ExecServerEvent {
    ExecServerEvent::Closed(ExecClosedNotification { process_id: "p".into(), seq })
}

fn read(seqs: &[u64], next_seq: u64, is_exited: bool, is_closed: bool) -> ReadResponse {
    let chunk = |seq: &u64| ProcessOutputChunk {
        seq: *seq,
        stream: ExecOutputStream::Stdout,
        chunk: ByteChunk(vec![0]),
    };
    ReadResponse {
        chunks: seqs.iter().map(chunk).collect(),
        next_seq,
        exited: is_exited,
        exit_code: is_exited.then_some(3),
        closed: is_closed,
        failure: None,
        sandbox_denied: false,
        denied: vec![],
        dropped_bytes: 0,
        first_seq: seqs.first().copied(),
    }
}

#[test]
fn what_comes_twice_or_out_of_order_is_told_once_and_in_order() {
    let mut heard = ReceivedOutput::default();
    heard.begin_process("p");
    assert_eq!(heard.handle_event(output(1)), [output(1)]);
    assert_eq!(heard.handle_event(output(3)), []);
    assert_eq!(heard.handle_event(output(1)), []);
    assert_eq!(heard.handle_event(output(2)), [output(2), output(3)]);
    assert_eq!(heard.open(), [("p".to_owned(), 3)]);
}

#[test]
fn what_was_missed_is_read_and_what_was_pushed_meanwhile_waits_for_it() {
    let mut heard = ReceivedOutput::default();
    heard.begin_process("p");
    heard.handle_event(output(1));
    // Pushed over the new connection before the answer to the read.
    assert_eq!(heard.handle_event(output(4)), []);
    let due = heard.catch_up("p", read(&[2, 3], 4, false, false));
    assert_eq!(due, [output(2), output(3), output(4)]);
    // The exit is the number that is neither output nor the end.
    let due = heard.catch_up("p", read(&[5, 7], 9, true, true));
    assert_eq!(due, [output(5), exited(6), output(7), closed(8)]);
    assert_eq!(heard.open(), []);
}

#[test]
fn a_server_without_numbers_is_heard_as_it_comes() {
    let mut heard = ReceivedOutput::default();
    heard.begin_process("p");
    let unnumbered = ExecServerEvent::Exited(ExecExitedNotification {
        process_id: "p".into(),
        seq: None,
        exit_code: 0,
        sandbox_denied: None,
        denied: vec![],
    });
    assert_eq!(heard.handle_event(unnumbered.clone()), [unnumbered]);
}

#[test]
fn what_the_server_did_not_keep_is_told_and_nobody_waits_for_it() {
    let mut heard = ReceivedOutput::default();
    heard.begin_process("p");
    heard.handle_event(output(1));
    let mut page = read(&[4, 5], 6, false, false);
    page.dropped_bytes = 7;
    let lost = ExecServerEvent::Lost { process_id: "p".into(), bytes: 7 };
    assert_eq!(heard.catch_up("p", page), [lost, output(4), output(5)]);
}
