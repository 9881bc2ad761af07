//! Removes Markdown fences, into which models put their programs.

use lifecycle::ValueConvention;
use std::borrow::Cow;
use std::ops::Range;

const FENCE: &str = "```";

/// The program without its fence. Text before it becomes empty lines, so that line numbers stay the same.
pub(super) fn unfenced(source: &str, convention: ValueConvention) -> Cow<'_, str> {
    let block = match convention {
        ValueConvention::LastExpression => whole_block(source),
        ValueConvention::ExplicitReturn => first_block(source),
    };
    match block {
        Some(block) => {
            let lines_before = source[..block.start].matches('\n').count();
            Cow::Owned(format!("{}{}", "\n".repeat(lines_before), &source[block]))
        }
        None => Cow::Borrowed(source),
    }
}

/// The content of a fence that contains all of the text except for blanks.
fn whole_block(source: &str) -> Option<Range<usize>> {
    let block = first_block(source)?;
    let opening = source.find(FENCE)?;
    let outside_before = source[..opening].trim();
    let outside_after = source[block.end..].trim_start().strip_prefix(FENCE)?.trim();
    (outside_before.is_empty() && outside_after.is_empty()).then_some(block)
}

/// The content of the first fence: from the line after the opening one to the next line that begins with a
/// fence, or to a fence that ends the text: some models close it on the last line of their program.
fn first_block(source: &str) -> Option<Range<usize>> {
    let opening = fence_line(source, 0)?;
    let start = opening + source[opening..].find('\n')? + 1;
    let end = fence_line(source, start).or_else(|| {
        let text = source[start..].trim_end().strip_suffix(FENCE)?;
        Some(start + text.len())
    })?;
    Some(start..end)
}

/// Where the next line begins whose first visible characters are a fence.
fn fence_line(source: &str, from: usize) -> Option<usize> {
    let mut at = from;
    for line in source[from..].split_inclusive('\n') {
        if line.trim_start().starts_with(FENCE) {
            return Some(at);
        }
        at += line.len();
    }
    None
}
