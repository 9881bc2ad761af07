use super::*;
use crate::{CancelSignal, Catalogue, PersonHandle};
use lifecycle::{Answer, CallAdmission, CallOutcome};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

struct Desk {
    catalogue: Catalogue,
    directory: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let catalogue = Catalogue::new(vec![Arc::new(DemoTools::new(directory.path()))]).unwrap();
        Self { catalogue, directory }
    }

    async fn call(&self, tool: &str, args: &str) -> Result<String, (FailureCode, String)> {
        let request = ToolRequest::sample(tool, args);
        if let CallAdmission::Unfit(failure) =
            self.catalogue.admit_call(&request.tool, &request.args)
        {
            return Err((failure.code, failure.message));
        }
        match self.catalogue.call(request).await {
            CallOutcome::Returned { value } => Ok(value.unwrap().as_text().to_owned()),
            CallOutcome::Failed(failure) => Err((failure.code, failure.message)),
            CallOutcome::Unknown => panic!("tools know how they ended"),
        }
    }

    async fn check(&self, tool: &str, args: &str, expected: &str) {
        assert_eq!(self.call(tool, args).await, Ok(expected.to_owned()));
    }
}

#[tokio::test]
async fn add_adds_and_keeps_integers_whole() {
    let desk = Desk::new();
    desk.check("demo.add", r#"{"a":2,"b":3}"#, "5").await;
    desk.check("demo.add", r#"{"a":0.5,"b":0.25}"#, "0.75").await;
    desk.check("demo.add", r#"{"a":9223372036854775807,"b":1}"#, "9.223372036854776e+18").await;
    let too_large = (FailureCode::Tool, "The sum is too large for a number.".to_owned());
    assert_eq!(desk.call("demo.add", r#"{"a":1e308,"b":1e308}"#).await, Err(too_large));
}

#[tokio::test]
async fn add_wants_two_numbers() {
    let message = r#"The arguments of "demo.add" do not fit: "b" is a required property."#;
    let outcome = Desk::new().call("demo.add", r#"{"a":1}"#).await;
    assert_eq!(outcome, Err((FailureCode::Validation, message.to_owned())));
}

#[tokio::test]
async fn echo_returns_its_input_as_it_was_written() {
    let desk = Desk::new();
    for args in [r#"{"message":"hi", "more": [1.0]}"#, r#"{"message":"\ud800"}"#] {
        desk.check("demo.echo", args, args).await;
    }
}

#[tokio::test(start_paused = true)]
async fn sleep_sleeps() {
    let desk = Desk::new();
    let before = tokio::time::Instant::now();
    desk.check("demo.sleep", r#"{"ms":60000}"#, r#"{"slept":60000}"#).await;
    assert!(before.elapsed() >= Duration::from_secs(60));
    let too_long = desk.call("demo.sleep", &format!(r#"{{"ms":{}}}"#, SLEEP_MS_MAX + 1)).await;
    assert_eq!(too_long.unwrap_err().0, FailureCode::Validation);
}

#[tokio::test]
async fn sleep_ends_early_when_nobody_waits_any_more() {
    let token = CancellationToken::new();
    let request = ToolRequest {
        cancelled: CancelSignal::from(token.clone()),
        ..ToolRequest::sample("demo.sleep", r#"{"ms":600000}"#)
    };
    let desk = Desk::new();
    let mut nap = desk.catalogue.call(request);
    assert!((&mut nap).now_or_never().is_none());
    token.cancel();
    assert!(matches!(nap.await, CallOutcome::Failed(_)));
}

#[tokio::test]
async fn fail_fails_in_its_own_words() {
    let outcome = Desk::new().call("demo.fail", r#"{"message":"no luck"}"#).await;
    assert_eq!(outcome, Err((FailureCode::Tool, "no luck".to_owned())));
}

#[tokio::test]
async fn ask_says_that_it_was_approved() {
    let desk = Desk::new();
    desk.check("demo.ask", r#"{"text":"Really?"}"#, r#"{"approved":true,"text":"Really?"}"#).await;
}

#[tokio::test]
async fn form_and_link_return_what_a_person_brings() {
    let schema = r#"{"type":"object"}"#;
    let form = format!(r#"{{"message":"Who?","schema":{schema}}}"#);
    let link = r#"{"message":"Go","url":"https://a.example"}"#;
    let message = "Who?".to_owned();
    let wishes = [
        ("demo.form", form.as_str(), ToolPrompt::Form { message, schema: json(schema) }),
        (
            "demo.link",
            link,
            ToolPrompt::Link {
                message: "Go".into(),
                url: "https://a.example".into(),
                is_prior: false,
            },
        ),
    ];
    for (tool, args, wish) in wishes {
        let person = PersonHandle::hearing(move |heard| {
            assert_eq!(heard, wish);
            future::ready(Answer::Accept { content: Some(json(r#"{"name":"Ann"}"#)) }).boxed()
        });
        let request = ToolRequest { person, ..ToolRequest::sample(tool, args) };
        let expected = CallOutcome::Returned { value: Some(json(r#"{"name":"Ann"}"#)) };
        assert_eq!(Desk::new().catalogue.call(request).await, expected);
        let expected =
            format!("Tool \"{tool}\" requires approval but the request was cancelled by the user.");
        let nobody = Desk::new().call(tool, args).await;
        assert_eq!(nobody, Err((FailureCode::QuestionCancelled, expected)));
    }
}

#[tokio::test]
async fn append_adds_one_line_each_time() {
    let desk = Desk::new();
    desk.check("demo.append", r#"{"line":"one"}"#, r#"{"appended":true}"#).await;
    desk.check("demo.append", r#"{"line":"zwei ✓"}"#, r#"{"appended":true}"#).await;
    let two = desk.call("demo.append", r#"{"line":"a\nb"}"#).await;
    assert_eq!(two.unwrap_err().0, FailureCode::Validation);
    let text = std::fs::read_to_string(desk.directory.path().join(APPEND_FILE)).unwrap();
    assert_eq!(text, "one\nzwei ✓\n");
}

#[tokio::test]
async fn append_names_no_path_when_it_fails() {
    let desk = Desk::new();
    std::fs::create_dir(desk.directory.path().join(APPEND_FILE)).unwrap();
    let expected = "The line could not be written: is a directory.".to_owned();
    let outcome = desk.call("demo.append", r#"{"line":"x"}"#).await;
    assert_eq!(outcome, Err((FailureCode::Tool, expected)));
}

#[test]
fn only_ask_and_append_ask_and_only_append_does_something() {
    let tools = DemoTools::new("").tools();
    let named = |wanted: fn(&Tool) -> bool| -> Vec<&str> {
        tools.iter().filter(|tool| wanted(tool)).map(|tool| tool.path.as_str()).collect()
    };
    assert_eq!(named(|tool| tool.asks), ["demo.ask", "demo.append"]);
    assert_eq!(named(|tool| !tool.nature.read_only), ["demo.append"]);
}
