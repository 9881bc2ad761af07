//! Suggests tools for a misspelt path.

use std::borrow::Cow;

/// Maximum number of suggestions: a hint, not a catalogue.
const SUGGESTIONS_MAX: usize = 5;

/// Paths that share at least this part of their letter pairs are similar.
const LIKENESS_MIN: f32 = 0.3;

/// At most `SUGGESTIONS_MAX` of `known`, the most similar first. If the first name is that of a source, only tools of
/// this source are candidates. Linear in the length of `known`, because programs may ask often.
pub fn suggest(wanted: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = wanted.strip_prefix("tools.").unwrap_or(wanted);
    let pairs = LetterPairs::from_text(&without_connection(wanted));
    // The source is given: only the tool's own name matters.
    let own_pairs = bound_tool(wanted).map(|(_, tool)| LetterPairs::from_text(tool));
    let first = wanted.split('.').next().unwrap_or_default();
    let likeness = |path: &str| match (&own_pairs, bound_tool(path)) {
        (Some(own_pairs), Some((source, tool))) if source == first => own_pairs.likeness(tool),
        (_, _) => pairs.likeness(&without_connection(path)),
    };
    let mut has_source = false;
    let mut alike: Vec<_> = known
        .inspect(|path| has_source |= path.split('.').next() == Some(first))
        .map(|path| (likeness(&path), path))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .collect();
    if has_source {
        alike.retain(|(_, path)| path.split('.').next() == Some(first));
    }
    alike.sort_by(|(a, a_path), (b, b_path)| b.total_cmp(a).then_with(|| a_path.cmp(b_path)));
    alike.into_iter().take(SUGGESTIONS_MAX).map(|(_, path)| path).collect()
}

/// A path without its owner and connection, which many tools share: they would make all of them similar.
fn without_connection(path: &str) -> Cow<'_, str> {
    match bound_tool(path) {
        Some((source, tool)) => Cow::Owned(format!("{source}.{tool}")),
        None => Cow::Borrowed(path),
    }
}

/// The source and the name of a tool that a connection binds.
fn bound_tool(path: &str) -> Option<(&str, &str)> {
    let mut names = path.splitn(4, '.');
    match (names.next(), names.next(), names.next(), names.next()) {
        (Some(source), Some("org" | "user"), Some(_), Some(tool)) => Some((source, tool)),
        (_, _, _, _) => None,
    }
}

/// The pairs of neighbouring letters of a text, as a set.
struct LetterPairs {
    seen: Box<[bool; 1 << 16]>,
    n: usize,
}

impl LetterPairs {
    fn from_text(text: &str) -> Self {
        let mut pairs = Self { seen: Box::new([false; 1 << 16]), n: 0 };
        for pair in neighbours(text) {
            pairs.seen[pair] = true;
            pairs.n += 1;
        }
        pairs
    }

    /// 0 for nothing in common, about 1 for equal texts.
    fn likeness(&self, text: &str) -> f32 {
        let (n_common, n) = neighbours(text).fold((0_u16, 0_u16), |(n_common, n), pair| {
            (n_common + u16::from(self.seen[pair]), n + 1)
        });
        let n_both = u16::try_from(self.n).unwrap_or(u16::MAX).saturating_add(n);
        2.0 * f32::from(n_common) / f32::from(n_both.max(1))
    }
}

/// Pairs of neighbouring letters, case-insensitive; a path has fewer than `u16::MAX` of them.
fn neighbours(text: &str) -> impl Iterator<Item = usize> {
    let lower = |byte: u8| usize::from(byte.to_ascii_lowercase());
    text.as_bytes().windows(2).map(move |pair| lower(pair[0]) << 8 | lower(pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, expected: &[&str]) {
        let names = ["demo.add", "demo.append", "demo.echo", "mail.send", "github.issues.create"];
        assert_eq!(suggest(wanted, names.into_iter().map(str::to_owned)), expected);
    }

    #[test]
    fn the_likeliest_comes_first() {
        check("demo.ad", &["demo.add", "demo.append", "demo.echo"]);
        check("sendMail", &["mail.send"]);
        check("github.createIssue", &["github.issues.create"]);
    }

    #[test]
    fn nothing_is_suggested_where_nothing_is_alike() {
        check("x", &[]);
        check("weather.today", &[]);
    }

    #[test]
    fn a_common_connection_makes_no_tools_alike() {
        let known = ["everything.org.main.echo", "git.org.main.git_log"].map(str::to_owned);
        let suggested = suggest("git.org.main.log", known.into_iter());
        assert_eq!(suggested, ["git.org.main.git_log"]);
    }

    #[test]
    fn only_tools_of_the_source_that_is_named_are_near() {
        let known = [
            "everything.user.work.get_log",
            "everything.org.main.log_level",
            "git.user.work.git_log",
            "git.user.work.git_diff",
        ];
        let suggested = |wanted: &str| suggest(wanted, known.into_iter().map(str::to_owned));
        assert_eq!(suggested("tools.git.user.work.log"), ["git.user.work.git_log"]);
        assert_eq!(suggested("git.user.work.nothing"), [""; 0]);
        assert_eq!(suggested("gti.user.work.git_log")[0], "git.user.work.git_log");
    }

    #[test]
    fn at_most_five_are_suggested() {
        let known = (0..20).map(|n| format!("demo.add{n}"));
        assert_eq!(suggest("demo.add", known).len(), 5);
    }
}
