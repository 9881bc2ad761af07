//! Converts paths to `file:` URIs and back. Only paths of this machine have one.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A text that is no path of this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It is neither a URI nor an absolute path.
    #[error("invalid URI: `{0}` is neither a file: URI nor an absolute path")]
    Relative(String),
    /// It is a URI with another scheme.
    #[error("unsupported path URI scheme `{0}`")]
    Scheme(String),
    /// It is a file of another host.
    #[error("`{0}` names another host")]
    Host(String),
}

/// The path of a URI, or an absolute path itself.
pub fn path_of(text: &str) -> Result<PathBuf, BadPath> {
    if text.starts_with('/') {
        return Ok(text.into());
    }
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(BadPath::Relative(text.into()));
    };
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(BadPath::Scheme(scheme.into()));
    }
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let path = with_host.strip_prefix("localhost").unwrap_or(with_host);
            if !path.starts_with('/') {
                return Err(BadPath::Host(text.into()));
            }
            path
        }
        None => rest,
    };
    if !path.starts_with('/') {
        return Err(BadPath::Relative(text.into()));
    }
    let path = path.split(['?', '#']).next().unwrap_or(path);
    Ok(PathBuf::from(OsString::from_vec(decoded(path.as_bytes()))))
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *byte == b'%') {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            None => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    bytes
}

/// The URI of an absolute path.
pub fn uri_of(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"/-_.~!$&'()*+,;=:@".contains(byte);
        if is_plain {
            uri.push(char::from(*byte));
        } else {
            write!(uri, "%{byte:02X}").expect("a text takes everything");
        }
    }
    uri
}
