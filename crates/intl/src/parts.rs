//! Formatted texts in pieces, as `formatToParts` shows them.

use serde::Serialize;
use std::fmt;
use writeable::{Part, PartsWrite, Writeable};

/// A piece of a formatted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct TextPart {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) value: String,
    /// Of relative times: the unit of a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unit: Option<&'static str>,
}

impl TextPart {
    pub(crate) fn new(kind: &'static str, value: impl Into<String>) -> Self {
        Self { kind, value: value.into(), unit: None }
    }

    pub(crate) fn literal(value: impl Into<String>) -> Self {
        Self::new("literal", value)
    }
}

/// Appends a piece; literals that meet become one.
pub(crate) fn push(parts: &mut Vec<TextPart>, part: TextPart) {
    if part.value.is_empty() {
        return;
    }
    match parts.last_mut() {
        Some(last) if last.kind == "literal" && part.kind == "literal" => {
            last.value.push_str(&part.value)
        }
        _ => parts.push(part),
    }
}

/// Appends a text as one piece of the given kind, and the spaces at both ends as literals.
pub(crate) fn push_spaced(parts: &mut Vec<TextPart>, kind: &'static str, text: &str) {
    let is_space = |it: char| it.is_whitespace();
    let inner = text.trim_matches(is_space);
    if inner.is_empty() {
        return push(parts, TextPart::literal(text));
    }
    let before = text.len() - text.trim_start_matches(is_space).len();
    push(parts, TextPart::literal(&text[..before]));
    push(parts, TextPart::new(kind, inner));
    push(parts, TextPart::literal(&text[before + inner.len()..]));
}

pub(crate) fn joined(parts: &[TextPart]) -> String {
    parts.iter().map(|part| part.value.as_str()).collect()
}

pub(crate) fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts in lists and objects have a JSON form")
}

/// The pieces that ICU4X names; what it does not name is of the kind `rest`.
pub(crate) fn collected(text: &impl Writeable, rest: &'static str) -> Vec<TextPart> {
    let mut collector = PartCollector { parts: vec![], kinds: vec![], rest };
    text.write_to_parts(&mut collector).expect("a list takes all texts");
    collector.parts
}

struct PartCollector {
    parts: Vec<TextPart>,
    kinds: Vec<&'static str>,
    rest: &'static str,
}

impl fmt::Write for PartCollector {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kind = self.kinds.last().copied().unwrap_or(self.rest);
        match self.parts.last_mut() {
            Some(last) if last.kind == kind && !matches!(kind, "element") => {
                last.value.push_str(text)
            }
            _ if text.is_empty() => {}
            _ => self.parts.push(TextPart::new(kind, text)),
        }
        Ok(())
    }
}

impl PartsWrite for PartCollector {
    type SubPartsWrite = Self;

    fn with_part(
        &mut self,
        part: Part,
        mut write: impl FnMut(&mut Self::SubPartsWrite) -> fmt::Result,
    ) -> fmt::Result {
        self.kinds.push(part.value);
        let result = write(self);
        self.kinds.pop();
        result
    }
}
