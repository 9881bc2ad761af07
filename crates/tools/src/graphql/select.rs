//! Which fields of a result are selected: a default of limited depth, or the program's own selection.

use super::types::GraphqlTypes;

/// Levels of objects that the default selection enters.
const DEPTH_MAX: usize = 2;

/// Fields of the default selection, all levels together.
const FIELDS_MAX: usize = 60;

/// Longest selection that a program may give.
const SELECT_BYTES_MAX: usize = 16 << 10;

/// Deepest nesting of it.
const NESTING_MAX: usize = 20;

/// Every scalar of a type and of its nested types, as far as they need no arguments and the depth allows.
pub(crate) fn default(types: &GraphqlTypes, name: &str) -> String {
    let mut n_fields = 0;
    let selection = level(types, name, 0, &mut n_fields);
    if selection.is_empty() { "__typename".to_owned() } else { selection }
}

fn level(types: &GraphqlTypes, name: &str, depth: usize, n_fields: &mut usize) -> String {
    let free =
        |member: &&super::types::GraphqlMember| !member.arguments.iter().any(|a| a.is_required());
    let fields: Vec<_> = types.fields(name).iter().filter(free).collect();
    let (leaves, objects): (Vec<_>, Vec<_>) =
        fields.into_iter().partition(|field| types.is_leaf(field.shape.innermost()));
    let mut parts = vec![];
    for leaf in leaves {
        if *n_fields < FIELDS_MAX {
            *n_fields += 1;
            parts.push(leaf.name.clone());
        }
    }
    if depth < DEPTH_MAX {
        for object in objects {
            let inner = level(types, object.shape.innermost(), depth + 1, n_fields);
            if !inner.is_empty() {
                parts.push(format!("{} {{ {inner} }}", object.name));
            }
        }
    }
    parts.join(" ")
}

/// A program's own selection, if it cannot break out of the braces around it.
pub(crate) fn own(select: &str) -> Result<String, String> {
    if select.len() > SELECT_BYTES_MAX {
        return Err(format!("select has more than {SELECT_BYTES_MAX} bytes"));
    }
    let select = inside(select.trim());
    let mut depth = 0_usize;
    let mut chars = select.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' if depth == 0 => {
                return Err("select closes what it did not open".into());
            }
            '}' | ')' | ']' => depth -= 1,
            '"' => skip_text(&mut chars)?,
            '#' => return Err("select has a comment".into()),
            '$' => return Err("select has a variable".into()),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Err(format!("select is nested deeper than {NESTING_MAX}"));
        }
    }
    match (depth, select.is_empty()) {
        (0, false) => Ok(select.to_owned()),
        (0, true) => Err("select is empty".into()),
        _ => Err("select does not close what it opened".into()),
    }
}

/// `a b` of `{ a b }`.
fn inside(select: &str) -> &str {
    let inner = select.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    inner.map_or(select, str::trim)
}

fn skip_text(chars: &mut impl Iterator<Item = char>) -> Result<(), String> {
    let mut is_escaped = false;
    for c in chars {
        match c {
            '\n' => break,
            '"' if !is_escaped => return Ok(()),
            _ => is_escaped = c == '\\' && !is_escaped,
        }
    }
    Err("select has a text that does not end".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_cannot_leave_its_braces() {
        assert_eq!(
            own("id name friends(first: 2) { name }").unwrap(),
            "id name friends(first: 2) { name }"
        );
        assert_eq!(own("{ id }").unwrap(), "id");
        assert_eq!(own(r#"a(s: "}{\"") b"#).unwrap(), r#"a(s: "}{\"") b"#);
        let bad = [
            ("id } mutation { drop", "select closes what it did not open"),
            ("{ id } other { x }", "select closes what it did not open"),
            ("a { b", "select does not close what it opened"),
            ("a # }", "select has a comment"),
            ("a(x: $y)", "select has a variable"),
            ("a(s: \"x", "select has a text that does not end"),
            ("", "select is empty"),
        ];
        for (select, expected) in bad {
            assert_eq!(own(select).unwrap_err(), expected, "{select}");
        }
        assert!(own(&"a{".repeat(100)).is_err());
    }
}
