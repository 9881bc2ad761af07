//! Whether a connection is good: its values are there, and its source takes them.

use crate::{SourceError, Sources, open};
use credentials::ConnectionProof;
use hyper::Method;
use lifecycle::{CallOutcome, Json, ToolPath};
use serde_json::Value;
use std::time::Duration;
use tools::http::{HttpLimits, Outgoing};
use tools::{CancelSignal, Credential, Person, Progress, Request, Slug};

/// How long a source may take to show whether it takes a credential.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

/// How a connection is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether its source takes it, as far as can be seen.
    pub is_healthy: bool,
    /// One word for programs; `ok` where it is healthy.
    pub code: String,
    /// A sentence for a person.
    pub message: String,
}

impl Health {
    fn ill(code: &str, message: impl Into<String>) -> Self {
        Self { is_healthy: false, code: code.into(), message: message.into() }
    }

    fn well(message: impl Into<String>) -> Self {
        Self { is_healthy: true, code: "ok".into(), message: message.into() }
    }
}

impl Sources {
    /// Looks whether a connection is good, and asks nobody.
    pub async fn health(
        &self,
        slug: &Slug,
        owner: &str,
        name: &str,
    ) -> Result<Health, SourceError> {
        let proof = self.proof(slug, owner, name).await?;
        let credential = match proof.available().await {
            Ok(credential) => credential,
            Err(trouble) => return Ok(Health::ill(trouble.code, trouble.message)),
        };
        let checking = async {
            match &proof.connection.health {
                Some(tool) => self.called(&format!("{}.{tool}", proof.key.shown())).await,
                None => self.reached(&proof, &credential).await,
            }
        };
        let checked = tokio::time::timeout(CHECK_TIME_MAX, checking).await;
        Ok(checked.unwrap_or_else(|_| Health::ill("timeout", "The source did not answer in time.")))
    }

    /// Calls the tool that shows it. Nobody is there who could be asked.
    async fn called(&self, tool: &str) -> Health {
        let Ok(tool) = ToolPath::parse(tool) else {
            return Health::ill("tool_not_found", "The tool that checks it has no path.");
        };
        let Ok(args) = Json::parse("{}".to_owned()) else { return Health::ill("internal", "") };
        let request = Request {
            execution: lifecycle::ExecutionId::from_uuid(uuid::Uuid::nil()),
            call: lifecycle::CallId(1),
            attempt: 1,
            tool,
            args,
            caller: lifecycle::BuiltinCaller::HealthCheck.into(),
            cancelled: CancelSignal::never(),
            person: Person::absent(),
            progress: Progress::unwatched(),
        };
        match self.0.setup.engine.catalogue().call(request).await {
            CallOutcome::Returned { value } => {
                let told: Value = value
                    .and_then(|value| serde_json::from_str(value.text()).ok())
                    .unwrap_or_default();
                match told["ok"] == true {
                    true => Health::well("The source takes it."),
                    false => Health::ill(
                        told["error"]["code"].as_str().unwrap_or("failed"),
                        told["error"]["message"].as_str().unwrap_or_default(),
                    ),
                }
            }
            CallOutcome::Failed(failure) => Health::ill("failed", failure.message),
            CallOutcome::Unknown => Health::ill("failed", "The call has no outcome."),
        }
    }

    /// Reads the source with it where reading shows something, and otherwise looks whether its address refuses it.
    async fn reached(&self, proof: &ConnectionProof, credential: &Credential) -> Health {
        let slug = &proof.key.slug;
        let (server, spec) = match self.0.states.lock().await.get(slug) {
            Some(entry) => (entry.server.clone(), entry.spec.clone()),
            None => return Health::ill("integration_not_found", "The source is gone."),
        };
        let target = self.0.setup.engine.catalogue().snapshot();
        let integration = target.integration(slug.as_str());
        let kind = integration.as_ref().map(|integration| integration.kind()).unwrap_or_default();
        if let Some(server) = server {
            return match server.import(credential).await {
                Ok(_) => Health::well("The server lists its tools."),
                Err(why) => {
                    Health::ill("connection_rejected", format!("The server lists no tools: {why}."))
                }
            };
        }
        if kind == "graphql" {
            return match open::open(&spec, credential, self.0.setup.minding, &self.0.setup.http)
                .await
            {
                Ok(_) => Health::well("The API describes itself."),
                Err(why) => Health::ill(
                    "connection_rejected",
                    format!("The API does not describe itself: {why}."),
                ),
            };
        }
        let url = integration.and_then(|integration| url::Url::parse(&integration.target()).ok());
        let Some(url) = url else { return Health::well("Its values are there.") };
        let limits = HttpLimits {
            total: CHECK_TIME_MAX,
            response_bytes_max: 1 << 20,
            ..self.0.setup.http.limits()
        };
        let request =
            Outgoing { reach: proof.reach_of_target(&url), ..Outgoing::new(Method::GET, url) };
        let sent = self
            .0
            .setup
            .http
            .limited(limits)
            .send(request, credential, &CancelSignal::never())
            .await;
        match sent {
            Ok(answer) if matches!(answer.status.as_u16(), 401 | 403) => {
                Health::ill("connection_rejected", format!("The API answered {}.", answer.status))
            }
            Ok(_) => Health::well(
                "The API can be reached and does not refuse it; name a tool in `health` to be sure.",
            ),
            Err(error) => Health::ill(error.code(), error.to_string()),
        }
    }
}
