//! The position of a rule in its list: a text that compares by bytes, so that a position can always be
//! found above, below or between others without changing them.

use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// Longest position. Generated positions stay short: they grow with the logarithm of their number.
const CHARS_MAX: usize = 256;

/// The digits, in the order in which letters compare.
const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The first position of an empty list.
const FIRST: &str = "a0";

/// A position in a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct RulePosition(String);

/// A text that is not a position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a position has 1 to {CHARS_MAX} letters and digits, not all of them 0")]
pub struct BadPosition;

impl RulePosition {
    /// Parses and checks a position.
    pub fn parse(text: &str) -> Result<Self, BadPosition> {
        let is_good = !text.is_empty()
            && text.len() <= CHARS_MAX
            && text.bytes().all(|letter| letter.is_ascii_alphanumeric())
            // Nothing sorts before a text of zeros.
            && text.bytes().any(|letter| letter != b'0');
        if is_good { Ok(Self(text.to_owned())) } else { Err(BadPosition) }
    }

    /// A place above `first`, or the first one of an empty list.
    pub fn above(first: Option<&Self>) -> Self {
        let Some(Self(first)) = first else { return Self(FIRST.to_owned()) };
        Self(counted_down(first).unwrap_or_else(|| halved(first)))
    }
}

impl fmt::Display for RulePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RulePosition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// One less, if the text begins with a counted number: its first letter states how many digits follow,
/// `a` one, `b` two; `Z` one and `Y` two for negative ones.
fn counted_down(text: &str) -> Option<String> {
    let head = *text.as_bytes().first()?;
    let n_digits = match head {
        b'a'..=b'z' => usize::from(head - b'a') + 1,
        b'A'..=b'Z' => usize::from(b'Z' - head) + 1,
        _ => return None,
    };
    let digits = text.as_bytes().get(1..=n_digits)?;
    if text.len() > n_digits + 1 {
        return Some(text[..=n_digits].to_owned()); // the number alone sorts before it
    }
    let mut digits: Vec<usize> = digits.iter().map(|digit| worth(*digit)).collect();
    for digit in digits.iter_mut().rev() {
        if *digit > 0 {
            *digit -= 1;
            return Some(spelt(head, &digits));
        }
        *digit = DIGITS.len() - 1;
    }
    match head {
        b'a' => Some(spelt(b'Z', &[DIGITS.len() - 1])),
        b'A' => None,
        b'b'..=b'z' => Some(spelt(head - 1, &digits[1..])),
        _ => Some(spelt(head - 1, &[digits.as_slice(), &[DIGITS.len() - 1]].concat())),
    }
}

/// The middle between nothing and the text.
fn halved(text: &str) -> String {
    let n_zeros = text.bytes().take_while(|letter| *letter == b'0').count();
    let first = text.as_bytes().get(n_zeros).map_or(1, |letter| worth(*letter));
    let mut above = "0".repeat(n_zeros);
    if first > 1 {
        above.push(char::from(DIGITS[first / 2]));
    } else {
        above.push('0');
        above.push(char::from(DIGITS[DIGITS.len() / 2]));
    }
    above
}

fn worth(letter: u8) -> usize {
    DIGITS.iter().position(|digit| *digit == letter).unwrap_or(0)
}

fn spelt(head: u8, digits: &[usize]) -> String {
    let digits = digits.iter().map(|digit| char::from(DIGITS[*digit]));
    std::iter::once(char::from(head)).chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_new_place_is_above_the_last_one_and_stays_short() {
        let mut first = RulePosition::above(None);
        assert_eq!(first.to_string(), "a0");
        for n in 0..100_000 {
            let above = RulePosition::above(Some(&first));
            assert!(above < first, "{n}: {above} is not above {first}");
            first = above;
        }
        assert!(first.to_string().len() <= 5, "{first}");
    }

    #[test]
    fn there_is_a_place_above_whatever_a_client_chose() {
        for text in ["1", "01", "0001", "a", "z", "Zz", "b", "A", "a0V", "bz", "9x", "z00000"] {
            let given = RulePosition::parse(text).unwrap();
            let above = RulePosition::above(Some(&given));
            assert!(above < given, "{above} is not above {text}");
            assert_eq!(RulePosition::parse(&above.to_string()), Ok(above));
        }
    }

    #[test]
    fn what_cannot_be_a_place_is_refused() {
        for text in ["", "0", "000", "a b", "ä", &"a".repeat(257)] {
            assert_eq!(RulePosition::parse(text), Err(BadPosition), "{text}");
        }
    }
}
