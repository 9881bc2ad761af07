//! Wire formats of the host other than its messages: manifests, and results for callers that forward them.

use super::execution::ExecuteResult;
use super::provider::ResolvedProvider;
use lifecycle::Json;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The manifests of the providers for a runner: names and texts, nothing that could be called.
pub(super) fn manifests(providers: &[Arc<ResolvedProvider>]) -> Json {
    let manifests: Vec<_> = providers
        .iter()
        .map(|provider| ProviderManifest {
            name: provider.namespace(),
            types: provider.types_on_wire(),
            tools: ManifestTools(provider),
        })
        .collect();
    Json::from_value(&manifests).expect("texts can always be written to memory")
}

impl ExecuteResult {
    /// The object that execbox's own executors return.
    pub fn to_json(&self) -> Json {
        let (result, error) = match &self.outcome {
            Ok(value) => (value.as_ref(), None),
            Err(failure) => {
                (None, Some(Error { code: failure.code.as_str(), message: &failure.message }))
            }
        };
        let Self { logs, emitted, duration_ms, .. } = self;
        let shown =
            ShownMember { ok: self.ok(), result, error, logs, emitted, duration_ms: *duration_ms };
        Json::from_value(&shown).expect("texts and numbers can always be written to memory")
    }
}

#[derive(Serialize)]
struct ProviderManifest<'a> {
    name: &'a str,
    types: &'a str,
    tools: ManifestTools<'a>,
}

/// In definition order.
struct ManifestTools<'a>(&'a ResolvedProvider);

impl Serialize for ManifestTools<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (safe_name, original_name, description) in self.0.tools() {
            map.serialize_entry(
                safe_name,
                &ManifestTool { safe_name, original_name, description },
            )?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ManifestTool<'a> {
    safe_name: &'a str,
    original_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownMember<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
    logs: &'a [String],
    #[serde(skip_serializing_if = "<[Json]>::is_empty")]
    emitted: &'a [Json],
    duration_ms: u64,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
}
