//! Converts a client's start request into a process specification.

use super::cage;
use processes::{PipeInput, ProcessSpec, ProcessStreams, PtySize};
use protocols::exec_server::{ExecParams, SandboxConfines, path_of, read_sandbox};

/// The prefix of environment variables that are meant for this server and are never passed to its processes.
const OWN_VARIABLES: &str = "AIRLOCK_";

/// Builds the specification, confined by the imposed and the requested sandbox; returns an error if that is
/// impossible.
pub(super) fn spec(
    params: &ExecParams,
    imposed: Option<&SandboxConfines>,
) -> Result<ProcessSpec, String> {
    if params.argv.is_empty() {
        return Err("argv must not be empty".into());
    }
    let asked = read_sandbox(params.sandbox.as_ref())?;
    let is_given = |given: &Option<serde_json::Value>| given.as_ref().is_some_and(|v| !v.is_null());
    if params.enforce_managed_network
        || is_given(&params.managed_network)
        || is_given(&params.network_proxy)
    {
        return Err("this exec-server has no proxy to restrict a process to".into());
    }
    let cwd = path_of(&params.cwd).map_err(|bad| bad.to_string())?;
    // These variables include the server's own secrets.
    let is_own = |name: &str| name.starts_with(OWN_VARIABLES);
    let own = std::env::vars_os()
        .filter(|(name, _)| !name.to_str().is_some_and(is_own))
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env = protocols::exec_server::environment(params.env_policy.as_ref(), own, &params.env);
    let temporary = env.get("TMPDIR").map(String::as_str);
    let cage = cage::kept_to(imposed, asked.as_ref(), &cwd, temporary)?;
    let size = params
        .size
        .map_or_else(PtySize::default, |size| PtySize { rows: size.rows, columns: size.cols });
    let streams = match (params.tty, params.pipe_stdin) {
        (true, _) => ProcessStreams::Terminal(size),
        (false, true) => ProcessStreams::Pipes(PipeInput::Pipe),
        (false, false) => ProcessStreams::Pipes(PipeInput::Null),
    };
    Ok(ProcessSpec {
        argv: params.argv.iter().map(Into::into).collect(),
        arg0: params.arg0.as_ref().map(Into::into),
        cwd,
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        streams,
        cage,
    })
}
