//! Blots known secrets out of whatever leaves the trusted side: results, questions, logs, answers of the server. A
//! secret is known from the moment in which somebody enters or resolves it, so nothing is sent before it is known.

mod stream;
mod variants;

use aho_corasick::{AhoCorasick, MatchKind};
use lifecycle::{Failure, Json, Wish};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
pub use stream::Stream;
use variants::variants;

/// What stands where a secret stood. No sign of it means anything in JSON, HTML or a log.
pub const BLOT: &str = "[redacted]";

/// Values shorter than this occur by chance; blotting them out would maim innocent text.
pub const SECRET_BYTES_MIN: usize = 6;

/// Secrets that are remembered; the oldest give way. People have dozens, and tokens that were renewed expire.
const SECRETS_MAX: usize = 2_000;

/// Secrets that this process has met. A cache, not the truth: what is forgotten is learnt when it is next used.
fn known() -> &'static RwLock<Known> {
    static KNOWN: OnceLock<RwLock<Known>> = OnceLock::new();
    KNOWN.get_or_init(RwLock::default)
}

#[derive(Default)]
struct Known {
    secrets: HashSet<Arc<str>>,
    by_age: VecDeque<Arc<str>>,
    /// Finds every variant of every secret; made when something is first looked through.
    finder: OnceLock<Option<AhoCorasick>>,
    /// The same variants, sorted.
    needles: OnceLock<Vec<Vec<u8>>>,
}

/// Remembers a secret for as long as this process lives.
pub fn learn(secret: &str) {
    let secret = secret.trim();
    if secret.len() < SECRET_BYTES_MIN || read(|known| known.secrets.contains(secret)) {
        return;
    }
    known().write().unwrap_or_else(PoisonError::into_inner).learn(secret);
}

/// Whether there is anything to look for.
pub fn knows_nothing() -> bool {
    read(|known| known.secrets.is_empty())
}

/// The text without known secrets.
pub fn text(text: &str) -> Cow<'_, str> {
    match bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // A secret that begins or ends inside a letter is none: needles are whole texts.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The bytes without known secrets.
pub fn bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    read(|known| known.blotted(bytes))
}

/// The value without known secrets, also those that are written with escapes.
pub fn json(value: Json) -> Json {
    if knows_nothing() {
        return value;
    }
    let escaped = value.text().contains('\\');
    let replaced = match text(value.text()) {
        Cow::Borrowed(_) if !escaped => return value,
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    };
    let changed = replaced != value.text();
    if changed
        && !escaped
        && let Ok(json) = Json::parse(replaced.clone())
    {
        return json;
    }
    // Escapes hide secrets from a look at the text, and a secret may have been a number.
    let Ok(mut walked) = serde_json::from_str::<Value>(value.text()) else {
        return Json::parse(replaced).unwrap_or_else(|_| Json::null());
    };
    match (walk(&mut walked), changed) {
        (false, false) => value,
        (_, _) => Json::from_value(&walked).unwrap_or_else(|_| Json::null()),
    }
}

/// The failure without known secrets.
#[must_use]
pub fn failure(mut failure: Failure) -> Failure {
    failure.message = text(&failure.message).into_owned();
    failure.details = failure.details.map(json);
    failure
}

/// What a tool wants of a person, without known secrets.
pub(crate) fn wish(wish: Wish) -> Wish {
    match wish {
        Wish::Form { message, schema } => {
            Wish::Form { message: text(&message).into_owned(), schema: json(schema) }
        }
        Wish::Link { message, url, is_prior } => {
            let (message, url) = (text(&message).into_owned(), text(&url).into_owned());
            Wish::Link { message, url, is_prior }
        }
    }
}

/// Passes on what is written without known secrets. Each write is looked at by itself: whoever writes a line at once
/// is covered.
#[derive(Debug)]
pub struct Scrubbed<W>(pub W);

impl<W: io::Write> io::Write for Scrubbed<W> {
    fn write(&mut self, given: &[u8]) -> io::Result<usize> {
        self.0.write_all(&bytes(given))?;
        Ok(given.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn read<T>(look: impl FnOnce(&Known) -> T) -> T {
    look(&known().read().unwrap_or_else(PoisonError::into_inner))
}

impl Known {
    fn learn(&mut self, secret: &str) {
        let secret: Arc<str> = secret.into();
        if !self.secrets.insert(Arc::clone(&secret)) {
            return;
        }
        self.by_age.push_back(secret);
        if self.by_age.len() > SECRETS_MAX
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.secrets.remove(&oldest);
        }
        (self.finder, self.needles) = (OnceLock::new(), OnceLock::new());
    }

    fn needles(&self) -> &[Vec<u8>] {
        self.needles.get_or_init(|| {
            let mut needles: Vec<_> =
                self.secrets.iter().flat_map(|secret| variants(secret)).collect();
            needles.sort_unstable();
            needles
        })
    }

    fn finder(&self) -> Option<&AhoCorasick> {
        let make = || {
            let needles = self.needles();
            let longest = MatchKind::LeftmostLongest;
            AhoCorasick::builder().match_kind(longest).build(needles).ok()
        };
        self.finder.get_or_init(|| if self.secrets.is_empty() { None } else { make() }).as_ref()
    }

    fn blotted<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let Some(finder) = self.finder() else { return Cow::Borrowed(bytes) };
        let mut found = finder.find_iter(bytes).peekable();
        if found.peek().is_none() {
            return Cow::Borrowed(bytes);
        }
        let (mut blotted, mut end) = (vec![], 0);
        for place in found {
            blotted.extend_from_slice(&bytes[end..place.start()]);
            blotted.extend_from_slice(BLOT.as_bytes());
            end = place.end();
        }
        blotted.extend_from_slice(&bytes[end..]);
        Cow::Owned(blotted)
    }
}

/// Blots secrets out of every name, text and number. Says whether there was one.
fn walk(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => {
            let shown = number.to_string();
            let is_secret = matches!(text(&shown), Cow::Owned(_));
            if is_secret {
                *value = BLOT.into();
            }
            is_secret
        }
        Value::String(said) => match text(said) {
            Cow::Borrowed(_) => false,
            Cow::Owned(blotted) => {
                *said = blotted;
                true
            }
        },
        Value::Array(items) => items.iter_mut().fold(false, |found, item| walk(item) | found),
        Value::Object(members) => {
            let named = members.keys().any(|name| matches!(text(name), Cow::Owned(_)));
            if named {
                let old = std::mem::take(members);
                members
                    .extend(old.into_iter().map(|(name, value)| (text(&name).into_owned(), value)));
            }
            members.values_mut().fold(named, |found, member| walk(member) | found)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_known_secret_is_blotted_out_of_text_json_failures_and_logs() {
        learn("scrub-canary/A+b\"c");
        assert_eq!(text("before scrub-canary/A+b\"c after"), "before [redacted] after");
        let json_of = |text: &str| json(Json::parse(text.to_owned()).unwrap()).text().to_owned();
        assert_eq!(json_of(r#"{"a":"x scrub-canary/A+b\"c"}"#), r#"{"a":"x [redacted]"}"#);
        assert_eq!(json_of(r#"["\u0073crub-canary\/A+b\"c"]"#), r#"["[redacted]"]"#);
        assert_eq!(json_of(r#"{"scrub-canary/A+b\"c":1}"#), r#"{"[redacted]":1}"#);
        assert_eq!(json_of(r#"["a\nb", 1.50]"#), r#"["a\nb", 1.50]"#);
        let mut log = Scrubbed(vec![]);
        log.write_all(b"token=scrub-canary%2FA%2Bb%22c\n").unwrap();
        assert_eq!(log.0, b"token=[redacted]\n");
    }

    #[test]
    fn a_secret_that_is_a_number_leaves_json_whole() {
        learn("9081726354");
        let told = json(Json::parse(r#"{"pin":9081726354,"n":1}"#.to_owned()).unwrap());
        assert_eq!(told.text(), r#"{"n":1,"pin":"[redacted]"}"#);
    }

    #[test]
    fn what_is_short_stays() {
        learn("abc");
        assert_eq!(text("abcabc"), "abcabc");
    }
}
