//! The verbs about a server: its state, its address, its end, its log and its records, and the behaviour that all verbs
//! share.

use crate::pty::{Terminal, house};
use crate::server_fixture::{Served, airlock, wait_for};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// Exit code, stdout and stderr.
type Done = (Option<i32>, String, String);

fn verb(data_dir: &Path, words: &[&str]) -> Command {
    let mut command = airlock(words);
    command.env_remove("AIRLOCK_URL").env("AIRLOCK_DATA_DIR", data_dir).env("HOME", data_dir);
    command.env_remove("XDG_CONFIG_HOME").current_dir("/");
    command
}

fn done(data_dir: &Path, words: &[&str]) -> Done {
    let output = verb(data_dir, words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn status_says_where_the_server_is_and_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    fs::create_dir(&data_dir).unwrap();
    let (code, text, _) = done(&data_dir, &["status"]);
    assert_eq!((code, text.starts_with("Server      not running\n")), (Some(1), true), "{text}");
    let config = "[sources.down]\ncommand = ['/nowhere/at/all']\n";
    fs::write(data_dir.join("airlock.toml"), config).unwrap();
    let served = Served::start(&data_dir, &[]);
    let question = served.client("run").execute("return await tools.demo.ask({ text: 'x' })");
    assert_eq!(question.status, 200);
    let status = wait_for(|| {
        let (code, text, err) = done(&data_dir, &["status", "--json"]);
        assert_eq!(code, Some(0), "{text} {err}");
        let status: Value = serde_json::from_str(&text).unwrap();
        (status["sources"]["loading"] == json!([])).then_some(status)
    });
    let pid = fs::read_to_string(data_dir.join("owner.lock")).unwrap();
    let pid: u64 = pid.lines().next().unwrap().parse().unwrap();
    assert_eq!((&status["running"], &status["address"]), (&json!(true), &json!(served.url)));
    assert_eq!((&status["pid"], &status["dataDir"]), (&json!(pid), &json!(data_dir)));
    assert_eq!(
        (&status["version"], &status["store"]["ok"]),
        (&json!(env!("CARGO_PKG_VERSION")), &json!(true))
    );
    assert_eq!(
        (&status["questions"]["open"], &status["executions"]["paused"]),
        (&json!(1), &json!(1))
    );
    assert!(status["uptimeMs"].is_u64() && status["store"]["bytes"].as_u64() > Some(0), "{status}");
    let unavailable = &status["sources"]["unavailable"][0];
    assert_eq!(unavailable["name"], "down", "{status}");
    assert!(unavailable["trouble"].as_str().unwrap().contains("command not found"), "{status}");
    let (code, text, _) = done(&data_dir, &["status"]);
    for line in
        [&format!("Address     {}", served.url), "Questions   1 open", "Store       sound, "]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(code, Some(0));
    assert_eq!(served.client("run").get("/api/status").status, 403);
}

#[test]
fn stop_waits_until_the_server_of_the_directory_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let (code, text, err) = done(dir.path(), &["stop"]);
    assert_eq!((code, err.as_str()), (Some(0), ""), "{text}");
    assert!(text.starts_with("the server (process "), "{text}");
    assert!(store::sqlite::owner_of(dir.path()).is_none(), "the directory is free");
    assert_eq!(served.stop_code(), Some(0), "it ended in order");
    let (code, text, err) = done(dir.path(), &["stop", "--json"]);
    let expected = format!("error: no server runs on {}\n", dir.path().display());
    assert_eq!((code, text.as_str(), err), (Some(1), "", expected));
}

#[test]
fn logs_are_those_of_a_server_in_the_background_and_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (code, _, err) = done(dir.path(), &["logs"]);
    assert_eq!(code, Some(1));
    assert!(err.starts_with("error: no server was started in the background"), "{err}");
    assert_eq!(done(dir.path(), &["tools", "sources"]).0, Some(0), "it starts one");
    let (code, all, err) = done(dir.path(), &["logs"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(all.contains("the first tokens are in"), "{all}");
    let (_, last, _) = done(dir.path(), &["logs", "-n", "1", "--json"]);
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["line"], all.lines().last().unwrap());
    let mut following = verb(dir.path(), &["logs", "--follow", "-n", "0"]);
    let mut following = following.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    // The server may write to the log before it is followed; one of these lines is written after that.
    let written = dir.path().join("serve.log");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writing = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut log = fs::OpenOptions::new().append(true).open(written).unwrap();
        while stopped.try_recv().is_err() {
            writeln!(log, "something happened").unwrap();
            std::thread::yield_now();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    assert_eq!(lines.next().unwrap().unwrap(), "something happened");
    stop.send(()).unwrap();
    writing.join().unwrap();
    following.kill().unwrap();
    following.wait().unwrap();
    assert_eq!(done(dir.path(), &["stop"]).0, Some(0));
    let served = Served::start(dir.path(), &[]);
    let (_, _, err) = done(dir.path(), &["logs", "-n", "1"]);
    assert!(err.contains("was not started in the background"), "{err}");
    drop(served);
}

#[test]
fn journals_are_exported_as_json_lines_with_a_server_and_without() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let client = served.client("admin");
    let failed = client.execute("throw new Error('x')").execution();
    // Longer than a page of the server: 200 entries, 4 MiB.
    let long = "for (let i = 0; i < 300; i++) console.log('x'.repeat(20_000)); return 7";
    let long = client.execute(long).execution();
    let open = client.execute("return await tools.demo.ask({ text: 'x' })");
    let export = |words: &[&str]| {
        let (code, text, err) = done(dir.path(), &[&["export"], words].concat());
        assert_eq!(code, Some(0), "{err}");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let one = export(&[&long]);
    assert!(one.len() > 300, "{}", one.len());
    assert!(
        (1..)
            .zip(&one)
            .all(|(seq, entry)| entry["seq"] == seq && entry["execution"] == json!(long))
    );
    assert!(
        one[0]["event"]["started"].is_object()
            && one.last().unwrap()["event"]["finished"].is_object()
    );
    let both = export(&[&failed, &long]);
    assert_eq!(&both[both.len() - one.len()..], one);
    assert!(export(&["--failed"]).iter().all(|entry| entry["execution"] == json!(failed)));
    let all = export(&[]);
    assert_eq!(all.len(), both.len(), "all that are over");
    assert_eq!(export(&["--limit", "1"]), one, "the newest");
    let (code, text, err) = done(dir.path(), &["export", &open.execution()]);
    assert_eq!((code, text.as_str()), (Some(1), ""));
    assert!(err.contains("is not over"), "{err}");
    assert_eq!(served.stop(), Some(0));
    assert_eq!(export(&[]), all, "from the directory itself");
    assert_eq!(export(&[&failed, &long]), both);
    let unknown = "run_00000000-0000-0000-0000-000000000000";
    assert_eq!(done(dir.path(), &["export", unknown]).0, Some(1));
    assert_eq!(done(dir.path(), &["export", &open.execution()]).0, Some(1));
}

/// Each list, and the start of its header.
const LISTS: [(&[&str], &str); 11] = [
    (&["executions", "list"], "EXECUTION "),
    (&["policy", "list"], "ID "),
    (&["token", "list"], "NAME "),
    (&["source", "list"], "NAME "),
    (&["connection", "list"], "ADDRESS "),
    (&["connection", "refresh", "c"], "ADDRESS "),
    (&["tools", "sources"], "NAME "),
    (&["tools", "search", "add"], "PATH "),
    (&["settings"], "NAME "),
    (&["settings", "history"], "AT "),
    (&["server", "list"], "NAME "),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_list_has_a_head_on_a_terminal_and_tabs_in_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let config =
        "[sources.c.tools.one]\nargv = ['echo', '1']\nread_only = true\ndescription = 'One.'\n";
    fs::write(dir.path().join("airlock.toml"), config).unwrap();
    let served = Served::start(dir.path(), &[]);
    served.client("admin").execute("return 1");
    for words in [
        &["policy", "add", "demo.*", "approve"][..],
        &["server", "add", "build", "http://127.0.0.1:9"],
        &["settings", "set", "answers", "client"],
    ] {
        assert_eq!(done(dir.path(), words).0, Some(0), "{words:?}");
    }
    wait_for(|| done(dir.path(), &["connection", "list"]).1.starts_with("tools.c").then_some(()));
    let house = house();
    for (words, head) in LISTS {
        let (code, piped, _) = done(dir.path(), words);
        assert_eq!(code, Some(0), "{words:?}");
        assert!(!piped.starts_with(head) && piped.contains('\t'), "{words:?} {piped}");
        let mut terminal = Terminal::open(
            &house,
            200,
            &[("AIRLOCK_DATA_DIR", dir.path()), ("HOME", dir.path())],
            words,
        )
        .await;
        assert_eq!(terminal.ends().await, 0, "{words:?}");
        let shown = terminal.text.trim_start().to_owned();
        assert!(shown.lines().any(|line| line.starts_with(head)), "{words:?} {shown}");
    }
}

#[test]
fn what_is_not_there_cannot_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    for words in [
        &["source", "remove", "nope"][..],
        &["connection", "remove", "nope"],
        &["connection", "remove", "demo", "other"],
        &["token", "remove", "nope"],
        &["policy", "remove", "policy_nope"],
        &["server", "remove", "nope"],
        &["sessions", "end", "web_nope"],
    ] {
        let (code, text, err) = done(dir.path(), words);
        assert_eq!((code, text.as_str()), (Some(1), ""), "{words:?} {err}");
        assert!(err.to_lowercase().contains("there is no"), "{words:?} {err}");
    }
    drop(served);
}

#[test]
fn old_names_of_options_work_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let list = |option: &str| done(dir.path(), &["executions", "list", option, &served.url]);
    let (code, _, err) = list("--base-url");
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("--base-url is called --server now"), "{err}");
    assert_eq!(list("--server"), (Some(0), String::new(), String::new()));
}

#[test]
fn help_shows_verbs_in_groups_and_the_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let help = done(dir.path(), &["--help"]).1;
    for title in ["Programs and tools:", "The server:", "Who may do what:", "Exit codes:"] {
        assert!(help.contains(&format!("\n{title}\n")), "{help}");
    }
    assert!(help.contains("\n  stop ") && help.contains("\n  6    paused"), "{help}");
    let call = done(dir.path(), &["resume", "--help"]).1;
    assert!(call.contains("\n  6    it asks again"), "{call}");
}

#[test]
fn an_address_to_listen_on_is_a_port_or_a_name_of_this_machine() {
    for listen in ["0", "localhost:0", "127.0.0.1:0"] {
        let dir = tempfile::tempdir().unwrap();
        let served = Served::start(dir.path(), &["--listen", listen]);
        assert!(served.url.starts_with("http://127.0.0.1:"), "{listen}: {}", served.url);
        assert_eq!(served.client("run").execute("return 1").result(), 1);
    }
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().to_str().unwrap();
    let set = airlock(&["settings", "set", "listen", "localhost:4799", "--data-dir", data_dir]);
    let mut set = set;
    let set = set.output().unwrap();
    assert!(
        String::from_utf8_lossy(&set.stdout).starts_with("listen\t127.0.0.1:4799\t"),
        "{set:?}"
    );
    let wrong = airlock(&["serve", "--listen", ":1", "--data-dir", data_dir]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("0.0.0.0:1 every machine"),
        "{wrong:?}"
    );
}

#[test]
fn every_error_begins_alike_and_says_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{nobody}");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["call", "--server", &nobody, "a.b"], 1, "onnection refused"),
        (&["source", "add", &format!("{nobody}/api.json")], 1, "onnection refused"),
        (&["source", "add", "--name", "w", "--", "no-such-program"], 1, "command not found"),
        (
            &[
                "run",
                "--local",
                "-e",
                "for (let i = 0; i < 10001; i++) tools.demo.add({ a: 1, b: 2 })",
            ],
            3,
            "more than 10000 tool calls",
        ),
        (&["run", "--local", "--timeout", "50ms", "-e", "for (;;);"], 3, "longer than 50 ms"),
        (&["run", "--local", "-e", "throw new Error('mine')"], 1, "mine"),
        (&["run", "missing.js"], 2, "missing.js"),
        (&["call", "--nonsense"], 2, "--nonsense"),
        (&["executions", "show", "exec_1"], 1, "exec_1 is no id"),
    ];
    for (words, code, says) in cases {
        let failed = done(dir.path(), words);
        assert_eq!(failed.0, Some(code), "{words:?} {failed:?}");
        let lines: Vec<_> = failed.2.lines().collect();
        assert!(lines[0].starts_with("error: "), "{words:?} {failed:?}");
        assert!(lines[0].contains(says), "{words:?} {failed:?}");
        assert!(!lines[0].contains("error: Error:"), "{words:?} {failed:?}");
    }
    let output =
        airlock(&["init", "--print", "--from-executor", "missing.jsonc"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: ") && said.contains("missing.jsonc"), "{said}");
    drop(served);
}

#[test]
fn output_that_cannot_be_written_is_an_error_unless_its_reader_left() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(done(dir.path(), &["server", "add", "build", "http://127.0.0.1:9"]).0, Some(0));
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    for words in [&["server", "list"][..], &["run", "--local", "-e", "1"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let written = verb(dir.path(), words).stdout(full).output().unwrap();
        let said = String::from_utf8(written.stderr).unwrap();
        assert_eq!(written.status.code(), Some(1), "{words:?} {said}");
        let expected = "error: could not write the output: No space left on device";
        assert!(said.starts_with(expected), "{words:?} {said}");
        let closed = closed.try_clone().unwrap();
        let unread = verb(dir.path(), words).stdout(closed).output().unwrap();
        assert_eq!((unread.status.code(), unread.stderr.len()), (Some(0), 0), "{words:?}");
    }
}

#[test]
fn what_is_mistyped_is_answered_with_what_was_meant() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), &[]);
    let check = |words: &[&str], code: i32, says: &[&str]| {
        let (ended, told, error) = done(dir.path(), words);
        assert_eq!(ended, Some(code), "{words:?} {told} {error}");
        for part in says {
            assert!(told.contains(part) || error.contains(part), "{words:?} {told} {error}");
        }
    };
    check(&["ls"], 2, &["'executions list'", "'tools sources'"]);
    check(&["tools", "describe", "demo.ad"], 1, &["did you mean demo.add"]);
    check(&["policy", "test", "demo.nope"], 1, &["there is no tool demo.nope now"]);
    check(&["token", "remove", "admin"], 1, &["error: admin is the last admin token"]);
    check(&["call", "demo", "--help", "--match", "adds"], 0, &["add\ttool\tAdds two numbers."]);
    let (_, _, near) = done(dir.path(), &["call", "git.org.main.log", "{}"]);
    assert!(!near.contains("demo."), "{near}");
    let policy = done(dir.path(), &["policy", "add", "demo.add", "approve"]).1;
    let expected = format!("allow\tdemo.add\t{}", policy.trim());
    check(&["policy", "test", "demo.add"], 0, &[&expected]);
    drop(served);
}

#[test]
fn a_server_that_cannot_begin_says_why_before_it_writes_anything() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("first"), &[]);
    let second = dir.path().join("second");
    let address = served.url.strip_prefix("http://").unwrap();
    let (code, _, error) = done(&second, &["serve", "--listen", address]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.starts_with(&format!("error: could not listen on {address}: ")), "{error}");
    assert!(error.contains("--listen 127.0.0.1:0"), "{error}");
    assert!(!second.join("tokens").exists(), "nothing was written");
    let config = dir.path().join("wrong.toml");
    fs::write(&config, "x = [").unwrap();
    let config = config.to_str().unwrap();
    for words in [&["serve", "--config", config][..], &["run", "--config", config, "-e", "1"]] {
        let (code, _, error) = done(&second, words);
        assert_eq!(code, Some(2), "{words:?} {error}");
        assert!(error.starts_with("error: the configuration is wrong: "), "{words:?} {error}");
    }
}
