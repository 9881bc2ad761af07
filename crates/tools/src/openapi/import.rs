//! Imports a description: reads the text once and stores only what it offers.

use super::document::OpenApiDocument;
use super::integration::{ApiInfo, OpenApi};
use super::naming::{NamedOperation, names};
use super::plan::{OperationReader, ReadOperation};
use super::raw::RawMembers;
use super::schema::{SchemaConverter, cut};
use super::{security, server, yaml};
use crate::http::ApiClient;
use crate::{SchemaDefinitions, SharedSchema, ToolSpec};
use hyper::Method;
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// Longest description: the largest public one, of a whole cloud of office software, has 47 million bytes.
pub const TEXT_BYTES_MAX: usize = 48_000_000;

/// Maximum number of operations; the largest public description has a quarter.
const OPERATIONS_MAX: usize = 50_000;

/// Longest description of a tool.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// Maximum number of omitted operations that are listed individually.
const LEFT_OUT_MAX: usize = 100;

/// Settings that the description does not contain.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The address of the description: relative servers are resolved against it.
    pub source: Option<Url>,
    /// The base URL for requests; overrides the servers of the description.
    pub base: Option<Url>,
    /// The HTTP client for calls.
    pub client: ApiClient,
}

/// Why a description was not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text exceeds the size limit.
    #[error("the description has {n_bytes} bytes, {TEXT_BYTES_MAX} at most")]
    TooLarge {
        /// Its length.
        n_bytes: usize,
    },
    /// The text is neither JSON nor YAML.
    #[error("the description cannot be read: {0}")]
    Syntax(String),
    /// The document is not OpenAPI 3.0 or 3.1.
    #[error("{0}")]
    NotOpenApi(String),
    /// The limit on following references was exceeded.
    #[error("the description's references are too many and too deep")]
    TooDeep,
    /// The description has too many operations.
    #[error("the description has more than {OPERATIONS_MAX} operations")]
    TooMany,
    /// The description has no operations.
    #[error("the description has no operation that can be called{0}")]
    Empty(String),
}

/// An operation that did not become a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The operation: `GET /pets`.
    pub operation: String,
    /// The reason.
    pub why: String,
}

/// Imports a description in JSON or YAML.
pub fn import(text: &str, options: Options) -> Result<OpenApi, ImportError> {
    with_json(text, |text| read(&OpenApiDocument::new(text)?, options))
}

/// Reads a description as JSON, whether it is JSON or YAML.
pub(crate) fn with_json<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, ImportError>,
) -> Result<T, ImportError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(ImportError::TooLarge { n_bytes: text.len() });
    }
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        return read(text);
    }
    read(&yaml::to_json(text, TEXT_BYTES_MAX * 2).map_err(ImportError::Syntax)?)
}

fn read(document: &OpenApiDocument<'_>, options: Options) -> Result<OpenApi, ImportError> {
    check_version(document)?;
    let found = operations(document)?;
    let mut reader = OperationReader {
        document,
        schemas: SchemaConverter::new(document),
        servers: server::default_servers(document).into(),
        reserved: security::reserved(document),
        has_base: options.base.is_some(),
    };
    let mut drafts = vec![];
    let mut left_out = vec![];
    let wanted = found.iter().flat_map(|operation| operation.members.list_member("security"));
    let methods = security::methods(document, wanted, options.source.as_ref());
    for operation in found {
        let method = operation.method.clone();
        match reader.read(method, &operation.named.path, &operation.item, &operation.members) {
            Ok(read) => drafts.push((operation, read)),
            Err(why) => {
                let operation = format!("{} {}", operation.method, operation.named.path);
                left_out.push(LeftOut { operation, why });
            }
        }
        if document.is_exhausted() {
            return Err(ImportError::TooDeep);
        }
    }
    if drafts.is_empty() {
        let first = left_out.first().map(|l| format!(": {}: {}", l.operation, l.why));
        return Err(ImportError::Empty(first.unwrap_or_default()));
    }
    let servers = Arc::clone(&reader.servers);
    let definitions = reader.schemas.finish();
    let named: Vec<_> = drafts.iter().map(|(operation, _)| operation.named.clone()).collect();
    let mut specs = vec![];
    let mut plans = HashMap::new();
    for ((operation, read), name) in drafts.into_iter().zip(names(&named)) {
        specs.push(spec(&name, &operation, &read, &definitions));
        plans.insert(name, Arc::new(read.plan));
    }
    left_out.truncate(LEFT_OUT_MAX);
    let about = about(document);
    Ok(OpenApi { about, specs, plans, servers, methods, left_out, options })
}

/// An operation found in the text.
pub(crate) struct DescribedOperation<'a> {
    method: Method,
    pub(crate) named: NamedOperation,
    item: RawMembers<'a>,
    pub(crate) members: RawMembers<'a>,
}

fn check_version(document: &OpenApiDocument<'_>) -> Result<(), ImportError> {
    let no = |why: &str| Err(ImportError::NotOpenApi(why.to_owned()));
    if document.top.raw("swagger").is_some() {
        return no("the description is Swagger 2.0; convert it to OpenAPI 3 first");
    }
    match document.top.text_member("openapi") {
        Some(version) if version.starts_with("3.") => Ok(()),
        Some(version) => no(&format!("the description is OpenAPI {}, not 3", cut(&version, 20))),
        None => no("the text has no \"openapi\" version: it is not an OpenAPI description"),
    }
}

pub(crate) fn operations<'a>(
    document: &OpenApiDocument<'a>,
) -> Result<Vec<DescribedOperation<'a>>, ImportError> {
    const METHODS: [(&str, Method); 8] = [
        ("get", Method::GET),
        ("put", Method::PUT),
        ("post", Method::POST),
        ("delete", Method::DELETE),
        ("options", Method::OPTIONS),
        ("head", Method::HEAD),
        ("patch", Method::PATCH),
        ("trace", Method::TRACE),
    ];
    let mut found = vec![];
    for (path, raw) in document.top.members("paths").unwrap_or_default().iter() {
        let Ok(item) = document.resolve(raw) else { continue };
        for (name, method) in &METHODS {
            let Some(members) = item.members(name) else { continue };
            let named = named_operation(name, path, &members);
            found.push(DescribedOperation {
                method: method.clone(),
                named,
                item: item.clone(),
                members,
            });
        }
        if found.len() > OPERATIONS_MAX {
            return Err(ImportError::TooMany);
        }
    }
    Ok(found)
}

fn named_operation(method: &str, path: &str, members: &RawMembers<'_>) -> NamedOperation {
    let tags = members.list_member("tags");
    let tag = tags.first().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    NamedOperation {
        method: method.to_owned(),
        path: path.to_owned(),
        id: filled(members.text_member("operationId")),
        tag: filled(tag),
        chosen: filled(members.text_member("x-executor-toolPath")),
    }
}

fn spec(
    name: &str,
    operation: &DescribedOperation<'_>,
    read: &ReadOperation,
    definitions: &Arc<SchemaDefinitions>,
) -> ToolSpec {
    let is_free = matches!(operation.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let about = format!("{} {}", operation.method, operation.named.path);
    ToolSpec {
        description: description(&operation.members, &about),
        input: Some(SharedSchema::of_text(&read.input, definitions)),
        output: read.output.as_ref().map(|text| SharedSchema::of_text(text, definitions)),
        read_only: is_free,
        asks: !is_free,
        about: Some(about),
        ..ToolSpec::new(name)
    }
}

/// The author's description of an operation; without one, the request.
fn description(members: &RawMembers<'_>, about: &str) -> String {
    let line = |name| members.text_member(name).map(|text| cut(&text, DESCRIPTION_CHARS_MAX));
    let (summary, text) =
        (line("summary").unwrap_or_default(), line("description").unwrap_or_default());
    let said = match (summary.is_empty(), text.is_empty()) {
        (true, true) => about.to_owned(),
        (false, true) => summary,
        (true, false) => text,
        (false, false) if text.starts_with(&summary) => text,
        (false, false) => format!("{}. {text}", summary.trim_end_matches('.')),
    };
    let deprecated = if members.flag("deprecated") == Some(true) { "Deprecated. " } else { "" };
    cut(&format!("{deprecated}{said}"), DESCRIPTION_CHARS_MAX)
}

pub(crate) fn about(document: &OpenApiDocument<'_>) -> ApiInfo {
    let info = document.top.members("info").unwrap_or_default();
    let line = |name| info.text_member(name).map(|text| cut(&text, DESCRIPTION_CHARS_MAX));
    ApiInfo {
        title: line("title").unwrap_or_default(),
        version: line("version").unwrap_or_default(),
        description: line("description").unwrap_or_default(),
    }
}
