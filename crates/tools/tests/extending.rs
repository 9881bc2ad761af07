//! The kind of source that `docs/extending.md` adds: opens it, calls its tool, and checks that the page shows its code.

#[expect(unreachable_pub, reason = "in the crate `tools` it is public")]
#[path = "../../../examples/extending/tool_list/mod.rs"]
mod tool_list;

use lifecycle::{CallId, CallOutcome, CallerName, Json, Timestamp, ToolPath};
use std::sync::Arc;
use tool_list::ToolListKind;
use tools::http::ApiClient;
use tools::{
    CancelSignal, Catalogue, ChildSupervision, Connection, ConnectionName, ConnectionOwner,
    IntegrationArrival, IntegrationSlug, OpenedSource, PersonHandle, ProgressHandle, SourceCard,
    SourceConfig, SourceContext, SourceKinds, ToolCredential, ToolRequest,
};

const LIST: &str = r#"{ "greeting": { "description": "Greets.", "answer": "hello" } }"#;

fn request(tool: &str) -> ToolRequest {
    ToolRequest {
        execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
        call: CallId(1),
        attempt: 1,
        tool: ToolPath::parse(tool).unwrap(),
        args: Json::parse("{}".to_owned()).unwrap(),
        caller: CallerName("test".into()),
        cancelled: CancelSignal::never(),
        person: PersonHandle::absent(),
        progress: ProgressHandle::unwatched(),
    }
}

async fn check_call(opened: OpenedSource) {
    let catalogue = Catalogue::new(vec![]).unwrap();
    let slug = IntegrationSlug::parse("phrases").unwrap();
    let card = SourceCard { name: slug.to_string(), ..SourceCard::default() };
    let name = ConnectionName::normalised("main").unwrap();
    let proof = Arc::new(ToolCredential::none());
    let bound = vec![Arc::new(Connection { owner: ConnectionOwner::Org, name, proof })];
    let mut arrival = IntegrationArrival::new(&slug, card, opened.integration, bound);
    arrival.age(None, Timestamp(1));
    catalogue.welcome(arrival);
    let outcome = catalogue.call(request("phrases.org.main.greeting")).await;
    let CallOutcome::Returned { value: Some(value) } = outcome else { panic!("{outcome:?}") };
    assert_eq!(value.as_text(), r#"{"ok":true,"data":"hello"}"#);
}

#[tokio::test]
async fn the_kind_of_the_documentation_is_opened_and_its_tool_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("phrases.tools.json");
    std::fs::write(&file, LIST).unwrap();
    let kinds = SourceKinds::default().with(&ToolListKind);
    let config = SourceConfig { file: Some(file.clone()), ..SourceConfig::default() };
    let http = ApiClient::default();
    let context = SourceContext { minding: ChildSupervision::Nobody, http: &http };
    let opened = kinds.open(&config, &ToolCredential::none(), context).await.unwrap();
    let stored = opened.described.clone();
    check_call(opened).await;

    std::fs::remove_file(&file).unwrap();
    let error = kinds.open(&config, &ToolCredential::none(), context).await.unwrap_err();
    assert!(error.message.starts_with("its file cannot be read"), "{error}");
    let offline = kinds.open_offline(&config, stored, context).await.unwrap().unwrap();
    check_call(offline).await;
}

#[tokio::test]
async fn an_unknown_kind_is_refused_with_the_names_of_the_known_ones() {
    let kinds = SourceKinds::default().with(&ToolListKind);
    let config = SourceConfig { kind: Some("soap".into()), ..SourceConfig::default() };
    let http = ApiClient::default();
    let context = SourceContext { minding: ChildSupervision::Nobody, http: &http };
    let error = kinds.open(&config, &ToolCredential::none(), context).await.unwrap_err();
    let expected =
        "\"soap\" is no kind of source; there are openapi, graphql, mcp, command and tool_list";
    assert_eq!(error.message, expected);
}

#[test]
fn the_page_shows_the_code_of_the_kind() {
    let page = include_str!("../../../docs/extending.md");
    for file in [
        include_str!("../../../examples/extending/tool_list/mod.rs"),
        include_str!("../../../examples/extending/tool_list/kind.rs"),
        include_str!("../../../examples/extending/tool_list/integration.rs"),
    ] {
        assert!(page.contains(file), "docs/extending.md does not show this file:\n{file}");
    }
}
