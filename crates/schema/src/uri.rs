//! References between schemas: RFC 3986 as far as `$id` and `$ref` need it.

/// A reference made absolute: the resource it names, and the place inside it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedReference {
    pub(crate) resource: String,
    pub(crate) fragment: String,
}

struct UriParts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

/// `reference` as seen from the resource `base`, which has no fragment.
pub(crate) fn resolve(base: &str, reference: &str) -> ResolvedReference {
    let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let fragment = percent_decoded(fragment);
    if target.is_empty() {
        return ResolvedReference { resource: base.to_owned(), fragment };
    }
    let (base, target) = (parts(base), parts(target));
    let resource = if target.scheme.is_some() {
        written(&target, &without_dots(target.path))
    } else if target.authority.is_some() {
        written(&UriParts { scheme: base.scheme, ..target }, &without_dots(target.path))
    } else if target.path.is_empty() {
        written(&UriParts { query: target.query, ..base }, base.path)
    } else if target.path.starts_with('/') {
        written(&UriParts { query: target.query, ..base }, &without_dots(target.path))
    } else {
        let merged = merged(&base, target.path);
        written(&UriParts { query: target.query, ..base }, &without_dots(&merged))
    };
    ResolvedReference { resource, fragment }
}

fn parts(uri: &str) -> UriParts<'_> {
    let (rest, query) = match uri.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (uri, None),
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some(_) | None => (None, rest),
    };
    let Some(rest) = rest.strip_prefix("//") else {
        return UriParts { scheme, authority: None, path: rest, query };
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    UriParts { scheme, authority: Some(authority), path, query }
}

/// Whether a text is valid before the first colon of an address.
pub(crate) fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn merged(base: &UriParts<'_>, path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        return format!("/{path}");
    }
    let folder = base.path.rfind('/').map_or("", |at| &base.path[..=at]);
    format!("{folder}{path}")
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = vec![];
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." if is_last => kept.push(""),
            "." => {}
            ".." => {
                // The first segment of an absolute path is the nothing before its slash.
                if kept.last().is_some_and(|last| !last.is_empty()) || kept.len() > 1 {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    kept.join("/")
}

fn written(parts: &UriParts<'_>, path: &str) -> String {
    let mut uri = String::new();
    if let Some(scheme) = parts.scheme {
        uri += scheme;
        uri += ":";
    }
    if let Some(authority) = parts.authority {
        uri += "//";
        uri += authority;
    }
    uri += path;
    if let Some(query) = parts.query {
        uri += "?";
        uri += query;
    }
    uri
}

fn percent_decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = vec![];
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let decoded = if first == b'%' { after.get(..2).and_then(hex_byte) } else { None };
        bytes.push(decoded.unwrap_or(first));
        rest = if decoded.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u8::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_seen_from_their_base() {
        let cases = [
            ("", "#/a", "", "/a"),
            ("", "b.json", "b.json", ""),
            ("http://h/a/b", "c#x", "http://h/a/c", "x"),
            ("http://h/a/b", "../c", "http://h/c", ""),
            ("http://h/a/b", "../../../c/./d/..", "http://h/c/", ""),
            ("http://h/a/b?q", "?r", "http://h/a/b?r", ""),
            ("http://h/a/b?q", "", "http://h/a/b?q", ""),
            ("http://h", "c", "http://h/c", ""),
            ("http://h/a", "//g/c", "http://g/c", ""),
            ("http://h/a", "/c", "http://h/c", ""),
            ("http://h/a", "urn:x:y#z", "urn:x:y", "z"),
            ("urn:x:y", "#/a%22b%25", "urn:x:y", "/a\"b%"),
            ("x", "#%zz%4", "x", "%zz%4"),
        ];
        for (base, reference, resource, fragment) in cases {
            let expected =
                ResolvedReference { resource: resource.into(), fragment: fragment.into() };
            assert_eq!(resolve(base, reference), expected, "{base} {reference}");
        }
    }
}
