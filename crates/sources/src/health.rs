//! The health of a connection: its values exist, and its source accepts them.

use crate::{SourceError, SourceRegistry};
use credentials::ConnectionProof;
use lifecycle::{CallOutcome, Json, ToolPath};
use serde_json::Value;
use std::time::Duration;
use tools::{
    CancelSignal, IntegrationSlug, PersonHandle, ProgressHandle, SourceCheck, SourceHealth,
    ToolCredential, ToolRequest,
};
use url::Url;

/// How long a source may take to accept or reject a credential.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

impl SourceRegistry {
    /// Checks a connection without asking a person.
    pub async fn health(
        &self,
        slug: &IntegrationSlug,
        owner: &str,
        name: &str,
    ) -> Result<SourceHealth, SourceError> {
        let proof = self.proof(slug, owner, name).await?;
        let credential = match proof.available().await {
            Ok(credential) => credential,
            Err(trouble) => return Ok(SourceHealth::unhealthy(trouble.code, trouble.message)),
        };
        let checking = async {
            match &proof.connection.health {
                Some(tool) => self.called(&format!("{}.{tool}", proof.key.display_name())).await,
                None => self.checked(&proof, &credential).await,
            }
        };
        let found = tokio::time::timeout(CHECK_TIME_MAX, checking).await;
        Ok(found.unwrap_or_else(|_| {
            SourceHealth::unhealthy("timeout", "The source did not answer in time.")
        }))
    }

    /// Calls the configured health tool. It cannot ask a person.
    async fn called(&self, tool: &str) -> SourceHealth {
        let Ok(tool) = ToolPath::parse(tool) else {
            return SourceHealth::unhealthy(
                "tool_not_found",
                "The tool that checks it has no path.",
            );
        };
        let Ok(args) = Json::parse("{}".to_owned()) else {
            return SourceHealth::unhealthy("internal", "");
        };
        let request = ToolRequest {
            execution: lifecycle::ExecutionId::from_uuid(uuid::Uuid::nil()),
            call: lifecycle::CallId(1),
            attempt: 1,
            tool,
            args,
            caller: lifecycle::BuiltinCaller::HealthCheck.into(),
            cancelled: CancelSignal::never(),
            person: PersonHandle::absent(),
            progress: ProgressHandle::unwatched(),
        };
        match self.0.setup.engine.catalogue().call(request).await {
            CallOutcome::Returned { value } => {
                let told: Value = value
                    .and_then(|value| serde_json::from_str(value.as_text()).ok())
                    .unwrap_or_default();
                match told["ok"] == true {
                    true => SourceHealth::healthy("The source takes it."),
                    false => SourceHealth::unhealthy(
                        told["error"]["code"].as_str().unwrap_or("failed"),
                        told["error"]["message"].as_str().unwrap_or_default(),
                    ),
                }
            }
            CallOutcome::Failed(failure) => SourceHealth::unhealthy("failed", failure.message),
            CallOutcome::Unknown => SourceHealth::unhealthy("failed", "The call has no outcome."),
        }
    }

    /// Checks it as its kind of source prescribes.
    async fn checked(&self, proof: &ConnectionProof, credential: &ToolCredential) -> SourceHealth {
        let slug = &proof.key.slug;
        let (server, config) = match self.0.states.lock().await.get(slug) {
            Some(entry) => (entry.server.clone(), entry.spec.clone()),
            None => {
                return SourceHealth::unhealthy("integration_not_found", "The source is gone.");
            }
        };
        let snapshot = self.0.setup.engine.catalogue().snapshot();
        let integration = snapshot.integration(slug.as_str());
        let kind = integration.as_ref().map(|integration| integration.kind());
        let url = integration.and_then(|integration| Url::parse(&integration.target()).ok());
        let check = SourceCheck {
            config: &config,
            credential,
            context: self.context(),
            server: server.as_deref(),
            target: url.map(|url| (url.clone(), proof.reach_of_target(&url))),
            time_max: CHECK_TIME_MAX,
        };
        match kind.and_then(|name| self.0.setup.kinds.by_name(name)) {
            Some(kind) => kind.check_connection(check).await,
            None => check.request_target().await,
        }
    }
}
