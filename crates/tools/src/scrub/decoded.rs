//! Decodes bytes as their reader would: with escapes of URLs, JSON and HTML undone, in any combination. Programs
//! differ in which characters they escape; all escapes are undone alike. Pure.

use memchr::memchr3;
use std::ops::Range;

/// Longest name or number of an HTML entity, with its delimiters.
const ENTITY_BYTES_MAX: usize = 12;

/// Longest escape that can be split: a surrogate pair in JSON.
const ESCAPE_BYTES_MAX: usize = 12;

/// Bytes with escapes undone.
#[derive(Debug)]
pub(super) struct DecodedBytes {
    pub(super) bytes: Vec<u8>,
    escapes: Vec<EscapeSpan>,
}

/// The position of an escape, and the length of its decoded bytes.
#[derive(Debug)]
struct EscapeSpan {
    raw: Range<usize>,
    undone: Range<usize>,
}

impl DecodedBytes {
    /// The bytes with every escape undone; `None` if there is none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut decoded = Self { bytes: vec![], escapes: vec![] };
        let (mut copied, mut at) = (0, 0);
        while let Some(n) = memchr3(b'%', b'&', b'\\', &bytes[at..]) {
            let start = at + n;
            at = start + 1;
            let mut letter = [0; 4];
            if let Some((n_raw, letter)) = undone(&bytes[start..], &mut letter) {
                decoded.bytes.extend_from_slice(&bytes[copied..start]);
                let from = decoded.bytes.len();
                decoded.bytes.extend_from_slice(letter);
                at = start + n_raw;
                copied = at;
                decoded
                    .escapes
                    .push(EscapeSpan { raw: start..at, undone: from..decoded.bytes.len() });
            }
        }
        decoded.bytes.extend_from_slice(&bytes[copied..]);
        (!decoded.escapes.is_empty()).then_some(decoded)
    }

    /// The original range of these decoded bytes.
    pub(super) fn raw(&self, decoded: Range<usize>) -> Range<usize> {
        let start = self.raw_place(decoded.start).start;
        let last = decoded.end.checked_sub(1).filter(|last| *last >= decoded.start);
        start..last.map_or(start, |last| self.raw_place(last).end)
    }

    /// The original range of one decoded byte.
    fn raw_place(&self, at: usize) -> Range<usize> {
        let n = self.escapes.partition_point(|escape| escape.undone.start <= at);
        match n.checked_sub(1).map(|n| &self.escapes[n]) {
            Some(escape) if escape.undone.contains(&at) => escape.raw.clone(),
            Some(escape) => {
                let start = escape.raw.end + (at - escape.undone.end);
                start..start + 1
            }
            None => at..at + 1,
        }
    }
}

/// Where an escape begins that the end of the bytes may have split; else their end.
pub(super) fn broken_off_at(bytes: &[u8]) -> usize {
    let first = bytes.len().saturating_sub(ESCAPE_BYTES_MAX);
    let is_open = |at: &usize| match &bytes[*at..] {
        [b'%', rest @ ..] => rest.len() < 2 && is_hex(rest),
        [b'\\', b'u', rest @ ..] => rest.len() < 4 && is_hex(rest) || is_half_a_letter(rest),
        [b'\\', b'x', rest @ ..] => rest.len() < 2 && is_hex(rest),
        [b'\\'] => true,
        [b'&', rest @ ..] => {
            rest.len() + 1 < ENTITY_BYTES_MAX
                && rest.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#')
        }
        _ => false,
    };
    (first..bytes.len()).find(is_open).unwrap_or(bytes.len())
}

/// Whether this is the first half of a surrogate pair whose second half is incomplete.
fn is_half_a_letter(rest: &[u8]) -> bool {
    let Some((first, rest)) = rest.split_at_checked(4) else { return false };
    hex(first).is_some_and(|code| (0xd800..0xdc00).contains(&code))
        && rest.len() < 6
        && (b"\\u".starts_with(rest) || rest.strip_prefix(b"\\u").is_some_and(is_hex))
}

/// The first escape, decoded: its length, and the bytes that it represents.
fn undone<'l>(bytes: &[u8], letter: &'l mut [u8; 4]) -> Option<(usize, &'l [u8])> {
    let mut as_byte = |byte: u8| letter[0] = byte;
    match bytes {
        [b'%', rest @ ..] => as_byte(hex(rest.get(..2)?)? as u8),
        [b'\\', b'x', rest @ ..] => as_byte(hex(rest.get(..2)?)? as u8),
        [b'\\', b'u', rest @ ..] => {
            let (n, c) = unicode(rest)?;
            return Some((2 + n, c.encode_utf8(letter).as_bytes()));
        }
        [b'\\', mark, ..] => as_byte(marked(*mark)?),
        [b'&', rest @ ..] => {
            let n = rest.iter().take(ENTITY_BYTES_MAX).position(|byte| *byte == b';')?;
            return Some((n + 2, entity(&rest[..n])?.encode_utf8(letter).as_bytes()));
        }
        _ => return None,
    }
    let n_raw = match bytes {
        [b'\\', b'x', ..] => 4,
        [b'%', ..] => 3,
        _ => 2,
    };
    Some((n_raw, &letter[..1]))
}

/// The character of a JSON `\u` escape, and the length of the escape.
fn unicode(rest: &[u8]) -> Option<(usize, char)> {
    let first = hex(rest.get(..4)?)?;
    if let Some(c) = char::from_u32(first) {
        return Some((4, c));
    }
    let second = hex(rest.get(4..10)?.strip_prefix(b"\\u")?)?;
    let pair = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    char::decode_utf16(pair).next()?.ok().map(|c| (10, c))
}

/// The character of a backslash escape.
const fn marked(mark: u8) -> Option<u8> {
    Some(match mark {
        b'"' | b'\'' | b'\\' | b'/' => mark,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'f' => 12,
        b'r' => b'\r',
        _ => return None,
    })
}

fn entity(name: &[u8]) -> Option<char> {
    if let Some(number) = name.strip_prefix(b"#") {
        let code = match number {
            [b'x' | b'X', digits @ ..] => hex(digits)?,
            digits => str::from_utf8(digits).ok()?.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        b"amp" | b"AMP" => '&',
        b"lt" | b"LT" => '<',
        b"gt" | b"GT" => '>',
        b"quot" | b"QUOT" => '"',
        b"apos" => '\'',
        b"sol" => '/',
        b"bsol" => '\\',
        b"equals" => '=',
        b"plus" => '+',
        b"colon" => ':',
        b"commat" => '@',
        b"percnt" => '%',
        b"num" => '#',
        b"dollar" => '$',
        b"excl" => '!',
        b"grave" => '`',
        b"lowbar" => '_',
        _ => return None,
    })
}

fn is_hex(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_hexdigit)
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = str::from_utf8(digits).ok().filter(|_| !digits.is_empty() && is_hex(digits))?;
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(raw: &str, expected: &str) {
        let decoded = DecodedBytes::from_bytes(raw.as_bytes()).map(|decoded| decoded.bytes);
        let decoded = decoded.unwrap_or_else(|| raw.into());
        assert_eq!(String::from_utf8_lossy(&decoded), expected, "{raw}");
    }

    #[test]
    fn escapes_of_urls_json_and_html_are_undone_and_others_stay() {
        check("a%2Fb%2fc%C3%A9", "a/b/cé");
        check(r#"a\/b\"c\u00e9\ud83d\ude00\n"#, "a/b\"cé😀\n");
        check("a&amp;b&#47;c&#x2F;d&#X2f;&sol;", "a&b/c/d//");
        check(r"\x41\x4a", "AJ");
        for plain in ["100% & more; \\o/", "%2", "%zz", "&nosuch;", "&#xd800;", r"\u12", r"\ud800x"]
        {
            check(plain, plain);
        }
    }

    proptest! {
        #[test]
        fn what_was_undone_is_found_where_it_stood(text in r"[ab%&;#x2f\\u0-]{0,40}") {
            let Some(decoded) = DecodedBytes::from_bytes(text.as_bytes()) else { return Ok(()) };
            let mut end = 0;
            for at in 0..decoded.bytes.len() {
                let raw = decoded.raw(at..at + 1);
                prop_assert!(raw.start == end || decoded.raw(at - 1..at) == raw, "{text}");
                prop_assert!(!raw.is_empty());
                end = raw.end;
            }
            prop_assert_eq!(end, text.len());
        }

        /// Later bytes change nothing before the position at which an escape may be split.
        #[test]
        fn what_comes_later_changes_no_escape_that_is_whole(text in r"[ab%&;#x2fd8\\u]{0,30}", cut in 0_usize..30) {
            let cut = cut.min(text.len());
            let certain = broken_off_at(&text.as_bytes()[..cut]);
            let bytes = |raw: &[u8]| DecodedBytes::from_bytes(raw).map_or_else(|| raw.to_vec(), |decoded| decoded.bytes);
            let (before, whole) = (bytes(&text.as_bytes()[..certain]), bytes(text.as_bytes()));
            prop_assert!(whole.starts_with(&before), "{text} {cut} {certain}");
        }
    }
}
