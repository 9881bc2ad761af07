//! Converts names to identifiers that a guest can write.

use std::collections::BTreeSet;

/// The words that execbox lists as reserved by JavaScript; `let` and `static` are not among them.
const RESERVED: [&str; 38] = [
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "new",
    "null",
    "return",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// Converts `name` to an identifier: other characters become `_`; a leading digit or a reserved word gets one more.
pub fn sanitize(name: &str) -> String {
    let runs = name.trim().split(|c| !is_identifier_part(c)).filter(|run| !run.is_empty());
    let joined = runs.collect::<Vec<_>>().join("_");
    let trimmed = joined.trim_matches('_');
    match trimmed.chars().next() {
        None => "_".to_owned(),
        Some('0'..='9') => format!("_{trimmed}"),
        Some(_) if RESERVED.contains(&trimmed) => format!("{trimmed}_"),
        Some(_) => trimmed.to_owned(),
    }
}

/// Whether `name` is already an identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| is_identifier_part(c) && !c.is_ascii_digit());
    starts_well && name.chars().all(is_identifier_part)
}

/// Whether `name` can be a namespace.
pub(super) fn is_namespace(name: &str) -> bool {
    is_identifier(name) && !RESERVED.contains(&name)
}

/// The identifier of `original` among those that are `taken`: the first to ask gets the plain one.
pub(super) fn unique(original: &str, taken: &BTreeSet<String>) -> String {
    let plain = sanitize(original);
    let numbered = (2_usize..).map(|n| format!("{plain}__{n}"));
    std::iter::once(plain.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .expect("there are more numbers than names")
}

const fn is_identifier_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_a_name_is_a_guest_can_write_what_becomes_of_it(names in prop::collection::vec("\\PC{0,6}", 0..20)) {
            let mut taken = BTreeSet::new();
            for name in &names {
                let safe = unique(name, &taken);
                prop_assert!(is_namespace(&safe), "{safe}");
                prop_assert!(taken.insert(safe));
            }
        }
    }
}
