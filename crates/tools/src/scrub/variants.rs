//! The ways in which a secret is written: as it is, escaped, and inside base64, hex and URLs. Pure.

use super::SECRET_BYTES_MIN;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What RFC 3986 leaves as it is.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What JavaScript's `encodeURIComponent` leaves as it is.
const COMPONENT: AsciiSet =
    UNRESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// What a form that is sent leaves as it is.
const FORM: AsciiSet = NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');

/// What JavaScript's `encodeURI` leaves as it is.
const WHOLE: AsciiSet = COMPONENT
    .remove(b';')
    .remove(b'/')
    .remove(b'?')
    .remove(b':')
    .remove(b'@')
    .remove(b'&')
    .remove(b'=')
    .remove(b'+')
    .remove(b'$')
    .remove(b',')
    .remove(b'#');

/// Every way in which `secret` is looked for, each once.
pub(super) fn variants(secret: &str) -> Vec<Vec<u8>> {
    let mut found = vec![secret.to_owned(), escaped(secret), html(secret)];
    for set in [&UNRESERVED, &COMPONENT, &WHOLE, &FORM] {
        let upper = utf8_percent_encode(secret, set).to_string();
        found.extend([upper.replace("%20", "+"), lower_hex(&upper), upper]);
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    found.extend([hex.to_uppercase(), hex]);
    for n_before in 0..3 {
        found.extend(inside_base64(secret.as_bytes(), n_before));
    }
    found.sort();
    found.dedup();
    found.retain(|needle| needle.len() >= SECRET_BYTES_MIN);
    found.into_iter().map(String::into_bytes).collect()
}

/// The letters of base64 that depend on the secret alone, where `n_before` bytes (modulo three) stand before it.
fn inside_base64(secret: &[u8], n_before: usize) -> [String; 2] {
    let padded: Vec<u8> = [&vec![0; n_before][..], secret].concat();
    let n_dropped_first = [0, 2, 3][n_before];
    let n_dropped_last = usize::from(!padded.len().is_multiple_of(3));
    let core = |encoded: String| {
        let end = encoded.len().saturating_sub(n_dropped_last).max(n_dropped_first);
        encoded[n_dropped_first..end].to_owned()
    };
    [core(STANDARD_NO_PAD.encode(&padded)), core(URL_SAFE_NO_PAD.encode(&padded))]
}

fn escaped(secret: &str) -> String {
    let quoted = serde_json::Value::from(secret).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn html(secret: &str) -> String {
    let ampersands = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    ampersands.replace('"', "&quot;").replace('\'', "&#39;")
}

/// `%2F` as `%2f`: both are written.
fn lower_hex(encoded: &str) -> String {
    let mut lower = String::with_capacity(encoded.len());
    let mut n_hex = 0;
    for c in encoded.chars() {
        lower.push(if n_hex > 0 { c.to_ascii_lowercase() } else { c });
        n_hex = if c == '%' { 2 } else { usize::saturating_sub(n_hex, 1) };
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    fn occurs(secret: &str, text: &str) -> bool {
        let found = variants(secret);
        found.iter().any(|needle| text.as_bytes().windows(needle.len()).any(|part| part == needle))
    }

    proptest! {
        /// Whatever stands around it, base64 of a text that holds the secret holds one of its variants.
        #[test]
        fn base64_around_a_secret_does_not_hide_it(before in "[ -~]{0,9}", secret in "[!-~]{8,40}", after in "[ -~]{0,9}") {
            let whole = format!("{before}{secret}{after}");
            prop_assert!(occurs(&secret, &STANDARD.encode(&whole)));
            prop_assert!(occurs(&secret, &URL_SAFE.encode(&whole)));
            prop_assert!(occurs(&secret, &serde_json::Value::from(whole.as_str()).to_string()));
            let form: String = url::form_urlencoded::byte_serialize(whole.as_bytes()).collect();
            let percent = utf8_percent_encode(&whole, &UNRESERVED).to_string();
            prop_assert!(occurs(&secret, &percent));
            prop_assert!(occurs(&secret, &lower_hex(&percent)));
            prop_assert!(occurs(&secret, &form), "{}", form);
        }
    }

    #[test]
    fn encodings_are_those_that_people_use() {
        let found = variants("p@ss wörd/1");
        for written in [
            "p%40ss%20w%C3%B6rd%2F1",
            "p%40ss+w%C3%B6rd%2F1",
            "p%40ss%20w%c3%b6rd%2f1",
            "p@ss%20w%C3%B6rd/1",
        ] {
            assert!(found.contains(&written.as_bytes().to_vec()), "{written}");
        }
    }
}
