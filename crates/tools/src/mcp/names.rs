//! Converts tool names to the form that programs write: lower snake case.

use std::collections::HashSet;

/// Longest name; the length of a path is limited.
const NAME_CHARS_MAX: usize = 128;

/// The names that are taken.
#[derive(Default)]
pub(super) struct GivenNames(HashSet<String>);

impl GivenNames {
    /// A unique name for the server's `name`.
    pub(super) fn give(&mut self, name: &str) -> String {
        let wanted = snake_case(name);
        let mut given = wanted.clone();
        let mut n = 1;
        while !self.0.insert(given.clone()) {
            n += 1;
            given = format!("{wanted}_{n}");
        }
        given
    }
}

/// `getTinyImage` and `get-tiny-image` become `get_tiny_image`.
fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    let mut before = '_';
    for c in name.chars().take(NAME_CHARS_MAX) {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            snake.push('_');
        }
        let next = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
        if next != '_' || !snake.ends_with('_') {
            snake.push(next);
        }
        before = c;
    }
    let snake = snake.trim_matches('_');
    if snake.is_empty() { "tool".to_owned() } else { snake.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_apart() {
        let mut names = GivenNames::default();
        let given =
            ["getTinyImage", "get-tiny-image", "echo", "a.b c", "…"].map(|name| names.give(name));
        assert_eq!(given, ["get_tiny_image", "get_tiny_image_2", "echo", "a_b_c", "tool"]);
    }
}
