//! The encodings of a secret that use no escapes: plain, inside base64, hex, and wrongly decoded. Pure.

use super::SECRET_BYTES_MIN;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Every form in which `secret` is searched for, without duplicates.
pub(super) fn variants(secret: &str) -> Vec<Vec<u8>> {
    // Forms write a space as a plus. Servers decode headers as Latin-1 and repeat them in UTF-8.
    let misread: String = secret.bytes().map(char::from).collect();
    let mut found = vec![secret.to_owned(), secret.replace(' ', "+"), misread];
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

/// The characters of base64 that depend on the secret alone, if `n_before` bytes (modulo three) precede it.
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
        /// Base64 of any text that contains the secret contains one of its variants.
        #[test]
        fn base64_around_a_secret_does_not_hide_it(before in "[ -~]{0,9}", secret in "[!-~]{8,40}", after in "[ -~]{0,9}") {
            let whole = format!("{before}{secret}{after}");
            prop_assert!(occurs(&secret, &STANDARD.encode(&whole)));
            prop_assert!(occurs(&secret, &URL_SAFE.encode(&whole)));
        }
    }

    #[test]
    fn a_header_that_was_misread_is_known() {
        assert!(occurs("clé-du-coffre", "cl\u{c3}\u{a9}-du-coffre"));
        assert!(occurs("two words", "two+words"));
        assert_eq!(
            variants("plain-ascii").len(),
            6,
            "as it is, twice in hex, and at three places in base64"
        );
    }
}
