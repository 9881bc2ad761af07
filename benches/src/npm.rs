//! Rivals from npm, installed below the target directory, where tests find them, too.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The path of `binary` of `package` in `folder` of the target directory; installs the package if it is missing.
#[expect(clippy::disallowed_methods, reason = "npm is awaited here")]
pub(crate) fn installed(folder: &str, package: &str, binary: &str) -> Result<PathBuf> {
    let beside = std::env::current_exe()?;
    let release = beside.parent().context("a binary lies in a directory")?;
    let folder = release.parent().context("below the target directory")?.join(folder);
    let binary = folder.join(binary);
    if binary.is_file() {
        return Ok(binary);
    }
    std::fs::create_dir_all(&folder)?;
    let installing = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(package)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("run npm")?;
    if !installing.success() || !binary.is_file() {
        bail!("npm could not install it ({installing})");
    }
    Ok(binary)
}
