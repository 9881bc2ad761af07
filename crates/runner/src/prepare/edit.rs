//! Edits of a text at given positions: the rest stays in place, and line numbers stay the user's.

use oxc_span::Span;

/// A text that replaces another; either may be empty.
#[derive(Debug)]
pub(super) struct TextEdit {
    span: Span,
    text: String,
}

impl TextEdit {
    /// Inserts `text` before the byte at `at`.
    pub(super) fn insert(at: u32, text: impl Into<String>) -> Self {
        Self { span: Span::empty(at), text: text.into() }
    }

    /// Replaces `span` of `source` by `text`, and preserves its line breaks.
    pub(super) fn replace(source: &[u8], span: Span, text: impl Into<String>) -> Self {
        let covered = &source[span.start as usize..span.end as usize];
        let n_lines = covered.iter().filter(|byte| **byte == b'\n').count();
        Self { span, text: text.into() + &"\n".repeat(n_lines) }
    }
}

/// `text` with all edits, which do not overlap. Edits at one position are applied in the order in which
/// they were made.
pub(super) fn carry_out(text: &[u8], mut edits: Vec<TextEdit>) -> Vec<u8> {
    edits.sort_by_key(|edit| edit.span.start);
    let n_bytes_more: usize = edits.iter().map(|edit| edit.text.len()).sum();
    let (mut result, mut done) = (Vec::with_capacity(text.len() + n_bytes_more), 0);
    for TextEdit { span, text: new } in &edits {
        result.extend_from_slice(&text[done..span.start as usize]);
        result.extend_from_slice(new.as_bytes());
        done = span.end as usize;
    }
    result.extend_from_slice(&text[done..]);
    result
}

/// The first byte from `at` on that is neither blank nor comment.
pub(crate) fn skip_trivia(source: &[u8], mut at: usize) -> usize {
    loop {
        match source.get(at..) {
            Some([b'/', b'/', ..]) => {
                let line = source[at..].iter().position(|byte| *byte == b'\n');
                at += line.unwrap_or(source.len() - at);
            }
            Some([b'/', b'*', rest @ ..]) => {
                at += rest.windows(2).position(|w| w == b"*/").map_or(rest.len(), |n| n + 2) + 2;
            }
            Some([byte, ..]) if byte.is_ascii_whitespace() => at += 1,
            Some(_) | None => return at,
        }
    }
}
