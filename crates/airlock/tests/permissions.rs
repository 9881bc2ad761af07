//! Permissions: every route and every management tool, with every kind of caller, under each value of `answers`,
//! against the real server. The expected results come from the server's own table, so that the two cannot drift apart.

use crate::server_fixture::{self, Client, Served};
use serde_json::{Value, json};
use server::auth::Scope;
use server::auth::permissions::{MANAGEMENT, RouteAccess, accept_scope, route_permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// The values of the setting `answers`.
const ANSWERS: [&str; 3] = ["person", "client", "model"];

/// A kind of caller, by its token and its scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallerKind {
    /// A caller without a token.
    Nobody,
    /// A caller with `run`, for its own executions.
    Owner,
    /// A caller with `run`, for another caller's executions.
    Stranger,
    Answer,
    Process,
    Admin,
    /// A browser session of a token with `answer`.
    Session,
}

impl CallerKind {
    const ALL: [Self; 7] = [
        Self::Nobody,
        Self::Owner,
        Self::Stranger,
        Self::Answer,
        Self::Process,
        Self::Admin,
        Self::Session,
    ];

    const fn holds(self, scope: Scope) -> bool {
        match self {
            Self::Nobody => false,
            Self::Owner | Self::Stranger => matches!(scope, Scope::Run),
            Self::Answer | Self::Session => matches!(scope, Scope::Answer),
            Self::Process => matches!(scope, Scope::Process),
            Self::Admin => true,
        }
    }

    /// Whether the table lets this caller use a route; `None` if tokens make no difference.
    fn may(self, access: RouteAccess, answers: &str) -> Option<bool> {
        let owns = matches!(self, Self::Owner | Self::Admin);
        match access {
            RouteAccess::Public | RouteAccess::Secret => None,
            RouteAccess::AnyCaller => Some(self != Self::Nobody),
            RouteAccess::Scoped(scope) => Some(self.holds(scope)),
            RouteAccess::AnswerToken => Some(self != Self::Session && self.holds(Scope::Answer)),
            RouteAccess::SeeExecution => Some(owns || self.holds(Scope::Answer)),
            RouteAccess::AnswerQuestion => {
                Some(self.holds(Scope::Answer) || (self == Self::Owner && answers == "model"))
            }
            RouteAccess::EndExecution => Some(owns),
            RouteAccess::OwnSession => Some(self == Self::Owner),
        }
    }
}

/// A server, and a client of each kind.
struct Walk {
    _folder: tempfile::TempDir,
    served: Served,
    answers: &'static str,
    clients: Vec<(CallerKind, Client)>,
    /// The token that the browser session belongs to.
    person: Client,
}

impl Walk {
    fn start(answers: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = Served::start(folder.path(), &["--exec", "--answers", answers]);
        let admin = served.client("admin");
        let mint = |name: &str, scope: &str| {
            let token = json!({ "name": name, "scopes": [scope], "answers": answers });
            let minted = admin.post("/api/tokens", &token.to_string());
            assert_eq!(minted.status, 201, "{minted:?}");
            served.client_with(minted.json()["secret"].as_str().unwrap())
        };
        let person = mint("person", "answer");
        let clients = vec![
            (CallerKind::Nobody, served.client_with("nobody")),
            (CallerKind::Owner, mint("owner", "run")),
            (CallerKind::Stranger, mint("stranger", "run")),
            (CallerKind::Answer, mint("answerer", "answer")),
            (CallerKind::Process, mint("processes", "process")),
            (CallerKind::Admin, mint("administrator", "admin")),
            (CallerKind::Session, browser_session(&served, &person)),
        ];
        Self { _folder: folder, served, answers, clients, person }
    }

    fn client(&self, kind: CallerKind) -> &Client {
        &self.clients.iter().find(|(other, _)| *other == kind).unwrap().1
    }

    /// Starts an execution of the owner that waits for an answer. Returns its id and its question.
    fn paused(&self, code: &str) -> (String, String) {
        let asked = self.client(CallerKind::Owner).execute(code);
        assert_eq!(asked.json()["status"], "paused", "{code}: {asked:?}");
        (asked.execution(), asked.question())
    }

    fn open_questions(&self, execution: &str) -> usize {
        let path = format!("/api/executions/{execution}/questions");
        let shown = self.client(CallerKind::Admin).get(&path).json();
        shown["questions"].as_array().unwrap().len()
    }
}

fn browser_session(served: &Served, person: &Client) -> Client {
    let code = person.post("/api/sign-in/codes", "{}").json();
    let body = json!({ "code": code["code"] }).to_string();
    let signed_in = served.client_with("").post("/api/sign-in", &body);
    served.client_with(signed_in.json()["token"].as_str().unwrap())
}

/// The status of a response. The body is not read, because it may never end.
fn status(client: &Client, method: &str, path: &str, body: &str) -> u16 {
    let upgrade = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let plain =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let is_socket = ["/exec", "/execbox", "/enclave/ws", "/repl"].contains(&path);
    let headers = if is_socket { &upgrade[..] } else { &plain[..] };
    let mut stream = client.connect();
    stream.write_all((client.head(method, path, headers, body.len()) + body).as_bytes()).unwrap();
    status_line(&mut stream)
}

fn status_line(stream: &mut TcpStream) -> u16 {
    let mut head = vec![];
    let mut byte = [0];
    while !head.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let line = String::from_utf8(head).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Starts an enclave session whose program waits for its caller. Returns the session and the waiting call.
fn enclave_session(owner: &Client) -> (String, String) {
    let id = format!("s_{}", uuid::Uuid::now_v7().simple());
    let body = json!({ "sessionId": id, "code": "return await callTool('never', {})" }).to_string();
    let headers = [("Content-Type", "application/json")];
    let mut stream = owner.connect();
    let request = owner.head("POST", "/sessions", &headers, body.len()) + &body;
    stream.write_all(request.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("\"callId\"")).unwrap();
    let event: Value = serde_json::from_str(line.trim_start_matches("data: ")).unwrap();
    (id, event["payload"]["callId"].as_str().unwrap().to_owned())
}

/// A path without placeholders, and a body that the server can parse.
fn concrete(walk: &Walk, access: RouteAccess, path: &str) -> (String, String) {
    let is_about_execution = matches!(
        access,
        RouteAccess::SeeExecution | RouteAccess::AnswerQuestion | RouteAccess::EndExecution
    );
    if path.starts_with("/sessions/{id}") {
        let (id, call) = enclave_session(walk.client(CallerKind::Owner));
        let result = json!({ "callId": call, "result": 1 });
        return (path.replace("{id}", &id), result.to_string());
    }
    if is_about_execution {
        let (execution, question) = walk.paused("return await tools.demo.ask({ text: 'x' })");
        let answer = json!({ "executionId": question, "action": "accept" });
        let mut body = answer.clone();
        body["answers"] = json!([answer]);
        let path = path.replace("{id}", &execution).replace("{session}", "any");
        return (path, body.to_string());
    }
    let names = ["{id}", "{name}", "{slug}", "{owner}", "{key}", "{state}", "{capability}"];
    let path = names.iter().fold(path.to_owned(), |path, name| path.replace(name, "none"));
    let body = match path.as_str() {
        "/api/session/elevation" => elevation(walk),
        "/mcp" => json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string(),
        "/sessions" | "/execute" | "/api/executions" => json!({ "code": "1" }).to_string(),
        _ => "{}".to_owned(),
    };
    (path, body)
}

/// A code that elevates a browser session: without one, the refusal would look like a missing scope.
fn elevation(walk: &Walk) -> String {
    let minted =
        walk.client(CallerKind::Admin).post("/api/sign-in/codes", r#"{"admin":true}"#).json();
    json!({ "code": minted["code"] }).to_string()
}

fn every_route(answers: &'static str) {
    let walk = Walk::start(answers);
    let mut differences = vec![];
    for row in route_permissions() {
        let mut seen = vec![];
        for kind in CallerKind::ALL {
            let (path, body) = concrete(&walk, row.access, row.path);
            // Signing out ends the session, so this route gets a separate session.
            let session = || browser_session(&walk.served, &walk.person);
            let session = (kind == CallerKind::Session).then(session);
            let client = session.as_ref().unwrap_or_else(|| walk.client(kind));
            let status = status(client, row.method, &path, &body);
            let is_hidden = path.contains("/run_") || path.contains("/s_");
            let is_refused = matches!(status, 401 | 403) || (is_hidden && status == 404);
            if let Some(may) = kind.may(row.access, answers)
                && may == is_refused
            {
                differences.push(format!("{} {} as {kind:?}: {status}", row.method, row.path));
            }
            seen.push(status);
        }
        if matches!(row.access, RouteAccess::Public | RouteAccess::Secret) {
            assert!(seen.iter().all(|status| *status == seen[0]), "{row:?}: {seen:?}");
            assert!(
                row.access == RouteAccess::Secret || seen[0] < 400 || seen[0] == 404,
                "{row:?}"
            );
        }
    }
    assert_eq!(differences, Vec::<String>::new(), "answers = {answers}");
    assert_eq!(walk.served.stop(), Some(0));
}

#[test]
fn every_route_lets_in_whom_the_table_names_where_people_answer() {
    every_route("person");
}

#[test]
fn every_route_lets_in_whom_the_table_names_where_clients_answer() {
    every_route("client");
}

#[test]
fn every_route_lets_in_whom_the_table_names_where_models_answer() {
    every_route("model");
}

/// A valid call of each management tool.
fn call(tool: &str, policy: &str) -> String {
    let args = match tool.rsplit('.').next().unwrap() {
        _ if tool.ends_with("policies.create") => {
            json!({ "owner": "org", "pattern": "nothing.*", "action": "approve" })
        }
        _ if tool.ends_with("policies.update") => json!({ "id": policy, "action": "approve" }),
        _ if tool.ends_with("policies.remove") => json!({ "id": policy }),
        "list" => json!({}),
        "detect" | "probe" => json!({ "url": "http://127.0.0.1:1/" }),
        "previewSpec" => json!({ "spec": "{}" }),
        "addSpec" | "addServer" => json!({ "slug": "added", "url": "http://127.0.0.1:1/" }),
        "addIntegration" => json!({ "slug": "added", "endpoint": "http://127.0.0.1:1/" }),
        "refreshServer" => json!({ "slug": "none" }),
        "refresh" | "remove" if tool.contains("integrations") => json!({ "slug": "none" }),
        _ => json!({ "integration": "none", "owner": "org", "name": "main" }),
    };
    format!("return await tools.{tool}({args})")
}

fn mcp_call(client: &Client, name: &str, arguments: &Value) -> server_fixture::Answer {
    let params = json!({ "name": name, "arguments": arguments });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers =
        [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    client.send("POST", "/mcp?wait=1", &headers, &body.to_string())
}

/// Tries every way to accept a question as a caller of this kind; all of them must be refused.
fn try_to_accept(walk: &Walk, kind: CallerKind, execution: &str, question: &str) {
    let client = walk.client(kind);
    let expected: &[u16] = match kind {
        CallerKind::Nobody => &[401],
        CallerKind::Stranger | CallerKind::Process => &[403, 404],
        CallerKind::Owner | CallerKind::Answer | CallerKind::Admin | CallerKind::Session => &[403],
    };
    for id in [question, execution] {
        let refused = client.resume(id, "accept");
        assert!(expected.contains(&refused.status), "{kind:?}: {refused:?}");
    }
    for more in [json!({ "remember": "execution" }), json!({ "content": { "choice": "retry" } })] {
        let mut body = more;
        body["action"] = "accept".into();
        let refused = client.post(&format!("/api/executions/{question}/resume"), &body.to_string());
        assert!(expected.contains(&refused.status), "{kind:?}: {refused:?}");
    }
    let batch = json!({ "answers": [{ "executionId": question, "action": "accept" }] });
    let path = format!("/api/executions/{execution}/answers");
    let refused = client.post(&path, &batch.to_string());
    assert!(expected.contains(&refused.status), "{kind:?}: {refused:?}");
    let _ = mcp_call(client, "resume", &json!({ "executionId": question, "action": "accept" }));
    assert_eq!(walk.open_questions(execution), 1, "{kind:?} closed the question");
}

fn every_management_tool(answers: &'static str) {
    let walk = Walk::start(answers);
    let admin = walk.client(CallerKind::Admin);
    let approve = |pattern: &str| {
        let rule = json!({ "owner": "org", "pattern": pattern, "action": "approve" });
        server_fixture::good(admin.post("/api/policies", &rule.to_string()))
    };
    approve("*");
    approve("executor.*");
    for row in MANAGEMENT {
        approve(row.tool);
        let scope = accept_scope(&lifecycle::ToolPath::parse(row.tool).unwrap());
        let rule = json!({ "owner": "user", "pattern": "mail.*", "action": "block" });
        let policy = server_fixture::good(admin.post("/api/policies", &rule.to_string()));
        let code = call(row.tool, policy["id"].as_str().unwrap());
        let Some(scope) = scope else {
            let shown = walk.client(CallerKind::Owner).execute(&code).json();
            assert_eq!(shown["status"], "completed", "{}: {shown}", row.tool);
            continue;
        };
        assert_eq!(scope, Scope::Admin, "the kinds of callers below are chosen for this");
        // `autoApprove` never has an effect: the request is refused, or the question stays open.
        for kind in [CallerKind::Owner, CallerKind::Admin] {
            let body = json!({ "code": code, "autoApprove": true }).to_string();
            let asked = walk.client(kind).post("/api/executions", &body);
            let is_held = asked.status == 403 || asked.json()["status"] == "paused";
            assert!(is_held, "{} as {kind:?}: {asked:?}", row.tool);
        }
        let (execution, question) = walk.paused(&code);
        for kind in CallerKind::ALL.into_iter().filter(|kind| !kind.holds(scope)) {
            try_to_accept(&walk, kind, &execution, &question);
        }
        let remembered = json!({ "action": "accept", "remember": "execution" }).to_string();
        let refused = admin.post(&format!("/api/executions/{question}/resume"), &remembered);
        assert_eq!(refused.status, 400, "{}: {refused:?}", row.tool);
        let accepted = admin.resume(&question, "accept");
        assert_eq!(accepted.json()["status"], "completed", "{}: {accepted:?}", row.tool);
        let journal = admin.get(&format!("/api/executions/{execution}/journal")).body;
        let n_answers = journal.matches("call_answered").count();
        assert_eq!(n_answers, 1, "{}: a refused answer was recorded: {journal}", row.tool);
        for (kind, action) in [(CallerKind::Answer, "decline"), (CallerKind::Session, "cancel")] {
            let rule = json!({ "owner": "user", "pattern": "mail.*", "action": "block" });
            let policy = server_fixture::good(admin.post("/api/policies", &rule.to_string()));
            let (_, question) = walk.paused(&call(row.tool, policy["id"].as_str().unwrap()));
            let counted = walk.client(kind).resume(&question, action);
            assert_eq!(counted.status, 200, "{} {action} as {kind:?}: {counted:?}", row.tool);
        }
    }
    assert_eq!(walk.served.stop(), Some(0));
    assert_eq!(walk.answers, answers);
}

#[test]
fn no_management_tool_runs_without_an_administrators_answer_where_people_answer() {
    every_management_tool(ANSWERS[0]);
}

#[test]
fn no_management_tool_runs_without_an_administrators_answer_where_clients_answer() {
    every_management_tool(ANSWERS[1]);
}

#[test]
fn no_management_tool_runs_without_an_administrators_answer_where_models_answer() {
    every_management_tool(ANSWERS[2]);
}
