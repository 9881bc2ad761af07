//! One call of a tool, as one request and its answer.

use super::{ApiClient, ApiRequest, ApiResponse, trouble};
use crate::envelope::ToolFailure;
use crate::readable::{self, ReadableValue};
use crate::{ToolCredential, ToolRequest};
use lifecycle::Json;
use serde_json::Value;

/// Builds the request for these arguments, or reports what is wrong with them.
pub(crate) fn outgoing(
    client: &ApiClient,
    args: &Json,
    make: impl FnOnce(&Value) -> Result<ApiRequest, String>,
) -> Result<ApiRequest, String> {
    let outgoing = match readable::read(args.as_text()) {
        Some(ReadableValue { value, is_tamed: false }) => make(&value)?,
        Some(ReadableValue { is_tamed: true, .. }) | None => {
            return Err("they are nested too deeply, or hold text that is no Unicode".into());
        }
    };
    let (n_bytes, max) = (outgoing.body.len(), client.limits().request_bytes_max);
    if n_bytes > max {
        return Err(format!("its body would have {n_bytes} bytes, {max} at most"));
    }
    Ok(outgoing)
}

/// Sends a request and converts the outcome.
pub(crate) async fn exchange(
    client: &ApiClient,
    credential: &ToolCredential,
    call: &ToolRequest,
    outgoing: Result<ApiRequest, String>,
    answer: impl FnOnce(ApiResponse) -> Json,
) -> Json {
    match outgoing {
        Err(why) => unfit(&why),
        Ok(outgoing) => match client.send(outgoing, credential, &call.cancelled).await {
            Ok(incoming) => answer(incoming),
            Err(error) => trouble(&error),
        },
    }
}

/// Arguments that match their schema and do not form a valid request.
fn unfit(why: &str) -> Json {
    let message = format!("The arguments do not make a request: {why}.");
    ToolFailure::new("invalid_tool_arguments", message).into_envelope()
}
