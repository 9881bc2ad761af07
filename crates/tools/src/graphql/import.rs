//! Sends an introspection query and imports the answer.

use super::integration::{GraphqlIntegration, QueryPlan};
use super::select;
use super::types::{GraphqlMember, GraphqlTypes};
use crate::http::{ApiClient, ApiRequest, HttpError};
use crate::openapi::cut;
use crate::{CancelSignal, SchemaDefinitions, SharedSchema, ToolCredential, ToolSpec};
use hyper::Method;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// Longest answer to an introspection; the largest public ones have a quarter.
pub const TEXT_BYTES_MAX: usize = 24 << 20;

/// Maximum number of fields of query and mutation together.
const FIELDS_MAX: usize = 20_000;

/// Longest description of a tool.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// The introspection query. It nests `ofType` deeply enough for real APIs.
pub const INTROSPECTION: &str = "query IntrospectionQuery { __schema { queryType { name } mutationType { name } \
    types { kind name description fields(includeDeprecated: true) { name description args { ...Input } \
    type { ...Ref } isDeprecated } inputFields { ...Input } enumValues(includeDeprecated: true) { name } } } } \
    fragment Input on __InputValue { name description defaultValue type { ...Ref } } \
    fragment Ref on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { \
    kind name ofType { kind name ofType { kind name } } } } } } }";

/// Settings that the introspection does not contain.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the API.
    pub endpoint: Url,
    /// What calls are made with.
    pub client: ApiClient,
}

/// Why an API was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphqlError {
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The API answered with an error.
    #[error("{host} answered {status} to an introspection{said}")]
    Refused {
        /// The host that answered.
        host: String,
        /// Its HTTP status.
        status: u16,
        /// Its message.
        said: String,
    },
    /// The answer is not an introspection.
    #[error("the answer is no GraphQL introspection: {0}")]
    NotGraphql(String),
    /// The answer exceeds the size limit.
    #[error("the introspection has {n_bytes} bytes, {TEXT_BYTES_MAX} at most")]
    TooLarge {
        /// Its length.
        n_bytes: usize,
    },
    /// The API has too many fields.
    #[error("the API has more than {FIELDS_MAX} queries and mutations")]
    TooMany,
    /// The API has no fields to call.
    #[error("the API has neither queries nor mutations")]
    Empty,
}

/// Asks an API to describe itself. The answer is the input of [`import`] and can be stored.
pub async fn introspect(
    options: &Options,
    credential: &ToolCredential,
    cancelled: &CancelSignal,
) -> Result<String, GraphqlError> {
    let outgoing = post(&options.endpoint, &json!({ "query": INTROSPECTION }));
    let limits =
        crate::http::HttpLimits { response_bytes_max: TEXT_BYTES_MAX, ..options.client.limits() };
    let incoming = options.client.limited(limits).send(outgoing, credential, cancelled).await?;
    let text = String::from_utf8_lossy(&incoming.body).into_owned();
    if incoming.status.is_success() {
        return Ok(text);
    }
    let body: Option<Value> = serde_json::from_str(&text).ok();
    let said = body.as_ref().and_then(first_error).map(|said| format!(": {said}"));
    Err(GraphqlError::Refused {
        host: options.endpoint.host_str().unwrap_or_default().to_owned(),
        status: incoming.status.as_u16(),
        said: said.unwrap_or_default(),
    })
}

/// A POST request with a JSON body.
pub(super) fn post(endpoint: &Url, body: &Value) -> ApiRequest {
    let mut outgoing = ApiRequest::new(Method::POST, endpoint.clone());
    let accept = "application/graphql-response+json, application/json;q=0.9";
    outgoing.headers.insert(ACCEPT, HeaderValue::from_static(accept));
    outgoing.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    outgoing.body = body.to_string().into();
    outgoing
}

/// The first message of an answer's `errors`.
pub(super) fn first_error(body: &Value) -> Option<String> {
    let message = body.get("errors")?.get(0)?.get("message")?.as_str()?;
    Some(cut(message, 500))
}

/// Imports the answer to an introspection.
pub fn import(text: &str, options: Options) -> Result<GraphqlIntegration, GraphqlError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(GraphqlError::TooLarge { n_bytes: text.len() });
    }
    let no = |why: String| GraphqlError::NotGraphql(why);
    let answer: Value = serde_json::from_str(text).map_err(|error| no(error.to_string()))?;
    let data = answer.get("data").filter(|data| data.is_object()).unwrap_or(&answer);
    let Some(schema) = data.get("__schema") else {
        return Err(no(first_error(&answer).unwrap_or_else(|| "it has no __schema".into())));
    };
    let list = schema.get("types").and_then(Value::as_array);
    let types = GraphqlTypes::from_types(list.ok_or_else(|| no("it has no types".into()))?);
    let definitions = Arc::new(SchemaDefinitions::of_texts(types.definitions()));
    let mut specs = vec![];
    let mut plans = HashMap::new();
    for (root, kind) in [("queryType", "query"), ("mutationType", "mutation")] {
        let name = schema.get(root).and_then(|root| root.get("name")).and_then(Value::as_str);
        for field in types.fields(name.unwrap_or_default()) {
            let plan = plan(&types, kind, field);
            let tool = format!("{kind}.{}", field.name);
            specs.push(spec(&types, &tool, field, &plan, &definitions));
            plans.insert(tool, Arc::new(plan));
        }
    }
    match specs.len() {
        0 => Err(GraphqlError::Empty),
        n if n > FIELDS_MAX => Err(GraphqlError::TooMany),
        _ => Ok(GraphqlIntegration { specs, plans, options }),
    }
}

fn plan(types: &GraphqlTypes, kind: &'static str, field: &GraphqlMember) -> QueryPlan {
    let result = field.shape.innermost();
    let arguments = field.arguments.iter().map(|a| (a.name.clone(), a.shape.written()));
    QueryPlan {
        kind,
        field: field.name.clone(),
        arguments: arguments.collect(),
        selection: (!types.is_leaf(result)).then(|| select::default(types, result)),
    }
}

fn spec(
    types: &GraphqlTypes,
    name: &str,
    field: &GraphqlMember,
    plan: &QueryPlan,
    definitions: &Arc<SchemaDefinitions>,
) -> ToolSpec {
    let mut input = types.object(&field.arguments);
    let takes_select = field.arguments.iter().all(|argument| argument.name != "select");
    if let (Some(selection), true) = (&plan.selection, takes_select) {
        let about = format!(
            "Fields to select in {}; by default {}",
            field.shape.written(),
            cut(selection, 200)
        );
        input["properties"]["select"] = json!({ "type": "string", "description": about });
    }
    let is_query = plan.kind == "query";
    let description = if field.description.is_empty() {
        format!("{} {}: {}", plan.kind, field.name, field.shape.written())
    } else {
        cut(&field.description, DESCRIPTION_CHARS_MAX)
    };
    ToolSpec {
        description,
        input: Some(SharedSchema::sharing(&input, definitions)),
        read_only: is_query,
        asks: !is_query,
        about: Some(format!("{} {}", plan.kind, field.name)),
        ..ToolSpec::new(name)
    }
}
