//! An imported description: its tools, and how they are called.

use super::call::{RequestContext, flattened, missing_in_path, request};
use super::import::{LeftOut, Options};
use super::plan::RequestPlan;
use super::server::{self, ServerChoiceArgument, ServerTemplate};
use crate::http::{self, ApiRequest};
use crate::{AuthMethod, Integration, ToolCredential, ToolRequest, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{Failure, FailureCode, Json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// An imported description.
pub struct OpenApi {
    pub(super) about: ApiInfo,
    pub(super) specs: Vec<ToolSpec>,
    pub(super) plans: HashMap<String, Arc<RequestPlan>>,
    pub(super) servers: Arc<[ServerTemplate]>,
    pub(super) methods: Vec<AuthMethod>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) options: Options,
}

/// General information about the API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApiInfo {
    /// Its title.
    pub title: String,
    /// Its version.
    pub version: String,
    /// Its description.
    pub description: String,
}

impl OpenApi {
    /// General information about the API.
    pub const fn about(&self) -> &ApiInfo {
        &self.about
    }

    /// Operations that did not become tools, with the reasons.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The server URLs of the description, with their variables.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.url.as_str())
    }
}

impl Integration for OpenApi {
    fn kind(&self) -> &'static str {
        "openapi"
    }

    fn tools(&self) -> Vec<ToolSpec> {
        self.specs.clone()
    }

    fn target(&self) -> String {
        let source = self.options.source.as_ref();
        match &self.options.base {
            Some(base) => base.to_string(),
            None => {
                match server::base(&self.servers, &ServerChoiceArgument::default(), source, false) {
                    Ok(url) => url.to_string(),
                    Err(_) => self.servers().next().unwrap_or_default().to_owned(),
                }
            }
        }
    }

    fn auth_methods(&self) -> Vec<AuthMethod> {
        self.methods.clone()
    }

    fn arranged(&self, tool: &str, args: &Json) -> Option<Json> {
        let mut value = serde_json::from_str(args.as_text()).ok()?;
        flattened(self.plans.get(tool)?, &mut value).then(|| Json::from_value(&value).ok())?
    }

    fn missing_argument(&self, tool: &str, args: &Json) -> Option<String> {
        let args = serde_json::from_str(args.as_text()).ok()?;
        missing_in_path(self.plans.get(tool)?, &args)
    }

    fn objection(&self, tool: &str, credential: &ToolCredential, args: &Json) -> Option<String> {
        outgoing(self.plans.get(tool)?, &self.options, credential, args).err()
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

impl fmt::Debug for OpenApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenApi({}, {} tools)", self.about.title, self.specs.len())
    }
}

async fn call(
    plan: Arc<RequestPlan>,
    options: Options,
    credential: ToolCredential,
    call: ToolRequest,
) -> Json {
    let outgoing = outgoing(&plan, &options, &credential, &call.args);
    let answer = |incoming| http::shape_response(incoming, &credential);
    http::exchange(&options.client, &credential, &call, outgoing, answer).await
}

fn outgoing(
    plan: &RequestPlan,
    options: &Options,
    credential: &ToolCredential,
    args: &Json,
) -> Result<ApiRequest, String> {
    let (source, base) = (options.source.as_ref(), options.base.as_ref());
    let setting = RequestContext { source, base, credential };
    http::outgoing(&options.client, args, |args| request(plan, args, &setting))
}
