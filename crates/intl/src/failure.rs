//! Errors of requests: a JavaScript error type, with a message.

/// The error that the guest's code throws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntlError {
    /// A `RangeError`.
    Range(String),
    /// A `TypeError`.
    Type(String),
}

/// Most characters of a guest's text that a message repeats.
const QUOTED_CHARS_MAX: usize = 60;

impl IntlError {
    pub(crate) fn range(message: impl Into<String>) -> Self {
        Self::Range(message.into())
    }

    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::Type(message.into())
    }

    /// An option that the specification does not allow.
    pub(crate) fn option(value: &str, name: &str) -> Self {
        Self::range(format!(
            "Value {} out of range for Intl options property {name}",
            quoted(value)
        ))
    }

    /// A feature of ECMA-402 that this host does not have.
    pub(crate) fn missing(what: impl std::fmt::Display) -> Self {
        Self::range(format!("this host's Intl does not provide {what}"))
    }

    /// Data that ought to be compiled in.
    pub(crate) fn no_data(error: impl std::fmt::Display) -> Self {
        Self::range(format!("Intl has no data for this: {error}"))
    }
}

/// A guest's text for a message, shortened.
pub(crate) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}
