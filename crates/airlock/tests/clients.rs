//! `airlock resume` and `airlock executions` against a real server. These tests prove that the parts are connected; the
//! rules are tested in their own crates.

use crate::server_fixture::{Served, airlock};
use std::io::{self, BufRead as _, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// How a verb ended and what it printed.
#[derive(Debug)]
struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn fresh() -> (tempfile::TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(&dir.path().join("data"), &[]);
    (dir, served)
}

/// A verb that finds its server through the data directory.
fn verb(words: &[&str], data_dir: &Path) -> Command {
    let mut command = airlock(words);
    command.env_remove("AIRLOCK_URL").arg("--data-dir").arg(data_dir);
    command
}

fn done(mut command: Command) -> Done {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn told(served: &Served, words: &[&str]) -> Done {
    done(verb(words, &served.data_dir))
}

#[test]
fn an_approved_program_goes_on_and_its_value_is_printed_as_run_does() {
    let (_dir, served) = fresh();
    let code = "console.log('before'); emit({ type: 'text', text: 'out' });
        const told = await tools.demo.ask({ text: 'x' }); console.warn('after'); return [told, 'é']";
    let id = served.client("run").execute(code).question();
    let first = told(&served, &["resume", &id]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.starts_with('[') && first.stdout.ends_with(",\"é\"]\n"), "{first:?}");
    let heard: Vec<_> = first.stderr.lines().collect();
    assert_eq!(heard, ["before", r#"{"type":"text","text":"out"}"#, "after"]);
    let again = told(&served, &["resume", "--execution-id", &id, "--action", "decline"]);
    assert_eq!((again.code, again.stdout), (Some(0), first.stdout));
}

#[test]
fn a_program_that_asks_again_comes_with_commands_that_work() {
    let (_dir, served) = fresh();
    let code = "await tools.demo.ask({ text: 'a' });
        return await tools.demo.append({ line: 'b' })";
    let paused = served.client("run").execute(code);
    let again = told(&served, &["resume", &paused.question()]);
    assert_eq!(again.code, Some(6), "{again:?}");
    assert!(again.stdout.starts_with("Paused: "), "{again:?}");
    assert!(again.stdout.contains(&paused.execution()), "{again:?}");
    let command = again.stdout.lines().find_map(|line| line.strip_prefix("  airlock "));
    let words: Vec<_> = command.unwrap().split(' ').collect();
    let mut copied = airlock(&words);
    copied.env_remove("AIRLOCK_URL");
    let ended = done(copied);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "{\"appended\":true}\n"));
}

#[test]
fn a_declined_call_fails_its_program_and_the_exit_code_says_so() {
    let (_dir, served) = fresh();
    let id = served.client("run").execute("return await tools.demo.ask({ text: 'x' })").question();
    let ended = told(&served, &["resume", &id, "--action", "decline"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), ""), "{ended:?}");
    assert!(ended.stderr.contains("error: "), "{ended:?}");
    let followed = told(&served, &["executions", "follow", &id]);
    assert_eq!(followed.code, Some(4), "{followed:?}");
}

#[test]
fn every_no_is_a_sentence_and_an_exit_code() {
    let (dir, served) = fresh();
    let unknown = "exec_00000000-0000-0000-0000-000000000000";
    let cases: [(&[&str], &str); 6] = [
        (&["resume", unknown], "error: There is no execution or question exec_0"),
        (&["resume", "exec_1"], "error: exec_1 is no id: "),
        (&["executions", "show", unknown], "error: There is no execution or question exec_0"),
        (&["executions", "follow", unknown], "error: There is no execution or question exec_0"),
        (&["executions", "cancel", unknown], "error: There is no execution or question exec_0"),
        (&["executions", "list", "--token", "alk_wrong"], "error: http://127.0.0.1:"),
    ];
    for (words, sentence) in cases {
        let refused = told(&served, words);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{words:?} {refused:?}");
        assert!(refused.stderr.starts_with(sentence), "{words:?} {refused:?}");
    }
    let nobody = done(verb(&["executions", "list"], &dir.path().join("elsewhere")));
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("start one with airlock serve"), "{nobody:?}");
    let url = served.url.clone();
    assert_eq!(served.stop(), Some(0));
    let gone = done(verb(&["executions", "list", "--server", &url], dir.path()));
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("is a server running? Start one with: airlock serve"), "{gone:?}");
}

#[test]
fn executions_are_listed_shown_and_cancelled() {
    let (_dir, served) = fresh();
    let client = served.client("run");
    let ended = client.execute("console.log('hi'); return 1").execution();
    let paused = client.execute("return await tools.demo.ask({ text: 'x' })");
    let listed = told(&served, &["executions", "list"]);
    let rows: Vec<Vec<_>> = listed.stdout.lines().map(|line| line.split('\t').collect()).collect();
    let shown: Vec<_> = rows.iter().map(|row| (row[0], row[1], row[2], row[5])).collect();
    let id = paused.execution();
    let expected =
        [(id.as_str(), "paused", "run", ""), (ended.as_str(), "finished", "run", "completed")];
    assert_eq!(shown, expected);
    let newest = told(&served, &["executions", "list", "--limit", "1", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&newest.stdout).unwrap();
    assert_eq!(line["executionId"], id.as_str());
    assert!(newest.stderr.contains(&format!("add --after {id}")), "{newest:?}");
    let older = told(&served, &["executions", "list", "--after", &id, "--status", "finished"]);
    assert!(older.stdout.starts_with(&ended) && older.stdout.lines().count() == 1, "{older:?}");

    let completed = told(&served, &["executions", "show", &ended]).stdout;
    let head = format!("Execution  {ended}\nStatus     completed\n");
    assert_eq!(completed, format!("{head}Result     1\nLog        [log] hi\n"));
    let json = told(&served, &["executions", "show", &ended, "--json"]).stdout;
    assert_eq!(json.trim(), client.get(&format!("/api/executions/{ended}")).body);
    let asks = told(&served, &["executions", "show", &id]).stdout;
    assert!(asks.contains(&format!("\n  airlock resume {}", paused.question())), "{asks}");

    let cancelled = told(&served, &["executions", "cancel", &id]);
    let sentence = format!("{id} is over: The execution was cancelled by admin.\n");
    assert_eq!((cancelled.code, cancelled.stdout), (Some(0), sentence));
    let followed = told(&served, &["executions", "follow", &id]);
    assert_eq!(followed.code, Some(130), "{followed:?}");
}

/// Forwards each connection to the current server, which may be another one the next time.
fn forward(to: &Arc<Mutex<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let to = Arc::clone(to);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let target = to.lock().unwrap().clone();
            // If no server listens there, the client's connection is closed, as a proxy does.
            if let Ok(server) = TcpStream::connect(target) {
                couple(&client, &server);
                couple(&server, &client);
            }
        }
    });
    url
}

fn couple(from: &TcpStream, to: &TcpStream) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A verb that runs in the background. Dropping it kills it.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_follower_hears_each_event_once_although_the_server_is_killed_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let address = |served: &Served| served.url.strip_prefix("http://").unwrap().to_owned();
    let target = Arc::new(Mutex::new(String::new()));
    let url = forward(&target);
    // A client sends its token through a relay only if the server itself announces the relay's address.
    let served = Served::start(&dir.path().join("data"), &["--public-url", &url]);
    *target.lock().unwrap() = address(&served);
    let code = "console.log('a'); await tools.demo.ask({ text: 'x' }); return 'b'";
    let paused = served.client("run").execute(code);
    let words = ["executions", "follow", &paused.execution(), "--json", "--base-url", &url];
    let mut command = verb(&words, &served.data_dir);
    let mut follower = Beside(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut heard = BufReader::new(follower.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let event = |line: &String| -> (u64, String) {
        let json: serde_json::Value = serde_json::from_str(line).unwrap();
        (json["seq"].as_u64().unwrap(), json["type"].as_str().unwrap().to_owned())
    };
    let mut before: Vec<_> = vec![];
    while before.last().is_none_or(|(_, kind)| kind != "question") {
        before.push(event(&heard.next().unwrap()));
    }
    served.kill();
    let served = Served::start(&dir.path().join("data"), &[]);
    *target.lock().unwrap() = address(&served);
    let resumed = told(&served, &["resume", &paused.question()]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "\"b\"\n"), "{resumed:?}");
    let after: Vec<_> = heard.map(|line| event(&line)).collect();
    assert_eq!(follower.0.wait().unwrap().code(), Some(0));
    let seqs: Vec<_> = before.iter().chain(&after).map(|(seq, _)| *seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(after.last().map(|(_, kind)| kind.as_str()), Some("finished"));
}
