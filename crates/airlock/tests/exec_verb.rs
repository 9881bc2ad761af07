//! `airlock exec` as a person uses it: typed into a real terminal, which tmux provides.

use crate::exec_server_fixture::{AIRLOCK, Raw, Served, connected};
use crate::tmux::{Tmux, has};
use client::exec_server::{
    AttachParams, ExecServerEvent, TerminalSize, WaitForParams, WaitForReason, exec_params,
};
use serde_json::json;
use std::io::{BufRead as _, Read as _, Write as _};

/// A shell in tmux whose prompt is a dollar sign, and in which `exec` is the verb.
fn shell(rows: u16, columns: u16) -> Tmux {
    let tmux = Tmux::start(rows, columns, "PS1='$ ' exec sh -i");
    tmux.sees("$");
    tmux
}

fn line(server: &Served, rest: &str) -> String {
    format!("{AIRLOCK} exec --url {} {rest}", server.url)
}

impl Tmux {
    fn enters(&self, text: &str) {
        self.types(&["-l", text]);
        self.types(&["Enter"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_sizes_signals_and_exit_codes_pass_through() {
    if !has(&["tmux"]) {
        return;
    }
    let server = Served::start(&[]);
    let tmux = shell(24, 100);
    tmux.enters(&line(&server, "-- bash --norc --noprofile; echo code=$?"));
    tmux.sees("bash-");
    tmux.enters("stty size; echo gr\u{fc}\u{df}e");
    tmux.sees("24 100");
    tmux.sees("\ngr\u{fc}\u{df}e");
    tmux.resizes(30, 90);
    tmux.enters("stty size");
    tmux.sees("30 90");
    // Ctrl-C interrupts the remote program, not the verb; Ctrl-Z stops the program there.
    tmux.enters("sh -c 'echo go$((0 + 1)); exec sleep 1000'");
    tmux.sees("go1");
    tmux.types(&["C-c"]);
    tmux.enters("echo interrupted=$?");
    tmux.sees("interrupted=130");
    tmux.enters("sh -c 'echo go$((1 + 1)); exec sleep 1001'");
    tmux.sees("go2");
    tmux.types(&["C-z"]);
    tmux.sees("Stopped");
    tmux.enters("disown -a; exit 7");
    tmux.sees("code=7");
    // The terminal's mode is restored: typed text is echoed again.
    tmux.enters("echo back=$((1 + 1))");
    tmux.sees("back=2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paste_arrives_between_its_brackets() {
    if !has(&["tmux", "bash"]) {
        return;
    }
    let server = Served::start(&[]);
    let tmux = shell(24, 100);
    let script =
        "printf '\\033[?2004h'; stty raw -echo; echo ready; head -c 18 | od -An -c; stty sane";
    tmux.enters(&line(&server, &format!("-- bash -c {}", quoted(script))));
    tmux.sees("\nready");
    tmux.pastes("paste\n");
    tmux.sees("2   0   0   ~   p   a   s   t   e");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_left_and_come_back_to_by_its_name() {
    if !has(&["tmux", "vim"]) {
        return;
    }
    let server = Served::start(&[]);
    let tmux = shell(24, 80);
    tmux.enters(&line(&server, "--name work -- vim -u NONE -i NONE -n -N"));
    tmux.sees("~");
    tmux.types(&["-l", "ihello from vim"]);
    tmux.sees("hello from vim");
    tmux.types(&["C-]"]);
    tmux.sees("left; the terminal goes on");
    // The program runs on without a client, and its screen is shown again unchanged.
    let client = connected(&server).await;
    let listed = client.terminals().await.unwrap().terminals;
    assert_eq!((listed.len(), listed[0].name.as_str(), listed[0].exited), (1, "work", false));
    tmux.enters("clear");
    tmux.enters(&line(&server, "--name work -- true"));
    tmux.sees("refused (-32602)");
    tmux.resizes(20, 70);
    tmux.enters(&format!("clear; {}; echo code=$?", line(&server, "--name work")));
    tmux.sees("-- INSERT --");
    tmux.sees("hello from vim");
    tmux.types(&["-l", ", and back"]);
    tmux.sees("hello from vim, and back");
    tmux.types(&["Escape"]);
    tmux.until(|tmux| !tmux.text().contains("INSERT"));
    tmux.enters(":cq 3");
    tmux.sees("code=3");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_viewers_one_only_looks_and_one_is_slow_and_neither_harms_the_other() {
    let server = Served::start(&[]);
    let owner = connected(&server).await;
    let mut params = exec_params("mine", &["bash", "--norc", "--noprofile"], "/");
    (params.tty, params.name) = (true, Some("shared".into()));
    params.size = Some(TerminalSize { rows: 24, cols: 80 });
    owner.exec(params).await.unwrap();
    let attach = |id: &str, read_only| AttachParams {
        process_id: id.into(),
        name: "shared".into(),
        read_only,
        answers_queries: false,
        size: Some(TerminalSize { rows: 20, cols: 60 }),
    };
    // A viewer that only watches: it cannot type, and its window size does not count.
    let looking = connected(&server).await;
    let attached = looking.attach(&attach("seen", true)).await.unwrap();
    assert_eq!(attached.size, TerminalSize { rows: 24, cols: 80 });
    let refused = looking.write("seen", "x").await.unwrap_err().to_string();
    assert!(refused.contains("process seen is only looked at"), "{refused}");
    // A viewer that types and does not read for a while: the output exceeds all buffers on the way to it.
    let slow = connected(&server).await;
    let mut unread = slow.events();
    let attached = slow.attach(&attach("slow", false)).await.unwrap();
    assert_eq!(attached.size, TerminalSize { rows: 20, cols: 60 });
    slow.write("slow", "seq 1 6000000; echo the-end\r").await.unwrap();
    // Others see its end although the slow viewer does not read.
    let wanted = WaitForParams {
        process_id: "seen".into(),
        regex: Some("^the-end$".into()),
        timeout_ms: Some(60_000),
        ..WaitForParams::default()
    };
    let answer = looking.wait_for(&wanted).await.unwrap();
    assert_eq!(answer.reason, WaitForReason::Regex);
    // The slow viewer receives the present screen in one piece, and continues from there.
    owner.write("mine", "exit 5\r").await.unwrap();
    let (mut n_repaints, mut code) = (0, None);
    while code.is_none() {
        match unread.next().await.unwrap() {
            ExecServerEvent::OutputDelta(output) => n_repaints += u64::from(output.repaint),
            ExecServerEvent::Exited(exited) => code = Some(exited.exit_code),
            ExecServerEvent::Closed(_) | ExecServerEvent::Lost { .. } => {}
        }
    }
    assert_eq!(code, Some(5));
    assert!(n_repaints > 0, "it missed something");
    assert_eq!(json!(looking.wait("seen").await.unwrap().exit_code), json!(5));
}

/// Asks its terminal for the cursor's position, and counts the answers until none has arrived for a while.
const ASKS: &str = "stty -icanon -echo min 0 time 30; printf '\\033[6n'; \
                    n=$(dd bs=1 count=64 2>/dev/null | tr -dc R | wc -c); echo answers=$((n)).";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_program_asks_its_terminal_is_answered_once_by_the_server_or_by_the_clients_own() {
    let server = Served::start(&[]);
    let client = connected(&server).await;
    for (id, answers_queries) in [("agent", false), ("person", true)] {
        let mut params = exec_params(id, &["sh", "-c", ASKS], "/");
        (params.tty, params.answers_queries) = (true, answers_queries);
        client.exec(params).await.unwrap();
    }
    let tmux = has(&["tmux"]).then(|| shell(24, 100));
    if let Some(tmux) = &tmux {
        tmux.enters(&line(&server, &format!("-- sh -c {}", quoted(ASKS))));
    }
    for (id, n_answers) in [("agent", 1), ("person", 0)] {
        let wanted = WaitForParams {
            process_id: id.into(),
            text: Some(format!("answers={n_answers}.")),
            timeout_ms: Some(60_000),
            ..WaitForParams::default()
        };
        let answer = client.wait_for(&wanted).await.unwrap();
        assert_eq!((id, answer.reason), (id, WaitForReason::Text));
    }
    if let Some(tmux) = &tmux {
        // tmux's terminal answers by itself, and the server takes that into account.
        tmux.sees("\nanswers=1.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_was_left_does_not_keep_a_terminal_small_and_is_back_with_its_client() {
    let server = Served::start(&[]);
    let mut first = Raw::connect(&server.url).await;
    let hello = first.greet(json!({"clientName": "t", "resumeSessionId": null})).await;
    let params = json!({
        "processId": "p", "argv": ["cat"], "cwd": "/", "env": {}, "tty": true, "name": "w",
        "size": {"rows": 15, "cols": 60},
    });
    first.ask("process/start", params).await;
    let other = connected(&server).await;
    let viewers = async || other.terminals().await.unwrap().terminals[0].viewers;
    assert_eq!(viewers().await, 1);
    drop(first);
    // Its session is still retained.
    while viewers().await > 0 {
        tokio::task::yield_now().await;
    }
    let attach = AttachParams {
        process_id: "mine".into(),
        name: "w".into(),
        read_only: false,
        answers_queries: false,
        size: Some(TerminalSize { rows: 40, cols: 120 }),
    };
    let attached = other.attach(&attach).await.unwrap();
    assert_eq!((attached.size, viewers().await), (TerminalSize { rows: 40, cols: 120 }, 1));
    // A client that returns to its session has its window again.
    let mut second = Raw::connect(&server.url).await;
    let session = &hello["sessionId"];
    second.greet_again(json!({"clientName": "t", "resumeSessionId": session})).await;
    let screen = second.ask("process/screen", json!({"processId": "p"})).await;
    assert_eq!((&screen["size"], viewers().await), (&json!({"rows": 15, "cols": 60}), 2));
}

fn is_there(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid.trim()).exists()
}

fn kill(signal: &str, pid: u32) {
    #[expect(clippy::disallowed_methods, reason = "it is waited for")]
    let sent = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Starts the verb with pipes instead of a terminal.
fn piped(server: &Served, words: &[&str]) -> std::process::Child {
    #[expect(clippy::disallowed_methods, reason = "every caller waits for it")]
    std::process::Command::new(AIRLOCK)
        .args(["exec", "--url", &server.url])
        .args(words)
        .env_remove("AIRLOCK_TOKEN")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn without_a_terminal_a_command_gets_pipes() {
    let server = Served::start(&[]);
    let mut child = piped(&server, &["--", "sh", "-c", "cat; echo wrong >&2; exit 9"]);
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"through\n"[..], Some(9)));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wrong\n");
}

#[test]
fn a_command_that_talks_and_does_not_read_is_heard_although_more_comes_in_than_fits() {
    let server = Served::start(&[]);
    let mut child = piped(&server, &["--", "sh", "-c", "yes | head -c 5000000; exit 5"]);
    let mut stdin = child.stdin.take().unwrap();
    // More than all buffers on the way to the command can hold; the rest is discarded.
    let pouring = std::thread::spawn(move || drop(stdin.write_all(&vec![0; 20_000_000])));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.len(), output.status.code()), (5_000_000, Some(5)));
    pouring.join().unwrap();
}

#[test]
fn what_ends_the_verb_ends_its_command_which_is_heard_to_its_end() {
    let server = Served::start(&[]);
    for (signal, name) in [("-TERM", "TERM"), ("-HUP", "HUP"), ("-INT", "INT")] {
        let script =
            format!("trap 'echo bye; exit 4' {name}; echo $$; while :; do sleep 0.02; done");
        let mut child = piped(&server, &["--", "sh", "-c", &script]);
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut pid = String::new();
        said.read_line(&mut pid).unwrap();
        kill(signal, child.id());
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((name, rest.as_str(), code), (name, "bye\n", Some(4)));
        assert!(!is_there(&pid), "{name}");
    }
}

#[test]
fn a_command_that_nobody_listens_to_any_more_is_ended() {
    let server = Served::start(&[]);
    let mut child = piped(&server, &["--", "sh", "-c", "echo $$; exec yes"]);
    let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut pid = String::new();
    said.read_line(&mut pid).unwrap();
    drop(said);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(!is_there(&pid));
    // A program without a reader ends too, when the verb is asked to end twice.
    let mut child = piped(&server, &["--", "sh", "-c", "trap '' TERM; echo $$ >&2; exec yes"]);
    let mut complained = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut pid = String::new();
    complained.read_line(&mut pid).unwrap();
    kill("-TERM", child.id());
    while child.try_wait().unwrap().is_none() {
        kill("-TERM", child.id());
        std::thread::yield_now();
    }
    assert!(!is_there(&pid));
}

#[test]
fn errors_are_heard_although_nobody_reads_the_output() {
    let server = Served::start(&[]);
    // Twice the capacity of a pipe; the errors follow it.
    let script = "head -c 131072 /dev/zero; echo heard >&2; cat";
    let mut child = piped(&server, &["--", "sh", "-c", script]);
    let mut complained = String::new();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut complained).unwrap();
    assert_eq!(complained, "heard\n");
    drop(child.stdin.take());
    let said = child.wait_with_output().unwrap();
    assert_eq!((said.status.code(), said.stdout.len()), (Some(0), 131_072));
}

#[test]
fn a_name_is_refused_where_there_is_no_terminal_to_have_it() {
    let server = Served::start(&[]);
    let output = piped(&server, &["--name", "work", "--", "true"]).wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()),
        (
            Some(2),
            "error: --name is for a terminal, and there is none here; without it the command gets pipes\n"
        )
    );
}

#[test]
fn a_command_that_does_not_exist_is_named_and_has_the_exit_code_of_a_shell() {
    let server = Served::start(&[]);
    let output = piped(&server, &["--", "no-such-command-at-all"]).wait_with_output().unwrap();
    let expected = (Some(127), "error: no-such-command-at-all: command not found\n");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_reach_a_command_that_talks_without_end() {
    if !has(&["tmux"]) {
        return;
    }
    let server = Served::start(&[]);
    let tmux = shell(24, 100);
    tmux.enters(&line(&server, "-- seq -f =%.0f= 1 1000000000; echo code=$?"));
    // Two lines of it: before that, a key is for the verb itself.
    tmux.sees("=\n=");
    tmux.types(&["C-c"]);
    tmux.sees("code=130");
}
