//! Defects of schemas.

use serde_json::Value;
use std::fmt;

/// Why a schema is invalid: where, as a JSON pointer into it, and what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SchemaDefect {
    /// JSON pointer into the schema; empty for the whole.
    pub path: String,
    /// What is wrong there: "must be a string".
    pub what: String,
}

impl fmt::Display for SchemaDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what } = self;
        match path.as_str() {
            "" => write!(f, "the schema {what}"),
            path => write!(f, "{path} of the schema {what}"),
        }
    }
}

/// The path of the value `wanted` in `document`. Searched only when there is a defect to report,
/// so that valid schemas do not pay for it.
pub(crate) fn pointer_to(document: &Value, wanted: &Value) -> Option<String> {
    let mut open = vec![(document, String::new())];
    while let Some((value, path)) = open.pop() {
        if std::ptr::eq(value, wanted) {
            return Some(path);
        }
        if let Value::Object(members) = value {
            let inner = members.iter().map(|(name, value)| (value, joined(&path, name)));
            open.extend(inner);
        }
        if let Value::Array(items) = value {
            let inner = items.iter().enumerate();
            open.extend(inner.map(|(idx, value)| (value, format!("{path}/{idx}"))));
        }
    }
    None
}

/// `path` with one more member name, escaped as JSON pointers require.
pub(crate) fn joined(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}
