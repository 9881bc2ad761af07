//! Drives `airlock serve` over sockets as clients would. These tests prove that the parts are connected; the rules are
//! tested in their own crates.

mod restarts;

use crate::server_fixture::{self, Answer, Client, ENVIRONMENT_SECRET, Served, airlock};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::thread;

/// A server in a directory of its own.
fn fresh(more: &[&str]) -> (tempfile::TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let served = match more.contains(&"--no-model-answers") {
        true => Served::start(&data_dir, more),
        false => Served::with_model_answers(&data_dir, more),
    };
    (dir, served)
}

fn lines(data_dir: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(data_dir.join("demo-append.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn token(served: &Served, name: &str, scopes: &[&str]) -> Client {
    let body = json!({ "name": name, "scopes": scopes }).to_string();
    let minted = served.client("admin").post("/api/tokens", &body);
    assert_eq!(minted.status, 201, "{minted:?}");
    served.client_with(minted.json()["secret"].as_str().unwrap())
}

fn message(answer: &Answer) -> (u16, String, String) {
    let json = answer.json();
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    (answer.status, text("_tag"), text("message"))
}

#[test]
fn a_program_runs_and_is_told_in_executors_words() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let answer = client.execute("console.log('hi'); return { z: 1, a: [] }");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.body,
        r#"{"status":"completed","text":"{\n  \"z\": 1,\n  \"a\": []\n}\n\nLogs:\n[log] hi","structured":{"status":"completed","result":{"z":1,"a":[]},"logs":["[log] hi"]},"isError":false}"#
    );
    let failed = client.execute("throw new RangeError('too far')").json();
    assert_eq!(
        (&failed["isError"], &failed["structured"]["status"]),
        (&json!(true), &json!("error"))
    );
    let text = failed["text"].as_str().unwrap();
    assert!(text.starts_with("Error: RangeError: too far\n    at "), "{text}");

    let id = answer.execution();
    assert_eq!(client.get(&format!("/api/executions/{id}")).body, answer.body);
}

#[test]
fn a_pause_is_resumed_once_whoever_and_however_often_asks() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let paused = client.execute("return await tools.demo.append({ line: 'one' })");
    let id = paused.question();
    assert_eq!(paused.json()["status"], "paused");
    assert_eq!(paused.json()["structured"]["interaction"]["address"], "tools.demo.append");
    let shown = client.get(&format!("/api/executions/{id}")).json();
    assert_eq!(
        shown,
        json!({ "text": paused.json()["text"], "structured": paused.json()["structured"] })
    );

    let resuming: Vec<_> = (0..4)
        .map(|_| {
            let (client, id) = (client.clone(), id.clone());
            thread::spawn(move || client.resume(&id, "accept"))
        })
        .collect();
    let told: Vec<_> = resuming.into_iter().map(|told| told.join().unwrap().body).collect();
    assert!(told.iter().all(|body| *body == told[0]), "{told:?}");
    for action in ["accept", "decline", "cancel"] {
        assert_eq!(client.resume(&id, action).body, told[0]);
    }
    assert_eq!(client.resume(&paused.execution(), "accept").body, told[0]);
    assert_eq!(lines(&served.data_dir), ["one"]);
}

#[test]
fn a_declined_call_can_be_caught() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let code = "try { await tools.demo.ask({ text: 'x' }) } catch (e) { return e.message }";
    let id = client.execute(code).question();
    let declined = client.resume(&id, "decline");
    let said = "Tool \"demo.ask\" requires approval but the request was declined by the user.";
    assert_eq!(declined.result(), said);
}

#[test]
fn parallel_questions_come_one_by_one() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let code = "const ask = text => tools.demo.ask({ text }).then(said => said.text);
                return await Promise.all(['a', 'b', 'c'].map(ask))";
    let mut told = client.execute(code);
    let mut ids = vec![];
    while told.json()["status"] == "paused" {
        ids.push(told.question());
        told = client.resume(&told.question(), "accept");
    }
    assert_eq!((ids.len(), told.result()), (3, json!(["a", "b", "c"])));
    let replayed = client.resume(&ids[0], "decline");
    assert_eq!(replayed.question(), ids[1], "a repeated answer is told what followed it");
}

#[test]
fn approvals_can_be_given_beforehand_by_whoever_may_answer() {
    let (_dir, served) = fresh(&["--no-model-answers"]);
    let body = json!({ "code": "return await tools.demo.ask({ text: 'x' })", "autoApprove": true });
    let admin = served.client("admin").post("/api/executions", &body.to_string());
    assert_eq!(admin.result(), json!({ "approved": true, "text": "x" }));
    let refused = served.client("run").post("/api/executions", &body.to_string());
    assert_eq!(refused.status, 403);
}

#[test]
fn a_client_that_does_not_wait_can_ask_later() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let body = json!({ "code": "return await tools.demo.sleep({ ms: 200 })" }).to_string();
    let begun = client.post("/api/executions?wait=0", &body);
    let id = begun.execution();
    assert_eq!(
        (begun.status, begun.json()),
        (202, json!({ "status": "running", "executionId": id }))
    );
    let ended = client.get(&format!("/api/executions/{id}?wait=30000"));
    assert_eq!(ended.result(), json!({ "slept": 200 }));

    // A client that disconnects while it waits changes nothing either.
    let code = "await tools.demo.sleep({ ms: 200 }); return await tools.demo.append({ line: 'x' })";
    let body = json!({ "code": code, "autoApprove": true }).to_string();
    let mut stream = client.connect();
    let head =
        client.head("POST", "/api/executions", &[("Content-Type", "application/json")], body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    while client.get("/api/executions?status=running").json()["executions"] == json!([]) {}
    drop(stream);
    let went_on = (0..10_000).any(|_| {
        client.get("/api/executions?limit=1");
        lines(&served.data_dir) == ["x"]
    });
    assert!(went_on, "the program goes on without its client");
}

#[test]
fn executions_are_listed_newest_first_and_page_by_page() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let first = client.execute("return 1").execution();
    let second = client.execute("await tools.demo.ask({ text: '' })").execution();
    let third = client.execute("return 3").execution();
    let ids = |path: &str| -> (Vec<Value>, Value) {
        let list = client.get(path).json();
        let executions = list["executions"].as_array().unwrap();
        (executions.iter().map(|line| line["executionId"].clone()).collect(), list["next"].clone())
    };
    assert_eq!(ids("/api/executions").0, [json!(third), json!(second), json!(first)]);
    assert_eq!(ids("/api/executions?status=paused").0, [json!(second)]);
    assert_eq!(ids("/api/executions?limit=2"), (vec![json!(third), json!(second)], json!(second)));
    assert_eq!(ids(&format!("/api/executions?after={second}")).0, [json!(first)]);
    let other = token(&served, "other", &["run"]);
    assert_eq!(other.get("/api/executions").json()["executions"], json!([]));
    let line = &served.client("admin").get("/api/executions?limit=1").json()["executions"][0];
    assert_eq!((&line["caller"], &line["status"]), (&json!("run"), &json!("finished")));
    assert_eq!(client.get("/api/executions?status=odd").status, 400);
}

#[test]
fn events_are_heard_from_any_number_each_once() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let code = "console.log('a'); emit(1); await tools.demo.add({ a: 1, b: 2 });
                return await tools.demo.ask({ text: 'x' })";
    let paused = client.execute(code);
    let path = format!("/api/executions/{}/events", paused.execution());

    // One follower listens from the start of the pause, and receives the end.
    let live = {
        let (client, path) = (client.clone(), path.clone());
        thread::spawn(move || stream(&client, &path, None))
    };
    client.resume(&paused.question(), "accept");
    let page = client.get(&path).json();
    let whole = page["events"].as_array().unwrap().clone();
    assert_eq!(page["last"], whole.last().unwrap()["seq"]);
    assert_eq!(live.join().unwrap(), whole);
    for (n_heard, _) in whole.iter().enumerate() {
        let rest = &whole[n_heard..];
        assert_eq!(stream(&client, &path, Some(n_heard)), rest);
        let page = client.get(&format!("{path}?after={n_heard}")).json();
        assert_eq!(page["events"].as_array().unwrap(), rest);
    }
    let seqs: Vec<_> = whole.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=whole.len() as u64).collect::<Vec<_>>());
    let types: Vec<_> = whole.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for kind in ["started", "log", "emitted", "call", "settled", "question", "answer", "finished"] {
        assert!(types.contains(&kind), "{kind} is missing from {types:?}");
    }
    let last = whole.len().to_string();
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    assert_eq!(client.send("GET", &path, &headers, "").status, 204, "nothing is to come");
}

/// The events of a stream, read to its end.
fn stream(client: &Client, path: &str, last: Option<usize>) -> Vec<Value> {
    let last = last.map(|last| last.to_string()).unwrap_or_default();
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    let answer = client.send("GET", path, &headers, "");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let blocks = answer.body.split("\n\n").filter(|block| block.contains("data: "));
    blocks
        .map(|block| {
            let field =
                |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            let event: Value = serde_json::from_str(field("data: ")).unwrap();
            assert_eq!(event["seq"].to_string(), field("id: "));
            event
        })
        .collect()
}

#[test]
fn a_cancelled_execution_is_over_for_everybody() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let paused = client.execute("return await tools.demo.append({ line: 'never' })");
    let path = format!("/api/executions/{}/cancel", paused.execution());
    let cancelled = client.post(&path, "");
    assert_eq!(cancelled.json()["text"], "Error: The execution was cancelled by run.");
    assert_eq!(client.post(&path, "").body, cancelled.body);
    assert_eq!(client.resume(&paused.question(), "accept").body, cancelled.body);
    assert_eq!(lines(&served.data_dir), [""; 0]);
}

#[test]
fn tokens_open_what_they_are_for_and_nothing_else() {
    let (_dir, served) = fresh(&["--no-model-answers"]);
    let (agent, other) = (served.client("run"), token(&served, "other", &["run"]));
    let person = token(&served, "ann", &["answer"]);
    let paused = agent.execute("return await tools.demo.ask({ text: 'x' })");
    let (id, run) = (paused.question(), paused.execution());

    let refused = message(&agent.resume(&id, "accept"));
    assert_eq!((refused.0, refused.1.as_str()), (403, "ForbiddenError"));
    let page = format!("A person decides this question, on the page /resume/{id} of this server.");
    assert!(refused.2.starts_with(&page), "{}", refused.2);
    for path in [format!("/api/executions/{id}"), format!("/api/executions/{run}")] {
        assert_eq!(agent.get(&path).status, 200);
        assert_eq!(person.get(&path).status, 200);
        assert_eq!(message(&other.get(&path)).1, "ExecutionNotFoundError");
    }
    assert_eq!(other.resume(&id, "accept").status, 404);
    assert_eq!(other.post(&format!("/api/executions/{run}/cancel"), "").status, 404);
    assert_eq!(
        message(&person.execute("return 1")).2,
        "This token is not good for that; the scope run is needed."
    );
    assert_eq!(agent.get("/api/tokens").status, 403);
    assert_eq!(agent.get("/metrics").status, 403);
    assert_eq!(person.resume(&id, "accept").result(), json!({ "approved": true, "text": "x" }));

    let admin = served.client("admin");
    assert_eq!(admin.send("DELETE", "/api/tokens/other", &[], "").status, 200);
    assert_eq!(other.get("/api/executions").status, 401);
    assert_eq!(served.client_with(ENVIRONMENT_SECRET).get("/metrics").status, 200);
}

#[test]
fn the_token_verb_works_with_and_without_a_server() {
    let (_dir, served) = fresh(&[]);
    let data_dir = served.data_dir.to_str().unwrap().to_owned();
    let token = |words: &[&str]| {
        let words = [&["token", "--data-dir", &data_dir], words].concat();
        let output = airlock(&words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let (code, secret, _) = token(&["add", "bot", "--scope", "run,answer"]);
    assert_eq!(code, Some(0));
    assert_eq!(served.client_with(secret.trim()).execute("return 1").result(), 1);
    let listed = "admin\tadmin\tperson\nbot\trun,answer\tperson\nrun\trun\tmodel\n";
    assert_eq!(token(&["list"]).1, listed);
    let taken = (Some(1), String::new(), "error: There is a token bot already.\n".into());
    assert_eq!(token(&["add", "bot", "--scope", "run"]), taken);
    assert_eq!(token(&["add", "b/t", "--scope", "run"]).0, Some(2));

    assert_eq!(served.stop(), Some(0));
    assert_eq!(token(&["list"]).1, listed);
    assert_eq!(token(&["remove", "bot"]).0, Some(0));
    assert_eq!(token(&["list"]).1, "admin\tadmin\tperson\nrun\trun\tmodel\n");
}

#[test]
fn a_kept_runner_serves_the_connections_of_every_thread() {
    let (_dir, served) = fresh(&["--keep-runners"]);
    let client = served.client("run");
    // An idle connection occupies a thread all the same: the next connection is given to another thread.
    let mut silent = vec![];
    for n in 0..6 {
        let told = client.execute(&format!("await tools.demo.sleep({{ ms: 2 }}); return {n}"));
        assert_eq!(told.json()["structured"]["result"], n, "{told:?}");
        silent.push(client.connect());
    }
}

#[test]
fn programs_share_the_memory_that_the_operator_gives_them() {
    let (_dir, served) = fresh(&["--memory-budget", "64MiB"]);
    let client = served.client("run");
    // Busy: a program that only waits would give its runner up.
    let first = json!({ "code": "for (let n = 0; n < 2e7; n += 1); return 1" }).to_string();
    let first = client.post("/api/executions?wait=0", &first).execution();
    assert_eq!(client.execute("return 2").result(), 2);
    let told = server_fixture::good(client.get(&format!("/api/executions/{first}")));
    assert_eq!(told["status"], "completed", "there was room for one at a time: {told}");
    let small = airlock(&["serve", "--memory-budget", "60MB"]).output().unwrap();
    assert_eq!(small.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&small.stderr).contains("no room for one"), "{small:?}");
}

#[test]
fn programs_that_share_a_kept_runner_hear_their_own_results_whatever_the_others_do() {
    let (_dir, served) = fresh(&["--keep-runners"]);
    std::thread::scope(|scope| {
        for lane in 0..8 {
            let client = served.client("run");
            scope.spawn(move || {
                for n in 0..40 {
                    let quick = format!("globalThis.left = {n}; return [{lane}, {n}, typeof left]");
                    let told = client.execute(&quick).json();
                    assert_eq!(told["structured"]["result"], json!([lane, n, "number"]));
                    let (program, expected) = match (lane + n) % 10 {
                        0 => ("await tools.demo.sleep({ ms: 1 }); return typeof left", "undefined"),
                        1 => (
                            "let s = 0; for (let n = 0; n < 3e6; n++) s += n; return typeof left",
                            "undefined",
                        ),
                        2 => ("console.log('x'); return typeof left", "undefined"),
                        3 => (
                            "Array.prototype.map = null; JSON.parse = 1; return 'spoilt'",
                            "spoilt",
                        ),
                        _ => (
                            "return typeof left + [1].map(String) + JSON.parse('2')",
                            "undefined12",
                        ),
                    };
                    let told = client.execute(program).json();
                    assert_eq!(told["structured"]["result"], expected, "{program}");
                }
            });
        }
    });
}

#[test]
fn every_no_is_json_with_a_sentence() {
    let (_dir, served) = fresh(&[]);
    let client = served.client("run");
    let unknown = "exec_00000000-0000-0000-0000-000000000000";
    let cases = [
        (client.post("/api/executions", "{"), 400, "BadRequestError"),
        (client.post("/api/executions", "{\"code\":5}"), 400, "BadRequestError"),
        (client.resume(unknown, "maybe"), 400, "BadRequestError"),
        (client.resume(unknown, "accept"), 404, "ExecutionNotFoundError"),
        (
            client.resume("run_00000000-0000-0000-0000-000000000000", "accept"),
            404,
            "ExecutionNotFoundError",
        ),
        (client.get("/api/executions/nonsense"), 404, "ExecutionNotFoundError"),
        (client.get("/api/executions/%ff"), 404, "NotFoundError"),
        (client.get("/nowhere"), 404, "NotFoundError"),
        (client.send("PUT", "/api/executions", &[], ""), 405, "MethodNotAllowedError"),
        (client.post("/api/executions", &" ".repeat((2 << 20) + 1)), 413, "PayloadTooLargeError"),
        (
            client.send("POST", "/api/executions", &[("Content-Type", "text/plain")], "{}"),
            415,
            "UnsupportedMediaTypeError",
        ),
    ];
    for (answer, status, tag) in cases {
        let seen = message(&answer);
        assert_eq!((seen.0, seen.1.as_str()), (status, tag), "{answer:?}");
        assert!(seen.2.len() > 20, "{}", seen.2);
        if status == 405 {
            assert_eq!(answer.header("allow"), Some("GET,HEAD,POST"));
        }
    }
    let code = r#"{"code":"return 1"}"#;
    let full = format!("{code}{}", " ".repeat((2 << 20) - code.len()));
    assert_eq!(client.post("/api/executions", &full).status, 200, "all that fits is taken");
    let long = client.execute(&format!("return 1;{}", " ".repeat(1_500_000)));
    assert!(long.body.len() < 1_000, "{}", &long.body[..1_000]);
    let nobody = served.client_with("alk_wrong").execute("return 1");
    assert_eq!((nobody.status, nobody.body.as_str()), (401, "Unauthorized"));
    assert_eq!(nobody.header("www-authenticate"), Some("Bearer realm=\"airlock\""));
}

#[test]
fn pages_from_elsewhere_and_rebound_names_are_refused() {
    let (_dir, served) = fresh(&["--allowed-host", "box.example"]);
    let client = served.client("admin");
    let with = |method: &str, headers: &[(&str, &str)]| {
        client.send(method, "/api/executions", headers, "")
    };
    assert_eq!(with("GET", &[("Host", "evil.example")]).status, 403);
    assert_eq!(with("GET", &[("Host", "box.example:99")]).status, 200);
    assert_eq!(message(&with("GET", &[("Origin", "https://evil.example")])).1, "ForbiddenError");
    assert_eq!(with("GET", &[("Origin", "null")]).status, 403);
    let ours = with("GET", &[("Origin", &served.url)]);
    assert_eq!(ours.header("access-control-allow-origin"), Some(served.url.as_str()));

    let asking = [("Access-Control-Request-Method", "POST"), ("Authorization", "")];
    let allowed =
        with("OPTIONS", &[asking.as_slice(), &[("Origin", "https://box.example")]].concat());
    assert_eq!(allowed.status, 204);
    let headers = allowed.header("access-control-allow-headers").unwrap();
    assert!(headers.contains("Authorization") && headers.contains("Content-Type"), "{headers}");
    let refused =
        with("OPTIONS", &[asking.as_slice(), &[("Origin", "https://evil.example")]].concat());
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
}

#[test]
fn what_needs_no_token_says_little() {
    let (_dir, served) = fresh(&[]);
    let nobody = served.client_with("x");
    for path in ["/healthz", "/readyz", "/api/health"] {
        let answer = nobody.get(path);
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }
    let page = nobody.get("/");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("/console/main.js"), "the shell holds no data: {}", page.body);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    assert_eq!(nobody.get("/api/questions").status, 401);
    assert_eq!(nobody.get("/api/session").status, 401);

    let client = served.client("run");
    let id = client.execute("await tools.demo.ask({ text: '<script>' })").question();
    let shown = client.get("/api/questions").json();
    assert_eq!(shown["questions"][0]["executionId"], json!(id));
    assert_eq!(client.get("/api/session").json()["mayAnswer"], json!(false));
    assert_eq!(client.post("/api/sign-in/codes", "{}").status, 403);

    let metrics = served.client("admin").get("/metrics").body;
    assert!(metrics.contains("\nairlock_executions_started_total 1\n"), "{metrics}");
    assert!(metrics.contains("\nairlock_executions_paused 1\n"), "{metrics}");
}

#[test]
fn a_directory_has_one_server_and_says_which() {
    let (_dir, served) = fresh(&[]);
    let data_dir = served.data_dir.to_str().unwrap();
    let second =
        airlock(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]).output().unwrap();
    let said = String::from_utf8(second.stderr).unwrap();
    let expected =
        format!("error: a server already owns {data_dir}: it listens at {}\n", served.url);
    assert_eq!((second.status.code(), said), (Some(1), expected));
}

#[test]
fn without_tokens_only_loopback_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    let data = data_dir.to_str().unwrap();
    let open = airlock(&["serve", "--no-auth", "--listen", "0.0.0.0:0", "--data-dir", data])
        .output()
        .unwrap();
    assert_eq!(open.status.code(), Some(2));
    let served = Served::start(&data_dir, &["--no-auth"]);
    let nobody = served.client_with("");
    assert_eq!(nobody.send("GET", "/api/executions", &[("Authorization", "")], "").status, 200);
    assert_eq!(
        nobody.send("GET", "/api/executions", &[("Origin", "https://evil.example")], "").status,
        403
    );
}
