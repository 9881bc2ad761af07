//! Prompts, progress and Ctrl-C in a real terminal.

use crate::pty::{Terminal, house};
use crate::server_fixture::Served;
use serde_json::{Value, json};
use std::path::Path;

fn fresh() -> (tempfile::TempDir, Served) {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::with_model_answers(&dir.path().join("data"), &[]);
    (dir, served)
}

async fn open(served: &Served, house: &processes::ProcessSpawner, words: &[&str]) -> Terminal {
    Terminal::open(house, 80, &[("AIRLOCK_DATA_DIR", &served.data_dir)], words).await
}

fn executions(served: &Served, status: &str) -> Vec<Value> {
    let listed = served.client("admin").get(&format!("/api/executions?status={status}")).json();
    listed["executions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_call_is_approved_where_it_was_made() {
    let (_dir, served) = fresh();
    let house = house();
    let mut terminal =
        open(&served, &house, &["call", "demo", "append", r#"{"line":"one"}"#]).await;
    terminal.sees("\"line\": \"one\"").await;
    terminal.sees("Approve?").await;
    terminal.sees("[y]es, [n]o, [a]lways in this run, [l]ater: ").await;
    terminal.types("perhaps\r").await;
    terminal.sees("[l]ater: ").await;
    terminal.types("y\r").await;
    terminal.sees("\"appended\": true").await;
    assert_eq!(terminal.ends().await, 0);
    let lines = std::fs::read_to_string(served.data_dir.join("demo-append.txt")).unwrap();
    assert_eq!(lines, "one\n");
    house.shutdown().await;
}

/// `airlock mcp install` asks on a terminal who may answer, and explains each value.
#[tokio::test]
async fn installing_a_client_asks_who_may_answer() {
    let (dir, served) = fresh();
    let house = house();
    let config = dir.path().join("mcp.json");
    let words = ["mcp", "install", "cursor", "--config", config.to_str().unwrap()];
    let answers = || {
        let listed = served.client("admin").get("/api/tokens").json();
        let tokens = listed["tokens"].as_array().unwrap().clone();
        let cursor = tokens.into_iter().find(|token| token["name"] == "cursor");
        cursor.map(|token| token["answers"].as_str().unwrap().to_owned())
    };
    for (typed, expected) in [(&["\r"][..], "person"), (&["perhaps\r", "model\r"], "model")] {
        let mut terminal = open(&served, &house, &words).await;
        for meaning in ["person  only you", "client  also the dialog", "model   also the agent"] {
            terminal.sees(meaning).await;
        }
        for line in typed {
            terminal.sees("[person]: ").await;
            terminal.types(line).await;
        }
        assert_eq!(terminal.ends().await, 0, "{}", terminal.text);
        assert_eq!(answers().as_deref(), Some(expected));
    }
    house.shutdown().await;
}

#[tokio::test]
async fn a_no_fails_the_call_and_later_leaves_the_question_open() {
    let (_dir, served) = fresh();
    let house = house();
    let words = ["call", "demo", "ask", r#"{"text":"x"}"#];
    let mut terminal = open(&served, &house, &words).await;
    terminal.sees("[l]ater: ").await;
    terminal.types("n\r").await;
    terminal.sees("declined by the user").await;
    assert_eq!(terminal.ends().await, 4);

    let mut terminal = open(&served, &house, &words).await;
    terminal.sees("[l]ater: ").await;
    terminal.types("l\r").await;
    terminal.sees("Page:      http://127.0.0.1:").await;
    terminal.sees("To answer:").await;
    assert_eq!(terminal.ends().await, 6);
    let waiting = executions(&served, "paused");
    assert_eq!(waiting.len(), 1);

    // `resume` continues the execution at the open question, and also asks the program's next question.
    let id = waiting[0]["executionId"].as_str().unwrap();
    let mut terminal = open(&served, &house, &["resume", id]).await;
    terminal.sees("\"approved\":true").await;
    assert_eq!(terminal.ends().await, 0);
    house.shutdown().await;
}

#[tokio::test]
async fn questions_come_one_after_the_other_and_what_others_answer_is_taken_back() {
    let (_dir, served) = fresh();
    let code = "const ask = text => tools.demo.ask({ text });
        return (await Promise.all(['a', 'b', 'c'].map(ask))).map(said => said.text)";
    let body = json!({ "code": code }).to_string();
    let paused = served.client("run").post("/api/executions", &body);
    let (first, run) = (paused.question(), paused.execution());
    let house = house();
    let mut terminal = open(&served, &house, &["resume", &first]).await;
    terminal.sees("[l]ater: ").await;
    let open = served.client("admin").get(&format!("/api/executions/{run}/questions")).json();
    let asked = open["questions"][0]["executionId"].as_str().unwrap().to_owned();
    // Another client answers the second question first; the terminal asks the third instead.
    assert_eq!(served.client("run").resume(&asked, "accept").status, 200);
    terminal.sees("answered by run meanwhile").await;
    terminal.sees("\"text\": \"c\"").await;
    terminal.sees("[l]ater: ").await;
    terminal.types("y\r").await;
    terminal.sees(r#"["a","b","c"]"#).await;
    assert_eq!(terminal.ends().await, 0);
    house.shutdown().await;
}

#[tokio::test]
async fn a_form_is_filled_in_field_by_field_and_the_server_has_the_last_word() {
    let (_dir, served) = fresh();
    let house = house();
    let schema = json!({
        "type": "object", "required": ["email", "size"],
        "properties": {
            "email": { "type": "string", "pattern": "@" },
            "size": { "enum": ["small", "large"] },
            "wet": { "type": "boolean" },
        },
    });
    let input = json!({ "message": "Who?", "schema": schema }).to_string();
    let mut terminal = open(&served, &house, &["call", "demo", "form", &input]).await;
    for email in ["nobody", "ann@example.org"] {
        terminal.sees("Fill it in?").await;
        terminal.sees("[l]ater: ").await;
        terminal.types("y\r").await;
        terminal.sees("email (text): ").await;
        terminal.types(&format!("{email}\r")).await;
        terminal.sees("size (small | large): ").await;
        terminal.types("medium\r").await;
        terminal.sees("this must be one of those above").await;
        terminal.types("large\r").await;
        terminal.sees("wet (y/n, may be empty): ").await;
        terminal.types("\r").await;
    }
    terminal.sees("\"email\": \"ann@example.org\"").await;
    terminal.sees("\"size\": \"large\"").await;
    assert_eq!(terminal.ends().await, 0);
    house.shutdown().await;
}

#[tokio::test]
async fn progress_stays_in_its_line_and_ctrl_c_cancels() {
    let (_dir, served) = fresh();
    let house = house();
    let env: &[(&str, &Path)] = &[("AIRLOCK_DATA_DIR", &served.data_dir)];
    let words = ["call", "demo", "sleep", r#"{"ms":600000}"#];
    let mut terminal = Terminal::open(&house, 20, env, &words).await;
    terminal.sees("\r\u{1b}[2K").await;
    terminal.sees("demo.sleep").await;
    terminal.sees("\r\u{1b}[2K").await;
    terminal.sees("\r\u{1b}[2K").await;
    terminal.types("\u{3}").await;
    terminal.sees("cancelling").await;
    terminal.sees("cancelled by admin").await;
    assert_eq!(terminal.ends().await, 130);
    assert_eq!(executions(&served, "running"), [json!(null); 0]);
    house.shutdown().await;
}

#[tokio::test]
async fn whoever_follows_or_runs_sees_what_is_under_way() {
    let (_dir, served) = fresh();
    let house = house();
    let code = json!({ "code": "return await tools.demo.sleep({ ms: 600000 })" }).to_string();
    let started = served.client("run").post("/api/executions?wait=0", &code);
    let execution = started.header("airlock-execution").unwrap();
    let mut terminal = open(&served, &house, &["executions", "follow", execution]).await;
    terminal.sees("call 1: demo.sleep").await;
    terminal.sees("\r\u{1b}[2K⠋ demo.sleep").await;
    let path = format!("/api/executions/{execution}/cancel");
    served.client("admin").post(&path, "{}");
    terminal.sees("\r\u{1b}[2K").await;
    terminal.sees("cancelled by admin").await;
    assert_eq!(terminal.ends().await, 130);

    let mut terminal =
        open(&served, &house, &["run", "-e", "await tools.demo.sleep({ ms: 600000 })"]).await;
    terminal.sees("demo.sleep · 0 s").await;
    terminal.types("\u{3}").await;
    terminal.sees("cancelled").await;
    assert_eq!(terminal.ends().await, 130);
    house.shutdown().await;
}

#[tokio::test]
async fn a_terminal_that_cannot_redraw_or_wants_no_colours_gets_plain_lines() {
    let (_dir, served) = fresh();
    let house = house();
    let env: &[(&str, &Path)] =
        &[("AIRLOCK_DATA_DIR", &served.data_dir), ("TERM", Path::new("dumb"))];
    let mut terminal =
        Terminal::open(&house, 80, env, &["call", "demo", "fail", r#"{"message":"no luck"}"#])
            .await;
    assert_eq!(terminal.ends().await, 1);
    assert!(
        terminal.text.contains("no luck") && !terminal.text.contains('\u{1b}'),
        "{:?}",
        terminal.text
    );
    house.shutdown().await;
}

#[tokio::test]
async fn a_program_asks_in_the_terminal_and_ctrl_c_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let house = house();
    let env: &[(&str, &Path)] = &[("AIRLOCK_DATA_DIR", dir.path())];
    let code = "return await tools.demo.ask({ text: 'x' })";
    let mut terminal = Terminal::open(&house, 80, env, &["run", "-e", code]).await;
    terminal.sees("Approve?").await;
    terminal.types("y\r").await;
    terminal.sees("\"approved\":true").await;
    assert_eq!(terminal.ends().await, 0);
    let mut terminal = Terminal::open(&house, 80, env, &["run", "-e", code]).await;
    terminal.sees("Approve?").await;
    terminal.types("\u{3}").await;
    assert_eq!(terminal.ends().await, 130);
    house.shutdown().await;
}
