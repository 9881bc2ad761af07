//! Finds which names the text before the cursor refers to: a path of names and the beginning of the last
//! one.

/// Longest suffix of a text that is searched: no typed path is longer.
const LOOKED_AT_BYTES_MAX: usize = 1 << 10;

/// The names before the last dot, and the text after it. `None` if no path ends here.
pub(super) fn path(code: &str) -> Option<(Vec<String>, String)> {
    let start = code.ceil_char_boundary(code.len().saturating_sub(LOOKED_AT_BYTES_MAX));
    let text = &code[start..];
    let begins = text.char_indices().rev().take_while(|(_, c)| belongs(*c)).last();
    let path = begins.map_or("", |(at, _)| &text[at..]);
    let before = text[..text.len() - path.len()].trim_end().chars().next_back();
    let mut names: Vec<String> =
        path.split('.').map(|name| name.trim_end_matches('?').trim().to_owned()).collect();
    let prefix = names.pop()?;
    // `f().x` and `"text".x`: the part before the first dot is no name.
    let is_broken =
        names.iter().any(|name| !is_name(name)) || (!names.is_empty() && is_open(before));
    let is_number = prefix.starts_with(|c: char| c.is_ascii_digit());
    (!is_broken && !is_number).then_some((names, prefix))
}

fn belongs(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '?') || c > '\u{7f}'
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether a value may end with this character, which then belongs to the path.
const fn is_open(before: Option<char>) -> bool {
    matches!(before, Some('"' | '\'' | '`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_stands_before_the_cursor() {
        let found =
            |code: &str| path(code).map(|(names, prefix)| format!("{}|{prefix}", names.join(".")));
        assert_eq!(found("JSON.").as_deref(), Some("JSON|"));
        assert_eq!(found("x = JSON.str").as_deref(), Some("JSON|str"));
        assert_eq!(found("f(a.b.c").as_deref(), Some("a.b|c"));
        assert_eq!(found("a?.b").as_deref(), Some("a|b"));
        assert_eq!(found("").as_deref(), Some("|"));
        assert_eq!(found("((((").as_deref(), Some("|"));
        assert_eq!(found("hr_comp").as_deref(), Some("|hr_comp"));
        assert_eq!(found("f().x"), None);
        assert_eq!(found("'a'.x"), None);
        assert_eq!(found("1.5"), None);
    }
}
