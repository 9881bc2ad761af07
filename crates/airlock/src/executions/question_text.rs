//! The open question of an execution, with the commands that answer it.

use crate::print::tamed;
use crate::server_locator::shell_word;
use client::OpenQuestion;
use lifecycle::ExecutionId;
use serde_json::{Value, json};

/// The question, the page where it can be decided, and how to answer here; `flags` direct a command to the same server.
pub(crate) fn question_text(
    asks: &OpenQuestion,
    execution: Option<ExecutionId>,
    page_origin: &str,
    flags: &str,
) -> String {
    let mut text = format!("Paused: {}\n\nQuestion:  {}", tamed(&asks.message), asks.question);
    if let Some(execution) = execution {
        text.push_str(&format!("\nExecution: {execution}"));
    }
    if let Some(page) = &asks.approval_url {
        // An answer with this token does not count: commands that give one would mislead.
        return text + &format!("\n\nA person decides on this page: {}", tamed(page));
    }
    text.push_str(&format!("\nPage:      {page_origin}/resume/{}", asks.question));
    if let Some(url) = &asks.url {
        text.push_str(&format!("\nOpen:      {}", tamed(url)));
    }
    let schema = asks.schema.as_ref().and_then(|json| serde_json::from_str(json.as_text()).ok());
    let schema = schema.filter(wants_something);
    if let (Some(_), Some(json)) = (&schema, &asks.schema) {
        text.push_str(&format!("\nContent:   {}", tamed(json.as_text())));
    }
    text.push_str("\n\nTo answer:");
    let command = format!("\n  airlock resume {}", asks.question);
    for content in contents(schema.as_ref()) {
        let content = content.map(|content| format!(" --content {}", shell_word(&content)));
        text.push_str(&format!("{command}{}{flags}", tamed(&content.unwrap_or_default())));
    }
    if asks.editable {
        text.push_str(&format!("{command} --arguments '{{…}}'{flags}"));
    }
    text.push_str(&format!("{command} --action decline{flags}"));
    text.push_str(&format!("\n  airlock open {}{flags}", asks.question));
    text
}

/// Whether an answer needs content.
fn wants_something(schema: &Value) -> bool {
    schema["properties"].as_object().is_some_and(|properties| !properties.is_empty())
}

/// The possible contents: where one member is an enumeration, one for each of its values; otherwise a placeholder.
fn contents(schema: Option<&Value>) -> Vec<Option<String>> {
    let Some(schema) = schema else { return vec![None] };
    let choices = match schema["required"].as_array().map(Vec::as_slice) {
        Some([Value::String(name)]) => {
            let choices = schema["properties"][name]["enum"].as_array();
            choices.map(|choices| choices.iter().map(|choice| filled_in(name, choice)).collect())
        }
        _ => None,
    };
    let choices: Vec<Value> = choices.unwrap_or_default();
    match choices.is_empty() {
        true => vec![Some("{…}".into())],
        false => choices.iter().map(|choice| Some(choice.to_string())).collect(),
    }
}

/// A content with this choice; a choice to supply a value has a placeholder.
fn filled_in(name: &str, choice: &Value) -> Value {
    match choice.as_str() {
        Some("supply") => json!({ name: choice, "result": "…" }),
        Some(_) | None => json!({ name: choice }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lifecycle::Json;

    const ASKED: &str = "exec_00000000-0000-0000-0000-000000000002";

    fn asks(schema: &str) -> OpenQuestion {
        OpenQuestion {
            question: ASKED.parse().unwrap(),
            message: "Approve demo.ask?\n\nArguments:\n\"\u{1b}[2J\"".into(),
            address: "tools.demo.ask".into(),
            args: None,
            schema: Some(Json::parse(schema.to_owned()).unwrap()),
            url: None,
            approval_url: None,
            editable: false,
        }
    }

    #[test]
    fn without_the_right_to_answer_the_page_is_named_and_no_command() {
        let page = Some(format!("https://x/resume/{ASKED}"));
        let shown = question_text(
            &OpenQuestion { approval_url: page, ..asks("{}") },
            None,
            "http://x:1",
            "",
        );
        assert!(
            shown.ends_with(&format!("A person decides on this page: https://x/resume/{ASKED}"))
        );
        assert!(!shown.contains("airlock resume") && !shown.contains("airlock open"), "{shown}");
    }

    #[test]
    fn arguments_that_may_be_changed_have_a_command_of_their_own() {
        let asks = OpenQuestion { editable: true, ..asks("{}") };
        let shown = question_text(&asks, None, "", "");
        assert!(shown.contains(&format!("\n  airlock resume {ASKED} --arguments '{{…}}'\n")));
    }

    #[test]
    fn a_question_comes_with_the_commands_that_answer_it() {
        let execution = "run_00000000-0000-0000-0000-000000000001".parse().ok();
        let asks = asks(r#"{"type":"object","properties":{}}"#);
        let shown = question_text(&asks, execution, "http://x:1", " --data-dir /d");
        let expected = format!(
            "Paused: Approve demo.ask?\n\nArguments:\n\"\\u{{1b}}[2J\"\n\n\
             Question:  {ASKED}\nExecution: run_00000000-0000-0000-0000-000000000001\n\
             Page:      http://x:1/resume/{ASKED}\n\n\
             To answer:\n  airlock resume {ASKED} --data-dir /d\n  \
             airlock resume {ASKED} --action decline --data-dir /d\n  \
             airlock open {ASKED} --data-dir /d"
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_question_with_choices_lists_them() {
        let schema = r#"{"properties":{"choice":{"enum":["retry","fail","supply"]},"result":{}},"required":["choice"]}"#;
        let shown = question_text(&asks(schema), None, "http://x:1", "");
        let commands: Vec<_> = shown.lines().filter(|line| line.starts_with("  ")).collect();
        let expected = [
            format!("  airlock resume {ASKED} --content '{{\"choice\":\"retry\"}}'"),
            format!("  airlock resume {ASKED} --content '{{\"choice\":\"fail\"}}'"),
            format!(
                "  airlock resume {ASKED} --content '{{\"choice\":\"supply\",\"result\":\"…\"}}'"
            ),
            format!("  airlock resume {ASKED} --action decline"),
            format!("  airlock open {ASKED}"),
        ];
        assert_eq!(commands, expected);
        assert!(shown.contains(&format!("\nContent:   {schema}\n")), "{shown}");
    }

    #[test]
    fn a_question_with_a_form_shows_where_to_fill_it_in() {
        let shown =
            question_text(&asks(r#"{"properties":{"name":{"type":"string"}}}"#), None, "", "");
        assert!(shown.contains(&format!("\n  airlock resume {ASKED} --content '{{…}}'\n")));
    }
}
