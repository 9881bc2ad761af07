//! URLs of guests, read and changed by the `url` crate. The server's HTTP client reads addresses with the same crate, so a
//! program that checks a host and the client that connects to it never disagree about what the host is.

use rquickjs::prelude::{Func, Opt};
use rquickjs::{Ctx, Exception, Object};
use url::{Url, quirks};

/// The first version of the globals that calls these functions. Version 1 parses URLs in JavaScript.
const FIRST_VERSION: u32 = 2;

/// Longest text that is read as a URL. Copies of it are made outside the guest's heap, at most three times as long.
const URL_BYTES_MAX: usize = 8 << 20;

/// Adds what `prelude/v2/url.js` calls.
pub(crate) fn add_to(functions: &Object<'_>, prelude_version: u32) -> rquickjs::Result<()> {
    if prelude_version < FIRST_VERSION {
        return Ok(());
    }
    functions.set(
        "urlParse",
        Func::new(|input: String, base: Opt<String>| {
            parse(&input, base.0.as_deref()).map(String::from)
        }),
    )?;
    functions.set(
        "urlPart",
        Func::new(|ctx: Ctx<'_>, href: String, name: String| {
            let url = parse(&href, None).ok_or_else(|| no_url(&ctx))?;
            part(&url, &name).ok_or_else(|| no_url(&ctx))
        }),
    )?;
    functions.set(
        "urlWith",
        Func::new(|ctx: Ctx<'_>, href: String, name: String, value: String| {
            let url = parse(&href, None).ok_or_else(|| no_url(&ctx))?;
            rquickjs::Result::Ok(with_part(&url, &name, &value).map_or(href, String::from))
        }),
    )
}

/// The prelude passes only URLs that were parsed before, so this is a defect of the prelude.
fn no_url(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_type(ctx, "not a URL")
}

fn parse(input: &str, base: Option<&str>) -> Option<Url> {
    if input.len() > URL_BYTES_MAX {
        return None;
    }
    match base {
        None => Url::parse(input).ok(),
        Some(base) => parse(base, None)?.join(input).ok(),
    }
}

/// A part under its name in JavaScript.
fn part(url: &Url, name: &str) -> Option<String> {
    Some(match name {
        "origin" => quirks::origin(url),
        "protocol" => quirks::protocol(url).to_owned(),
        "username" => quirks::username(url).to_owned(),
        "password" => quirks::password(url).to_owned(),
        "host" => quirks::host(url).to_owned(),
        "hostname" => quirks::hostname(url).to_owned(),
        "port" => quirks::port(url).to_owned(),
        "pathname" => quirks::pathname(url).to_owned(),
        "search" => quirks::search(url).to_owned(),
        "hash" => quirks::hash(url).to_owned(),
        _ => return None,
    })
}

/// The URL with another part; `None` where the value does not fit, which JavaScript ignores.
fn with_part(url: &Url, name: &str, value: &str) -> Option<Url> {
    let mut changed = url.clone();
    let is_set = value.len() <= URL_BYTES_MAX
        && match name {
            "protocol" => quirks::set_protocol(&mut changed, value).is_ok(),
            "username" => quirks::set_username(&mut changed, value).is_ok(),
            "password" => quirks::set_password(&mut changed, value).is_ok(),
            "host" => quirks::set_host(&mut changed, value).is_ok(),
            "hostname" => quirks::set_hostname(&mut changed, value).is_ok(),
            "port" => quirks::set_port(&mut changed, value).is_ok(),
            "pathname" => {
                quirks::set_pathname(&mut changed, value);
                true
            }
            "search" => {
                quirks::set_search(&mut changed, value);
                true
            }
            "hash" => {
                quirks::set_hash(&mut changed, value);
                true
            }
            _ => false,
        };
    // A longer URL could not be read again.
    (is_set && changed.as_str().len() <= URL_BYTES_MAX).then_some(changed)
}
