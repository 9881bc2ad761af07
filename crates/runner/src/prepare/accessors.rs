//! `accessor x = 1` in a class: a private field, and a getter and a setter for it.

use super::edit::TextEdit;
use oxc_ast::ast::{AccessorProperty, PropertyKey};
use oxc_span::{GetSpan as _, Span};

const KEYWORD: &str = "accessor";

/// The edits that turn the `idx`th accessor of the program into JavaScript. Fails for a name that is only
/// known at run time.
pub(super) fn lowered(
    source: &[u8],
    it: &AccessorProperty<'_>,
    idx: usize,
) -> Option<Vec<TextEdit>> {
    let key = it.key.span();
    let is_plain = matches!(
        it.key,
        PropertyKey::StaticIdentifier(_)
            | PropertyKey::PrivateIdentifier(_)
            | PropertyKey::StringLiteral(_)
            | PropertyKey::NumericLiteral(_)
    );
    if it.computed || !is_plain {
        return None;
    }
    let start = it.decorators.last().map_or(it.span.start, |decorator| decorator.span.end);
    let head = &source[start as usize..key.start as usize];
    let keyword = head.windows(KEYWORD.len()).rposition(|word| word == KEYWORD.as_bytes())?;
    let field = unused_name(source, idx);
    let name = std::str::from_utf8(&source[key.start as usize..key.end as usize]).ok()?;
    let word = if it.r#static { "static " } else { "" };
    let head = Span::new(start + keyword as u32, key.end);
    let methods = format!(
        ";{word}get {name}(){{return this.#{field}}}{word}set {name}(value){{this.#{field}=value}}"
    );
    Some(vec![
        TextEdit::replace(source, head, format!("#{field}")),
        TextEdit::insert(it.span.end, methods),
    ])
}

/// The name of a field that the program does not have.
fn unused_name(source: &[u8], idx: usize) -> String {
    let mut name = format!("accessor{idx}");
    while source.windows(name.len() + 1).any(|at| at[0] == b'#' && &at[1..] == name.as_bytes()) {
        name.push('_');
    }
    name
}
