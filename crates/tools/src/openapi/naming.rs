//! The names of operations: `<group>.<leaf>`, the same names that Executor gives them.

use std::collections::HashMap;

/// Longest group or leaf: generated ids can fill a page, and the length of a path is limited.
const NAME_CHARS_MAX: usize = 100;

/// The parts of an operation that its name is made of.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedOperation {
    /// The method in lower case.
    pub(crate) method: String,
    /// The path, such as `/users/{id}`.
    pub(crate) path: String,
    /// `operationId`, if there is one.
    pub(crate) id: Option<String>,
    /// The first tag.
    pub(crate) tag: Option<String>,
    /// `x-executor-toolPath`: the author's own choice.
    pub(crate) chosen: Option<String>,
}

/// A name for each operation, all different. Where two would be the same, both get the version in
/// their path, then their method, then a hash.
pub(crate) fn names(operations: &[NamedOperation]) -> Vec<String> {
    let parts: Vec<NameParts> = operations.iter().map(NameParts::from_operation).collect();
    let mut names: Vec<String> = parts.iter().map(|parts| parts.plain.clone()).collect();
    for refine in [NameParts::with_version, NameParts::with_method, NameParts::with_hash] {
        for idx in doubles(&names) {
            names[idx] = refine(&parts[idx]);
        }
    }
    // Only names that authors chose can still be equal.
    for (n, idx) in doubles(&names).into_iter().enumerate() {
        names[idx] = format!("{}{}", names[idx], n + 1);
    }
    names
}

struct NameParts {
    plain: String,
    prefix: String,
    leaf: String,
    method: String,
    hash: String,
}

impl NameParts {
    fn from_operation(operation: &NamedOperation) -> Self {
        let (group, leaf) = chosen(operation).unwrap_or_else(|| derived(operation));
        let version =
            segments(&operation.path).map(str::to_ascii_lowercase).find(|s| is_version(s));
        Self {
            plain: if leaf.is_empty() { group.clone() } else { format!("{group}.{leaf}") },
            prefix: match version {
                Some(version) => format!("{group}.{}", version.replace('.', "_")),
                None => group.clone(),
            },
            leaf: if leaf.is_empty() { group } else { leaf },
            method: pascal(&operation.method),
            hash: hash(operation),
        }
    }

    fn with_version(&self) -> String {
        // Without a version the name does not change, and the next round handles it.
        if self.plain.starts_with(&format!("{}.", self.prefix)) {
            return self.plain.clone();
        }
        format!("{}.{}", self.prefix, self.leaf)
    }

    fn with_method(&self) -> String {
        format!("{}.{}{}", self.prefix, self.leaf, self.method)
    }

    fn with_hash(&self) -> String {
        format!("{}.{}{}{}", self.prefix, self.leaf, self.method, self.hash)
    }
}

fn chosen(operation: &NamedOperation) -> Option<(String, String)> {
    let is_fine = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
    let text: String = operation.chosen.as_deref()?.chars().filter(is_fine).collect();
    let mut names = text.split('.').filter(|name| !name.is_empty()).map(bounded);
    let group = names.next()?;
    Some((group, names.collect::<Vec<_>>().join(".")))
}

fn derived(operation: &NamedOperation) -> (String, String) {
    let tag = operation.tag.as_deref().map(str::trim).filter(|tag| !tag.is_empty());
    let group = tag.map_or_else(|| path_group(&operation.path), camel);
    let id = operation.id.clone().unwrap_or_else(|| id_of_path(operation));
    let preferred = camel(&without_group(&id, &group));
    let leaf = if preferred == group { fallback(operation, &group) } else { preferred };
    (bounded(&group), bounded(&leaf))
}

/// `get_users_id` for `GET /users/{id}`.
fn id_of_path(operation: &NamedOperation) -> String {
    let words: Vec<_> = operation.path.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
    match words.as_slice() {
        [] => format!("{}_operation", operation.method),
        words => format!("{}_{}", operation.method, words.join("_")),
    }
}

/// The first meaningful segment.
fn path_group(path: &str) -> String {
    telling_segments(path).next().map_or_else(|| "root".into(), camel)
}

/// `list` of `pets.list` and `pets/list` in group `pets`.
fn without_group(id: &str, group: &str) -> String {
    let names: Vec<_> = id.split(['/', '.']).map(str::trim).filter(|n| !n.is_empty()).collect();
    match names.as_slice() {
        [first, rest @ ..] if !rest.is_empty() && camel(first) == group => rest.join(" "),
        _ => id.to_owned(),
    }
}

fn fallback(operation: &NamedOperation, group: &str) -> String {
    let names = telling_segments(&operation.path).map(camel).filter(|name| name != group);
    let rest: String = names.map(|name| pascal(&name)).collect();
    let rest = if rest.is_empty() { "Operation" } else { &rest };
    camel(&format!("{}{rest}", operation.method))
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').map(str::trim).filter(|segment| !segment.is_empty())
}

/// Neither a version nor `api` nor a parameter.
fn telling_segments(path: &str) -> impl Iterator<Item = &str> {
    segments(path).filter(|segment| {
        let small = segment.to_ascii_lowercase();
        let is_parameter = segment.starts_with('{') && segment.ends_with('}');
        !is_version(&small) && small != "api" && !is_parameter
    })
}

/// `v1`, `v2.1`, `v3-4`.
fn is_version(segment: &str) -> bool {
    let Some(rest) = segment.strip_prefix('v') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match rest.split_once(['.', '_', '-']) {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

/// Lower-case words, split at capitals and at all characters that are neither letters nor digits.
fn words(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = vec![String::new()];
    for (idx, c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = idx.checked_sub(1).map(|idx| chars[idx]);
        let after = chars.get(idx + 1);
        let ends_small = before.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let ends_capitals = before.is_some_and(|b| b.is_ascii_uppercase())
            && after.is_some_and(|a| a.is_ascii_lowercase() || a.is_ascii_digit());
        if c.is_ascii_uppercase() && (ends_small || ends_capitals) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn camel(text: &str) -> String {
    let words = words(text);
    let Some((first, rest)) = words.split_first() else { return "tool".into() };
    rest.iter().fold(first.clone(), |name, word| name + &capitalised(word))
}

fn pascal(text: &str) -> String {
    capitalised(&camel(text))
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

fn bounded(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Indices of names that occur more than once.
fn doubles(names: &[String]) -> Vec<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    (0..names.len()).filter(|idx| counts[names[*idx].as_str()] > 1).collect()
}

/// Eight characters that distinguish operations.
fn hash(operation: &NamedOperation) -> String {
    let id = operation.id.clone().unwrap_or_else(|| id_of_path(operation));
    let text = serde_json::json!({ "method": operation.method, "path": operation.path, "operationId": id });
    let add = |hash: i32, unit: u16| hash.wrapping_mul(31).wrapping_add(i32::from(unit));
    let mut rest = text.to_string().encode_utf16().fold(0_i32, add).unsigned_abs();
    let mut digits = vec![];
    while rest > 0 {
        digits.extend(char::from_digit(rest % 36, 36));
        rest /= 36;
    }
    let digits: String = digits.into_iter().rev().collect();
    format!("{digits:0>8}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(method: &str, path: &str, id: &str, tag: &str) -> NamedOperation {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        NamedOperation {
            method: method.into(),
            path: path.into(),
            id: some(id),
            tag: some(tag),
            chosen: None,
        }
    }

    #[track_caller]
    fn check(operations: &[(&str, &str, &str, &str)], expected: &[&str]) {
        let operations: Vec<_> = operations.iter().map(|(m, p, i, t)| named(m, p, i, t)).collect();
        assert_eq!(names(&operations), expected);
    }

    #[test]
    fn a_tag_or_a_telling_segment_is_the_group() {
        check(
            &[
                ("get", "/items", "listItems", "items"),
                ("get", "/api/v1/users/{id}", "fetchUser", ""),
                ("get", "/v1/users/{id}/posts", "", ""),
                ("get", "/", "", ""),
                ("get", "/repos", "repos/list-for-org", "repos"),
                ("post", "/x", "XMLHttpRequest2Send", "My Big-Tag"),
            ],
            &[
                "items.listItems",
                "users.fetchUser",
                "users.getV1UsersIdPosts",
                "root.getOperation",
                "repos.listForOrg",
                "myBigTag.xmlHttpRequest2Send",
            ],
        );
    }

    #[test]
    fn a_leaf_like_its_group_says_what_it_does() {
        check(&[("get", "/pets/{id}/toys", "pets", "pets")], &["pets.getToys"]);
        check(&[("delete", "/pets", "Pets", "pets")], &["pets.deleteOperation"]);
    }

    #[test]
    fn names_that_collide_are_told_apart_by_version_then_method_then_hash() {
        check(
            &[("get", "/v1/a", "list", "a"), ("get", "/v2/a", "list", "a")],
            &["a.v1.list", "a.v2.list"],
        );
        check(
            &[
                ("get", "/things", "thingsList", "thingsTag"),
                ("delete", "/things", "things_list", "thingsTag"),
            ],
            &["thingsTag.thingsListGet", "thingsTag.thingsListDelete"],
        );
        let all = names(&[named("get", "/a", "x", "t"), named("get", "/b", "x", "t")]);
        assert!(all.iter().all(|name| name.starts_with("t.xGet00")), "{all:?}");
        assert_ne!(all[0], all[1]);
    }

    #[test]
    fn an_author_may_choose() {
        let own = |text: &str| NamedOperation {
            chosen: Some(text.into()),
            ..named("get", "/a", "b", "c")
        };
        assert_eq!(names(&[own("mail.inbox.list")]), ["mail.inbox.list"]);
        assert_eq!(names(&[own("..a b..")]), ["ab"]);
        assert_eq!(names(&[own("..")]), ["c.b"]);
    }

    #[test]
    fn no_name_is_empty_or_endless() {
        let long = named("get", "/", &"x".repeat(10_000), "标签");
        let name = &names(&[long])[0];
        assert!(name.len() < 250 && name.starts_with("tool.xxx"), "{name}");
    }
}
