//! The commands of the REPL: from the catalogue, from scripts and from the configuration, with their jobs, files and
//! entries in the journal.

use crate::repl_client::{Spoken, spoken};
use crate::server_fixture::Served;
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(|it| it["name"].as_str()).collect()
}

#[tokio::test]
async fn commands_of_a_script_are_typed_timed_and_write_files() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("commands.js");
    let text = r#"
        const text = { type: "string" };
        Repl.command(
            { name: "text.shout", inputSchema: { type: "object", properties: { text }, required: ["text"] },
              outputSchema: { type: "object", properties: { text }, required: ["text"] } },
            ({ text }, context) => {
                context.artifact("../../shouted.txt", text.toUpperCase(), "text/plain");
                return text === "lie" ? {} : { text: text.toUpperCase() };
            });
        Repl.command({ name: "slow" }, () => new Promise((done) => setTimeout(done, 3_600_000)));
        Repl.command({ name: "picky" }, () => {
            throw Object.assign(new Error("not now"), { kind: "precondition_failed", code: "tooEarly" });
        });
    "#;
    std::fs::write(&script, text).unwrap();
    let server =
        Served::start(&folder.path().join("data"), &["--repl-script", script.to_str().unwrap()]);
    let mut repl = spoken(&server).await;
    let listed = repl.ask(json!({"type": "commands_list"})).await;
    let names = names(&listed["commands"]);
    assert!(["demo.echo", "picky", "slow", "text.shout"].iter().all(|name| names.contains(name)));
    assert!(listed["since"].is_string());
    let misfit = repl.ask(call("text.shout", json!({"text": 5}))).await;
    assert_eq!(misfit["error"]["code"], "argsSchemaViolation");
    let lied = repl.ask(call("text.shout", json!({"text": "lie"}))).await;
    assert_eq!(lied["error"]["code"], "handlerFailed");
    let shouted = repl.ask(call("text.shout", json!({"text": "hey"}))).await;
    assert_eq!(shouted["output"], json!({"text": "HEY"}));
    let file = &shouted["artifacts"]["../../shouted.txt"];
    assert!(file.get("path").is_none());
    let path = file["uri"].as_str().unwrap().split_once("/repl/").unwrap().1;
    assert!(path.ends_with("/_.._shouted.txt"), "{path}");
    let read = server.client_with("nobody").get(&format!("/repl/{path}"));
    assert_eq!((read.status, read.body.as_str()), (200, "HEY"));
    // A capability opens exactly its file, and no other one.
    let (folder, rest) = path.split_at("artifacts/".len());
    let other = if rest.starts_with('0') { "1" } else { "0" };
    for wrong in [format!("{folder}{other}{}", &rest[1..]), format!("{folder}..%2f{rest}")] {
        assert_eq!(server.client_with("nobody").get(&format!("/repl/{wrong}")).status, 404);
    }
    let mut late = call("slow", json!({}));
    late["timeoutMs"] = json!(100);
    assert_eq!(repl.ask(late).await["error"]["code"], "commandTimeout");
    let mut late = call("demo.ask", json!({"text": "x"}));
    late["timeoutMs"] = json!(60_000);
    repl.send(late).await;
    let picky = repl.ask(call("picky", json!({}))).await;
    assert_eq!(picky["error"]["kind"], "precondition_failed");
    assert_eq!(picky["error"]["code"], "tooEarly");
}

#[tokio::test]
async fn jobs_files_and_the_journal_are_read_back_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let id_of = |frame: Value| frame["jobId"].as_str().unwrap().to_owned();
    let done = id_of(repl.ask(call("demo.sleep", json!({"ms": 1}))).await);
    while repl.ask(json!({"type": "job_status", "jobId": done})).await["type"] != "job_result" {}
    let running = id_of(repl.ask(call("demo.sleep", json!({"ms": 600_000}))).await);
    repl.value("Repl.command({ name: 'forever', kind: 'job' }, () => new Promise(() => {}))").await;
    let lost = id_of(repl.ask(call("forever", json!({}))).await);
    let wrote = repl.ask(call("demo.artifact", json!({}))).await;
    let file = wrote["artifacts"]["note"].clone();
    repl.value("1 + 41").await;
    repl.ask(json!({"type": "journal_query"})).await;
    server.kill();

    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let status = |job: &str| json!({"type": "job_status", "jobId": job});
    let read = repl.ask(status(&done)).await;
    assert_eq!((&read["state"], &read["output"]), (&json!("done"), &json!({"slept": 1})));
    assert_eq!(repl.ask(status(&running)).await["type"], "job_status_result");
    let ended = repl.ask(json!({"type": "job_cancel", "jobId": running})).await;
    assert_eq!(ended["accepted"], true);
    let cancelled = loop {
        let told = repl.ask(status(&running)).await;
        if told["type"] == "job_result" {
            break told;
        }
    };
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(repl.ask(status(&lost)).await["error"]["details"]["stateLost"], true);
    let path = file["uri"].as_str().unwrap().split_once("/repl/").unwrap().1;
    let read = server.client_with("nobody").get(&format!("/repl/{path}"));
    assert!(read.body.starts_with("Written by demo.artifact"), "{read:?}");
    let journal = repl.ask(json!({"type": "journal_query", "kind": "eval", "limit": 1})).await;
    assert_eq!(journal["entries"][0]["code"], "1 + 41");
    let commands = repl.ask(json!({"type": "journal_query", "kind": "command"})).await;
    let names = names(&commands["entries"]);
    assert!(names.contains(&"demo.sleep") && names.contains(&"demo.artifact"), "{names:?}");
}

/// Polls until a job has ended, and returns its last status.
async fn ended(repl: &mut Spoken, job: &str) -> Value {
    loop {
        let told = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        if told["type"] == "job_result" {
            return told;
        }
    }
}

/// The journal's entries of the commands of that name, newest first.
async fn entries(repl: &mut Spoken, name: &str) -> Vec<Value> {
    let told = repl.ask(json!({"type": "journal_query", "kind": "command"})).await;
    let of_name = |entry: &&Value| entry["name"] == name;
    told["entries"].as_array().unwrap().iter().filter(of_name).cloned().collect()
}

#[tokio::test]
async fn a_job_that_ends_after_kill_9_is_in_the_journal_once_and_with_its_true_duration() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let call = json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 1_500}});
    let accepted = repl.ask(call).await;
    let job = accepted["jobId"].as_str().unwrap().to_owned();
    server.kill();

    // The next server starts the job again. When the server after that starts, the job has ended.
    let mut server = Served::start(folder.path(), &[]);
    for n_starts in 0..2 {
        let mut repl = spoken(&server).await;
        let ended = ended(&mut repl, &job).await;
        assert_eq!((&ended["state"], &ended["output"]), (&json!("done"), &json!({"slept": 1_500})));
        let entry = loop {
            let mut entries = entries(&mut repl, "demo.sleep").await;
            assert!(entries.len() <= 1, "{entries:?} after {n_starts} more starts");
            if let Some(entry) = entries.pop() {
                break entry;
            }
        };
        let told = (&entry["id"], &entry["success"], &entry["durationMs"]);
        assert_eq!(told, (&accepted["id"], &json!(true), &ended["durationMs"]));
        assert!(entry["durationMs"].as_u64().unwrap() >= 1_500, "{entry}");
        server.kill();
        server = Served::start(folder.path(), &[]);
    }
}

#[tokio::test]
async fn a_job_says_how_far_it_is_before_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let call = json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 600_000}});
    let job = repl.ask(call).await["jobId"].as_str().unwrap().to_owned();
    let status = json!({"type": "job_status", "jobId": job});
    for _ in 0..2 {
        let progress = loop {
            let progress = repl.ask(status.clone()).await["progress"].clone();
            // Until the tool runs, the server reports how long the job has waited for it.
            if progress["progress"].as_f64().is_some_and(|progress| progress > 0.0) {
                break progress;
            }
            assert!(progress["progress"] == 0.0 || progress["elapsedMs"].is_u64(), "{progress}");
        };
        assert_eq!(progress["total"], 600_000.0);
        server.kill();
        server = Served::start(folder.path(), &[]);
        repl = spoken(&server).await;
    }
    // A resumed job counts against the limit also in a server that did not begin it.
    let call = json!({"type": "command_call", "name": "demo.sleep", "args": {"ms": 600_000}});
    while repl.ask(status.clone()).await["progress"]["progress"].is_null() {}
    for _ in 1..4 {
        assert_eq!(repl.ask(call.clone()).await["type"], "job_accepted");
    }
    let refused = repl.ask(call).await;
    assert_eq!(refused["error"]["code"], "jobConcurrencyLimit", "{refused}");
    repl.ask(json!({"type": "job_cancel", "jobId": job})).await;
    while repl.ask(status.clone()).await["type"] == "job_status_result" {}
    // A job in JavaScript defines its own progress.
    let text = "Repl.command({ name: 'count', kind: 'job' }, (args, context) => {
        context.progress({ page: 3, of: 7 });
        return new Promise((done) => setTimeout(done, 3_600_000));
    })";
    repl.value(text).await;
    let called = repl.ask(json!({"type": "command_call", "name": "count", "args": {}})).await;
    assert_eq!(called["type"], "job_accepted");
    let status = json!({"type": "job_status", "jobId": called["jobId"]});
    while repl.ask(status.clone()).await["progress"] != json!({"page": 3, "of": 7}) {}
}

/// The descriptor of a command.
async fn described(repl: &mut Spoken, name: &str) -> Value {
    repl.ask(json!({"type": "command_describe", "name": name})).await["descriptor"].clone()
}

/// Commands of every kind.
const CONFIGURATION: &str = r#"
[[repl.commands]]
name = "text.shout"
description = "Says it louder."
code = "seen.push(args.text); return { text: (args.text as string).toUpperCase() + '!' } // as TypeScript"
input = { type = "object", required = ["text"], properties = { text = { type = "string" } } }
output = { type = "object", properties = { text = { maxLength = 5 } } }
[[repl.commands]]
name = "count"
file = "count.js"
job = true
[[repl.commands]]
name = "slow"
code = "await new Promise((done) => setTimeout(done, 3_600_000))"
timeout_ms = 100
[[repl.commands]]
name = "plus.one"
tool = "demo.add"
args = { b = 1 }
[[repl.commands]]
name = "nap"
tool = "demo.echo"
job = true
[[repl.commands]]
name = "broken"
code = "return ("
"#;

/// The files that define the commands, a configuration and a script, and a server that reads them.
struct Configured {
    folder: tempfile::TempDir,
    server: Served,
}

impl Configured {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("airlock.toml");
        std::fs::write(&file, CONFIGURATION).unwrap();
        let code = "context.progress({ n: args.n }); return { counted: args.n };";
        std::fs::write(folder.path().join("count.js"), code).unwrap();
        let config = ["--config", file.to_str().unwrap()];
        let server = Served::start(&folder.path().join("data"), &config);
        Self { folder, server }
    }

    /// Saves one of the files, and waits until the client is notified.
    async fn save(&self, file: &str, text: &str, repl: &mut Spoken) {
        std::fs::write(self.folder.path().join(file), text).unwrap();
        repl.of_type("assembly_reload").await;
    }
}

fn call(name: &str, args: Value) -> Value {
    json!({"type": "command_call", "name": name, "args": args})
}

/// How a job ended.
async fn done(repl: &mut Spoken, name: &str, args: Value) -> Value {
    let accepted = repl.ask(call(name, args)).await;
    ended(repl, accepted["jobId"].as_str().unwrap()).await
}

#[tokio::test]
async fn commands_of_the_configuration_are_typed_and_timed() {
    let configured = Configured::start();
    let mut repl = spoken(&configured.server).await;
    let shout = described(&mut repl, "text.shout").await;
    assert_eq!((&shout["kind"], &shout["mutatesState"]), (&json!("sync"), &json!(true)));
    assert_eq!(shout["inputSchema"]["description"], "Says it louder.");
    let plus = described(&mut repl, "plus.one").await["inputSchema"].clone();
    assert_eq!(plus["required"], json!(["a"]));
    assert_eq!(described(&mut repl, "nap").await["kind"], "job");

    // The command runs in the session and sees its definitions.
    repl.value("var seen = []").await;
    let shouted = repl.ask(call("text.shout", json!({"text": "hey"}))).await;
    assert_eq!(shouted["output"], json!({"text": "HEY!"}));
    assert_eq!(repl.value("seen").await, json!(["hey"]));
    for (args, code) in [
        (json!({"text": 5}), "argsSchemaViolation"),
        (json!({"text": "too long"}), "handlerFailed"),
    ] {
        assert_eq!(repl.ask(call("text.shout", args)).await["error"]["code"], code);
    }
    assert_eq!(repl.ask(call("slow", json!({}))).await["error"]["code"], "commandTimeout");
    assert_eq!(repl.ask(call("plus.one", json!({"a": 41, "b": 100}))).await["output"], 42);
    let broken = repl.ask(call("broken", json!({}))).await["error"].clone();
    assert_eq!(broken["code"], "handlerException");
    assert!(broken["message"].as_str().unwrap().contains("could not be run"), "{broken}");
    assert_eq!(
        done(&mut repl, "nap", json!({"message": "hi"})).await["output"],
        json!({"message": "hi"})
    );
    assert_eq!(done(&mut repl, "count", json!({"n": 7})).await["output"], json!({"counted": 7}));
    assert_eq!(entries(&mut repl, "nap").await.len(), 1);
}

#[tokio::test]
async fn commands_of_the_configuration_change_without_a_restart_and_definitions_stay() {
    let configured = Configured::start();
    let mut repl = spoken(&configured.server).await;
    repl.value("var seen = []").await;
    repl.ask(call("text.shout", json!({"text": "hey"}))).await;
    assert_eq!(done(&mut repl, "count", json!({"n": 7})).await["output"], json!({"counted": 7}));
    // A changed file of a command takes effect as soon as it is saved, and clients are notified.
    configured.save("count.js", "return { counted: args.n * 1000 };", &mut repl).await;
    assert_eq!(done(&mut repl, "count", json!({"n": 7})).await["output"], json!({"counted": 7000}));
    // A file with a syntax error replaces the previous version all the same: the command fails.
    configured.save("count.js", "return {", &mut repl).await;
    let failed = done(&mut repl, "count", json!({"n": 7})).await;
    assert_eq!(failed["error"]["code"], "handlerException");
    assert_eq!(repl.value("seen.length").await, 1);
    // A command that was removed is unknown.
    let text = "[[repl.commands]]\nname = 'only'\ncode = 'return 1'\n";
    configured.save("airlock.toml", text, &mut repl).await;
    let gone = repl.ask(call("text.shout", json!({"text": "hey"}))).await;
    assert_eq!(gone["error"]["code"], "unknownCommand");
    assert_eq!(repl.ask(call("only", json!({}))).await["output"], 1);
}

#[tokio::test]
async fn what_an_mcp_server_says_of_two_calls_on_one_connection_is_told_to_their_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/source_fixture/slow.mjs");
    let text = format!(
        "[sources.slow]\ncommand = {}\n[[repl.commands]]\nname = 'crawl'\n\
         tool = 'slow.org.main.crawl'\njob = true\n",
        json!(["node", script])
    );
    let file = folder.path().join("airlock.toml");
    std::fs::write(&file, text).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let server = Served::start(&folder.path().join("data"), &config);
    let mut repl = spoken(&server).await;
    // A source is read in the background: until then its command does not exist.
    while described(&mut repl, "crawl").await.is_null() {}
    let mut jobs = vec![];
    for site in ["a.example", "b.example"] {
        let call = json!({"type": "command_call", "name": "crawl", "args": {"site": site}});
        jobs.push((site, repl.ask(call).await["jobId"].as_str().unwrap().to_owned()));
    }
    for (site, job) in &jobs {
        let status = json!({"type": "job_status", "jobId": job});
        let progress = loop {
            let told = repl.ask(status.clone()).await;
            assert_eq!(told["type"], "job_status_result", "{told}");
            if told["progress"].get("progress").is_some() {
                break told["progress"].clone();
            }
        };
        let expected = json!({"progress": 1.0, "total": 3.0, "message": format!("read {site}")});
        assert_eq!(progress, expected);
        repl.ask(json!({"type": "job_cancel", "jobId": job})).await;
        assert_eq!(ended(&mut repl, job).await["state"], "cancelled");
    }
}

#[tokio::test]
async fn the_time_of_a_job_is_enforced_also_where_its_session_died() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let mut nap = call("demo.sleep", json!({"ms": 600_000}));
    nap["timeoutMs"] = json!(100);
    let accepted = repl.ask(nap.clone()).await;
    let late = ended(&mut repl, accepted["jobId"].as_str().unwrap()).await;
    assert_eq!(
        (&late["state"], &late["error"]["code"]),
        (&json!("failed"), &json!("commandTimeout"))
    );
    nap["timeoutMs"] = json!(1_000);
    let accepted = repl.ask(nap).await;
    server.kill();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let late = ended(&mut repl, accepted["jobId"].as_str().unwrap()).await;
    assert_eq!(
        (&late["state"], &late["error"]["code"]),
        (&json!("failed"), &json!("commandTimeout"))
    );
}

#[tokio::test]
async fn a_job_in_javascript_that_died_with_its_server_has_its_duration_and_one_entry() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    repl.value("Repl.command({ name: 'forever', kind: 'job' }, () => new Promise(() => {}))").await;
    let accepted = repl.ask(call("forever", json!({}))).await;
    let job = accepted["jobId"].as_str().unwrap().to_owned();
    // A reply that takes longer than a tick of the clock, so that the job has a measurable duration.
    repl.value("await tools.demo.sleep({ ms: 20 }); 1").await;
    server.kill();
    for _ in 0..2 {
        let server = Served::start(&data, &[]);
        let mut repl = spoken(&server).await;
        let told = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        assert_eq!(
            (&told["type"], &told["error"]["code"]),
            (&json!("job_result"), &json!("stateLost"))
        );
        assert!(told["durationMs"].as_u64().unwrap() >= 20, "{told}");
        let found = loop {
            let found = entries(&mut repl, "forever").await;
            if !found.is_empty() {
                break found;
            }
        };
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0]["durationMs"].as_u64().unwrap() >= 20, "{found:?}");
        assert_eq!(found[0]["success"], false);
        server.stop();
    }
}

#[tokio::test]
async fn what_a_killed_job_wrote_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let text = "Repl.command({ name: 'stuck', kind: 'job' }, async (args, context) => {
        context.artifact('part.txt', 'half of it', 'text/plain'); await tools.demo.sleep({ ms: 1 });
        [].sort.call({ length: 2 ** 53 - 1 }) })";
    repl.value(text).await;
    let job = repl.ask(call("stuck", json!({}))).await["jobId"].as_str().unwrap().to_owned();
    assert_eq!(repl.ask(json!({"type": "job_cancel", "jobId": job})).await["accepted"], true);
    let told = ended(&mut repl, &job).await;
    assert_eq!(told["state"], "cancelled");
    let uri = told["artifacts"]["part.txt"]["uri"].as_str().unwrap_or_else(|| panic!("{told}"));
    let path = uri.split_once("/repl/").unwrap().1;
    let read = server.client_with("nobody").get(&format!("/repl/{path}"));
    assert_eq!(read.body, "half of it");
}

#[tokio::test]
async fn what_a_job_wrote_is_there_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let text = "Repl.command({ name: 'writer', kind: 'job' }, async (args, context) => {
        context.artifact('part.txt', 'half of it', 'text/plain'); context.artifact('more.txt', 'more');
        context.progress('wrote'); await new Promise(() => {}) })";
    repl.value(text).await;
    let job = repl.ask(call("writer", json!({}))).await["jobId"].as_str().unwrap().to_owned();
    let status = json!({"type": "job_status", "jobId": job});
    while repl.ask(status.clone()).await["progress"] != "wrote" {}
    // Later files wait for earlier ones: a command that wrote a file and has ended shows that the job's files are
    // stored.
    let kept = async |repl: &mut Spoken| {
        repl.ask(call("demo.artifact", json!({}))).await["status"].clone()
    };
    for _ in 0..3 {
        assert_eq!(kept(&mut repl).await, "ok");
    }
    server.kill();
    let server = Served::start(&data, &[]);
    let mut repl = spoken(&server).await;
    let told = repl.ask(status).await;
    assert_eq!(told["error"]["code"], "stateLost", "{told}");
    for (name, content) in [("part.txt", "half of it"), ("more.txt", "more")] {
        let uri = told["artifacts"][name]["uri"].as_str().unwrap_or_else(|| panic!("{told}"));
        let path = uri.split_once("/repl/").unwrap().1;
        assert_eq!(server.client_with("nobody").get(&format!("/repl/{path}")).body, content);
    }
}
