//! Programs over pipes and terminals: their environment, their output, and its order.

use crate::suite::{Heard, PIPED, PIPES, TERMINAL, shell, spec, start, told};
use bytes::Bytes;
use processes::{
    BadSpec, FamilySignal, Process, ProcessEvent, ProcessSpec, PtySize, SpawnError, WriteRefusal,
};

#[tokio::test]
async fn output_comes_first_then_the_exit_then_the_end() {
    let house = start();
    let process = house.spawn(&shell(PIPES, "echo a; echo b >&2; exit 3")).await.unwrap();
    let (code, order) = Heard::new(&process).end().await;
    assert_eq!(code, 3);
    assert!(["oeXC", "eoXC"].contains(&order.as_str()), "{order}");
    house.shutdown().await;
}

#[tokio::test]
async fn a_hundred_programs_that_talk_until_the_last_moment_are_heard_before_their_exit() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        for _ in 0..50 {
            let process = house.spawn(&shell(streams, "seq 20000")).await.unwrap();
            let mut heard = Heard::new(&process);
            let (_, order) = heard.end().await;
            assert!(order.ends_with("XC"), "{order}");
            assert_eq!(heard.text.lines().count(), 20_000);
        }
    }
    house.shutdown().await;
}

#[tokio::test]
async fn a_background_child_is_heard_after_the_exit_and_before_the_end() {
    let house = start();
    let script = "exec 3<&0; (read x <&3; echo late) & echo early";
    let process = house.spawn(&shell(PIPED, script)).await.unwrap();
    let mut heard = Heard::new(&process);
    while !matches!(heard.next().await, ProcessEvent::Exited { .. }) {}
    let room = process.input_room(3).await;
    process.write(Bytes::from_static(b"go\n"), room).unwrap();
    let (_, order) = {
        let mut order = String::new();
        loop {
            match heard.next().await {
                ProcessEvent::Output(_) => order.push('o'),
                ProcessEvent::Closed { .. } => break ((), order + "C"),
                ProcessEvent::Exited { .. } => panic!("it exits once"),
            }
        }
    };
    assert_eq!((heard.text.as_str(), order.as_str()), ("early\nlate\n", "oC"));
    house.shutdown().await;
}

#[tokio::test]
async fn death_by_signal_is_128_and_its_number_with_and_without_a_terminal() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("INT", 2), ("HUP", 1)] {
            let script = format!("kill -{name} $$; sleep 1000");
            let (_, code) = told(&house, &shell(streams, &script)).await;
            assert_eq!((streams, name, code), (streams, name, 128 + number));
        }
        let (_, code) = told(&house, &shell(streams, "exit 255")).await;
        assert_eq!(code, 255);
    }
    house.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        let errno = async |spec: ProcessSpec| match house.spawn(&spec).await {
            Err(SpawnError::System(error)) => error.raw_os_error(),
            other => panic!("{other:?}"),
        };
        assert_eq!(errno(spec(streams, &["/no/such/bin"])).await, Some(ENOENT));
        assert_eq!(errno(spec(streams, &["no-such-command"])).await, Some(ENOENT));
        assert_eq!(errno(spec(streams, &["/etc/passwd"])).await, Some(EACCES));
        let nowhere = ProcessSpec { cwd: "/no/such/folder".into(), ..spec(streams, &["true"]) };
        assert_eq!(errno(nowhere).await, Some(ENOENT));
    }
    assert!(matches!(house.spawn(&spec(PIPES, &[])).await, Err(SpawnError::Bad(BadSpec::NoArgv))));
    house.shutdown().await;
}

const ENOENT: i32 = 2;
const EACCES: i32 = 13;

#[tokio::test]
async fn a_name_is_looked_up_in_the_path_it_is_given_or_the_usual_one() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        for env in [vec![], vec![("PATH".into(), "/usr/bin:/bin".into())]] {
            let (_, code) = told(&house, &ProcessSpec { env, ..spec(streams, &["true"]) }).await;
            assert_eq!(code, 0);
        }
        let here = ProcessSpec { cwd: "/bin".into(), ..spec(streams, &["./true"]) };
        assert_eq!(told(&house, &here).await.1, 0);
        let env = vec![("PATH".into(), "/nowhere".into())];
        assert!(house.spawn(&ProcessSpec { env, ..spec(streams, &["true"]) }).await.is_err());
    }
    house.shutdown().await;
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_a_terminal_knows_what_it_is() {
    let house = start();
    let env = vec![("A".into(), "1".into())];
    let env = |streams| ProcessSpec { env: env.clone(), ..spec(streams, &["/usr/bin/env"]) };
    assert_eq!(told(&house, &env(PIPES)).await.0, "A=1\n");
    assert_eq!(told(&house, &env(TERMINAL)).await.0, "A=1\r\nTERM=xterm-256color\r\n");
    house.shutdown().await;
}

#[tokio::test]
async fn a_program_may_be_told_another_name() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        let named = ProcessSpec { arg0: Some("fancy".into()), ..shell(streams, "echo $0") };
        assert_eq!(told(&house, &named).await.0.trim(), "fancy");
    }
    house.shutdown().await;
}

#[tokio::test]
async fn a_program_leads_its_session_with_three_descriptors_and_no_signal_blocked_or_ignored() {
    let house = start();
    for streams in [PIPES, TERMINAL] {
        // Read while the shell waits and has no other descriptors: it leaves a pipeline's pipe open for a moment.
        let script = "ps -o pid=,pgid=,sid= -p $$ | tr -s ' '; ls /proc/$$/fd; \
             grep -E 'Sig(Blk|Ign)' /proc/$$/status | cut -f 2 | tr '\n' ' '";
        let (text, _) = told(&house, &shell(streams, script)).await;
        let words: Vec<&str> = text.split_whitespace().collect();
        let [ids @ .., blocked, ignored] = words.as_slice() else { panic!("{text}") };
        let (ids, descriptors) = ids.split_at(3);
        assert!(ids.iter().all(|id| *id == ids[0]), "{text}");
        assert_eq!(descriptors, ["0", "1", "2"], "{text}");
        // The C library reserves two signals above the standard ones.
        let masks = [blocked, ignored].map(|mask| u64::from_str_radix(mask, 16).unwrap());
        assert!(masks.iter().all(|mask| mask & 0x7fff_ffff == 0), "{text}");
    }
    house.shutdown().await;
}

#[tokio::test]
async fn a_terminal_has_the_size_it_was_given_and_tells_its_program_of_another() {
    let house = start();
    let script =
        "trap 'stty size; exit 0' WINCH; stty size; echo ready; while :; do sleep 0.02; done";
    let process = house.spawn(&shell(TERMINAL, script)).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    assert!(heard.text.starts_with("24 80\r\n"), "{}", heard.text);
    process.resize(PtySize { rows: 50, columns: 132 }).unwrap();
    heard.end().await;
    assert!(heard.text.ends_with("50 132\r\n"), "{}", heard.text);
    let pipes = house.spawn(&spec(PIPES, &["true"])).await.unwrap();
    assert_eq!(pipes.resize(PtySize::default()), Err(WriteRefusal::NoTerminal));
    house.shutdown().await;
}

#[tokio::test]
async fn input_is_read_in_order_and_its_end_is_seen() {
    let house = start();
    for streams in [PIPED, TERMINAL] {
        let process = house.spawn(&spec(streams, &["cat"])).await.unwrap();
        for n in 0..100 {
            let line = Bytes::from(format!("line {n}\n"));
            let room = process.input_room(line.len()).await;
            process.write(line, room).unwrap();
        }
        process.close_input().unwrap();
        let mut heard = Heard::new(&process);
        assert_eq!(heard.end().await.0, 0);
        let expected: Vec<String> = (0..100).map(|n| format!("line {n}")).collect();
        let lines: Vec<&str> = heard.text.lines().collect();
        let own: Vec<&str> = lines[lines.len() - 1..].to_vec();
        assert_eq!(own, ["line 99"]);
        if streams == PIPED {
            assert_eq!(lines, expected);
            let room = process.input_room(1).await;
            assert_eq!(process.write(Bytes::from_static(b"x"), room), Err(WriteRefusal::Closed));
        }
    }
    let deaf = house.spawn(&spec(PIPES, &["sleep", "1000"])).await.unwrap();
    let room = deaf.input_room(1).await;
    assert_eq!(deaf.write(Bytes::from_static(b"x"), room), Err(WriteRefusal::Closed));
    house.shutdown().await;
}

#[tokio::test]
async fn the_end_of_a_terminals_input_is_seen_in_the_middle_of_a_line_and_ends_one_program() {
    let house = start();
    // Input after the end-of-file is read by the next program; it is not discarded with the first.
    let script = "cat; echo; echo first; cat; echo second";
    for typed in ["", "abc", "abc\n", "abc\r", "abc\u{15}"] {
        let process = house.spawn(&shell(TERMINAL, script)).await.unwrap();
        let mut heard = Heard::new(&process);
        let room = process.input_room(typed.len()).await;
        process.write(typed.into(), room).unwrap();
        process.close_input().unwrap();
        heard.until("first\r\n").await;
        let room = process.input_room(5).await;
        process.write(Bytes::from_static(b"more\n"), room).unwrap();
        process.close_input().unwrap();
        assert_eq!(heard.end().await.0, 0);
        assert!(heard.text.ends_with("more\r\nmore\r\nsecond\r\n"), "{typed:?}: {}", heard.text);
    }
    house.shutdown().await;
}

#[tokio::test]
async fn a_program_that_does_not_read_fills_its_room_and_can_still_be_ended() {
    let house = start();
    for streams in [PIPED, TERMINAL] {
        let process = house.spawn(&spec(streams, &["sleep", "1000"])).await.unwrap();
        let line = Bytes::from(vec![b'y'; 1 << 20]);
        let mut n_taken = 0;
        while let Some(room) = process.try_input_room(line.len()) {
            process.write(line.clone(), room).unwrap();
            n_taken += 1;
            assert!(n_taken < 100, "there is a limit");
        }
        process.signal(FamilySignal::Kill);
        assert_eq!(Heard::new(&process).end().await.0, 137);
    }
    house.shutdown().await;
}

#[tokio::test]
async fn ctrl_c_reaches_the_program_by_signal_and_by_terminal() {
    let house = start();
    let script = "trap 'exit 7' INT; echo ready; while :; do sleep 0.02; done";
    for streams in [PIPES, TERMINAL] {
        let process = house.spawn(&shell(streams, script)).await.unwrap();
        let mut heard = Heard::new(&process);
        heard.until("ready").await;
        process.signal(FamilySignal::Interrupt);
        assert_eq!(heard.end().await.0, 7);
    }
    let process = house.spawn(&shell(TERMINAL, script)).await.unwrap();
    let mut heard = Heard::new(&process);
    heard.until("ready").await;
    let room = process.input_room(1).await;
    process.write(Bytes::from_static(b"\x03"), room).unwrap();
    assert_eq!(heard.end().await.0, 7);
    house.shutdown().await;
}

#[tokio::test]
async fn a_program_waits_when_nobody_listens_and_loses_nothing() {
    let house = start();
    let n_bytes: usize = 20_000_000;
    let script = format!("head -c {n_bytes} /dev/zero; echo done");
    let process = house.spawn(&shell(PIPES, &script)).await.unwrap();
    let mut changes = process.output().changes();
    // Nothing is released, so the output stops at the retention limit.
    while process.output().page(0, None).chunks.len() < 15 {
        changes.next().await;
    }
    assert!(process.output().exit_code().is_none());
    let mut heard = Heard::new(&process);
    heard.end().await;
    assert_eq!(heard.text.bytes().filter(|byte| *byte == 0).count(), n_bytes);
    assert!(heard.text.ends_with("done\n"));
    house.shutdown().await;
}

#[tokio::test]
async fn what_lies_in_pipes_when_everybody_is_gone_is_kept_until_somebody_listens() {
    let house = start();
    // Exceeds the retained bytes, but not their sum with the pipe buffers.
    let (n_said, n_complained) = (1_040_000, 60_000);
    let script = format!("head -c {n_said} /dev/zero; head -c {n_complained} /dev/zero >&2");
    let process = house.spawn(&shell(PIPES, &script)).await.unwrap();
    process.gone().await;
    let mut heard = Heard::new(&process);
    heard.end().await;
    assert_eq!(heard.text.len(), n_said + n_complained);
    house.shutdown().await;
}

/// Waits for a byte, queries the cursor position, and prints the reply byte by byte.
const ASKS: &str = "stty raw -echo; printf ready; dd bs=1 count=1 2>/dev/null >/dev/null; printf '\\rab\\033[6n'; \
                    dd bs=1 count=8 2>/dev/null | od -An -c | tr -d '\\n'; printf '!'";

#[tokio::test]
async fn a_program_that_asks_its_terminal_is_answered_once_unless_somebody_else_does() {
    let house = start();
    let write = async |process: &Process, text: &'static str| {
        let room = process.input_room(text.len()).await;
        process.write(text.into(), room).unwrap();
    };
    for (is_answered_elsewhere, answer) in [(false, "1;3"), (true, "7;9")] {
        let process = house.spawn(&shell(TERMINAL, ASKS)).await.unwrap();
        let answerer = is_answered_elsewhere.then(|| process.answered_elsewhere());
        let mut heard = Heard::new(&process);
        heard.until("ready").await;
        write(&process, "x").await;
        heard.until("ab\u{1b}[6n").await;
        write(&process, if is_answered_elsewhere { "\u{1b}[7;9R+-" } else { "+-" }).await;
        heard.until("!").await;
        let came: String = heard.text.split("6n").nth(1).unwrap().split_whitespace().collect();
        assert_eq!(came, format!("033[{answer}R+-!"));
        drop(answerer);
        process.gone().await;
    }
    house.shutdown().await;
}
