//! Commands that guests register: what is refused at once, what outputs come to, and jobs after a restart.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod repl_spoken;
mod served;

use repl_spoken::{Spoken, spoken};
use serde_json::{Value, json};
use served::Served;

fn call(name: &str, args: Value) -> Value {
    json!({"type": "command_call", "name": name, "args": args})
}

/// What a job came to.
async fn ended(repl: &mut Spoken, job: &Value) -> Value {
    loop {
        let told = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        if told["type"] == "job_result" {
            return told;
        }
    }
}

#[tokio::test]
async fn a_job_that_was_told_to_be_done_is_done_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    repl.value("Repl.command({ name: 'fast', kind: 'job' }, ({ n }) => ({ n })); 0").await;
    let mut jobs = vec![];
    for n in 0..20 {
        let job = repl.ask(call("fast", json!({"n": n}))).await["jobId"].clone();
        assert_eq!(ended(&mut repl, &job).await["output"], json!({"n": n}));
        jobs.push(job);
    }
    assert_eq!(server.stop(), Some(0));
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    for (n, job) in jobs.iter().enumerate() {
        let told = repl.ask(json!({"type": "job_status", "jobId": job})).await;
        let told = (&told["state"], &told["output"]);
        assert_eq!(told, (&json!("done"), &json!({"n": n})));
    }
}

#[tokio::test]
async fn an_output_without_json_is_a_failure_that_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    for (name, output) in [
        ("big", "({ n: 1n })"),
        ("round", "(() => { const a = {}; a.a = a; return a })()"),
        ("getter", "({ get x() { throw new RangeError('not this') } })"),
    ] {
        repl.value(&format!("Repl.command({{ name: '{name}' }}, () => {output}); 0")).await;
        repl.value(&format!(
            "Repl.command({{ name: '{name}.job', kind: 'job' }}, () => {output}); 0"
        ))
        .await;
        let failed = repl.ask(call(name, json!({}))).await["error"].clone();
        let job = repl.ask(call(&format!("{name}.job"), json!({}))).await["jobId"].clone();
        assert_eq!(ended(&mut repl, &job).await["error"], failed);
        assert_eq!(failed["code"], "handlerException", "{failed}");
        let message = failed["message"].as_str().unwrap();
        let begins = "TypeError: the output of the command has no JSON: ";
        assert!(message.starts_with(begins), "{message}");
        assert!(name != "getter" || message.ends_with("RangeError: not this"), "{message}");
    }
}
