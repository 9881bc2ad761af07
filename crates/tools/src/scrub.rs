//! Redacts known secrets from all data that leaves the trusted side: results, questions, logs, answers of the server. A
//! secret is registered when it is entered or resolved, so nothing can be sent before it is known.

mod decoded;
mod finder;
mod search_form;
mod stream;
mod variants;

use finder::SecretFinder;
use lifecycle::{Failure, Json, ToolPrompt};
use search_form::SearchForm;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
pub use stream::StreamScrubber;

/// The replacement of a secret. None of its characters is special in JSON, HTML or a log.
pub const BLOT: &str = "[redacted]";

/// Values shorter than this occur by chance; redacting them would damage harmless text.
pub const SECRET_BYTES_MIN: usize = 6;

/// Maximum length of a secret. Keys and tokens are shorter, and a header could not hold a longer one.
pub const SECRET_BYTES_MAX: usize = 64 << 10;

/// Maximum number of registered secrets; the oldest are evicted. Users have dozens, and renewed tokens expire.
const SECRETS_MAX: usize = 2_000;
/// Maximum total size of the secrets.
const SECRETS_BYTES_MAX: usize = 4 << 20;

/// The newest secrets have a separate finder: rebuilding the finder of all secrets is slow, and tokens
/// arrive one by one.
const RECENT_MAX: usize = 32;

/// Secrets that this process has met. A cache: an evicted secret is registered again on its next use.
fn known() -> &'static RwLock<KnownSecrets> {
    static KNOWN: OnceLock<RwLock<KnownSecrets>> = OnceLock::new();
    KNOWN.get_or_init(RwLock::default)
}

#[derive(Default)]
struct KnownSecrets {
    secrets: HashSet<Arc<str>>,
    by_age: VecDeque<Arc<str>>,
    n_bytes: usize,
    /// The newest secrets, and all others. The finder of each layer is built by the first search.
    recent: SecretLayer,
    settled: SecretLayer,
}

/// Some of the secrets.
#[derive(Default)]
struct SecretLayer {
    secrets: Vec<Arc<str>>,
    finder: OnceLock<Option<Arc<SecretFinder>>>,
}

impl SecretLayer {
    fn from_secrets(secrets: Vec<Arc<str>>) -> Self {
        Self { secrets, finder: OnceLock::new() }
    }

    fn finder(&self) -> Option<Arc<SecretFinder>> {
        self.finder.get_or_init(|| SecretFinder::from_secrets(&self.secrets).map(Arc::new)).clone()
    }
}

/// Registers a secret for the lifetime of the process. Of a secret that exceeds the limit, only the beginning.
pub fn learn(secret: &str) {
    let secret = secret.trim();
    let secret = &secret[..secret.floor_char_boundary(SECRET_BYTES_MAX)];
    if secret.len() < SECRET_BYTES_MIN || read(|known| known.secrets.contains(secret)) {
        return;
    }
    known().write().unwrap_or_else(PoisonError::into_inner).learn(secret);
}

/// Whether no secret is registered.
pub fn knows_nothing() -> bool {
    read(|known| known.secrets.is_empty())
}

/// The text without known secrets.
pub fn scrub_text(text: &str) -> Cow<'_, str> {
    match bytes(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // A match may not split a character: needles are whole texts.
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// The bytes without known secrets.
pub fn bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    find_secrets().blotted(bytes)
}

/// The value without known secrets, also those that are written with escapes.
pub fn json(value: Json) -> Json {
    if knows_nothing() {
        return value;
    }
    let replaced = match scrub_text(value.as_text()) {
        Cow::Borrowed(_) => return value,
        Cow::Owned(text) => text,
    };
    if let Ok(json) = Json::parse(replaced) {
        return json;
    }
    // The secret was a number, or extended beyond a string.
    let Ok(mut walked) = serde_json::from_str::<Value>(value.as_text()) else {
        return Json::null();
    };
    walk(&mut walked);
    Json::from_value(&walked).unwrap_or_else(|_| Json::null())
}

/// The failure without known secrets.
#[must_use]
pub fn failure(mut failure: Failure) -> Failure {
    failure.message = scrub_text(&failure.message).into_owned();
    failure.details = failure.details.map(json);
    failure
}

/// The prompt without known secrets.
pub(crate) fn wish(wish: ToolPrompt) -> ToolPrompt {
    match wish {
        ToolPrompt::Form { message, schema } => {
            ToolPrompt::Form { message: scrub_text(&message).into_owned(), schema: json(schema) }
        }
        ToolPrompt::Link { message, url, is_prior } => {
            let (message, url) = (scrub_text(&message).into_owned(), scrub_text(&url).into_owned());
            ToolPrompt::Link { message, url, is_prior }
        }
    }
}

/// A writer that redacts known secrets. Each write is checked separately, which is sufficient for writers that write
/// whole lines.
#[derive(Debug)]
pub struct ScrubbedWriter<W>(pub W);

impl<W: io::Write> io::Write for ScrubbedWriter<W> {
    fn write(&mut self, given: &[u8]) -> io::Result<usize> {
        self.0.write_all(&bytes(given))?;
        Ok(given.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn read<T>(look: impl FnOnce(&KnownSecrets) -> T) -> T {
    look(&known().read().unwrap_or_else(PoisonError::into_inner))
}

/// A snapshot of the finders. Searching does not block other searches.
fn find_secrets() -> SearchForm {
    read(|known| SearchForm::with([known.recent.finder(), known.settled.finder()]))
}

impl KnownSecrets {
    fn learn(&mut self, secret: &str) {
        let secret: Arc<str> = secret.into();
        if !self.secrets.insert(Arc::clone(&secret)) {
            return;
        }
        self.n_bytes += secret.len();
        self.by_age.push_back(Arc::clone(&secret));
        let is_over =
            |known: &Self| known.by_age.len() > SECRETS_MAX || known.n_bytes > SECRETS_BYTES_MAX;
        while is_over(self)
            && let Some(oldest) = self.by_age.pop_front()
        {
            self.n_bytes -= oldest.len();
            self.secrets.remove(&oldest);
        }
        let mut recent = std::mem::take(&mut self.recent.secrets);
        recent.push(secret);
        if recent.len() > RECENT_MAX {
            self.settled = SecretLayer::from_secrets(self.by_age.iter().cloned().collect());
            recent = vec![];
        }
        self.recent = SecretLayer::from_secrets(recent);
    }
}

/// Redacts secrets in every name, text and number.
fn walk(value: &mut Value) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            if matches!(scrub_text(&number.to_string()), Cow::Owned(_)) {
                *value = BLOT.into();
            }
        }
        Value::String(said) => {
            if let Cow::Owned(blotted) = scrub_text(said) {
                *said = blotted;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(members) => {
            let old = std::mem::take(members).into_iter();
            members.extend(old.map(|(name, mut value)| {
                walk(&mut value);
                (scrub_text(&name).into_owned(), value)
            }));
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
        assert_eq!(scrub_text("before scrub-canary/A+b\"c after"), "before [redacted] after");
        let json_of = |text: &str| json(Json::parse(text.to_owned()).unwrap()).as_text().to_owned();
        assert_eq!(json_of(r#"{"a":"x scrub-canary/A+b\"c"}"#), r#"{"a":"x [redacted]"}"#);
        assert_eq!(json_of(r#"["\u0073crub-canary\/A+b\"c"]"#), r#"["[redacted]"]"#);
        assert_eq!(json_of(r#"{"scrub-canary/A+b\"c":1}"#), r#"{"[redacted]":1}"#);
        assert_eq!(json_of(r#"["a\nb", 1.50]"#), r#"["a\nb", 1.50]"#);
        let mut log = ScrubbedWriter(vec![]);
        log.write_all(b"token=scrub-canary%2FA%2Bb%22c\n").unwrap();
        assert_eq!(log.0, b"token=[redacted]\n");
    }

    #[test]
    fn it_does_not_matter_who_escaped_it_and_how() {
        learn("escape-canary1/a=b&c \u{e9}");
        for written in [
            "escape-canary1/a%3Db%26c%20%C3%A9",
            "escape-canary1%2fa=b&c+%c3%a9",
            "%65%73cape-canary1/a=b&c \u{e9}",
            "escape-canary1&#x2F;a&#61;b&amp;c \u{e9}",
            r"escape-canary1\/a=b\u0026c \u00e9",
            r"escape-canary1\\/a=b%5Cu0026c%20\u00e9",
            "escape-canary1/a=b&c \u{c3}\u{a9}",
            "ZXNjYXBlLWNhbmFyeTEvYT1iJmMgw6k%3D",
        ] {
            let shown = scrub_text(written);
            assert!(shown.starts_with(BLOT), "{written}: {shown}");
        }
    }

    #[test]
    fn a_secret_that_is_a_number_leaves_json_whole() {
        learn("9081726354");
        let told = json(Json::parse(r#"{"pin":9081726354,"n":1}"#.to_owned()).unwrap());
        assert_eq!(told.as_text(), r#"{"n":1,"pin":"[redacted]"}"#);
    }

    #[test]
    fn what_is_short_stays() {
        learn("abc");
        assert_eq!(scrub_text("abcabc"), "abcabc");
    }
}
