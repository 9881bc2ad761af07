//! `codex` from npm.

use crate::npm;
use anyhow::Result;
use std::path::PathBuf;

/// The version that is measured.
const VERSION: &str = "0.166.0";

/// The executable, without the script that starts it.
const BINARY: &str =
    "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";

/// The name in tables.
pub(super) fn name() -> String {
    format!("codex {VERSION}")
}

/// The path of the executable; installs the package if it is missing.
pub(super) fn installed() -> Result<PathBuf> {
    npm::installed("codex-cli", &format!("@openai/codex@{VERSION}"), BINARY)
}
