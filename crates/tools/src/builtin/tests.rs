use super::*;
use crate::{
    Connection, ConnectionName, ConnectionOwner, Integration, IntegrationSlug, SharedSchema,
    ToolCredential, ToolSpec,
};

/// Three tools of a shop, one of them dangerous.
struct Shop;

impl Integration for Shop {
    fn kind(&self) -> &'static str {
        "openapi"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let input =
            json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
        let item = json!({"type": "object", "properties": {"title": {"type": "string"}}});
        let tool = |name: &str, description: &str| ToolSpec {
            description: description.into(),
            input: Some(SharedSchema::new(&input)),
            output: Some(SharedSchema::new(&item)),
            ..ToolSpec::new(name)
        };
        vec![
            tool("items.listItems", "List items"),
            tool("items.createItem", "Create an item in the shop."),
            tool("orders.deleteOrder", "Delete an order for good."),
        ]
    }

    fn target(&self) -> String {
        "https://shop".into()
    }

    fn call(
        &self,
        _: &str,
        _: &ToolCredential,
        _: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        future::ready(Ok(None)).boxed()
    }
}

fn shop() -> Catalogue {
    let catalogue = Catalogue::default();
    let main = Connection {
        owner: ConnectionOwner::Org,
        name: ConnectionName::normalised("main").unwrap(),
        proof: Arc::new(ToolCredential::none()),
    };
    let card = SourceCard { title: "Shop".into(), kind: "openapi".into(), ..SourceCard::default() };
    let slug = IntegrationSlug::parse("shop").unwrap();
    catalogue.put(&slug, card, Arc::new(Shop), vec![Arc::new(main)]);
    let shows: ToolVisibility =
        Arc::new(|found: &FoundTool| found.spec().name != "orders.deleteOrder");
    catalogue.add(Arc::new(BuiltinTools::new(&catalogue, shows))).unwrap();
    catalogue
}

async fn call(tool: &str, args: &str) -> Result<Value, String> {
    match shop().call(ToolRequest::sample(tool, args)).await {
        lifecycle::CallOutcome::Returned { value } => {
            Ok(serde_json::from_str(value.unwrap().as_text()).unwrap())
        }
        lifecycle::CallOutcome::Failed(failure) => Err(failure.message),
        lifecycle::CallOutcome::Unknown => panic!("unknown"),
    }
}

#[tokio::test]
async fn a_search_finds_by_other_words_and_tells_where_to_go_on() {
    let page = call("search", r#"{"query":"make a new item","limit":1}"#).await.unwrap();
    let item = &page["items"][0];
    assert_eq!(item["path"], "shop.org.main.items.createItem");
    assert_eq!((&item["name"], &item["integration"]), (&json!("items.createItem"), &json!("shop")));
    assert_eq!((&page["hasMore"], &page["nextOffset"]), (&json!(true), &json!(1)));
    let next = call("search", r#"{"query":"make a new item","offset":1}"#).await.unwrap();
    assert_eq!(next["items"][0]["path"], "shop.org.main.items.listItems");
    assert_eq!((&next["hasMore"], &next["nextOffset"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn what_policy_hides_is_not_found() {
    let page = call("search", r#"{"query":"delete order"}"#).await.unwrap();
    assert_eq!(page["total"], 0);
    let described = call("describe.tool", r#"{"path":"shop.org.main.orders.deleteOrder"}"#).await;
    assert_eq!(described.unwrap()["error"]["code"], "tool_not_found");
}

#[tokio::test]
async fn a_blank_query_lists_a_namespace_and_nothing_else() {
    let page = call("search", r#"{"query":" ","namespace":"shop"}"#).await.unwrap();
    let paths: Vec<_> =
        page["items"].as_array().unwrap().iter().map(|item| &item["path"]).collect();
    assert_eq!(paths, ["shop.org.main.items.createItem", "shop.org.main.items.listItems"]);
    assert_eq!(call("search", "{}").await.unwrap()["total"], 0);
    let narrow = call("search", r#"{"query":"item","namespace":"shop.org.other"}"#).await.unwrap();
    assert_eq!(narrow["total"], 0);
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let cases = [
        (
            "search",
            r#""x""#,
            "tools.search expects an object: { query?: string; namespace?: string; limit?: number; offset?: number }",
        ),
        ("search", r#"{"query":1}"#, "tools.search query must be a string when provided"),
        (
            "search",
            r#"{"query":"x","limit":0}"#,
            "tools.search limit must be a positive number when provided",
        ),
        (
            "search",
            r#"{"query":"x","offset":-1}"#,
            "tools.search offset must be a non-negative number when provided",
        ),
        ("describe.tool", "{}", "describe.tool requires a path"),
    ];
    for (tool, args, expected) in cases {
        assert_eq!(call(tool, args).await, Err(expected.to_owned()));
    }
}

#[tokio::test]
async fn a_tool_is_described_in_typescript() {
    let told = call("describe.tool", r#"{"path":"tools.shop.org.main.items.createItem"}"#).await;
    let expected = json!({
        "path": "shop.org.main.items.createItem",
        "name": "items.createItem",
        "description": "Create an item in the shop.",
        "inputTypeScript": "{ id: string; }",
        "outputTypeScript": "{ ok: true; data: { title?: string; }; http?: ToolHttpMeta } | { ok: false; error: ToolError }",
        "typeScriptDefinitions": {
            "ToolError": "{ code: string; message: string; status?: number; details?: unknown; retryable?: boolean; }",
            "ToolFile": "{ _tag: \"ToolFile\"; name?: string; mimeType: string; encoding: \"base64\"; data: string; byteLength: number; bytes(): Uint8Array; text(): string; }",
            "ToolHttpMeta": "{ status: number; headers: { [k: string]: string; }; }",
        },
    });
    assert_eq!(told.unwrap(), expected);
    let own = call("describe.tool", r#"{"path":"search"}"#).await.unwrap();
    assert_eq!(own["name"], "search");
}

#[tokio::test]
async fn a_path_that_leads_nowhere_gets_suggestions() {
    let told = call("describe.tool", r#"{"path":"shop.org.main.items.getItem"}"#).await.unwrap();
    let expected = json!({
        "path": "shop.org.main.items.getItem",
        "name": "shop.org.main.items.getItem",
        "error": {
            "code": "tool_not_found",
            "message": "Tool not found: shop.org.main.items.getItem",
            "suggestions": ["shop.org.main.items.listItems", "shop.org.main.items.createItem"],
        },
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn sources_are_listed_under_both_names() {
    for tool in ["executor.sources.list", "executor.integrations.list"] {
        let page = call(tool, r#"{"query":"openapi"}"#).await.unwrap();
        let expected = json!([{
            "id": "shop", "name": "Shop", "kind": "openapi", "canRemove": false, "canRefresh": false,
            "toolCount": 3,
        }]);
        assert_eq!((&page["items"], &page["total"]), (&expected, &json!(1)));
    }
}
