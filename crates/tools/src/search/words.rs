//! Splits names and sentences into words, lowers and stems them, and knows synonyms.

/// Longest word that is indexed: longer ones are keys and hashes, not words.
const WORD_CHARS_MAX: usize = 40;

/// Stop words: they do not indicate which tool is meant.
const EMPTY: [&str; 38] = [
    "a", "an", "the", "of", "to", "for", "in", "on", "at", "by", "with", "and", "or", "from",
    "into", "as", "is", "are", "be", "it", "its", "this", "that", "these", "those", "my", "our",
    "your", "me", "i", "we", "you", "please", "how", "do", "can", "which", "what",
];

/// Synonyms in queries for tools. The first is the most usual one in APIs.
const ALIKE: [&[&str]; 24] = [
    &["delete", "remove", "destroy", "erase", "drop"],
    &["create", "add", "new", "insert", "make", "post", "register", "open"],
    &["get", "fetch", "retrieve", "read", "show", "view", "describe", "lookup", "look"],
    &["list", "enumerate", "all", "every", "browse"],
    &["update", "edit", "modify", "change", "patch", "set", "replace", "rename"],
    &["search", "find", "query", "lookup"],
    &["send", "deliver", "post", "publish"],
    &["cancel", "stop", "abort", "terminate"],
    &["start", "begin", "launch", "run", "trigger", "execute"],
    &["upload", "attach", "import"],
    &["download", "export"],
    &["user", "person", "member", "people", "account"],
    &["repo", "repository"],
    &["pull", "pr"],
    &["photo", "picture", "image"],
    &["email", "mail"],
    &["message", "msg", "text"],
    &["invoice", "bill"],
    &["org", "organization", "organisation", "company"],
    &["permission", "access", "right"],
    &["folder", "directory"],
    &["delete", "revoke", "unassign", "detach"],
    &["merge", "combine", "join"],
    &["lock", "block", "freeze"],
];

/// Every word of `text`, stemmed, in order.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = vec![];
    let mut word = String::new();
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        // `listItems` and `HTTPServer` have two words each.
        let begins =
            c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
        if (begins || !c.is_alphanumeric()) && !word.is_empty() {
            push(&mut words, &mut word);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    push(&mut words, &mut word);
    words
}

fn push(words: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() && word.chars().count() <= WORD_CHARS_MAX {
        words.push(stem(word).to_owned());
    }
    word.clear();
}

/// Whether a word is a stop word.
pub(crate) fn is_empty(word: &str) -> bool {
    EMPTY.contains(&word)
}

/// Synonyms of `word`, without the word itself.
pub(crate) fn alike(word: &str) -> impl Iterator<Item = &'static str> {
    let groups = ALIKE.iter().filter(move |group| group.iter().any(|other| stem(other) == word));
    let others = groups.flat_map(|group| group.iter().map(|other| stem(other)));
    others
        .filter(move |other| *other != word)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
}

/// `lists` and `listed` become `list`; light, so that different words are not confused.
fn stem(word: &str) -> &str {
    let n = word.len();
    if !word.is_ascii() || n < 4 {
        return word;
    }
    let cut = |by: usize| &word[..n - by];
    if word.ends_with("sses")
        || word.ends_with("shes")
        || word.ends_with("ches")
        || word.ends_with("xes")
    {
        return cut(2);
    }
    if word.ends_with("ies") && n > 4 {
        // `repositories` and `repository` have the same stem.
        return cut(3);
    }
    if word.ends_with('y') && n > 4 && !word.ends_with("ey") && !word.ends_with("ay") {
        return cut(1);
    }
    if word.ends_with('s')
        && !word.ends_with("ss")
        && !word.ends_with("us")
        && !word.ends_with("is")
    {
        return without_e(cut(1));
    }
    if word.ends_with("ing") && n > 6 {
        return without_double(cut(3));
    }
    if word.ends_with("ed") && n > 5 {
        return without_double(cut(2));
    }
    without_e(word)
}

/// `creating` has no `e`, so `create` loses it too.
fn without_e(word: &str) -> &str {
    match word.strip_suffix('e') {
        Some(rest) if rest.len() > 3 => rest,
        Some(_) | None => word,
    }
}

/// `stopping` becomes `stop`.
fn without_double(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., a, b] if a == b && !matches!(a, b'l' | b's' | b'z' | b'e') => &word[..word.len() - 1],
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_have_the_same_words() {
        assert_eq!(words("repos.listForOrg"), ["repo", "list", "for", "org"]);
        assert_eq!(words("HTTPServer_error-Codes v2"), ["http", "server", "error", "code", "v2"]);
        assert_eq!(
            words("Creating, created, creates a repository; repositories!"),
            ["creat", "creat", "creat", "a", "repositor", "repositor"]
        );
        assert_eq!(words("stopping issues statuses"), words("stop issue status"));
        assert_eq!(words(&"x".repeat(50)), Vec::<String>::new());
        assert_eq!(words("größe ÄÖ"), ["größe", "äö"]);
    }

    #[test]
    fn words_that_mean_the_same_know_each_other() {
        assert!(alike("remov").any(|word| word == "delet"));
        assert!(alike("delet").any(|word| word == "remov"));
        assert_eq!(alike("weather").count(), 0);
    }
}
