//! Parses one operation: its arguments, and how they become a request.

use super::document::OpenApiDocument;
use super::raw::{self, RawMembers};
use super::schema::{SchemaConverter, shortened};
use super::server::{self, ServerTemplate};
use super::style::{ParameterStyle, StyleManner};
use crate::http::{is_json, is_text, media_type};
use hyper::Method;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of parameters of one operation.
const PARAMETERS_MAX: usize = 500;

/// Maximum number of media types of one body.
const CONTENTS_MAX: usize = 32;

/// Maximum number of media types of one body whose schemas are read.
const BODY_SCHEMAS_MAX: usize = 4;

/// Headers that belong to the connection, not to the program. The first three are reserved by OpenAPI.
const OWN_HEADERS: [&str; 11] = [
    "accept",
    "content-type",
    "authorization",
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "proxy-authorization",
];

/// How an operation becomes a request.
#[derive(Debug)]
pub(crate) struct RequestPlan {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) parameters: Vec<PlanParameter>,
    pub(crate) body: Option<BodyPlan>,
    pub(crate) servers: Arc<[ServerTemplate]>,
    /// The `Accept` header.
    pub(crate) accept: Option<String>,
}

/// One parameter.
#[derive(Debug)]
pub(crate) struct PlanParameter {
    pub(crate) name: String,
    pub(crate) carrier: ParameterCarrier,
    pub(crate) manner: StyleManner,
    pub(crate) is_required: bool,
}

/// The part of the request that a parameter is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterCarrier {
    Path,
    Query,
    Header,
    Cookie,
}

impl ParameterCarrier {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "path" => Self::Path,
            "query" => Self::Query,
            "header" => Self::Header,
            "cookie" => Self::Cookie,
            _ => return None,
        })
    }

    /// Members under which a program may put the values of these parameters.
    pub(crate) const fn containers(self) -> &'static [&'static str] {
        match self {
            Self::Path => &["path", "pathParams", "params"],
            Self::Query => &["query", "queryParams", "params"],
            Self::Header => &["headers", "header"],
            Self::Cookie => &["cookies", "cookie"],
        }
    }
}

/// The media types of a body.
#[derive(Debug)]
pub(crate) struct BodyPlan {
    /// At least one, the default first.
    pub(crate) contents: Vec<MediaContent>,
}

/// One media type of a body.
#[derive(Debug)]
pub(crate) struct MediaContent {
    /// The media type with its parameters, as in the description.
    pub(crate) label: String,
    /// How fields of a form are encoded, if the description specifies it.
    pub(crate) fields: Vec<(String, FormFieldPlan)>,
    /// Fields that are files.
    pub(crate) files: Vec<String>,
}

/// How one field of a form is encoded.
#[derive(Debug, Clone)]
pub(crate) struct FormFieldPlan {
    pub(crate) content_type: Option<String>,
    pub(crate) manner: Option<StyleManner>,
}

/// A parameter that a credential fills: no program is asked for it.
pub(crate) type ReservedParameter = (ParameterCarrier, String);

/// Reads operations of one description.
pub(crate) struct OperationReader<'d, 'a> {
    pub(crate) document: &'d OpenApiDocument<'a>,
    pub(crate) schemas: SchemaConverter<'d, 'a>,
    pub(crate) servers: Arc<[ServerTemplate]>,
    pub(crate) reserved: Vec<ReservedParameter>,
    /// Whether a configured base URL overrides the servers of the description.
    pub(crate) has_base: bool,
}

/// An operation with the schemas of its arguments and result, as text.
pub(crate) struct ReadOperation {
    pub(crate) plan: RequestPlan,
    pub(crate) input: String,
    pub(crate) output: Option<String>,
}

impl<'a> OperationReader<'_, 'a> {
    /// Parses one operation, or reports why it cannot be called.
    pub(crate) fn read(
        &mut self,
        method: Method,
        path: &str,
        item: &RawMembers<'a>,
        operation: &RawMembers<'a>,
    ) -> Result<ReadOperation, String> {
        let mut input = InputSchemaBuilder::default();
        let parameters = self.parameters(path, item, operation, &mut input)?;
        let servers = self.servers_of(item, operation);
        if let Some(schema) = server::input(&servers) {
            input.add_unless_taken("server", schema);
        }
        let body = self.body(operation, &mut input)?;
        let (output, accept) = self.output(operation);
        let plan = RequestPlan { method, path: path.to_owned(), parameters, body, servers, accept };
        Ok(ReadOperation {
            plan,
            input: input.schema().to_string(),
            output: output.map(|s| s.to_string()),
        })
    }

    fn servers_of(
        &self,
        item: &RawMembers<'a>,
        operation: &RawMembers<'a>,
    ) -> Arc<[ServerTemplate]> {
        if self.has_base {
            return Arc::clone(&self.servers);
        }
        let own = server::servers(operation).or_else(|| server::servers(item));
        own.map_or_else(|| Arc::clone(&self.servers), Into::into)
    }

    fn parameters(
        &mut self,
        path: &str,
        item: &RawMembers<'a>,
        operation: &RawMembers<'a>,
        input: &mut InputSchemaBuilder,
    ) -> Result<Vec<PlanParameter>, String> {
        let mut found: Vec<(PlanParameter, RawMembers<'a>)> = vec![];
        let lists =
            item.list_member("parameters").into_iter().chain(operation.list_member("parameters"));
        for raw in lists.take(PARAMETERS_MAX) {
            let members =
                self.document.resolve(raw).map_err(|why| format!("a parameter: {why}"))?;
            let Some(parameter) = parameter(&members) else { continue };
            // Parameters of the operation override those of its path.
            let same = |(known, _): &(PlanParameter, _)| {
                known.name == parameter.name && known.carrier == parameter.carrier
            };
            found.retain(|known| !same(known));
            if !self.is_ours(&parameter) {
                found.push((parameter, members));
            }
        }
        for name in holes(path) {
            let is_known =
                |(p, _): &(PlanParameter, _)| p.carrier == ParameterCarrier::Path && p.name == name;
            if !found.iter().any(is_known) {
                found.push((undeclared(name), RawMembers::default()));
            }
        }
        for (parameter, members) in &found {
            let schema = self.parameter_schema(members);
            input.add(&parameter.name, schema, parameter.is_required);
        }
        Ok(found.into_iter().map(|(parameter, _)| parameter).collect())
    }

    /// Whether the connection fills the parameter, so that no program needs to.
    fn is_ours(&self, parameter: &PlanParameter) -> bool {
        let is_own = parameter.carrier == ParameterCarrier::Header
            && OWN_HEADERS.iter().any(|name| parameter.name.eq_ignore_ascii_case(name));
        let is_reserved = self.reserved.iter().any(|(carrier, name)| {
            *carrier == parameter.carrier && name.eq_ignore_ascii_case(&parameter.name)
        });
        is_own || is_reserved
    }

    fn parameter_schema(&mut self, members: &RawMembers<'a>) -> Value {
        let content = members.members("content").unwrap_or_default();
        let content = content.iter().next().and_then(|(_, raw)| RawMembers::from_raw(raw));
        let raw = members.raw("schema").or_else(|| content.as_ref()?.raw("schema"));
        let mut schema = match raw {
            Some(raw) => self.schemas.convert(raw),
            None => json!({ "type": "string" }),
        };
        if let (Some(text), Value::Object(schema)) =
            (members.text_member("description"), &mut schema)
        {
            schema.insert("description".into(), shortened(&text).into());
        }
        schema
    }

    fn body(
        &mut self,
        operation: &RawMembers<'a>,
        input: &mut InputSchemaBuilder,
    ) -> Result<Option<BodyPlan>, String> {
        let Some(raw) = operation.raw("requestBody") else { return Ok(None) };
        let members = self.document.resolve(raw).map_err(|why| format!("its body: {why}"))?;
        let contents = members.members("content").unwrap_or_default();
        let mut contents: Vec<(&str, RawMembers<'a>)> = contents
            .iter()
            .take(CONTENTS_MAX)
            .map(|(label, raw)| (label, RawMembers::from_raw(raw).unwrap_or_default()))
            .collect();
        if contents.is_empty() {
            return Ok(None);
        }
        // Programs work with JSON; otherwise the author's first choice.
        contents.sort_by_key(|(label, _)| !is_json(&media_type(label)));
        let is_required = members.flag("required").unwrap_or(false);
        self.body_input(&contents, is_required, input);
        let contents =
            contents.iter().map(|(label, members)| self.content(label, members)).collect();
        Ok(Some(BodyPlan { contents }))
    }

    fn body_input(
        &mut self,
        contents: &[(&str, RawMembers<'a>)],
        is_required: bool,
        input: &mut InputSchemaBuilder,
    ) {
        let is_bytes = |label: &str| media_type(label) == "application/octet-stream";
        let takes_bytes = contents.iter().any(|(label, _)| is_bytes(label));
        let valued = contents.iter().filter(|(label, _)| !is_bytes(label)).take(BODY_SCHEMAS_MAX);
        let mut schemas: Vec<_> =
            valued.map(|(label, members)| self.content_schema(label, members)).collect();
        if takes_bytes {
            schemas.push(self.schemas.file());
        }
        if let Some(schema) = either(schemas) {
            input.add("body", schema, is_required && !takes_bytes);
        }
        if takes_bytes {
            let schema = json!({ "type": "string", "contentEncoding": "base64" });
            input.add("bodyBase64", schema, false);
        }
        if takes_bytes && is_required {
            input.either = vec!["body", "bodyBase64"];
        }
        if contents.len() > 1 {
            let labels: Vec<_> = contents.iter().map(|(label, _)| *label).collect();
            input.add("contentType", json!({ "enum": labels, "default": labels[0] }), false);
        }
    }

    fn content_schema(&mut self, label: &str, members: &RawMembers<'a>) -> Value {
        let schema = members.raw("schema").map(|raw| self.schemas.convert(raw));
        let takes_text = |schema: &Value| schema["anyOf"][0] == json!({ "type": "string" });
        match (schema, is_text_only(label)) {
            (None, _) => json!(true),
            (Some(schema), false) => schema,
            (Some(schema), true) if takes_text(&schema) => schema,
            // XML and other text formats: the program passes the text.
            (Some(schema), true) => json!({ "anyOf": [{ "type": "string" }, schema] }),
        }
    }

    /// Fields of a form that are files.
    fn files(&self, members: &RawMembers<'a>) -> Vec<String> {
        let resolve = |raw| self.document.resolve(raw).ok();
        let Some(schema) = members.raw("schema").and_then(resolve) else { return vec![] };
        let is_file = |raw: &'a RawValue| {
            let field = resolve(raw)?;
            let field = field.raw("items").and_then(resolve).unwrap_or(field);
            Some(field.text_member("format")? == "binary").filter(|is| *is)
        };
        let fields = schema.members("properties").unwrap_or_default();
        let files = fields.iter().filter(|(_, raw)| is_file(raw).is_some());
        files.map(|(name, _)| name.to_owned()).collect()
    }

    fn content(&self, label: &str, members: &RawMembers<'a>) -> MediaContent {
        let encodings = members.members("encoding").unwrap_or_default();
        let fields =
            encodings.iter().filter_map(|(name, raw)| Some((name.to_owned(), field(raw)?)));
        let files = self.files(members);
        MediaContent { label: label.to_owned(), fields: fields.collect(), files }
    }

    /// The schema of a successful answer, and the media type to request.
    fn output(&mut self, operation: &RawMembers<'a>) -> (Option<Value>, Option<String>) {
        let responses = operation.members("responses").unwrap_or_default();
        let mut good: Vec<_> = responses.iter().filter(|(code, _)| code.starts_with('2')).collect();
        good.sort_by_key(|(code, _)| (*code).to_owned());
        good.extend(responses.raw("default").map(|raw| ("default", raw)));
        for (_, raw) in good {
            let Ok(members) = self.document.resolve(raw) else { continue };
            let contents = members.members("content").unwrap_or_default();
            let json = contents.iter().find(|(label, _)| is_json(&media_type(label)));
            let Some((label, raw)) = json.or_else(|| contents.iter().next()) else { continue };
            let accept = (!label.contains(['\r', '\n', '*'])).then(|| label.to_owned());
            let kind = media_type(label);
            if !is_json(&kind) {
                let is_known = accept.is_some() && !is_text(&kind);
                return (is_known.then(|| self.schemas.file()), accept);
            }
            let schema = RawMembers::from_raw(raw).and_then(|media| media.raw("schema"));
            return (schema.map(|raw| self.schemas.convert(raw)), accept);
        }
        (None, None)
    }
}

/// The argument object under construction.
#[derive(Default)]
struct InputSchemaBuilder {
    properties: Map<String, Value>,
    required: Vec<String>,
    either: Vec<&'static str>,
}

impl InputSchemaBuilder {
    fn add(&mut self, name: &str, schema: Value, is_required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if is_required && !self.required.iter().any(|known| known == name) {
            self.required.push(name.to_owned());
        }
    }

    fn add_unless_taken(&mut self, name: &str, schema: Value) {
        self.properties.entry(name).or_insert(schema);
    }

    fn schema(self) -> Value {
        let mut schema = json!({
            "type": "object", "properties": self.properties, "additionalProperties": false,
        });
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        if !self.either.is_empty() {
            let either: Vec<_> =
                self.either.iter().map(|name| json!({ "required": [name] })).collect();
            schema["anyOf"] = json!(either);
        }
        schema
    }
}

fn parameter(members: &RawMembers<'_>) -> Option<PlanParameter> {
    let carrier = ParameterCarrier::parse(&members.text_member("in")?)?;
    let name = members.text_member("name").filter(|name| !name.is_empty())?;
    let usual = match carrier {
        ParameterCarrier::Path | ParameterCarrier::Header => ParameterStyle::Simple,
        ParameterCarrier::Query | ParameterCarrier::Cookie => ParameterStyle::Form,
    };
    let style = members
        .text_member("style")
        .and_then(|style| ParameterStyle::parse(&style))
        .unwrap_or(usual);
    let manner = StyleManner {
        style,
        explode: members.flag("explode").unwrap_or(style == ParameterStyle::Form),
        allow_reserved: members.flag("allowReserved").unwrap_or(false),
        as_json: members.raw("schema").is_none() && members.raw("content").is_some(),
    };
    let is_required = carrier == ParameterCarrier::Path || members.flag("required") == Some(true);
    Some(PlanParameter { name, carrier, manner, is_required })
}

/// A path parameter without a declaration.
fn undeclared(name: &str) -> PlanParameter {
    let style = ParameterStyle::Simple;
    let manner = StyleManner { style, explode: false, allow_reserved: false, as_json: false };
    PlanParameter {
        name: name.to_owned(),
        carrier: ParameterCarrier::Path,
        manner,
        is_required: true,
    }
}

/// Names in braces.
pub(crate) fn holes(path: &str) -> Vec<&str> {
    let mut names = vec![];
    let mut rest = path;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        names.push(name.trim_start_matches('+'));
        rest = after;
    }
    names
}

fn field(raw: &RawValue) -> Option<FormFieldPlan> {
    let members = RawMembers::from_raw(raw)?;
    let says_how = ["style", "explode", "allowReserved"].iter().any(|n| members.raw(n).is_some());
    let style = members
        .text_member("style")
        .and_then(|style| ParameterStyle::parse(&style))
        .unwrap_or(ParameterStyle::Form);
    let manner = StyleManner {
        style,
        explode: members.flag("explode").unwrap_or(style == ParameterStyle::Form),
        allow_reserved: members.flag("allowReserved").unwrap_or(false),
        as_json: false,
    };
    let content_type = members.raw("contentType").and_then(raw::value);
    let content_type = content_type.and_then(|value| Some(value.as_str()?.to_owned()));
    Some(FormFieldPlan { content_type, manner: says_how.then_some(manner) })
}

/// Whether a body is text in a format that we do not write.
fn is_text_only(label: &str) -> bool {
    let kind = media_type(label);
    let is_form = kind == "application/x-www-form-urlencoded" || kind.starts_with("multipart/");
    !is_json(&kind) && !is_form
}

/// A schema that accepts what any of them accepts.
fn either(mut schemas: Vec<Value>) -> Option<Value> {
    let mut seen = HashSet::new();
    schemas.retain(|schema| seen.insert(schema.to_string()));
    match schemas.len() {
        0 => None,
        1 => schemas.pop(),
        _ => Some(json!({ "anyOf": schemas })),
    }
}
