use super::found::{FAILURE_CHARS_MAX, FAILURE_DETAILS_BYTES_MAX};
use super::*;
use crate::function::FunctionSource;
use crate::{
    ConnectionName, ConnectionOwner, PlacementKind, SharedSchema, Tool, ToolCredential, ToolSpec,
    envelope,
};
use lifecycle::{Timestamp, ToolHost, ToolNature, ToolTraits};
use serde_json::{Value, json};

fn path(text: &str) -> ToolPath {
    ToolPath::parse(text).unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn catalogue(source: FunctionSource) -> Catalogue {
    Catalogue::new(vec![Arc::new(source)]).unwrap()
}

/// `t.strict` wants a number `n` and promises a number; `t.loose` has no schema; both return `n` or their input.
fn sample() -> Catalogue {
    let input =
        json!({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]});
    let strict = Tool {
        input_schema: Some(input),
        output_schema: Some(json!({"type": "number"})),
        ..Tool::new(path("t.strict"))
    };
    let liar = Tool { output_schema: Some(json!({"type": "number"})), ..Tool::new(path("t.liar")) };
    let source = FunctionSource::new("t")
        .add(strict, async |args: Value| Ok(args["n"].clone()))
        .add(liar, async |_: Json| Ok("a string"))
        .add(Tool::new(path("t.loose")), async |args: Json| Ok(args))
        .tool("optional", json!({"type": "object"}), async |args: Json| Ok(args))
        .unwrap();
    catalogue(source)
}

async fn call(catalogue: &Catalogue, tool: &str, args: &str) -> CallOutcome {
    catalogue.call(ToolRequest::sample(tool, args)).await
}

fn returned(text: &str) -> CallOutcome {
    CallOutcome::Returned { value: Some(json(text)) }
}

fn failed(outcome: CallOutcome) -> (FailureCode, String) {
    match outcome {
        CallOutcome::Failed(failure) => (failure.code, failure.message),
        other @ (CallOutcome::Returned { .. } | CallOutcome::Unknown) => panic!("{other:?}"),
    }
}

#[test]
fn a_call_that_fits_is_admitted_with_what_the_tool_says_of_itself() {
    let asks = Tool {
        asks: true,
        about: Some("Send it?".into()),
        nature: ToolNature { read_only: true, runs: ToolHost::AtCaller },
        ..Tool::new(path("t.asks"))
    };
    let catalogue = catalogue(FunctionSource::new("t").add(asks, async |args: Json| Ok(args)));
    let expected = CallAdmission::Fit {
        nature: ToolNature { read_only: true, runs: ToolHost::AtCaller },
        traits: ToolTraits::lasting(true),
        about: Some("Send it?".into()),
        revision: None,
    };
    assert_eq!(catalogue.admit_call(&path("t.asks"), &Json::null()), expected);
}

#[test]
fn whatever_a_person_judges_a_tool_by_makes_another_edition() {
    let tool = Tool::new(path("t.a"));
    let schema = Some(serde_json::json!({"type": "object"}));
    let editions = [
        tool.clone(),
        Tool { path: path("t.b"), ..tool.clone() },
        Tool { description: "Sends mail.".into(), ..tool.clone() },
        Tool { input_schema: schema.clone(), ..tool.clone() },
        Tool { output_schema: schema, ..tool.clone() },
        Tool { nature: ToolNature { read_only: true, runs: ToolHost::Here }, ..tool.clone() },
        Tool { asks: true, ..tool.clone() },
        Tool { about: Some("Send it?".into()), ..tool.clone() },
    ];
    let revision = |tool: &Tool| {
        let source = FunctionSource::new("t").add(tool.clone(), async |args: Json| Ok(args));
        catalogue(source).revision(&tool.path).unwrap()
    };
    assert_eq!(revision(&tool), revision(&tool));
    let mut seen: Vec<_> = editions.iter().map(revision).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), editions.len());
}

#[test]
fn a_hidden_tool_is_blocked_and_not_suggested() {
    let source =
        ["mail.send", "mail.sent"].into_iter().fold(FunctionSource::new("t"), |all, at| {
            all.add(Tool::new(path(at)), async |args: Json| Ok(args))
        });
    let catalogue = catalogue(source);
    let hides = |found: &FoundTool| found.path() == "mail.send";
    let CallAdmission::Unfit(failure) =
        catalogue.admit_seen(&path("mail.send"), &Json::null(), hides)
    else {
        panic!("admitted");
    };
    let expected = "Tool blocked by policy: mail.send";
    assert_eq!((failure.code, failure.message.as_str()), (FailureCode::Refused, expected));
    let CallAdmission::Unfit(failure) =
        catalogue.admit_seen(&path("mail.sen"), &Json::null(), hides)
    else {
        panic!("admitted");
    };
    assert_eq!(failure.message, "Tool not found: mail.sen. Did you mean mail.sent?");
    let seen = catalogue.admit_seen(&path("mail.sent"), &Json::null(), hides);
    assert!(matches!(seen, CallAdmission::Fit { .. }));
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_issues() {
    let CallAdmission::Unfit(failure) =
        sample().admit_call(&path("t.strict"), &json(r#"{"n":"x"}"#))
    else {
        panic!("admitted");
    };
    let expected = Failure {
        details: Some(json(
            r#"{"issues":[{"message":"value is not of type \"number\"","path":"/n"}]}"#,
        )),
        ..Failure::new(
            FailureCode::Validation,
            r#"The arguments of "t.strict" do not fit: at /n: value is not of type "number"."#,
        )
    };
    assert_eq!(failure, expected);
}

#[test]
fn an_unknown_tool_is_refused_with_suggestions() {
    let CallAdmission::Unfit(failure) = sample().admit_call(&path("t.optionl"), &json("{}")) else {
        panic!("admitted");
    };
    let expected = Failure {
        details: Some(json(r#"{"path":"t.optionl","suggestions":["t.optional"]}"#)),
        ..Failure::new(
            FailureCode::ToolNotFound,
            "Tool not found: t.optionl. Did you mean t.optional?",
        )
    };
    assert_eq!(failure, expected);
}

#[tokio::test]
async fn an_unknown_tool_that_is_called_nevertheless_fails() {
    let outcome = call(&sample(), "x.y.z", "{}").await;
    let message = "Tool not found: x.y.z".to_owned();
    assert_eq!(failed(outcome), (FailureCode::ToolNotFound, message));
}

#[tokio::test]
async fn an_omitted_argument_counts_as_an_empty_object() {
    let catalogue = sample();
    let admission = catalogue.admit_call(&path("t.optional"), &Json::null());
    assert!(matches!(admission, CallAdmission::Fit { .. }));
    assert_eq!(call(&catalogue, "t.optional", "null").await, returned("{}"));
    assert_eq!(call(&catalogue, "t.loose", "null").await, returned("null"));
}

#[tokio::test]
async fn a_result_that_breaks_the_tools_promise_is_a_failure() {
    let catalogue = sample();
    assert_eq!(call(&catalogue, "t.strict", r#"{"n":1.5}"#).await, returned("1.5"));
    let message =
        r#"The result of "t.liar" does not fit its schema: value is not of type "number"."#;
    let outcome = call(&catalogue, "t.liar", "{}").await;
    assert_eq!(failed(outcome), (FailureCode::Validation, message.to_owned()));
}

#[tokio::test]
async fn odd_payloads_pass_through_untouched() {
    let catalogue = sample();
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let odd = [deep.as_str(), r#"{"s":"\ud800"}"#, "1e999", "12345678901234567890123"];
    for text in odd {
        let loose = path("t.loose");
        assert!(matches!(catalogue.admit_call(&loose, &json(text)), CallAdmission::Fit { .. }));
        assert_eq!(call(&catalogue, "t.loose", text).await, returned(text));
        let inside = format!(r#"{{"n":1,"more":{text}}}"#);
        let strict = catalogue.admit_call(&path("t.strict"), &json(&inside));
        assert!(matches!(strict, CallAdmission::Fit { .. }), "{strict:?}");
        assert_eq!(call(&catalogue, "t.optional", &inside).await, returned(&inside));
    }
}

#[tokio::test]
async fn a_tool_that_panics_fails_and_its_words_stay_here() {
    fn explode() -> Result<(), Failure> {
        panic!("/home/secret/path.rs")
    }
    let source = FunctionSource::new("t")
        .tool("later", json!({}), async |_: Json| explode())
        .and_then(|source| {
            source.tool("at_once", json!({}), |_: Json| {
                let result = explode();
                async { result }
            })
        });
    let catalogue = catalogue(source.unwrap());
    for tool in ["t.later", "t.at_once"] {
        let message = format!("Tool \"{tool}\" broke down.");
        let outcome = call(&catalogue, tool, "{}").await;
        assert_eq!(failed(outcome), (FailureCode::Tool, message));
    }
}

#[tokio::test]
async fn a_failure_is_cut_to_size() {
    let fail = async |_: Json| {
        Err::<(), _>(Failure {
            details: Json::from_value(&"x".repeat(FAILURE_DETAILS_BYTES_MAX)).ok(),
            ..Failure::new(FailureCode::Tool, "é".repeat(FAILURE_CHARS_MAX + 1))
        })
    };
    let source = FunctionSource::new("t").tool("fail", json!({}), fail).unwrap();
    let expected = Failure::new(FailureCode::Tool, format!("{}…", "é".repeat(FAILURE_CHARS_MAX)));
    assert_eq!(call(&catalogue(source), "t.fail", "{}").await, CallOutcome::Failed(expected));
}

#[test]
fn the_tools_are_listed_by_path() {
    let catalogue = sample();
    let listed: Vec<_> = catalogue.snapshot().tools().map(|found| found.path()).collect();
    assert_eq!(listed, ["t.liar", "t.loose", "t.optional", "t.strict"]);
    assert_eq!(catalogue.find(&path("t.loose")).unwrap().spec().input, None);
}

#[test]
fn two_tools_at_one_path_make_no_catalogue() {
    let source = |name: &str, tool: &str| -> Arc<dyn Source> {
        Arc::new(FunctionSource::new(name).add(Tool::new(path(tool)), async |args: Json| Ok(args)))
    };
    let twice = Catalogue::new(vec![source("a", "a.x"), source("a", "a.x")]);
    assert_eq!(twice.err(), Some(CatalogueError::Duplicate(path("a.x"))));
}

#[test]
fn a_wrong_schema_makes_no_catalogue_and_says_whose_it_is() {
    let wrong = Tool { output_schema: Some(json!({"type": 1})), ..Tool::new(path("a.x")) };
    let source = FunctionSource::new("a").add(wrong, async |args: Json| Ok(args));
    let error = Catalogue::new(vec![Arc::new(source)]).err();
    assert!(
        matches!(&error, Some(CatalogueError::BadSchema { tool, which: "output", .. }) if *tool == path("a.x")),
        "{error:?}"
    );
}

/// An integration whose tools return the arguments that they were called with.
struct Echo {
    tools: Vec<ToolSpec>,
    target: &'static str,
}

impl Integration for Echo {
    fn kind(&self) -> &'static str {
        "echo"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.tools.clone()
    }

    fn target(&self) -> String {
        self.target.to_owned()
    }

    fn call(
        &self,
        tool: &str,
        credential: &ToolCredential,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        let sent: Vec<_> =
            credential.value_at(PlacementKind::Header).map(|(_, value)| value.to_owned()).collect();
        let data = json!({ "tool": tool, "sent": sent, "args": request.args });
        future::ready(Ok(Some(envelope::done(&Json::from_value(&data).unwrap(), None)))).boxed()
    }
}

fn echo(names: &[&str]) -> Arc<dyn Integration> {
    let input = json!({"type": "object", "properties": {"n": {"type": "number"}}});
    let spec =
        |name: &&str| ToolSpec { input: Some(SharedSchema::new(&input)), ..ToolSpec::new(*name) };
    Arc::new(Echo { tools: names.iter().map(spec).collect(), target: "https://a" })
}

fn connection(name: &str, token: &str) -> Arc<Connection> {
    Arc::new(Connection {
        owner: ConnectionOwner::Org,
        name: ConnectionName::normalised(name).unwrap(),
        proof: Arc::new(ToolCredential::bearer(token)),
    })
}

/// The error code of an integration's failure.
fn code(outcome: &CallOutcome) -> String {
    let CallOutcome::Returned { value: Some(value) } = outcome else { panic!("{outcome:?}") };
    let told: Value = serde_json::from_str(value.as_text()).unwrap();
    told["error"]["code"].as_str().unwrap().to_owned()
}

fn slug() -> IntegrationSlug {
    IntegrationSlug::parse("pets").unwrap()
}

#[tokio::test]
async fn a_connection_binds_an_integration_into_the_tree() {
    let catalogue = Catalogue::default();
    let two = vec![connection("home", "1"), connection("work", "2")];
    catalogue.put(&slug(), SourceCard::default(), echo(&["items.add", "list"]), two);
    let paths: Vec<_> = catalogue.snapshot().tools().map(|found| found.path()).collect();
    let expected = [
        "pets.org.home.items.add",
        "pets.org.home.list",
        "pets.org.work.items.add",
        "pets.org.work.list",
    ];
    assert_eq!(paths, expected);
    let outcome = call(&catalogue, "tools.pets.org.work.items.add", r#"{"n":1}"#).await;
    let told = r#"{"ok":true,"data":{"args":{"n":1},"sent":["Bearer 2"],"tool":"items.add"}}"#;
    assert_eq!(outcome, returned(told));
    let refused = call(&catalogue, "pets.org.work.list", r#"{"n":"x"}"#).await;
    assert_eq!(code(&refused), "invalid_tool_arguments");
}

#[tokio::test]
async fn a_call_under_way_keeps_the_tool_it_found() {
    let catalogue = Catalogue::default();
    catalogue.put(&slug(), SourceCard::default(), echo(&["list"]), vec![connection("home", "1")]);
    let under_way = catalogue.call(ToolRequest::sample("pets.org.home.list", "{}"));
    assert!(catalogue.remove(&slug()));
    assert!(matches!(under_way.await, CallOutcome::Returned { .. }));
    let gone = call(&catalogue, "pets.org.home.list", "{}").await;
    assert_eq!(code(&gone), "tool_not_found");
}

#[test]
fn a_change_is_told_and_changes_revisions() {
    let catalogue = Catalogue::default();
    let mine = || vec![connection("home", "1")];
    let first = catalogue.put(&slug(), SourceCard::default(), echo(&["a", "b"]), mine());
    assert_eq!(
        first,
        CatalogueChange { added: vec!["a".into(), "b".into()], ..CatalogueChange::default() }
    );
    let tool = path("pets.org.home.a");
    let revision = catalogue.revision(&tool);
    assert_eq!(
        catalogue.put(&slug(), SourceCard::default(), echo(&["a", "b"]), mine()),
        CatalogueChange::default()
    );
    assert_eq!(catalogue.revision(&tool), revision);

    let mut other = ToolSpec::new("a");
    other.description = "Deletes everything.".into();
    let tools = vec![other, ToolSpec::new("c"), ToolSpec::new("c"), ToolSpec::new("x..y")];
    let next = Arc::new(Echo { tools, target: "https://a" });
    let change = catalogue.put(&slug(), SourceCard::default(), next, mine());
    let expected = CatalogueChange {
        added: vec!["c".into()],
        removed: vec!["b".into()],
        changed: vec!["a".into()],
        grown: vec![],
        left_out: vec![
            "c: another tool has this name".into(),
            "x..y: a tool path is made of non-empty names joined by dots".into(),
        ],
    };
    assert_eq!(change, expected);
    assert_ne!(catalogue.revision(&tool), revision);
}

#[test]
fn a_source_without_a_description_is_unavailable_and_one_in_trouble_keeps_what_it_had() {
    let catalogue = Catalogue::default();
    let card = SourceCard { name: "pets".into(), ..SourceCard::default() };
    catalogue.set_trouble(&slug(), &card, Some("connection refused".into()));
    let tool = path("pets.org.home.a");
    let CallAdmission::Unavailable(source) = catalogue.admit_call(&tool, &json("{}")) else {
        panic!("admitted");
    };
    assert_eq!(source.why, "connection refused");
    let CallOutcome::Returned { value: Some(told) } = source.outcome else { panic!("failed") };
    let told: Value = serde_json::from_str(told.as_text()).unwrap();
    assert_eq!(
        (&told["ok"], &told["error"]["code"]),
        (&json!(false), &json!("source_unavailable"))
    );
    assert_eq!(catalogue.snapshot().undescribed().collect::<Vec<_>>(), ["pets"]);

    catalogue.put(&slug(), card.clone(), echo(&["a"]), vec![connection("home", "1")]);
    assert_eq!(catalogue.snapshot().card("pets").unwrap().trouble, None);
    catalogue.set_trouble(&slug(), &card, Some("connection refused".into()));
    assert!(matches!(catalogue.admit_call(&tool, &json("{}")), CallAdmission::Fit { .. }));
    assert_eq!(catalogue.why_uncallable(&tool), None);
    let gone = catalogue.why_uncallable(&path("pets.org.home.b")).unwrap().why;
    assert_eq!(gone, "\"pets\" has no such tool any more");
    let gone = catalogue.why_uncallable(&path("cats.org.home.b")).unwrap().why;
    assert_eq!(gone, "there is no source \"cats\" any more");
}

#[tokio::test]
async fn who_waits_for_a_source_makes_it_wanted_and_goes_on_when_it_is_described() {
    let catalogue = Catalogue::default();
    let card = SourceCard { name: "pets".into(), ..SourceCard::default() };
    catalogue.set_trouble(&slug(), &card, Some("connection refused".into()));
    let tool = path("pets.org.home.a");
    let mut waiting = Box::pin(catalogue.source_available(&tool));
    assert!(waiting.as_mut().now_or_never().is_none());
    catalogue.demand(&slug()).unwrap().notified().await;
    catalogue.put(&slug(), card, echo(&["a"]), vec![connection("home", "1")]);
    waiting.await;
    catalogue.source_available(&path("nowhere.at.all")).await;
}

#[test]
fn a_schema_that_cannot_be_compiled_lets_arguments_through() {
    let wrong = ToolSpec {
        input: Some(SharedSchema::new(&json!({"$ref": "https://example.com/x"}))),
        ..ToolSpec::new("a")
    };
    let catalogue = Catalogue::default();
    let integration = Arc::new(Echo { tools: vec![wrong], target: "" });
    catalogue.put(&slug(), SourceCard::default(), integration, vec![connection("home", "1")]);
    let admission = catalogue.admit_call(&path("pets.org.home.a"), &json("[1]"));
    assert!(matches!(admission, CallAdmission::Fit { .. }));
}

#[test]
fn what_a_later_reading_brings_is_newer_than_what_came_with_the_source() {
    let tool =
        |name: &str, read_only| ToolSpec { read_only, asks: !read_only, ..ToolSpec::new(name) };
    let read = |tools: Vec<ToolSpec>, known: Option<&ToolAges>, now| {
        let integration = Arc::new(Echo { tools, target: "https://a" });
        let home = vec![connection("home", "1")];
        let mut arrival =
            IntegrationArrival::new(&slug(), SourceCard::default(), integration, home);
        let ages = arrival.age(known, Timestamp(now));
        (arrival, ages)
    };
    let catalogue = Catalogue::default();
    let (first, ages) = read(vec![tool("a", true), tool("b", true)], None, 1);
    assert_eq!(catalogue.welcome(first).added, ["a", "b"]);
    let reworded = ToolSpec { description: "Gets a.".into(), ..tool("a", true) };
    let (second, ages) = read(vec![reworded, tool("b", false), tool("c", false)], Some(&ages), 2);
    let change = catalogue.welcome(second);
    assert_eq!(change.changed, ["a", "b"]);
    assert_eq!((change.added, change.grown), (vec!["c".to_owned()], vec!["b".to_owned()]));
    let traits =
        |name: &str| catalogue.find(&path(&format!("pets.org.home.{name}"))).unwrap().traits();
    let expected = |asks, since, grew| ToolTraits {
        since: Timestamp(since),
        grew: Timestamp(grew),
        ..ToolTraits::lasting(asks)
    };
    assert_eq!(traits("a"), expected(false, 0, 0));
    assert_eq!(traits("b"), expected(true, 0, 2));
    assert_eq!(traits("c"), expected(true, 2, 0));
    // Ages survive a restart unchanged.
    let (third, again) = read(vec![tool("b", false), tool("c", false)], Some(&ages), 3);
    assert_eq!(catalogue.welcome(third).grown, [""; 0]);
    assert_eq!(again, ages, "what is gone keeps its age for the day when it comes back");
    assert_eq!(traits("c"), expected(true, 2, 0));
}
