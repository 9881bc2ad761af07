//! `airlock exec` as a person uses it: typed into a real terminal, which is tmux's.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod exec_served;
mod tmux;

use client::exec_server::{
    AttachParams, ExecServerEvent, TerminalSize, WaitForParams, WaitForReason, exec_params,
};
use exec_served::{AIRLOCK, Served, connected};
use serde_json::json;
use tmux::{Tmux, has};

/// A shell in tmux whose prompt is a dollar, and where `exec` is the verb.
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
    // Ctrl-C ends what runs there, not the verb; Ctrl-Z stops it there.
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
    // Its terminal is as it was: what is typed is echoed again.
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
    // It runs on without anybody, and is shown as it is.
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
    // One who only looks: it cannot type, and its window does not count.
    let looking = connected(&server).await;
    let attached = looking.attach(&attach("seen", true)).await.unwrap();
    assert_eq!(attached.size, TerminalSize { rows: 24, cols: 80 });
    let refused = looking.write("seen", "x").await.unwrap_err().to_string();
    assert!(refused.contains("process seen is only looked at"), "{refused}");
    // One who types and reads nothing at all for a while.
    let slow = connected(&server).await;
    let mut unread = slow.events();
    let attached = slow.attach(&attach("slow", false)).await.unwrap();
    assert_eq!(attached.size, TerminalSize { rows: 20, cols: 60 });
    slow.write("slow", "seq 1 2000000; echo the-end\r").await.unwrap();
    // Others see its end although the slow one does not read.
    let wanted = WaitForParams {
        process_id: "seen".into(),
        regex: Some("^the-end$".into()),
        timeout_ms: Some(60_000),
        ..WaitForParams::default()
    };
    let answer = looking.wait_for(&wanted).await.unwrap();
    assert_eq!(answer.reason, WaitForReason::Regex);
    // The slow one is shown the screen as it is now, in one piece, and goes on from there.
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

/// Asks its terminal where the cursor is, and counts the answers until none has come for a while.
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
        // It answers by itself, and the server knows that.
        tmux.sees("\nanswers=1.");
    }
}

#[test]
fn without_a_terminal_a_command_gets_pipes() {
    use std::io::Write as _;
    let server = Served::start(&[]);
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let mut child = std::process::Command::new(AIRLOCK)
        .args(["exec", "--url", &server.url, "--", "sh", "-c", "cat; echo wrong >&2; exit 9"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"through\n"[..], Some(9)));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "wrong\n");
}
