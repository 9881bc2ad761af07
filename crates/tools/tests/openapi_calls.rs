//! OpenAPI tools against a real HTTP service that returns the request it received.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use lifecycle::{CallAdmission, CallId, CallOutcome, CallerName, Json, ToolPath};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tools::http::{ApiClient, HttpLimits};
use tools::openapi::{OpenApi, Options, import};
use tools::{
    CancelSignal, Catalogue, Connection, ConnectionName, ConnectionOwner, Integration as _,
    IntegrationSlug, PersonHandle, ProgressHandle, SourceCard, ToolCredential, ToolRequest,
};

/// Returns the request that arrived.
async fn echo(method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let shown = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let said = json!({
        "request": format!("{method} {uri}"),
        "x": shown("x-list"),
        "key": shown("x-key").map(|_| "arrived"),
        "cookie": shown("cookie"),
        "type": shown("content-type").map(|label| label.split("; boundary").next()),
        "body": String::from_utf8_lossy(&body),
    });
    ([(header::CONTENT_TYPE, "application/json")], said.to_string()).into_response()
}

async fn page(State(other): State<String>, uri: Uri) -> Response {
    let labelled =
        |label: &'static str, body: Body| ([(header::CONTENT_TYPE, label)], body).into_response();
    match uri.path() {
        "/odd/lie" => labelled("application/json", Body::from("<html>no</html>")),
        "/odd/png" => labelled("application/octet-stream", Body::from(&b"\x89PNG\r\n\x1a\n"[..])),
        "/odd/nothing" => StatusCode::NO_CONTENT.into_response(),
        "/odd/endless" => {
            let chunk = || Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1 << 16]));
            let chunks = futures_util::stream::iter(std::iter::repeat_with(chunk));
            labelled("application/json", Body::from_stream(chunks))
        }
        "/odd/slow" => std::future::pending().await,
        "/odd/away" => {
            (StatusCode::FOUND, [(header::LOCATION, format!("{other}/there"))]).into_response()
        }
        "/odd/moved" => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("{other}/there"))])
                .into_response()
        }
        "/odd/busy" => {
            (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "7")], "{\"message\":\"later\"}")
                .into_response()
        }
        _ => StatusCode::FORBIDDEN.into_response(),
    }
}

/// Starts a service that ends with the test, and a second one as a target of redirects.
async fn serve() -> String {
    let (other, elsewhere) = bind().await;
    run(other, Router::new().fallback(any(echo)));
    let (listener, url) = bind().await;
    let odd = Router::new().route("/odd/{*rest}", any(page)).with_state(elsewhere);
    run(listener, odd.fallback(any(echo)));
    url
}

async fn bind() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

#[expect(clippy::disallowed_methods, reason = "ends with the test's runtime")]
fn run(listener: TcpListener, router: Router) {
    tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
}

fn parameter(name: &str, carrier: &str, style: &str, explode: bool) -> Value {
    let schema = json!({"type": ["array", "object", "string"]});
    json!({"name": name, "in": carrier, "style": style, "explode": explode, "required": carrier == "path", "schema": schema})
}

/// Returns a description with one operation per parameter style, and the special cases.
fn description(server: &str) -> Value {
    let mut paths = json!({});
    for (carrier, styles) in [
        ("path", &["simple", "label", "matrix"][..]),
        ("query", &["form", "spaceDelimited", "pipeDelimited", "deepObject"]),
        ("header", &["simple"]),
        ("cookie", &["form"]),
    ] {
        for style in styles {
            for explode in [true, false] {
                let id = format!("{carrier} {style} {explode}");
                let name = if carrier == "header" { "X-List" } else { "v" };
                let hole = if carrier == "path" { "/{v}" } else { "" };
                let path = format!("/{carrier}/{style}/{explode}{hole}");
                paths[path] = json!({"get": {"operationId": id, "tags": ["s"], "parameters": [parameter(name, carrier, style, explode)]}});
            }
        }
    }
    for odd in ["lie", "png", "nothing", "endless", "slow", "away", "busy", "forbidden"] {
        paths[format!("/odd/{odd}")] = json!({"get": {"operationId": odd, "tags": ["odd"]}});
    }
    paths["/odd/moved"] = json!({"post": {"operationId": "moved", "tags": ["odd"]}});
    paths["/reserved"] = json!({"get": {"operationId": "reserved", "tags": ["q"], "parameters": [
        {"name": "r", "in": "query", "allowReserved": true, "schema": {"type": "string"}},
        {"name": "c", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "X-Key", "in": "header", "schema": {"type": "string"}},
        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
    ]}});
    paths["/bodies"] = json!({"post": {"operationId": "bodies", "tags": ["b"], "requestBody": {"required": true, "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/Tree"}},
        "application/x-www-form-urlencoded": {"schema": {"type": "object"}, "encoding": {"deep": {"style": "deepObject"}}},
        "multipart/form-data": {"schema": {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}}},
        "text/plain": {"schema": {"type": "string"}},
        "application/octet-stream": {},
    }}}});
    json!({
        "openapi": "3.1.0", "info": {"title": "Echo", "version": "1"},
        "servers": [{"url": server}, {"url": format!("{server}/{{tenant}}"), "variables": {"tenant": {"default": "t1", "enum": ["t1", "t2"]}}}],
        "paths": paths,
        "components": {
            "schemas": {"Tree": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Tree"}}}},
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
        },
    })
}

async fn api() -> OpenApi {
    let limits = HttpLimits { total: Duration::from_secs(20), ..HttpLimits::default() };
    api_within(limits).await
}

async fn api_within(limits: HttpLimits) -> OpenApi {
    let options = Options { client: ApiClient::new(limits), ..Options::default() };
    import(&description(&serve().await).to_string(), options).unwrap()
}

fn request(args: &Value, cancelled: CancelSignal) -> ToolRequest {
    ToolRequest {
        execution: "run_00000000-0000-0000-0000-000000000001".parse().unwrap(),
        call: CallId(1),
        attempt: 1,
        tool: ToolPath::parse("echo").unwrap(),
        args: Json::from_value(args).unwrap(),
        caller: CallerName("test".into()),
        cancelled,
        person: PersonHandle::absent(),
        progress: ProgressHandle::unwatched(),
    }
}

async fn call(api: &OpenApi, tool: &str, args: Value) -> Value {
    let credential = ToolCredential::header("x-key", "0123456789");
    let request = request(&args, CancelSignal::never());
    let said = api.call(tool, &credential, request).await.unwrap().unwrap();
    serde_json::from_str(said.as_text()).unwrap()
}

#[tokio::test]
async fn every_style_arrives_as_the_specification_writes_it() {
    let api = api().await;
    let list = json!(["a b", "c"]);
    let object = json!({"k": 1, "l": "m"});
    let cases = [
        ("s.pathSimpleTrue", "/path/simple/true/a%20b,c", "/path/simple/true/k=1,l=m"),
        ("s.pathSimpleFalse", "/path/simple/false/a%20b,c", "/path/simple/false/k,1,l,m"),
        ("s.pathLabelTrue", "/path/label/true/.a%20b.c", "/path/label/true/.k=1.l=m"),
        ("s.pathLabelFalse", "/path/label/false/.a%20b,c", "/path/label/false/.k,1,l,m"),
        ("s.pathMatrixTrue", "/path/matrix/true/;v=a%20b;v=c", "/path/matrix/true/;k=1;l=m"),
        ("s.pathMatrixFalse", "/path/matrix/false/;v=a%20b,c", "/path/matrix/false/;v=k,1,l,m"),
        ("s.queryFormTrue", "/query/form/true?v=a%20b&v=c", "/query/form/true?k=1&l=m"),
        ("s.queryFormFalse", "/query/form/false?v=a%20b,c", "/query/form/false?v=k,1,l,m"),
        (
            "s.querySpaceDelimitedFalse",
            "/query/spaceDelimited/false?v=a%20b%20c",
            "/query/spaceDelimited/false?v=k%201%20l%20m",
        ),
        (
            "s.queryPipeDelimitedFalse",
            "/query/pipeDelimited/false?v=a%20b%7Cc",
            "/query/pipeDelimited/false?v=k%7C1%7Cl%7Cm",
        ),
        (
            "s.queryDeepObjectTrue",
            "/query/deepObject/true?v%5B%5D=a%20b&v%5B%5D=c",
            "/query/deepObject/true?v%5Bk%5D=1&v%5Bl%5D=m",
        ),
    ];
    for (tool, of_list, of_object) in cases {
        let listed = call(&api, tool, json!({"v": list})).await;
        assert_eq!(listed["data"]["request"], format!("GET {of_list}"), "{tool}: {listed}");
        let nested = call(&api, tool, json!({"path": {"v": object}, "query": {"v": object}})).await;
        assert_eq!(nested["data"]["request"], format!("GET {of_object}"), "{tool}");
    }
    assert_eq!(
        call(&api, "s.headerSimpleTrue", json!({"X-List": object})).await["data"]["x"],
        "k=1,l=m"
    );
    assert_eq!(
        call(&api, "s.headerSimpleFalse", json!({"X-List": list})).await["data"]["x"],
        "a b,c"
    );
    assert_eq!(
        call(&api, "s.cookieFormFalse", json!({"v": list})).await["data"]["cookie"],
        "v=a%20b,c"
    );
    assert_eq!(call(&api, "s.cookieFormTrue", json!({"v": "x"})).await["data"]["cookie"], "v=x");
    let reserved = call(&api, "q.reserved", json!({"r": "a/b?c&d", "c": {"e": 1}})).await;
    assert_eq!(reserved["data"]["request"], "GET /reserved?r=a/b?c%26d&c=%7B%22e%22%3A1%7D");
}

#[tokio::test]
async fn every_kind_of_body_arrives() {
    let api = api().await;
    let sent = async |args: Value| {
        let said = call(&api, "b.bodies", args).await;
        (
            said["data"]["type"].as_str().unwrap().to_owned(),
            said["data"]["body"].as_str().unwrap().to_owned(),
        )
    };
    let pair = |label: &str, body: &str| (label.to_owned(), body.to_owned());
    assert_eq!(sent(json!({"body": {"v": 1}})).await, pair("application/json", "{\"v\":1}"));
    let form = json!({"body": {"a": [1, 2], "deep": {"x": {"y": "z"}}}, "contentType": "application/x-www-form-urlencoded"});
    assert_eq!(
        sent(form).await,
        pair("application/x-www-form-urlencoded", "a=1&a=2&deep%5Bx%5D%5By%5D=z")
    );
    assert_eq!(
        sent(json!({"body": "hi", "contentType": "text/plain"})).await,
        pair("text/plain", "hi")
    );
    assert_eq!(sent(json!({"bodyBase64": "aGk="})).await, pair("application/octet-stream", "hi"));
    let (label, parts) =
        sent(json!({"body": {"f": "raw", "n": 1}, "contentType": "multipart/form-data"})).await;
    assert_eq!(label, "multipart/form-data");
    assert!(
        parts.contains(
            "name=\"f\"; filename=\"f\"\r\nContent-Type: application/octet-stream\r\n\r\nraw\r\n"
        ),
        "{parts}"
    );
    assert!(parts.contains("name=\"n\"\r\n\r\n1\r\n"), "{parts}");
}

#[tokio::test]
async fn programs_choose_servers_and_connections_bring_credentials() {
    let api = api().await;
    let tool = api.tools().into_iter().find(|tool| tool.name == "q.reserved").unwrap();
    let input = tool.input.unwrap().whole();
    let names: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["c", "r", "server"], "connection arguments are not in the schema");
    let second = input["properties"]["server"]["properties"]["url"]["enum"][1].clone();
    let args = json!({"server": {"url": second, "variables": {"tenant": "t2"}}});
    let said = call(&api, "q.reserved", args).await;
    assert_eq!(
        (&said["data"]["request"], &said["data"]["key"]),
        (&json!("GET /t2/reserved"), &json!("arrived"))
    );
    let evil = json!({"server": {"url": "http://127.0.0.1:1"}});
    assert_eq!(call(&api, "q.reserved", evil).await["error"]["code"], "invalid_tool_arguments");
}

#[tokio::test]
async fn no_value_leads_to_another_path() {
    let api = api().await;
    for value in ["..", ".", "", "%2e%2e"] {
        let said = call(&api, "s.pathSimpleFalse", json!({"v": value})).await;
        let arrived = said["data"]["request"].as_str().unwrap_or_default();
        assert!(
            said["ok"] == false || arrived == "GET /path/simple/false/%252e%252e",
            "{value:?}: {said}"
        );
    }
    let slashes = call(&api, "s.pathSimpleFalse", json!({"v": "../../x?y#z"})).await;
    assert_eq!(slashes["data"]["request"], "GET /path/simple/false/..%2F..%2Fx%3Fy%23z");
}

#[tokio::test]
async fn a_redirect_of_a_private_api_to_another_origin_is_refused() {
    let api = api().await;
    let away = call(&api, "odd.away", json!({})).await;
    assert_eq!(away["error"]["code"], "upstream_redirect_refused");
    let moved = call(&api, "odd.moved", json!({})).await;
    assert_eq!(moved["error"]["code"], "upstream_redirect_refused");
}

#[tokio::test]
async fn a_source_that_lies_floods_or_refuses_is_told_and_others_go_on() {
    let api = api().await;
    let code = async |tool: &str| call(&api, tool, json!({})).await["error"]["code"].clone();
    assert_eq!(code("odd.lie").await, "upstream_invalid_response");
    assert_eq!(code("odd.endless").await, "upstream_response_too_large");
    assert_eq!(code("odd.forbidden").await, "connection_rejected");
    let busy = call(&api, "odd.busy", json!({})).await;
    let expected = json!({"code": "upstream_http_error", "message": "later", "status": 429, "retryable": true,
        "details": {"message": "later", "retryAfter": "7"}});
    assert_eq!(busy["error"], expected);
    let png = call(&api, "odd.png", json!({})).await;
    assert_eq!(
        (&png["data"]["mimeType"], &png["data"]["byteLength"]),
        (&json!("image/png"), &json!(8))
    );
    assert_eq!(call(&api, "odd.nothing", json!({})).await["data"], Value::Null);
    assert_eq!(call(&api, "s.queryFormTrue", json!({})).await["ok"], true);
}

#[tokio::test]
async fn a_source_that_is_slow_is_given_up_and_a_cancelled_call_at_once() {
    let limits = HttpLimits { total: Duration::from_millis(50), ..HttpLimits::default() };
    let slow = call(&api_within(limits).await, "odd.slow", json!({})).await;
    assert_eq!(slow["error"]["code"], "upstream_timeout");
    let api = api().await;
    let token = CancellationToken::new();
    let pending =
        api.call("odd.slow", &ToolCredential::none(), request(&json!({}), token.clone().into()));
    token.cancel();
    assert!(pending.await.unwrap().unwrap().as_text().contains("cancelled"));
}

#[tokio::test]
async fn a_source_that_is_down_is_named() {
    let (listener, url) = bind().await;
    drop(listener);
    let api = import(&description(&url).to_string(), Options::default()).unwrap();
    let down = call(&api, "odd.png", json!({})).await;
    assert_eq!(down["error"]["code"], "upstream_unreachable");
    let host = url.trim_start_matches("http://");
    assert_eq!(down["error"]["message"], format!("{host} cannot be reached: Connection refused."));
}

#[tokio::test]
async fn a_description_from_outside_sends_nobody_inside() {
    let source = Some("https://specs.example.com/openapi.json".parse().unwrap());
    let options = Options { source, ..Options::default() };
    let api = import(&description("http://169.254.169.254").to_string(), options).unwrap();
    let refused = call(&api, "odd.png", json!({})).await;
    assert_eq!(refused["error"]["code"], "upstream_address_refused");
}

#[test]
fn broken_descriptions_are_told_apart() {
    let say = |text: &str| import(text, Options::default()).unwrap_err().to_string();
    assert_eq!(say("{}"), "the text has no \"openapi\" version: it is not an OpenAPI description");
    assert_eq!(say("openapi: 4.0.0"), "the description is OpenAPI 4.0.0, not 3");
    assert!(say("{\"swagger\": \"2.0\"}").contains("Swagger 2.0"));
    assert!(say("{\"openapi\": ").starts_with("the description cannot be read: "));
    assert!(say("a: [").starts_with("the description cannot be read: "));
    assert_eq!(say("openapi: 3.0.0"), "the description has no operation that can be called");
    let large = " ".repeat(50_000_001);
    assert_eq!(say(&large), "the description has 50000001 bytes, 48000000 at most");
    let circle = json!({"openapi": "3.0.0", "paths": {"/a": {"get": {"parameters": [{"$ref": "#/components/parameters/p"}]}}},
        "components": {"parameters": {"p": {"$ref": "#/components/parameters/q"}, "q": {"$ref": "#/components/parameters/p"}}}});
    assert_eq!(
        say(&circle.to_string()),
        "the description has no operation that can be called: GET /a: a parameter: its references lead in a circle"
    );
    let outside = circle.to_string().replace("#/components/parameters/q", "file:///etc/passwd");
    assert!(say(&outside).ends_with("file:///etc/passwd leads outside the description"));
}

#[tokio::test]
async fn arguments_are_checked_before_anybody_is_asked_and_may_be_nested() {
    let catalogue = Catalogue::new(vec![]).unwrap();
    let slug = IntegrationSlug::parse("echo").unwrap();
    let connection = Connection {
        owner: ConnectionOwner::Org,
        name: ConnectionName::normalised("main").unwrap(),
        proof: Arc::new(ToolCredential::none()),
    };
    let card = SourceCard { name: "echo".into(), ..SourceCard::default() };
    catalogue.put(&slug, card, Arc::new(api().await), vec![Arc::new(connection)]);
    let admitted = |tool: &str, args: Value| {
        let path = ToolPath::parse(&format!("echo.org.main.{tool}")).unwrap();
        match catalogue.admit_call(&path, &Json::from_value(&args).unwrap()) {
            CallAdmission::Fit { traits, about, .. } => {
                format!("asks: {}, {}", traits.asks, about.unwrap())
            }
            CallAdmission::Unfit(failure) => failure.message,
            CallAdmission::Unavailable(source) => source.why,
            CallAdmission::Told(value) => {
                let told: Value = serde_json::from_str(value.as_text()).unwrap();
                assert_eq!(told["error"]["code"], "invalid_tool_arguments", "{told}");
                told["error"]["message"].as_str().unwrap().to_owned()
            }
        }
    };
    let path = ToolPath::parse("echo.org.main.b.bodies").unwrap();
    let huge = json!({"body": {"v": 1, "text": "x".repeat(17 << 20)}});
    let told = catalogue.objection(&path, &Json::from_value(&huge).unwrap()).unwrap();
    assert!(told.as_text().contains("16777216 at most"), "{told:?}");
    let fine = Json::from_value(&json!({"body": {"v": 1}})).unwrap();
    assert_eq!(catalogue.objection(&path, &fine), None);
    assert_eq!(admitted("b.bodies", json!({"body": {"v": 1}})), "asks: true, POST /bodies");
    assert_eq!(
        admitted("b.bodies", json!({})),
        "The arguments of \"echo.org.main.b.bodies\" do not fit: \
        value is not valid under any of the schemas listed in the 'anyOf' keyword."
    );
    let styled = "asks: false, GET /path/simple/true/{v}";
    assert_eq!(admitted("s.pathSimpleTrue", json!({"v": ["a"]})), styled);
    assert_eq!(admitted("s.pathSimpleTrue", json!({"path": {"v": "a"}})), styled);
    assert_eq!(
        admitted("s.pathSimpleTrue", json!({"path": {"w": "a"}})),
        "Missing required path parameter: v. The arguments of \"echo.org.main.s.pathSimpleTrue\" do not fit: Additional properties are not \
         allowed ('path' was unexpected); \"v\" is a required property."
    );
    let mut call = request(&json!({"params": {"v": "nested"}}), CancelSignal::never());
    call.tool = ToolPath::parse("echo.org.main.s.pathSimpleTrue").unwrap();
    let CallOutcome::Returned { value: Some(said) } = catalogue.call(call).await else { panic!() };
    assert!(said.as_text().contains("GET /path/simple/true/nested"), "{}", said.as_text());
}
