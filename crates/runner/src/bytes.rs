//! Byte and text functions for the guest: UTF-8 encoding and decoding, and digests. Bytes arrive as base64,
//! which the engine produces itself; the alternative is to read the engine's buffers through a raw pointer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rquickjs::prelude::Func;
use rquickjs::{ArrayBuffer, Ctx, Exception, Object};
use sha1::{Digest as _, Sha1};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// Adds `utf8`, `text` and `digest` to the host's functions.
pub(crate) fn add_to<'js>(functions: &Object<'js>) -> rquickjs::Result<()> {
    functions.set(
        "utf8",
        Func::new(|ctx: Ctx<'js>, text: String| ArrayBuffer::new_copy(ctx, text.as_bytes())),
    )?;
    functions.set(
        "text",
        Func::new(|ctx: Ctx<'js>, base64: String, fatal: bool| {
            let bytes = bytes(&ctx, &base64)?;
            rquickjs::Result::Ok(text_of_bytes(bytes, fatal))
        }),
    )?;
    functions.set(
        "digest",
        Func::new(|ctx: Ctx<'js>, algorithm: String, base64: String| {
            let sum = digest(&algorithm, &bytes(&ctx, &base64)?);
            sum.map(|sum| ArrayBuffer::new_copy(ctx, sum)).transpose()
        }),
    )
}

fn bytes(ctx: &Ctx<'_>, base64: &str) -> rquickjs::Result<Vec<u8>> {
    STANDARD.decode(base64).map_err(|_| Exception::throw_type(ctx, "bytes that are not base64"))
}

/// Decodes the bytes as text; `None` if they are not UTF-8 and `fatal` is set.
fn text_of_bytes(bytes: Vec<u8>, fatal: bool) -> Option<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) if fatal => None,
        Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// Returns the digest, or `None` for an unknown algorithm. Names are compared without regard to case, as on
/// the web.
fn digest(algorithm: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match algorithm.to_ascii_uppercase().as_str() {
        "SHA-1" => Some(Sha1::digest(bytes).to_vec()),
        "SHA-256" => Some(Sha256::digest(bytes).to_vec()),
        "SHA-384" => Some(Sha384::digest(bytes).to_vec()),
        "SHA-512" => Some(Sha512::digest(bytes).to_vec()),
        _ => None,
    }
}
