//! The formats of texts that are checked. Each is a separate rule, small enough to read.

use crate::pattern;
use crate::uri::is_scheme;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A format that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownFormat {
    Date,
    Time,
    DateTime,
    Duration,
    Email,
    Hostname,
    Ipv4,
    Ipv6,
    Uri,
    UriReference,
    Url,
    Uuid,
    JsonPointer,
    Regex,
}

const NAMES: [(&str, KnownFormat); 14] = [
    ("date", KnownFormat::Date),
    ("time", KnownFormat::Time),
    ("date-time", KnownFormat::DateTime),
    ("duration", KnownFormat::Duration),
    ("email", KnownFormat::Email),
    ("hostname", KnownFormat::Hostname),
    ("ipv4", KnownFormat::Ipv4),
    ("ipv6", KnownFormat::Ipv6),
    ("uri", KnownFormat::Uri),
    ("uri-reference", KnownFormat::UriReference),
    ("url", KnownFormat::Url),
    ("uuid", KnownFormat::Uuid),
    ("json-pointer", KnownFormat::JsonPointer),
    ("regex", KnownFormat::Regex),
];

impl KnownFormat {
    /// The format of that name. Unknown formats are annotations only.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, format)| *format)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn admits(self, text: &str) -> bool {
        match self {
            Self::Date => is_date(text),
            Self::Time => is_time(text),
            Self::DateTime => is_date_time(text),
            Self::Duration => is_duration(text),
            Self::Email => is_email(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uri => {
                text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme))
                    && is_uri_reference(text)
            }
            Self::UriReference => is_uri_reference(text),
            Self::Url => is_url(text),
            Self::Uuid => is_uuid(text),
            Self::JsonPointer => is_json_pointer(text),
            Self::Regex => pattern::is_pattern(text),
        }
    }
}

fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let n_days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    (1..=n_days).contains(&day)
}

/// A number of exactly `n_digits` digits.
fn number(text: &str, n_digits: usize) -> Option<u32> {
    let is_number = text.len() == n_digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

fn is_time(text: &str) -> bool {
    let Some(at) = text.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = text.split_at(at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return false };
    let (Some(hour), Some(minute), Some(second), Some(offset)) =
        (number(hour, 2), number(minute, 2), number(second, 2), zone_minutes(zone))
    else {
        return false;
    };
    // A leap second is the last one of a day in Greenwich.
    let in_greenwich = (i64::from(hour * 60 + minute) - offset).rem_euclid(24 * 60);
    let second_max = if in_greenwich == 24 * 60 - 1 { 60 } else { 59 };
    let has_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    hour < 24 && minute < 60 && second <= second_max && has_fraction
}

fn zone_minutes(zone: &str) -> Option<i64> {
    let (sign, offset) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", offset) => (1, offset),
        ("-", offset) => (-1, offset),
        _ => return None,
    };
    let (hours, minutes) = offset.split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 60 + minutes))
}

fn is_date_time(text: &str) -> bool {
    let date_and_time = text.split_once(['T', 't']);
    date_and_time.is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// `P1Y2M3DT4H5M6S`, of which parts may be missing at either end but not between, or `P4W`.
fn is_duration(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('P') else { return false };
    if let Some(weeks) = rest.strip_suffix('W') {
        return is_digits(weeks);
    }
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (rest, None),
    };
    let is_time_sound = time.is_none_or(|time| !time.is_empty() && has_units(time, "HMS"));
    (time.is_some() || !date.is_empty()) && has_units(date, "YMD") && is_time_sound
}

/// Whether a text is numbers, each before one of `units`, which follow each other without a gap.
fn has_units(text: &str, units: &str) -> bool {
    let mut left: Option<&str> = None;
    text.split_inclusive(|c: char| c.is_ascii_alphabetic()).all(|part| {
        let Some((amount, unit)) = part.split_at_checked(part.len() - 1) else { return false };
        let candidates = left.unwrap_or(units);
        let at = match left {
            Some(next) => next.starts_with(unit).then_some(0),
            None => candidates.find(unit),
        };
        left = at.map(|at| &candidates[at + 1..]);
        at.is_some() && is_digits(amount)
    })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    is_local_part(local) && is_mail_domain(domain)
}

fn is_local_part(local: &str) -> bool {
    if let Some(quoted) = local.strip_prefix('"') {
        let Some(inside) = quoted.strip_suffix('"') else { return false };
        let mut is_escaped = false;
        let is_sound = inside.chars().all(|c| {
            let is_allowed = (' '..='~').contains(&c) && (is_escaped || c != '"');
            is_escaped = c == '\\' && !is_escaped;
            is_allowed
        });
        return is_sound && !is_escaped;
    }
    let is_atom = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    local.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_mail_domain(domain: &str) -> bool {
    let Some(literal) = domain.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return is_hostname(domain);
    };
    match literal.strip_prefix("IPv6:") {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => literal.parse::<Ipv4Addr>().is_ok(),
    }
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let has_prefix = label.get(2..4) == Some("--");
        let is_punycode = label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
        (1..=63).contains(&label.len())
            && label.chars().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
            // Two hyphens there are reserved for encodings, of which there is one.
            && (!has_prefix || (is_punycode && label.len() > 4))
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_uri_reference(text: &str) -> bool {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (has_scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (true, rest),
        Some(_) | None => (false, rest),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    // Without a scheme, a colon in the first segment would be taken for the end of one.
    let is_path_clear =
        has_scheme || !authority.is_empty() || !path.split('/').next().unwrap_or("").contains(':');
    is_path_clear
        && is_authority(authority)
        && is_written(path, "/:@")
        && is_written(query, "/:@?")
        && is_written(fragment, "/:@?")
}

fn is_authority(authority: &str) -> bool {
    let (user, host_and_port) = authority.rsplit_once('@').unwrap_or(("", authority));
    if let Some(literal) = host_and_port.strip_prefix('[') {
        let Some((address, port)) = literal.split_once(']') else { return false };
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
        return is_written(user, ":") && is_port && is_ip_literal(address);
    }
    let (host, port) = host_and_port.split_once(':').unwrap_or((host_and_port, ""));
    is_written(user, ":") && is_written(host, "") && is_port(port)
}

fn is_ip_literal(address: &str) -> bool {
    let is_future = address.strip_prefix(['v', 'V']).is_some_and(|rest| {
        rest.split_once('.').is_some_and(|(version, name)| {
            let is_hex = version.bytes().all(|byte| byte.is_ascii_hexdigit());
            !version.is_empty() && is_hex && !name.is_empty() && is_written(name, ":")
        })
    });
    is_future || address.parse::<Ipv6Addr>().is_ok()
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a part of an address has only characters that need no escape: the unreserved ones, the
/// delimiters within parts, and `more`.
fn is_written(text: &str, more: &str) -> bool {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let is_fine = match c {
            '%' => {
                let is_hex = |c: Option<char>| c.is_some_and(|c| c.is_ascii_hexdigit());
                is_hex(rest.next()) && is_hex(rest.next())
            }
            c => c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c) || more.contains(c),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// Whether a text is an absolute URL as browsers parse it, which JSON Schema calls `uri`.
fn is_url(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    text.split_once(':').is_some_and(|(scheme, rest)| {
        is_scheme(scheme) && !rest.is_empty() && rest.chars().all(is_plain)
    })
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let is_hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12]) && groups.iter().all(is_hex)
}

fn is_json_pointer(text: &str) -> bool {
    let are_escapes_sound = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && are_escapes_sound
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = KnownFormat::from_name(name).unwrap();
        assert_eq!(format.name(), name);
        for text in good {
            assert!(format.admits(text), "{name} {text:?}");
        }
        for text in bad {
            assert!(!format.admits(text), "{name} {text:?}");
        }
    }

    #[test]
    fn dates_and_times_exist() {
        check(
            "date",
            &["2026-11-16", "2024-02-29", "2000-02-29", "0001-01-01"],
            &[
                "",
                "16.11.2026",
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-04-31",
                "2026-1-1",
                "2026-01-00",
                "26-01-01",
                "2026-01-01 ",
                "२०२६-01-01",
            ],
        );
        check(
            "time",
            &["09:00:00Z", "23:59:60z", "09:00:00.123+02:00", "00:59:60+01:00"],
            &[
                "",
                "09:00:00",
                "24:00:00Z",
                "09:60:00Z",
                "09:00:60Z",
                "09:00Z",
                "09:00:00.Z",
                "09:00:00+2:00",
                "09:00:00+24:00",
                "09:00:00Zx",
                "23:59:60+01:00",
                "09:00:00é",
            ],
        );
        check(
            "date-time",
            &["2026-11-16T09:00:00.000Z", "2026-11-16t09:00:00-08:00"],
            &["2026-11-16", "2026-11-16 09:00:00Z", "2026-02-30T09:00:00Z"],
        );
        check(
            "duration",
            &["P1Y2M3DT4H5M6S", "P4W", "PT1M", "P1M", "P1YT1S", "PT0S"],
            &[
                "", "P", "PT", "P1", "1Y", "P1D2Y", "P1Y2D", "P1YT", "PT1H2S", "P1W2D", "PT1D",
                "P-1D", "P1.5D", "P१D", "P1é",
            ],
        );
    }

    #[test]
    fn addresses_have_their_parts() {
        check(
            "email",
            &["ann@example.org", "a.b+c@x", "\"a b@c\"@x.org", "a@[127.0.0.1]", "a@[IPv6:::1]"],
            &[
                "",
                "not an address",
                "@x",
                "a@",
                "a..b@x",
                ".a@x",
                "a b@x",
                "a@x..y",
                "\"a\"b\"@x",
                "a@[x]",
                "é@x.org",
            ],
        );
        check(
            "hostname",
            &["example.org", "a", "a-b.c1", "xn--nxasmq6b"],
            &["", "-a", "a-", "a..b", "a_b", "é.org", "a.", "ab--c", &"a".repeat(64)],
        );
        check("ipv4", &["127.0.0.1"], &["127.0.0", "256.0.0.1", "127.0.0.01", "1"]);
        check("ipv6", &["::1", "1::2:3.4.5.6"], &["", "12345::", "::1%eth0", "1::2::3", ":1"]);
        check(
            "uri",
            &[
                "https://example.org/",
                "urn:a:b",
                "http://u:p@h:80/p?q#f",
                "http://[::1]/",
                "mailto:a@b",
                "a:",
            ],
            &[
                "",
                "example",
                "/a",
                "http://a b/",
                "http://h/<a>",
                "http://h/%zz",
                "1a:b",
                "http://[::1",
                "http://h:x/",
                "http://é/",
                "://h",
            ],
        );
        check(
            "uri-reference",
            &["", "a/b", "/a?b#c", "#", "//h/p", "http://h", "./a:b"],
            &["\\a", "a b", "1:b", "#a#b", "%"],
        );
        check("url", &["https://example.org/ü"], &["not an address", "a:", ":b", "a:b c"]);
    }

    #[test]
    fn names_and_pointers_are_written_as_they_must() {
        let uuid = "2eb8aa08-aa98-11ea-b4aa-73b441d16380";
        check(
            "uuid",
            &[uuid, &uuid.to_uppercase()],
            &["", &uuid[1..], &uuid.replace('-', ""), &uuid.replace('2', "g")],
        );
        check("json-pointer", &["", "/", "/a~0b~1c/0"], &["a", "/~", "/~2", "#/a"]);
        check("regex", &["^a+$"], &["^(a"]);
        assert_eq!(KnownFormat::from_name("shoe-size"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_format_panic(text in r"([PTYMDHSWZz0-9:.@~/#?%\[\]+-]|xn--|é|😀){0,16}") {
            for (_, format) in NAMES {
                format.admits(&text);
            }
        }
    }
}
