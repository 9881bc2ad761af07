//! What a kind of source does: it recognises an address, opens a configuration, is added over HTTP and by the command
//! line, checks a connection, and describes itself. Each kind is one folder; [`SourceKinds`] is their registry.

use crate::http::{ApiClient, ApiRequest, HttpLimits, RequestReach};
use crate::{
    CancelSignal, ChildSupervision, Integration, IntegrationSlug, SourceConfig, ToolCredential,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::Method;
use protocols::executor::{BadBody, ObjectMembers};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// One kind of source.
pub trait SourceKind: fmt::Debug + Send + Sync {
    /// Its name in configuration, records, stored descriptions and answers. It never changes.
    fn name(&self) -> &'static str;

    /// Whether a configuration that does not name its kind is of this kind, by its other members.
    fn claims(&self, _config: &SourceConfig) -> bool {
        false
    }

    /// Whether the configuration contains all that opening needs, so that neither network nor files are read.
    fn is_self_contained(&self, _config: &SourceConfig) -> bool {
        false
    }

    /// Finds out whether an address is of this kind. None for a kind that is never recognised by an address. The error
    /// continues "neither" or "nor", such as `OpenAPI (the document is empty)`.
    fn detect<'a>(
        &'a self,
        _address: &'a Url,
        _http: &'a ApiClient,
    ) -> Option<BoxFuture<'a, Result<DetectedSource, String>>> {
        None
    }

    /// Opens a source: reads its description and makes its tools.
    fn open<'a>(
        &'a self,
        config: &'a SourceConfig,
        credential: &'a ToolCredential,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, SourceOpenError>>;

    /// Opens a source by its stored description, without network and files.
    fn open_stored<'a>(
        &'a self,
        _config: &'a SourceConfig,
        _text: Arc<str>,
        _context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, String>> {
        let why = format!("sources of the kind {} store no description", self.name());
        futures_util::future::ready(Err(why)).boxed()
    }

    /// The configuration that the body of an HTTP request adds, where the kind has a route of its own. `POST /api/sources`
    /// adds sources of every kind.
    fn config_from_http(&self, _members: &ObjectMembers<'_>) -> Result<SourceConfig, BadBody> {
        Err(BadBody::new(format!("A source of the kind {} is added by /api/sources.", self.name())))
    }

    /// The configuration that `airlock source add` adds, or what is wrong with the arguments.
    fn config_from_arguments(&self, arguments: &SourceArguments) -> Result<SourceConfig, String> {
        match arguments.base_url {
            Some(_) => Err(
                "--base-url is for an OpenAPI description; an MCP server is called at its own URL"
                    .into(),
            ),
            None => Ok(SourceConfig {
                kind: Some(self.name().to_owned()),
                url: arguments.url.clone(),
                command: arguments.program.clone(),
                ..SourceConfig::default()
            }),
        }
    }

    /// Whether `airlock source add -- PROGRAM` adds a source of this kind.
    fn takes_program(&self) -> bool {
        false
    }

    /// The configuration of a source of an `executor.jsonc`, or why there is none.
    fn config_from_executor(&self, _source: &Value) -> Result<SourceConfig, String> {
        Err(format!("there is no kind {} here", self.name()))
    }

    /// Checks whether the source accepts the credential of a connection. Unless a kind knows better, its target is
    /// requested.
    fn check_connection<'a>(&'a self, check: SourceCheck<'a>) -> BoxFuture<'a, SourceHealth> {
        check.request_target().boxed()
    }

    /// Whether its tools may ask the person behind a call.
    fn may_elicit(&self) -> bool {
        false
    }
}

/// What opening a source needs besides its configuration.
#[derive(Debug, Clone, Copy)]
pub struct SourceContext<'a> {
    /// How child processes are supervised.
    pub minding: ChildSupervision,
    /// The HTTP client.
    pub http: &'a ApiClient,
}

/// A source that was opened.
pub struct OpenedSource {
    /// Its tools.
    pub integration: Arc<dyn Integration>,
    /// The server behind it, where its list of tools may change.
    pub server: Option<Arc<dyn SourceServer>>,
    /// The title in its description.
    pub title: Option<String>,
    /// The description text in its description document.
    pub description: Option<String>,
    /// What the next start needs to know about it, where that came over the network or from a file.
    pub described: Option<StoredDescription>,
}

impl OpenedSource {
    /// A source with only its tools.
    pub fn new(integration: Arc<dyn Integration>) -> Self {
        Self { integration, server: None, title: None, description: None, described: None }
    }
}

impl fmt::Debug for OpenedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedSource").field("title", &self.title).finish_non_exhaustive()
    }
}

/// The server behind a source whose list of tools may change while it is connected.
pub trait SourceServer: Send + Sync {
    /// Lists its tools again.
    fn reread<'a>(
        &'a self,
        credential: &'a ToolCredential,
    ) -> BoxFuture<'a, Result<OpenedSource, String>>;

    /// Resolves when the server has reported a change of its list.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// Closes every connection and ends every program.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why a source was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SourceOpenError {
    /// The reason, for a person.
    pub message: String,
    /// Whether a credential would help.
    pub wants_credential: bool,
}

impl From<String> for SourceOpenError {
    fn from(message: String) -> Self {
        Self { message, wants_credential: false }
    }
}

impl From<&str> for SourceOpenError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// A description as its source gave it, with known secrets removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDescription {
    /// The kind of the source.
    pub kind: &'static str,
    /// The document, the answer to an introspection, or the list of tools.
    pub text: Arc<str>,
}

/// The result of examining an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedSource {
    /// The kind.
    pub kind: &'static str,
    /// The address.
    pub url: String,
    /// Its title.
    pub title: String,
    /// A name for it.
    pub slug: Option<IntegrationSlug>,
}

/// The arguments of `airlock source add`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceArguments {
    /// The address.
    pub url: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// A program and its arguments.
    pub program: Vec<String>,
}

/// One check of a connection.
pub struct SourceCheck<'a> {
    /// The configuration of its source.
    pub config: &'a SourceConfig,
    /// Its credential.
    pub credential: &'a ToolCredential,
    /// The HTTP client, and the supervision of child processes.
    pub context: SourceContext<'a>,
    /// The server behind the source.
    pub server: Option<&'a dyn SourceServer>,
    /// Where calls of the source go, if that is an address, and how far a request to it may lead.
    pub target: Option<(Url, RequestReach)>,
    /// How long the check may take.
    pub time_max: Duration,
}

impl fmt::Debug for SourceCheck<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceCheck").field("target", &self.target).finish_non_exhaustive()
    }
}

impl SourceCheck<'_> {
    /// Requests the target of the source and checks whether it rejects the credential.
    pub async fn request_target(self) -> SourceHealth {
        let Some((url, reach)) = self.target else {
            return SourceHealth::healthy("Its values are there.");
        };
        let limits = HttpLimits {
            total: self.time_max,
            response_bytes_max: 1 << 20,
            ..self.context.http.limits()
        };
        let request = ApiRequest { reach, ..ApiRequest::new(Method::GET, url) };
        let http = self.context.http.limited(limits);
        match http.send(request, self.credential, &CancelSignal::never()).await {
            Ok(answer) if matches!(answer.status.as_u16(), 401 | 403) => SourceHealth::unhealthy(
                "connection_rejected",
                format!("The API answered {}.", answer.status),
            ),
            Ok(_) => SourceHealth::healthy(
                "The API can be reached and does not refuse it; name a tool in `health` to be sure.",
            ),
            Err(error) => SourceHealth::unhealthy(error.code(), error.to_string()),
        }
    }
}

/// The health of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceHealth {
    /// Whether its source accepts it, as far as can be seen.
    pub is_healthy: bool,
    /// A code for programs; `ok` if it is healthy.
    pub code: String,
    /// A sentence for a person.
    pub message: String,
}

impl SourceHealth {
    /// A connection that its source does not accept, or that could not be checked.
    pub fn unhealthy(code: &str, message: impl Into<String>) -> Self {
        Self { is_healthy: false, code: code.into(), message: message.into() }
    }

    /// A connection that its source accepts.
    pub fn healthy(message: impl Into<String>) -> Self {
        Self { is_healthy: true, code: "ok".into(), message: message.into() }
    }
}

/// `api.example.com` is `example`.
pub fn slug_of_host(url: &Url) -> Option<IntegrationSlug> {
    let host = url.host_str()?;
    let names: Vec<_> = host.split('.').collect();
    let name = match names.as_slice() {
        [.., name, _] => name,
        [name] => name,
        [] => return None,
    };
    IntegrationSlug::resembling(name)
        .or_else(|| IntegrationSlug::resembling(&format!("host {host}")))
}
