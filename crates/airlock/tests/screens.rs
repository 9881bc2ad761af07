//! The contents of terminals: real programs through `process/screen`, compared with what tmux shows for the same bytes.

use crate::exec_server_fixture::{Served, connected};
use crate::tmux::{Shown, Tmux, has};
use client::exec_server::{
    ExecServerClient, ExecServerEvent, ProcessEvents, ScreenParams, ScreenResponse, TerminalSize,
    WaitForParams, WaitForReason, WaitForResponse, exec_params,
};
use serde_json::json;

/// The longest wait for output. It is reached only if the output never comes.
const PATIENCE_MS: u64 = 30_000;

/// A process with a terminal, and all of its output.
struct Terminal {
    client: ExecServerClient,
    /// `None` for a viewer that only watches.
    events: Option<ProcessEvents>,
    size: TerminalSize,
    said: Vec<(u64, Vec<u8>)>,
    id: String,
}

impl Terminal {
    async fn open(server: &Served, id: &str, argv: &[&str]) -> Self {
        let client = connected(server).await;
        let events = client.events();
        let size = TerminalSize { rows: 24, cols: 80 };
        let mut params = exec_params(id, argv, "/");
        (params.tty, params.size) = (true, Some(size));
        for (name, value) in [("LANG", "C.UTF-8"), ("TERM", "xterm-256color"), ("HOME", "/nowhere")]
        {
            params.env.insert(name.into(), value.into());
        }
        client.exec(params).await.unwrap();
        Self { client, events: Some(events), size, said: vec![], id: id.to_owned() }
    }

    async fn types(&self, keys: &str) {
        self.client.write(&self.id, keys).await.unwrap();
    }

    fn wanted(&self) -> WaitForParams {
        let timeout_ms = Some(PATIENCE_MS);
        WaitForParams { process_id: self.id.clone(), timeout_ms, ..WaitForParams::default() }
    }

    async fn wait_for(&self, params: WaitForParams) -> WaitForResponse {
        self.client.wait_for(&params).await.unwrap()
    }

    async fn sees(&self, text: &str) {
        let answer =
            self.wait_for(WaitForParams { text: Some(text.into()), ..self.wanted() }).await;
        assert_eq!(answer.reason, WaitForReason::Text, "{text} in {:#?}", self.screen().await.rows);
    }

    /// Waits until the screen no longer changes.
    async fn is_still(&self) {
        self.wait_for(WaitForParams { idle_ms: Some(150), ..self.wanted() }).await;
    }

    async fn screen(&self) -> ScreenResponse {
        let params = ScreenParams { process_id: self.id.clone(), ..ScreenParams::default() };
        self.client.screen(&params).await.unwrap()
    }

    /// The bytes from which a screen was made.
    async fn bytes(&mut self, until: u64) -> Vec<u8> {
        while self.said.last().is_none_or(|(seq, _)| *seq < until) {
            if let Some(ExecServerEvent::OutputDelta(output)) =
                self.events.as_mut().unwrap().next().await
            {
                self.said.push((output.seq.unwrap(), output.chunk.0));
            }
        }
        let until = self.said.iter().filter(|(seq, _)| *seq <= until);
        until.flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    /// Compares the screen with what tmux makes of the same bytes.
    #[track_caller]
    fn looks_as_in_tmux(&mut self) -> impl Future<Output = ScreenResponse> {
        let caller = std::panic::Location::caller();
        async move {
            let screen = self.screen().await;
            let bytes = self.bytes(screen.seq).await;
            let expected = Tmux::shows(self.size.rows, self.size.cols, &bytes);
            compare(&caller.to_string(), &shown(&screen), &expected);
            screen
        }
    }
}

#[track_caller]
fn compare(name: &str, shown: &Shown, expected: &Shown) {
    for (idx, (row, expected)) in shown.rows.iter().zip(&expected.rows).enumerate() {
        assert_eq!((name, idx, row), (name, idx, expected));
    }
    assert_eq!((name, shown), (name, expected));
}

fn shown(screen: &ScreenResponse) -> Shown {
    Shown {
        rows: screen.rows.iter().map(|row| row.trim_end().to_owned()).collect(),
        cursor: (screen.cursor.row, screen.cursor.col),
        is_alternate: screen.alternate_screen,
    }
}

fn lines_of_text() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let lines =
        (1..=200).map(|n| format!("line {n} of the text, \ttabbed, with ünïcode and 漢字\n"));
    std::fs::write(file.path(), lines.collect::<String>()).unwrap();
    file
}

#[tokio::test]
async fn vim_looks_as_in_tmux() {
    if !has(&["tmux", "vim"]) {
        return;
    }
    let server = Served::start(&[]);
    let text = lines_of_text();
    let argv = ["vim", "-u", "NONE", "-i", "NONE", "-n", "-N", text.path().to_str().unwrap()];
    let mut vim = Terminal::open(&server, "vim", &argv).await;
    vim.sees("line 1 of the text").await;
    vim.is_still().await;
    let screen = vim.looks_as_in_tmux().await;
    assert!(screen.alternate_screen);
    vim.types("50Gihello from an agent\x1b").await;
    vim.sees("hello from an agentline 50").await;
    vim.types(":split\rGdd:set number\r").await;
    vim.sees("199 line 199").await;
    vim.is_still().await;
    vim.looks_as_in_tmux().await;
    vim.types(":%s/text/word/g\r").await;
    vim.sees("of the word").await;
    vim.is_still().await;
    vim.looks_as_in_tmux().await;
    vim.types(":qa!\r").await;
    let answer = vim.wait_for(WaitForParams { exit: true, ..vim.wanted() }).await;
    assert_eq!((answer.reason, answer.exit_code), (WaitForReason::Exit, Some(0)));
    assert!(!vim.screen().await.alternate_screen);
}

#[tokio::test]
async fn less_looks_as_in_tmux() {
    if !has(&["tmux", "less"]) {
        return;
    }
    let server = Served::start(&[]);
    let text = lines_of_text();
    let mut less =
        Terminal::open(&server, "less", &["less", "-M", text.path().to_str().unwrap()]).await;
    less.sees("lines 1-23/200").await;
    less.looks_as_in_tmux().await;
    for (keys, seen) in
        [(" ", "lines 24-46/200"), ("5j", "lines 29-51/200"), ("kk", "lines 27-49/200")]
    {
        less.types(keys).await;
        less.sees(seen).await;
    }
    less.types("/line 12\r").await;
    less.sees("lines 120-142/200").await;
    less.is_still().await;
    less.looks_as_in_tmux().await;
    less.types("G").await;
    less.sees("(END)").await;
    less.is_still().await;
    less.looks_as_in_tmux().await;
    less.types("q").await;
    less.wait_for(WaitForParams { exit: true, ..less.wanted() }).await;
}

#[tokio::test]
async fn top_and_htop_look_as_in_tmux() {
    if !has(&["tmux", "top", "htop"]) {
        return;
    }
    let server = Served::start(&[]);
    let mut top = Terminal::open(&server, "top", &["top", "-d", "0.5"]).await;
    let regex = Some(r"^top - \d\d:\d\d:\d\d up".to_owned());
    let answer = top.wait_for(WaitForParams { regex, ..top.wanted() }).await;
    assert_eq!(answer.reason, WaitForReason::Regex);
    top.sees("COMMAND").await;
    top.looks_as_in_tmux().await;
    top.types("zx").await;
    top.is_still().await;
    top.looks_as_in_tmux().await;
    top.types("q").await;
    let mut htop = Terminal::open(&server, "htop", &["htop", "--delay=5"]).await;
    htop.sees("F10").await;
    htop.looks_as_in_tmux().await;
    htop.types("t").await;
    htop.is_still().await;
    htop.looks_as_in_tmux().await;
    htop.types("q").await;
    htop.wait_for(WaitForParams { exit: true, ..htop.wanted() }).await;
}

#[tokio::test]
async fn a_progress_bar_looks_as_in_tmux_and_is_waited_for_without_polling() {
    if !has(&["tmux"]) {
        return;
    }
    let server = Served::start(&[]);
    let script = r#"for n in 10 20 30 40 50 60 70 80 90 100; do
        printf '\r\033[K\033[32m%s\033[0m [%.*s>] %s%%' downloading $((n / 5)) ════════════════════ $n
        [ $n = 50 ] && read go
    done; printf '\ndone\n'; read end"#;
    let mut bar = Terminal::open(&server, "bar", &["bash", "-c", script]).await;
    bar.sees(" 50%").await;
    bar.looks_as_in_tmux().await;
    let waiting = WaitForParams { regex: Some(r"(?m)^done$".into()), ..bar.wanted() };
    let (answer, _) = tokio::join!(bar.wait_for(waiting), bar.types("\r"));
    assert_eq!((answer.reason, answer.matched.as_deref()), (WaitForReason::Regex, Some("done")));
    bar.looks_as_in_tmux().await;
}

#[tokio::test]
async fn every_sequence_that_agents_meet_looks_as_in_tmux() {
    if !has(&["tmux"]) {
        return;
    }
    let server = Served::start(&[]);
    for (idx, line) in include_str!("screens/sequences.txt").lines().enumerate() {
        let Some((name, said)) = line.split_once(": ") else { continue };
        let script = format!("stty raw -echo; printf '{said}'; read end");
        let id = format!("s{idx}");
        let mut terminal = Terminal::open(&server, &id, &["bash", "-c", &script]).await;
        terminal.sees("END").await;
        let screen = terminal.screen().await;
        let bytes = terminal.bytes(screen.seq).await;
        compare(name, &shown(&screen), &Tmux::shows(24, 80, &bytes));
    }
}

#[tokio::test]
async fn whoever_looks_late_sees_the_screen_at_once_and_rows_that_left_it() {
    let server = Served::start(&[]);
    let script = "seq 1 400000; printf '\\033]2;a title\\007\\033[1;31mred\\033[0m end'; cat";
    let mut terminal = Terminal::open(&server, "late", &["sh", "-c", script]).await;
    terminal.events = None;
    terminal.sees("red end").await;
    let mut params = ScreenParams {
        process_id: "late".into(),
        attributes: true,
        scrollback: Some(30),
        paint: true,
    };
    let back = terminal.client.screen(&params).await.unwrap();
    assert_eq!((back.rows[0].as_str(), back.scrollback.offset), ("399948", 30));
    assert_eq!((back.title.as_str(), back.scrollback.rows), ("a title", 1000));
    params.scrollback = None;
    let now = terminal.client.screen(&params).await.unwrap();
    assert_eq!((now.rows[22].as_str(), now.rows[23].as_str()), ("400000", "red end"));
    let run = json!([{"col": 0, "cols": 3, "fg": 1, "bold": true}]);
    assert_eq!(json!(now.attributes.unwrap()[23]), run);
    let size = TerminalSize { rows: 10, cols: 40 };
    terminal.client.resize("late", size).await.unwrap();
    assert_eq!(terminal.screen().await.size, size);
}

#[tokio::test]
async fn waiting_ends_by_what_comes_first_and_nonsense_is_refused() {
    let server = Served::start(&[]);
    let terminal =
        Terminal::open(&server, "t", &["sh", "-c", "read x; echo got; read y; exit 3"]).await;
    let wanted = || WaitForParams { text: Some("got".into()), ..terminal.wanted() };
    let answer = terminal.wait_for(WaitForParams { timeout_ms: Some(20), ..wanted() }).await;
    assert_eq!((answer.reason, answer.exit_code), (WaitForReason::Timeout, None));
    let answer = terminal.wait_for(WaitForParams { idle_ms: Some(20), ..wanted() }).await;
    assert_eq!(answer.reason, WaitForReason::Idle);
    let (answer, ()) = tokio::join!(terminal.wait_for(wanted()), terminal.types("a\r"));
    assert_eq!((answer.reason, answer.matched.as_deref()), (WaitForReason::Text, Some("got")));
    let never = WaitForParams { text: Some("never".into()), ..terminal.wanted() };
    let (answer, ()) = tokio::join!(terminal.wait_for(never), terminal.types("b\r"));
    assert_eq!((answer.reason, answer.exit_code), (WaitForReason::Exit, Some(3)));
    for (params, why) in [
        (terminal.wanted(), "waitFor needs text, regex, idleMs or exit"),
        (WaitForParams { regex: Some("(".into()), ..terminal.wanted() }, "regex"),
        (WaitForParams { regex: Some("(a{1000}){1000}".into()), ..terminal.wanted() }, "regex"),
        (
            WaitForParams { text: Some(String::new()), ..terminal.wanted() },
            "text must not be empty",
        ),
    ] {
        let refused = terminal.client.wait_for(&params).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    terminal.client.exec(exec_params("pipe", &["cat"], "/")).await.unwrap();
    let params = ScreenParams { process_id: "pipe".into(), ..ScreenParams::default() };
    let refused = terminal.client.screen(&params).await.unwrap_err().to_string();
    assert!(refused.contains("process pipe has no terminal"), "{refused}");
}
