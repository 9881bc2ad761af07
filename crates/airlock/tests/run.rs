//! Drives the real binary as a person at a shell would. These tests prove that the parts are connected; the rules are
//! tested in their own crates.

use crate::server_fixture::Served;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The output and the exit code of one run of the binary.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
}

fn seen(exit: i32, stdout: &str, stderr: &str) -> Seen {
    Seen { exit: Some(exit), stdout: stdout.into(), stderr: stderr.into() }
}

#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn start(directory: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_airlock"))
        .args(words)
        .current_dir(directory)
        .env("AIRLOCK_DATA_DIR", directory.join("data"))
        .env_remove("AIRLOCK_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_project_file_brings_tools_and_policies_to_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[sources.c.tools.one]\nargv = ['echo', '1']\nread_only = true\n\
                  [sources.down]\ncommand = ['/nowhere/at/all']\n\
                  [[policies]]\npattern = 'demo.add'\naction = 'block'\n\
                  [[policies]]\npattern = 'demo.ask'\naction = 'approve'\n\
                  [[policies]]\npattern = 'c.org.main.one'\naction = 'require_approval'\n";
    fs::write(dir.path().join("airlock.toml"), config).unwrap();
    let code = "const asked = (await tools.demo.ask({ text: 'x' })).text; \
                const gone = await tools.demo.add({ a: 1, b: 2 }).catch((why) => why.message); \
                [asked, gone, (await tools.c.org.main.one()).data]";
    let unknown = end(start(dir.path(), &["run", "--no", "-e", "await tools.c.org.main.one()"]));
    assert!(unknown.stderr.contains("airlock trust"), "{unknown:?}");
    assert!(unknown.stdout.contains("tool_not_found"), "{unknown:?}");
    assert_eq!(end(start(dir.path(), &["trust"])).exit, Some(0));
    let yes = end(start(dir.path(), &["run", "--yes", "-e", code]));
    assert_eq!(yes.exit, Some(0), "{yes:?}");
    assert!(yes.stdout.contains("Tool blocked by policy: demo.add"), "{yes:?}");
    assert!(yes.stdout.contains("\"x\""), "{yes:?}");
    assert!(yes.stderr.contains("source down cannot be read"), "{yes:?}");
    let no = end(start(dir.path(), &["run", "--no", "-e", code]));
    assert!(no.stderr.contains("requires approval but the request was declined"), "{no:?}");
    fs::write(
        dir.path().join("airlock.toml"),
        "[[policies]]\npattern = 'a..b'\naction = 'block'\n",
    )
    .unwrap();
    for words in [["run", "-e"], ["run", "--config=airlock.toml"]] {
        let words = [&words[..], &[if words[1] == "-e" { "1" } else { "-e=1" }]].concat();
        let wrong = end(start(dir.path(), &words));
        assert!(wrong.stderr.contains("policies[0].pattern \"a..b\""), "{wrong:?}");
        // In the operator's file it is an error; in a project's file it does not prevent the start.
        let expected = if words[1] == "-e" { Some(0) } else { Some(2) };
        assert_eq!(wrong.exit, expected, "{wrong:?}");
    }
}

#[test]
fn policies_that_are_kept_hold_for_a_run_whether_or_not_a_server_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let code = "const say = (call) => call.then((value) => value, (why) => why.message); \
                [await say(tools.demo.add({ a: 1, b: 2 })), await say(tools.demo.ask({ text: 'x' }))]";
    let run = || end(start(here, &["run", "-e", code]));
    let free = run();
    assert!(free.stdout.starts_with("[3,"), "{free:?}");
    assert!(!here.join("data/store.db").exists(), "nothing is kept by a run");
    for words in [["demo.add", "block"], ["demo.ask", "approve"]] {
        let added = end(start(here, &[&["policy", "add"], &words[..]].concat()));
        assert_eq!(added.exit, Some(0), "{added:?}");
    }
    let ruled = run();
    assert!(ruled.stdout.contains("Tool blocked by policy: demo.add"), "{ruled:?}");
    assert!(ruled.stdout.ends_with(",{\"approved\":true,\"text\":\"x\"}]\n"), "{ruled:?}");
    // The server has the directory open, and writes to it.
    let served = Served::start(&here.join("data"), &[]);
    let rule = r#"{"owner":"user","pattern":"demo.ask","action":"block"}"#;
    assert_eq!(served.client("admin").post("/api/policies", rule).status, 200);
    let both = run();
    assert_eq!(both.stdout.matches("Tool blocked by policy").count(), 2, "{both:?}");
}

/// `run` with a token in the environment.
fn run_with_token(here: &Path, url: Option<&str>, words: &[&str]) -> Seen {
    #[expect(clippy::disallowed_methods, reason = "the test awaits this child")]
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlock"));
    command.arg("run").args(words).current_dir(here).stdin(Stdio::null());
    command
        .env("AIRLOCK_DATA_DIR", here.join("data"))
        .env("AIRLOCK_TOKEN", "alk_of-another-server");
    command.env_remove("AIRLOCK_LOG").env_remove("AIRLOCK_URL");
    command.envs(url.map(|url| ("AIRLOCK_URL", url)));
    let output = command.output().unwrap();
    Seen {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_token_in_the_environment_does_not_keep_a_program_from_running_here() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run_with_token(dir.path(), None, &["-e", "6 * 7"]), seen(0, "42\n", ""));
}

#[test]
fn a_run_uses_the_server_that_is_named_and_says_which_one_it_does_not_use() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path();
    let served = Served::start(&here.join("data"), &[]);
    let n_kept = || {
        served.client("admin").get("/api/executions").json()["executions"].as_array().unwrap().len()
    };
    let run = end(start(here, &["run", "-e", "6 * 7"]));
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), "42\n"));
    let note = format!("airlock: this runs here, and not on the server at {}: ", served.url);
    assert!(run.stderr.starts_with(&note), "{}", run.stderr);
    assert_eq!(end(start(here, &["run", "--local", "-e", "6 * 7"])), seen(0, "42\n", ""));
    assert_eq!(n_kept(), 0);
    let there = end(start(here, &["run", "--server", &served.url, "-e", "return 6 * 7"]));
    assert_eq!((there, n_kept()), (seen(0, "42\n", ""), 1));
    let refused = run_with_token(here, Some(&served.url), &["-e", "return 1"]);
    assert_eq!(
        refused.exit,
        Some(1),
        "the token is sent to the server of the environment: {refused:?}"
    );
    let unclear = run_with_token(here, Some(&served.url), &["--yes", "-e", "1"]);
    assert_eq!(unclear.exit, Some(2), "{unclear:?}");
    assert!(
        unclear.stderr.starts_with("error: --yes is for a program that runs here"),
        "{unclear:?}"
    );
    let added = end(start(here, &["server", "add", "mine", &served.url, "--use"]));
    assert_eq!(added.exit, Some(0), "{added:?}");
    let used = end(start(here, &["run", "-e", "return 6 * 7"]));
    assert_eq!((used, n_kept()), (seen(0, "42\n", ""), 2));
}

fn end(child: Child) -> Seen {
    let output = child.wait_with_output().unwrap();
    Seen {
        exit: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs the binary with an empty stdin, in its own directory.
fn airlock(words: &[&str]) -> Seen {
    end(start(tempfile::tempdir().unwrap().path(), words))
}

fn eval(code: &str) -> Seen {
    airlock(&["run", "-e", code])
}

#[test]
fn a_value_is_printed_as_json() {
    assert_eq!(eval("return { a: [1, 'x', null] }"), seen(0, "{\"a\":[1,\"x\",null]}\n", ""));
    assert_eq!(eval("6 * 7"), seen(0, "42\n", ""));
}

#[test]
fn every_value_is_passed_on_as_it_is() {
    let deep = "let a = []; for (let i = 0; i < 200; i++) a = [a]; a";
    let nested = format!("{}{}", "[".repeat(201), "]".repeat(201));
    for (code, value) in
        [(deep, nested.as_str()), ("'\\ud800'", r#""\ud800""#), ("undefined", "null")]
    {
        let told = format!("{{\"logs\":[],\"result\":{value},\"status\":\"completed\"}}\n");
        assert_eq!(airlock(&["run", "--json", "-e", code]), seen(0, &told, ""));
    }
}

#[test]
fn undefined_prints_nothing() {
    assert_eq!(eval("const x = 1"), seen(0, "", ""));
}

#[test]
fn what_the_program_prints_goes_to_stderr() {
    let code = "console.log('one', { two: 2 }); console.error('three'); return 4";
    let run = eval(code);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(0), "4\n"));
    let lines: Vec<_> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].starts_with("one ") && lines[1] == "three", "{lines:?}");
}

#[test]
fn a_typescript_file_runs() {
    let directory = tempfile::tempdir().unwrap();
    let program = "interface Point { x: number }\n\
         const p: Point = { x: 3 as number };\n\
         return await tools.demo.add({ a: p.x, b: 4 });\n";
    fs::write(directory.path().join("point.ts"), program).unwrap();
    assert_eq!(end(start(directory.path(), &["run", "point.ts"])), seen(0, "7\n", ""));
}

#[test]
fn a_program_can_come_from_stdin() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = start(directory.path(), &["run", "-"]);
    child.stdin.take().unwrap().write_all(b"return 'from ' + 'stdin'").unwrap();
    assert_eq!(end(child), seen(0, "\"from stdin\"\n", ""));
}

#[test]
fn parallel_calls_all_return() {
    let code = "const sums = [1, 2, 3].map((a) => tools.demo.add({ a, b: 10 })); \
                return await Promise.all([...sums, tools.demo.sleep({ ms: 1 })])";
    assert_eq!(eval(code), seen(0, "[11,12,13,{\"slept\":1}]\n", ""));
}

#[test]
fn a_thrown_error_says_what_and_where() {
    let run = eval("const a = 1;\nthrow new TypeError('no such ' + a);");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(1), ""));
    let mut lines = run.stderr.lines();
    assert_eq!(lines.next(), Some("error: TypeError: no such 1"));
    assert!(lines.any(|line| line.contains(":2")), "{}", run.stderr);
}

#[test]
fn an_error_names_what_is_wrong_and_a_failed_call_has_its_line() {
    let run = eval("const list = { items: null };\nlist.first().map(String)");
    let expected =
        "error: TypeError: list.first is not a function\n    at <anonymous> (program.js:2:1)\n";
    assert_eq!((run.exit, run.stderr.as_str()), (Some(1), expected));
    let run = eval("const message = 'no luck';\nawait tools.demo.fail({ message })");
    assert!(run.stderr.contains("no luck\n    at <anonymous> (program.js:2:"), "{}", run.stderr);
}

#[test]
fn a_syntax_error_is_the_programs_failure() {
    let run = eval("return (");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
}

#[test]
fn a_failing_tool_fails_the_program_that_does_not_catch_it() {
    let run = eval("await tools.demo.fail({ message: 'no luck' })");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("no luck"), "{}", run.stderr);
}

#[test]
fn a_misspelt_tool_comes_with_a_suggestion() {
    let run = eval("await tools.demo.ad({ a: 1, b: 2 })");
    assert_eq!(run.exit, Some(1));
    assert!(run.stderr.contains("Did you mean demo.add"), "{}", run.stderr);
}

#[test]
fn yes_approves_and_the_tool_does_its_work() {
    let directory = tempfile::tempdir().unwrap();
    let code = "return await tools.demo.append({ line: 'hello' })";
    let run = end(start(directory.path(), &["run", "--yes", "-e", code]));
    assert_eq!(run, seen(0, "{\"appended\":true}\n", ""));
    let written = fs::read_to_string(directory.path().join("data/demo-append.txt")).unwrap();
    assert_eq!(written, "hello\n");
}

#[test]
fn no_declines_and_the_tool_does_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let code = "await tools.demo.append({ line: 'hello' })";
    let run = end(start(directory.path(), &["run", "--no", "-e", code]));
    assert_eq!((run.exit, run.stdout.as_str()), (Some(4), ""));
    assert!(run.stderr.contains("declined"), "{}", run.stderr);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_program_that_expects_a_no_ends_well() {
    let code = "try { await tools.demo.ask({ text: 'Really?' }) } catch { return 'went on' }";
    assert_eq!(airlock(&["run", "--no", "-e", code]), seen(0, "\"went on\"\n", ""));
}

#[test]
fn without_a_terminal_the_answer_is_no_and_a_note_says_what_to_do() {
    let run = eval("await tools.demo.ask({ text: 'Really?' })");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(4), ""));
    let note = "airlock: declined, because nobody is at the terminal: Approve demo.ask?\n\
         hint: to approve, run it with --yes, or from a terminal with the program in a file\n";
    assert!(run.stderr.starts_with(note), "{}", run.stderr);
}

#[test]
fn an_endless_program_ends_with_its_time() {
    for code in ["while (true);", "await new Promise((done) => setTimeout(done, 3600000))"] {
        let run = airlock(&["run", "--timeout", "200ms", "-e", code]);
        assert_eq!((run.exit, run.stdout.as_str()), (Some(3), ""), "{code}: {}", run.stderr);
        assert!(run.stderr.contains("hint: --timeout"), "{code}: {}", run.stderr);
    }
}

#[test]
fn waiting_for_a_tool_does_not_count() {
    let code = "return await tools.demo.sleep({ ms: 400 })";
    let run = airlock(&["run", "--timeout", "200ms", "-e", code]);
    assert_eq!(run, seen(0, "{\"slept\":400}\n", ""));
}

#[test]
fn a_greedy_program_ends_with_its_memory() {
    let run = eval("const kept = []; while (true) kept.push(new Array(100000).fill(kept.length));");
    assert_eq!((run.exit, run.stdout.as_str()), (Some(3), ""), "{}", run.stderr);
}

#[test]
fn interrupting_cancels_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let code = "console.log('ready'); await tools.demo.sleep({ ms: 600000 })";
    let mut child = start(directory.path(), &["run", "-e", code]);
    let mut first = [0; 6];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"ready\n");
    interrupt(&child);
    assert_eq!(end(child), seen(130, "", "airlock: cancelled\n"));
}

#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn what_makes_no_sense_is_a_matter_of_usage() {
    let run = airlock(&["run", "missing.js"]);
    assert_eq!((run.exit, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.starts_with("error: cannot open missing.js"), "{}", run.stderr);
    assert_eq!(airlock(&["run"]).exit, Some(2));
    assert_eq!(airlock(&["run", "-e", "1", "--timeout", "5"]).exit, Some(2));
    assert_eq!(airlock(&["fly"]).exit, Some(2));
}

#[test]
fn help_names_the_exit_codes() {
    let help = airlock(&["run", "--help"]);
    assert_eq!((help.exit, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("130  interrupted with Ctrl-C"), "{}", help.stdout);
}

#[test]
fn the_doctor_names_every_layer() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let report = airlock(&["doctor", "--data-dir", data.to_str().unwrap()]);
    assert_eq!((report.exit, report.stderr.as_str()), (Some(0), ""), "{}", report.stdout);
    for layer in ["seccomp", "no_new_privs", "resource limits"] {
        assert!(report.stdout.contains(&format!("ok      {layer}\n")), "{}", report.stdout);
    }
    assert!(report.stdout.contains(" MiB for all guests together"), "{}", report.stdout);
    assert!(report.stdout.ends_with("Guests can run here.\n"), "{}", report.stdout);
    assert!(!data.exists());
}

/// Runs the binary in its own terminal, where a person types `typed`.
#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn at_a_terminal(directory: &Path, code: &str, typed: &str) -> (Option<i32>, String) {
    let command = format!("'{}' run -e '{code}'", env!("CARGO_BIN_EXE_airlock"));
    let mut child = Command::new("script") // a part of every Linux's basic tools
        .args(["-qec", &command, "/dev/null"])
        .env("AIRLOCK_DATA_DIR", directory.join("data"))
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_person_at_a_terminal_is_asked_right_there() {
    let code = "return await tools.demo.append({ line: \"x\" })";
    for (typed, exit, n_lines) in [("y\n", 0, 1), ("n\n", 4, 0), ("\n", 4, 0)] {
        let directory = tempfile::tempdir().unwrap();
        let (left, shown) = at_a_terminal(directory.path(), code, typed);
        assert_eq!((typed, left), (typed, Some(exit)), "{shown}");
        assert!(shown.contains("Approve demo.append?") && shown.contains("[y/N]"), "{shown}");
        let appended = fs::read_to_string(directory.path().join("data/demo-append.txt"));
        assert_eq!(appended.unwrap_or_default().lines().count(), n_lines);
    }
}
