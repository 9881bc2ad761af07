//! The forms in which a secret can leak, in every common encoding.

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use std::path::{Path, PathBuf};

/// Texts that no output contains by chance, in any encoding.
pub(crate) const CANARIES: [&str; 10] = [
    "canary-Bearer/9fKq+Lm2",
    "canary-Password/7Hd+Rw4",
    "canary-Header/3Jx+Pz8uR",
    "canary-Query/5Ny+Vb6aQz",
    "canary-Cookie/1Tg+Sc0xW",
    "canary-Environment/8Uv+Ke3",
    "canary-Command/2Wa+Of7",
    "canary-Handoff/6Yi+Mb5",
    "canary-ClientSecret/4Xk+Wd9",
    "canary-KnownSecret/7Rt+Qe1",
];

/// Shorter traces occur by chance.
const TRACE_CHARS_MIN: usize = 12;

/// The texts that reveal a secret: plain, in URLs and forms, in hex, and inside base64 of either alphabet in each of
/// its three alignments.
pub(crate) fn traces(secret: &str) -> Vec<String> {
    let each = |one: fn(u8) -> String| secret.bytes().map(one).collect::<String>();
    let mut traces = vec![
        secret.to_owned(),
        form(secret),
        form(secret).to_lowercase(),
        each(|byte| format!("%{byte:02X}")),
        each(|byte| format!("%{byte:02x}")),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("{byte:02X}")),
        serde_json::Value::from(secret).to_string().trim_matches('"').replace('/', "\\/"),
    ];
    for n in 0..3 {
        let text = format!("{}{secret}", "x".repeat(n));
        for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
            // The surrounding text changes both ends.
            traces.push(encoded[8..encoded.len() - 8].to_owned());
        }
    }
    assert!(traces.iter().all(|trace| trace.len() >= TRACE_CHARS_MIN), "{secret} is too short");
    traces
}

/// A text in the encoding of forms.
pub(crate) fn form(text: &str) -> String {
    text.replace('/', "%2F").replace('+', "%2B")
}

/// Asserts that these bytes contain no trace of any secret.
#[track_caller]
pub(crate) fn unseen(bytes: &[u8], secrets: &[impl AsRef<str>], what: &str) {
    let needles: Vec<_> = secrets.iter().flat_map(|secret| traces(secret.as_ref())).collect();
    if let Some(found) = AhoCorasick::new(&needles).unwrap().find(bytes) {
        let around = &bytes[found.start().saturating_sub(60)..found.end()];
        let needle = &needles[found.pattern().as_usize()];
        panic!("{what} says {needle}: {}", String::from_utf8_lossy(around));
    }
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

/// Asserts that no file below a folder contains a trace of any secret. Returns the number of files.
#[track_caller]
pub(crate) fn unseen_below(folder: &Path, secrets: &[impl AsRef<str>]) -> usize {
    let files = files(folder);
    for file in &files {
        // Sockets and files that were just removed cannot be read.
        let bytes = std::fs::read(file).unwrap_or_default();
        unseen(&bytes, secrets, &file.display().to_string());
    }
    files.len()
}
