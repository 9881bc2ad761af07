//! An imported API: its tools, and how they are called.

use super::import::{Options, first_error, post};
use super::select;
use crate::envelope::{ToolFailure, done};
use crate::http::{self, ApiRequest, ApiResponse};
use crate::{AuthMethod, Integration, ToolCredential, ToolRequest, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{Failure, FailureCode, Json};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// An imported API.
pub struct GraphqlIntegration {
    pub(super) specs: Vec<ToolSpec>,
    pub(super) plans: HashMap<String, Arc<QueryPlan>>,
    pub(super) options: Options,
}

/// How a field becomes a query.
#[derive(Debug)]
pub(super) struct QueryPlan {
    pub(super) kind: &'static str,
    pub(super) field: String,
    /// Names and types, as GraphQL writes them.
    pub(super) arguments: Vec<(String, String)>,
    /// The default selection; none if the type has no fields.
    pub(super) selection: Option<String>,
}

impl QueryPlan {
    /// The query and its variables, or what is wrong with the arguments.
    fn query(&self, args: &Value) -> Result<Value, String> {
        let given: Vec<_> =
            self.arguments.iter().filter_map(|(n, t)| Some((n, t, args.get(n)?))).collect();
        let join = |parts: Vec<String>| match parts.is_empty() {
            true => String::new(),
            false => format!("({})", parts.join(", ")),
        };
        let declared =
            join(given.iter().map(|(name, shape, _)| format!("${name}: {shape}")).collect());
        let passed = join(given.iter().map(|(name, ..)| format!("{name}: ${name}")).collect());
        let is_argument = self.arguments.iter().any(|(name, _)| name == "select");
        let wanted = args.get("select").and_then(Value::as_str).filter(|_| !is_argument);
        let selection = match (&self.selection, wanted) {
            (Some(_), Some(wanted)) => format!(" {{ {} }}", select::own(wanted)?),
            (Some(usual), None) => format!(" {{ {usual} }}"),
            (None, _) => String::new(),
        };
        let query = format!("{}{declared} {{ {}{passed}{selection} }}", self.kind, self.field);
        let variables: Map<_, _> =
            given.iter().map(|(name, _, value)| ((*name).clone(), (*value).clone())).collect();
        Ok(json!({ "query": query, "variables": variables }))
    }
}

impl Integration for GraphqlIntegration {
    fn kind(&self) -> &'static str {
        "graphql"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    fn target(&self) -> String {
        self.options.endpoint.to_string()
    }

    /// Introspection does not describe authentication; most APIs take a bearer token.
    fn auth_methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::bearer("apikey-0")]
    }

    fn objection(&self, tool: &str, _credential: &ToolCredential, args: &Json) -> Option<String> {
        outgoing(self.plans.get(tool)?, &self.options, args).err()
    }

    fn call(
        &self,
        tool: &str,
        credential: &ToolCredential,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        match self.plans.get(tool) {
            Some(plan) => {
                let (plan, options) = (Arc::clone(plan), self.options.clone());
                call(plan, options, credential.clone(), request).map(|said| Ok(Some(said))).boxed()
            }
            None => {
                let message = format!("Tool not found: {tool}");
                future::ready(Err(Failure::new(FailureCode::ToolNotFound, message))).boxed()
            }
        }
    }
}

impl fmt::Debug for GraphqlIntegration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graphql({}, {} tools)", self.target(), self.specs.len())
    }
}

async fn call(
    plan: Arc<QueryPlan>,
    options: Options,
    credential: ToolCredential,
    call: ToolRequest,
) -> Json {
    let outgoing = outgoing(&plan, &options, &call.args);
    let answer = |incoming| graphql_result(&plan, incoming, &credential);
    http::exchange(&options.client, &credential, &call, outgoing, answer).await
}

fn outgoing(plan: &QueryPlan, options: &Options, args: &Json) -> Result<ApiRequest, String> {
    let make = |args: &Value| Ok(post(&options.endpoint, &plan.query(args)?));
    http::outgoing(&options.client, args, make)
}

/// `{ok, data}` with the field's value, or `{ok: false, error}` with all errors that the API reported.
fn graphql_result(plan: &QueryPlan, incoming: ApiResponse, credential: &ToolCredential) -> Json {
    let status = incoming.status;
    let said = http::shape_response(incoming, credential);
    let envelope: Value = serde_json::from_str(said.as_text()).unwrap_or_default();
    let is_refused = envelope.get("ok") != Some(&Value::Bool(true));
    let body = envelope.pointer("/error/details").filter(|_| is_refused);
    let body = body.or_else(|| envelope.get("data")).unwrap_or(&Value::Null);
    let has_errors = body.get("errors").and_then(Value::as_array).is_some_and(|e| !e.is_empty());
    if has_errors {
        let message = first_error(body).unwrap_or_else(|| "The API failed.".into());
        let details = json!({ "errors": body["errors"], "data": body.get("data") });
        let (status, details) = (Some(status.as_u16()), Some(details));
        return ToolFailure { status, details, ..ToolFailure::new("graphql_error", message) }
            .into_envelope();
    }
    if is_refused {
        return said;
    }
    let value = body.get("data").and_then(|data| data.get(&plan.field));
    match value.map(Json::from_value) {
        Some(Ok(value)) => done(&value, envelope.get("http")),
        Some(Err(_)) | None => {
            let message = format!("The answer has no value of {}.", plan.field);
            ToolFailure::new("upstream_invalid_response", message).into_envelope()
        }
    }
}
