//! Maps host names in programs' URLs to ASCII with the library that the server's HTTP client uses: a
//! program that checks a host and the client that connects to it see the same name.

use rquickjs::Object;
use rquickjs::prelude::Func;

/// The first version of the globals that calls this. Version 1 maps names in JavaScript, by approximation.
const FIRST_VERSION: u32 = 2;

/// Longest text that is mapped, in bytes. A name that can be looked up has 253 at most.
const DOMAIN_BYTES_MAX: usize = 64 << 10;

/// Adds the function that `prelude/v2/idna.js` calls.
pub(crate) fn add_to(functions: &Object<'_>, prelude_version: u32) -> rquickjs::Result<()> {
    if prelude_version < FIRST_VERSION {
        return Ok(());
    }
    functions.set("domainToAscii", Func::new(|domain: String| to_ascii(&domain)))
}

fn to_ascii(domain: &str) -> Option<String> {
    if domain.len() > DOMAIN_BYTES_MAX {
        return None;
    }
    idna::domain_to_ascii(domain).ok()
}
