//! Finds secrets of any length in bytes: first by a prefix, then by the rest.

use super::variants::variants;
use aho_corasick::AhoCorasick;
use std::ops::Range;
use std::sync::Arc;

/// Length of the prefixes that one pass searches for. Longer ones would use more memory and add little precision.
const HEAD_BYTES_MAX: usize = 32;

/// A match of this length counts as a match of the whole secret: the rest is redacted as far as it matches.
const TELLING_BYTES_MAX: usize = 256;

/// Searches for some secrets, each in every variant.
#[derive(Debug)]
pub(super) struct SecretFinder {
    /// Searches for the prefixes.
    heads: AhoCorasick,
    /// The needles that begin with each prefix.
    groups: Vec<Range<usize>>,
    /// Sorted, without duplicates.
    needles: Vec<Vec<u8>>,
    longest_bytes: usize,
}

impl SecretFinder {
    /// A finder for these secrets; `None` if there are none.
    pub(super) fn from_secrets(secrets: &[Arc<str>]) -> Option<Self> {
        let mut needles: Vec<_> = secrets.iter().flat_map(|secret| variants(secret)).collect();
        needles.sort_unstable();
        needles.dedup();
        let mut groups: Vec<Range<usize>> = vec![];
        for n in 0..needles.len() {
            match groups.last_mut() {
                Some(group) if head(&needles[group.start]) == head(&needles[n]) => {
                    group.end = n + 1;
                }
                _ => groups.push(n..n + 1),
            }
        }
        let heads = AhoCorasick::new(groups.iter().map(|group| head(&needles[group.start])));
        let longest_bytes = needles.iter().map(Vec::len).max()?;
        Some(Self { heads: heads.ok()?, groups, needles, longest_bytes })
    }

    /// The ranges of secrets. None begins within another.
    pub(super) fn find(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = vec![];
        let mut furthest = 0..0;
        for place in self.heads.find_overlapping_iter(bytes) {
            let start = place.start();
            if furthest.start < start && start < furthest.end {
                continue;
            }
            let needles = &self.needles[self.groups[place.pattern().as_usize()].clone()];
            let lengths = needles.iter().filter_map(|needle| is_reported(needle, &bytes[start..]));
            if let Some(length) = lengths.max() {
                found.push(start..start + length);
                if start + length > furthest.end {
                    furthest = start..start + length;
                }
            }
        }
        found
    }

    /// The first position at which an incomplete secret may begin that continues after the end of the bytes.
    pub(super) fn open_from(&self, bytes: &[u8]) -> usize {
        let first = bytes.len().saturating_sub(self.longest_bytes.saturating_sub(1));
        let may_begin_at = |at: &usize| {
            let end = &bytes[*at..];
            let next = self.needles.partition_point(|needle| needle.as_slice() <= end);
            self.needles.get(next).is_some_and(|needle| needle.starts_with(end))
        };
        (first..bytes.len()).find(may_begin_at).unwrap_or(bytes.len())
    }
}

fn head(needle: &[u8]) -> &[u8] {
    &needle[..needle.len().min(HEAD_BYTES_MAX)]
}

/// The length of the common prefix of `needle` and the bytes, if it is long enough to count as a match.
fn is_reported(needle: &[u8], bytes: &[u8]) -> Option<usize> {
    let telling = &needle[..needle.len().min(TELLING_BYTES_MAX)];
    bytes.starts_with(telling).then(|| {
        let same = needle.iter().zip(bytes).take_while(|(one, other)| one == other);
        same.count()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(secrets: &[&str], text: &str) -> Vec<String> {
        let secrets: Vec<Arc<str>> = secrets.iter().map(|secret| (*secret).into()).collect();
        let found = SecretFinder::from_secrets(&secrets).unwrap().find(text.as_bytes());
        found.into_iter().map(|place| text[place].to_owned()).collect()
    }

    #[test]
    fn the_longest_of_those_that_begin_alike_is_found() {
        let long = "shared-head-of-both-0123456789-0123456789-tail";
        let secrets =
            ["shared-head-of-both", long, "shared-head-of-both-0123456789-0123456789-end"];
        assert!(found(&secrets, &format!("a {long} b")).contains(&long.to_owned()));
        assert_eq!(found(&secrets, "shared-head-of-both-0123"), ["shared-head-of-both"]);
        assert!(found(&secrets, "shared-head-of-bot").is_empty());
        assert!(SecretFinder::from_secrets(&[]).is_none());
    }

    #[test]
    fn a_very_long_one_is_found_to_its_end_and_so_is_its_beginning() {
        let secret: String = (0..9_000).map(|n| char::from(b'a' + (n * n % 23) as u8)).collect();
        assert_eq!(found(&[&secret], &format!("<{secret}>")), [secret.as_str()]);
        assert_eq!(found(&[&secret], &format!("{}<", &secret[..700])), [&secret[..700]]);
        assert!(found(&[&secret], &secret[..100]).is_empty());
    }

    #[test]
    fn letters_that_repeat_cost_no_more_than_others() {
        let (secret, text) = ("q".repeat(60_000), "q".repeat(1 << 20));
        let n_found = found(&[&secret, &format!("{secret}x")], &text).len();
        assert_eq!(n_found, text.len().div_ceil(secret.len()));
    }
}
