//! The official clients and suites, which are written for node: installed once per checkout, below target.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FILES: [(&str, &str); 8] = [
    ("package.json", include_str!("package.json")),
    ("link.mjs", include_str!("link.mjs")),
    ("cases.mjs", include_str!("cases.mjs")),
    ("structure.mjs", include_str!("structure.mjs")),
    ("questions.mjs", include_str!("questions.mjs")),
    ("source.mjs", include_str!("source.mjs")),
    ("codex.mjs", include_str!("codex.mjs")),
    ("tokens.mjs", include_str!("tokens.mjs")),
];

/// A folder with everything installed; `None` if npm is not available.
pub(crate) fn installed() -> Option<PathBuf> {
    if command("npm").arg("--version").stdout(Stdio::null()).status().is_err() {
        #[expect(clippy::print_stderr, reason = "a skipped check must not look like a passed one")]
        {
            eprintln!(
                "SKIPPED, NOT PASSED: the official MCP clients need node and npm, and there is none"
            );
        }
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-node");
    fs::create_dir_all(&folder).unwrap();
    // Tests run concurrently, and other checkouts may share the folder.
    let lock = File::create(folder.join("install.lock")).unwrap();
    lock.lock().unwrap();
    for (name, text) in FILES {
        if fs::read_to_string(folder.join(name)).ok().as_deref() != Some(text) {
            fs::write(folder.join(name), text).unwrap();
        }
    }
    let done = folder.join("installed.json");
    if fs::read_to_string(&done).ok().as_deref() != Some(FILES[0].1) {
        let installing = command("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"])
            .current_dir(&folder)
            .status();
        assert!(installing.unwrap().success(), "npm install failed");
        fs::write(&done, FILES[0].1).unwrap();
    }
    Some(folder)
}

/// Codex as published, in a separate folder: it is large, and one test needs it.
const CODEX: &str = "@openai/codex@0.169.0";

/// Codex's launcher; `None` if it cannot be installed.
pub(crate) fn codex() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-codex");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("install.lock")).unwrap();
    lock.lock().unwrap();
    let done = folder.join("installed");
    if fs::read_to_string(&done).ok().as_deref() != Some(CODEX) {
        let installing = command("npm")
            .args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"])
            .args(["--prefix", ".", CODEX])
            .current_dir(&folder)
            .status();
        if !installing.is_ok_and(|status| status.success()) {
            #[expect(
                clippy::print_stderr,
                reason = "a skipped check must not look like a passed one"
            )]
            {
                eprintln!("SKIPPED, NOT PASSED: npm could not install {CODEX}");
            }
            return None;
        }
        fs::write(&done, CODEX).unwrap();
    }
    Some(folder.join("node_modules/@openai/codex/bin/codex.js"))
}

/// A node that is recent enough for all of them.
pub(crate) fn node(folder: &Path) -> Command {
    command(folder.join("node_modules/node/bin/node"))
}

#[expect(clippy::disallowed_methods, reason = "the test owns and awaits this child")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}
