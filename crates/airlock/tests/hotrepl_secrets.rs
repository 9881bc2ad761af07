//! Known secrets in the REPL: however a guest assembles a secret, no frame, no file and no entry shows it.

use crate::echo::{Echo, connect};
use crate::repl_client::{Spoken, repl_url, spoken, token};
use crate::server_fixture::{Served, good};
use crate::traces::{files, unseen};
use client::repl::ReplClient;
use serde_json::{Value, json};

/// A valid name in JavaScript, so that it can be used as an identifier.
const SECRET: &str = "canaryOfTheRepl9fKqLm2";

/// A secret that is a number.
const PIN: &str = "90817263544";

/// A server that knows both secrets.
fn knowing(data: &std::path::Path) -> Served {
    let server = Served::start(data, &[]);
    let (admin, api) = (server.client("admin"), Echo::start());
    let added = json!({ "slug": "things", "spec": { "kind": "blob", "value": api.description() } });
    good(admin.post("/api/openapi/specs", &added.to_string()));
    for (name, value) in [("one", SECRET), ("two", PIN)] {
        connect(&admin, json!({ "name": name, "template": "bearer", "value": value }));
    }
    server
}

/// A guest that assembles the secret from two pieces, as a tool may return them.
async fn guest(server: &Served) -> Spoken {
    let mut repl = spoken(server).await;
    let (head, tail) = SECRET.split_at(9);
    repl.eval(&format!("var parts = ['{head}', '{tail}'], secret = parts.join('')")).await;
    repl
}

fn call(name: &str) -> Value {
    json!({"type": "command_call", "name": name, "args": {}})
}

#[tokio::test]
async fn values_prints_errors_names_and_watches_show_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = knowing(folder.path());
    let mut repl = guest(&server).await;
    assert_eq!(repl.value("secret").await, "[redacted]");
    assert_eq!(
        repl.value("({ [secret]: [secret, `\"${secret}\\n`] })").await,
        json!({"[redacted]": ["[redacted]", "\"[redacted]\n"]})
    );
    // A redacted number becomes a string, so that the frame stays JSON.
    assert_eq!(repl.value("[90817263540 + 4]").await, json!(["[redacted]"]));
    let printed = repl.eval("console.log(secret); console.log('next')").await;
    assert_eq!(printed["stdout"], "[redacted]\nnext\n");
    let failed = repl.eval("console.log(secret); throw new Error(secret)").await["error"].clone();
    assert_eq!(failed["message"], "Error: [redacted]");
    assert_eq!(failed["details"]["stdout"], "[redacted]\n");
    let named = repl.eval("new ({ [secret]: class {} })[secret]()").await;
    assert_eq!(named["valueType"], "[redacted]");
    repl.value("globalThis[secret] = 1").await;
    let complete = json!({"type": "complete", "code": &SECRET[..9]});
    assert_eq!(repl.ask(complete).await["completions"], json!(["[redacted]"]));
    let watch = json!({"type": "subscribe", "code": "secret", "intervalFrames": 1, "limit": 1});
    assert_eq!(repl.ask(watch).await["value"], "\"[redacted]\"");
    // Truncation in the middle of the secret would leave half of it.
    for code in ["'x'.repeat(102390) + secret", "console.log('x'.repeat(102390) + secret)"] {
        let frame = repl.eval(code).await.to_string();
        assert!(!frame.contains(&SECRET[..4]), "{}", &frame[frame.len() - 200..]);
    }
    // Native values are JSON, and stay JSON.
    let native = format!("{}?values=native&session=native", repl_url(&server));
    let native = ReplClient::connect(&native, Some(&token(&server))).await.unwrap();
    let (head, tail) = SECRET.split_at(9);
    for (code, told) in [
        (format!("'{head}' + '{tail}'"), "[redacted]"),
        ("({ n: 90817263540 + 4 })".to_owned(), r#"{"n":"[redacted]"}"#),
    ] {
        assert_eq!(native.eval(&code, None).await.unwrap().value.unwrap().as_text(), told);
    }
}

#[tokio::test]
async fn commands_jobs_files_and_the_journal_hold_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let server = knowing(folder.path());
    let mut repl = guest(&server).await;
    repl.value(
        "Repl.command({ name: 'say' }, (args, context) => {
            context.artifact(secret + '.txt', `<${secret}>`, 'text/' + secret);
            return { secret };
        });
        Repl.command({ name: 'refuse' }, () => {
            throw Object.assign(new Error(secret), { kind: 'conflict', code: secret, details: { secret } });
        });
        Repl.command({ name: 'work', kind: 'job' }, (args, context) => {
            context.progress({ secret });
            return new Promise((done) => { globalThis.finish = () => done({ secret }); });
        }); 0",
    )
    .await;
    let said = repl.ask(call("say")).await;
    assert_eq!(said["output"], json!({"secret": "[redacted]"}));
    let file = &said["artifacts"]["[redacted].txt"];
    // The size and the hash are those of the redacted file.
    let sum = "4b4b16d082828c646207ebf3b8541fc3b678430707e317f1f364360857f1528c";
    let told = (&file["byteSize"], &file["contentType"], &file["sha256"]);
    assert_eq!(told, (&json!(12), &json!("text/[redacted]"), &json!(sum)));
    let path = file["uri"].as_str().unwrap().split_once("/repl/").unwrap().1;
    assert_eq!(server.client_with("nobody").get(&format!("/repl/{path}")).body, "<[redacted]>");
    let refused = repl.ask(call("refuse")).await["error"].clone();
    let told = (&refused["message"], &refused["code"], &refused["details"]);
    assert_eq!(
        told,
        (&json!("[redacted]"), &json!("[redacted]"), &json!({"secret": "[redacted]"}))
    );
    let job = repl.ask(call("work")).await["jobId"].clone();
    let status = json!({"type": "job_status", "jobId": job});
    let progress = loop {
        // Until it has reported progress, a job reports how long it has run.
        let progress = repl.ask(status.clone()).await["progress"].clone();
        if progress.get("elapsedMs").is_none() {
            break progress;
        }
    };
    assert_eq!(progress, json!({"secret": "[redacted]"}));
    repl.value("finish(); 0").await;
    let ended = loop {
        let told = repl.ask(status.clone()).await;
        if told["type"] == "job_result" {
            break told;
        }
    };
    assert_eq!(ended["output"], json!({"secret": "[redacted]"}));
    repl.value(&format!("'{SECRET}'.length")).await;
    let journal = repl.ask(json!({"type": "journal_query", "kind": "eval", "limit": 1})).await;
    assert_eq!(journal["entries"][0]["code"], "'[redacted]'.length");
    assert_eq!(server.stop(), Some(0));
    for file in files(folder.path()) {
        unseen(&std::fs::read(&file).unwrap(), &[SECRET], &file.display().to_string());
    }
}
