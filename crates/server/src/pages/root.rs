//! `/`: the doors and the open questions. Plain text in plain elements: no scripts, no styles.

use crate::app::App;
use crate::auth::Caller;
use crate::error::Problem;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use lifecycle::{ExecutionId, Phase, QuestionId};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use store::ListFilter;

/// Executions that are looked through for open questions: a page is read by a person.
const EXECUTIONS_LOOKED_AT_MAX: usize = 100;

const DOORS: [(&str, &str); 5] = [
    ("/api/executions", "run programs, list them, answer their questions (Executor's HTTP API)"),
    ("/execbox", "run programs whose tools the host runs (execbox over WebSocket)"),
    ("/api/tokens", "mint and remove tokens (scope admin)"),
    ("/metrics", "numbers for Prometheus (scope admin)"),
    ("/healthz", "whether the server is there; /readyz: whether it takes work"),
];

/// Nothing may be loaded, run, sent or framed.
const POLICY: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A question for the page.
struct Open {
    question: QuestionId,
    execution: ExecutionId,
    caller: String,
    tool: String,
    message: String,
}

pub(crate) async fn root(
    State(app): State<Arc<App>>,
    caller: Result<Caller, Problem>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let wants_json = headers.get(ACCEPT).is_some_and(|accept| {
        accept.to_str().is_ok_and(|accept| accept.contains("application/json"))
    });
    let caller = match caller {
        Ok(caller) => caller,
        Err(problem) if wants_json => return Err(problem),
        Err(problem) => return Ok(way_in(problem)),
    };
    let open = open_questions(&app, &caller).await?;
    if wants_json {
        let body = as_json(&open).to_string();
        return Ok(([(CONTENT_TYPE, "application/json")], body).into_response());
    }
    Ok(page(StatusCode::OK, &as_html(&caller, &open)))
}

async fn open_questions(app: &App, caller: &Caller) -> Result<Vec<Open>, Problem> {
    let owner = (!caller.sees_all_questions()).then(|| caller.name.clone());
    let phases = vec![Phase::Running, Phase::Paused, Phase::Parked];
    let n_max = EXECUTIONS_LOOKED_AT_MAX;
    let listed = app.engine.list(ListFilter { phases, caller: owner, after: None, n_max }).await?;
    let mut open = vec![];
    for listed in listed {
        let state = app.engine.look_up(listed.execution).await?.state;
        for question in state.open_questions() {
            let tool = state.calls.get(&question.call).map(|call| call.tool.to_string());
            open.push(Open {
                question: question.id,
                execution: listed.execution,
                caller: listed.standing.caller.0.clone(),
                tool: tool.unwrap_or_default(),
                message: question.message.clone(),
            });
        }
    }
    Ok(open)
}

fn as_json(open: &[Open]) -> Value {
    let question = |open: &Open| {
        json!({
            "executionId": open.question,
            "execution": open.execution,
            "caller": open.caller,
            "address": format!("tools.{}", open.tool),
            "message": open.message,
        })
    };
    let doors: Vec<_> =
        DOORS.iter().map(|(path, about)| json!({ "path": path, "about": about })).collect();
    json!({ "doors": doors, "questions": open.iter().map(question).collect::<Vec<_>>() })
}

fn as_html(caller: &Caller, open: &[Open]) -> String {
    let mut html = format!("<p>You are {}.</p>\n<h2>Doors</h2>\n<ul>\n", escaped(&caller.name.0));
    for (path, about) in DOORS {
        let _ = writeln!(html, "<li><code>{path}</code>: {}</li>", escaped(about));
    }
    let _ = writeln!(html, "</ul>\n<h2>Open questions</h2>");
    if open.is_empty() {
        html.push_str("<p>None.</p>\n");
    }
    for open in open {
        let Open { question, execution, caller, message, .. } = open;
        let (caller, message) = (escaped(caller), escaped(message));
        let _ = write!(
            html,
            "<h3><code>{question}</code></h3>\n<p>asked by <code>{execution}</code> of {caller}</p>\n\
             <pre>{message}</pre>\n<p>Answer: <code>POST /api/executions/{question}/resume</code> with \
             <code>{{\"action\":\"accept\"}}</code>, <code>decline</code> or <code>cancel</code>.</p>\n",
        );
    }
    html
}

/// What somebody without a token is told, and nothing more.
fn way_in(problem: Problem) -> Response {
    let refused = problem.into_response();
    let html = "<p>A token is needed: send it as <code>Authorization: Bearer …</code>, or open \
         <code>/?token=…</code>. The first start wrote one to the file <code>tokens/admin</code> in the \
         data directory; <code>airlock token add NAME --scope run</code> mints more.</p>\n";
    let mut response = page(refused.status(), html);
    if let Some(realm) = refused.headers().get(WWW_AUTHENTICATE) {
        response.headers_mut().insert(WWW_AUTHENTICATE, realm.clone());
    }
    response
}

fn page(status: StatusCode, inside: &str) -> Response {
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>Airlock</title>\n\
         <h1>Airlock</h1>\n{inside}</html>\n"
    );
    let headers = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CONTENT_SECURITY_POLICY, POLICY)];
    (status, headers, html).into_response()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_cannot_become_markup() {
        let hostile = r#"<script>alert("1" & '2')</script>"#;
        let safe = "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;";
        assert_eq!(escaped(hostile), safe);
    }
}
