//! The rules that a door sets when it starts an execution.

use crate::{Json, ToolPath};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a door adds to a start. It is recorded with the start, so that it applies after a restart too.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CallRules {
    /// The tools that the caller runs, of those that the catalogue does not have.
    #[serde(default)]
    pub caller_runs: CallerRuns,
    /// Aliases of tools: the program's name, and the tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<ToolPath, ToolPath>,
    /// The dialect of the codes of failed calls in the program.
    #[serde(default, skip_serializing_if = "CodeDialect::is_usual")]
    pub codes: CodeDialect,
    /// Data of the door, opaque to the engine.
    #[serde(
        default,
        deserialize_with = "crate::json::present",
        skip_serializing_if = "Option::is_none"
    )]
    pub note: Option<Json>,
}

/// The dialect of the codes of failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeDialect {
    /// The journal's codes: those of [`crate::FailureCode`].
    #[default]
    Journal,
    /// The codes in which enclave's clients read how a session ended.
    Enclave,
}

impl CodeDialect {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    const fn is_usual(&self) -> bool {
        matches!(self, Self::Journal)
    }
}

/// The tools that the caller runs, of those that the catalogue does not have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallerRuns {
    /// None.
    #[default]
    Nothing,
    /// The tools in this list.
    These(Vec<ToolPath>),
    /// All tools.
    Anything,
}

impl CallRules {
    /// The tool that is meant by `said`, and the alias that `said` is, if it is one.
    pub fn resolve(&self, said: ToolPath) -> (ToolPath, Option<ToolPath>) {
        match self.aliases.get(&said) {
            Some(tool) => (tool.clone(), Some(said)),
            None => (said, None),
        }
    }

    /// Whether the caller runs `tool` if the catalogue does not have it.
    pub fn caller_runs(&self, tool: &ToolPath) -> bool {
        match &self.caller_runs {
            CallerRuns::Nothing => false,
            CallerRuns::These(tools) => tools.contains(tool),
            CallerRuns::Anything => true,
        }
    }

    /// Whether there is nothing to store.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
