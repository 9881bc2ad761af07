//! Programs as a kind of source.

use super::CommandSource;
use crate::{
    OpenedSource, SourceConfig, SourceContext, SourceKind, SourceOpenError, ToolCredential,
};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Programs, each of which is a tool.
#[derive(Debug)]
pub struct CommandKind;

impl SourceKind for CommandKind {
    fn name(&self) -> &'static str {
        "command"
    }

    fn claims(&self, config: &SourceConfig) -> bool {
        !config.tools.is_empty()
    }

    fn is_self_contained(&self, _config: &SourceConfig) -> bool {
        true
    }

    fn open<'a>(
        &'a self,
        config: &'a SourceConfig,
        _credential: &'a ToolCredential,
        context: SourceContext<'a>,
    ) -> BoxFuture<'a, Result<OpenedSource, SourceOpenError>> {
        ready(opened(config, context)).boxed()
    }
}

fn opened(
    config: &SourceConfig,
    context: SourceContext<'_>,
) -> Result<OpenedSource, SourceOpenError> {
    let mut tools = BTreeMap::new();
    for (name, command) in &config.tools {
        let tool = command.tool().map_err(|why| format!("tool {name}: {why}"))?;
        tools.insert(name.clone(), tool);
    }
    let source = CommandSource::new(tools, config.program(), context.minding);
    Ok(OpenedSource::new(Arc::new(source)))
}
