//! Commands that guests register: immediate refusals, outputs, and jobs after a restart.

use crate::repl_client::{Spoken, spoken};
use crate::server_fixture::Served;
use serde_json::{Value, json};

fn call(name: &str, args: Value) -> Value {
    json!({"type": "command_call", "name": name, "args": args})
}

/// How a job ended.
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

#[tokio::test]
async fn a_command_that_could_not_be_called_is_refused_where_it_is_registered() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    let long = "x".repeat(129);
    for name in ["a b", "é.x", "a/b", "a..b", ".a", "a.", long.as_str()] {
        let code = format!("Repl.command({{ name: '{name}' }}, () => 1)");
        let refused = repl.eval(&code).await["error"]["message"].clone();
        let message = refused.as_str().unwrap();
        assert!(message.starts_with("TypeError: the name of a command is words"), "{message}");
    }
    for (rest, expected) in [
        ("version: 'two'", "TypeError: the version of a command is a whole number from 1 on"),
        (
            "inputSchema: { title: 'x'.repeat(300_000) }",
            "Error: the command's descriptor is too large or nested too deeply: it has at most 262144 bytes of JSON and 128 levels",
        ),
        (
            "inputSchema: JSON.parse('{\"not\":'.repeat(200) + '{}' + '}'.repeat(200))",
            "Error: the command's descriptor is too large or nested too deeply: it has at most 262144 bytes of JSON and 128 levels",
        ),
    ] {
        let code = format!("Repl.command({{ name: 'fine', {rest} }}, () => 1)");
        assert_eq!(repl.eval(&code).await["error"]["message"], expected);
    }
    let whole = &long[1..];
    for name in ["fine", "a-b.c_d.0", whole] {
        repl.value(&format!("Repl.command({{ name: '{name}' }}, () => ({{}})); 0")).await;
        assert_eq!(repl.ask(call(name, json!({}))).await["status"], "ok");
    }
}

#[tokio::test]
async fn a_schema_that_is_none_lets_no_call_pass_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = Served::start(folder.path(), &[]);
    let mut repl = spoken(&server).await;
    for (member, schema) in [
        ("inputSchema", "{ type: 'nope' }"),
        ("inputSchema", "{ $ref: 'http://127.0.0.1:1/x' }"),
        ("inputSchema", "{ properties: { a: { pattern: '(' } } }"),
        ("outputSchema", "{ type: 'nope' }"),
        ("inputSchema", "{ toJSON: () => 'text' }"),
    ] {
        let code = format!(
            "Repl.command({{ name: 'bad', replace: true, {member}: {schema} }}, () => ({{}})); 0"
        );
        let printed = repl.eval(&code).await["stdout"].clone();
        let failed = repl.ask(call("bad", json!({"a": 1}))).await["error"].clone();
        let begins = format!("The command bad cannot be called: its {member} is no usable JSON");
        let message = failed["message"].as_str().unwrap();
        assert!(message.starts_with(&begins), "{schema}: {failed}");
        assert_eq!(printed, format!("{message}\n"));
        assert_eq!(failed["code"], "handlerFailed");
    }
    // A large schema is checked by the first call.
    for (schema, args, code) in [
        ("{ type: 'nope', title: 'x'.repeat(20_000) }", json!({}), json!("handlerFailed")),
        ("{ required: ['a'] }", json!({}), json!("argsSchemaViolation")),
        ("{ required: ['a'] }", json!({"a": 1}), Value::Null),
    ] {
        let descriptor = format!("{{ name: 'bad', replace: true, inputSchema: {schema} }}");
        repl.value(&format!("Repl.command({descriptor}, () => ({{}})); 0")).await;
        assert_eq!(repl.ask(call("bad", args)).await["error"]["code"], code);
    }
}
