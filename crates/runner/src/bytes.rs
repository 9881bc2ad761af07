//! Bytes and texts for the guest's world: UTF-8 both ways, and digests. Bytes come in as base64, which the engine writes
//! by itself; what it lends us otherwise would have to be read through a raw pointer.

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

/// The bytes as text; `None` if they are not UTF-8 and that is fatal.
fn text_of_bytes(bytes: Vec<u8>, fatal: bool) -> Option<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(_) if fatal => None,
        Err(error) => Some(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

/// The digest, if there is such an algorithm. Names are compared as the web does: without regard to case.
fn digest(algorithm: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    match algorithm.to_ascii_uppercase().as_str() {
        "SHA-1" => Some(Sha1::digest(bytes).to_vec()),
        "SHA-256" => Some(Sha256::digest(bytes).to_vec()),
        "SHA-384" => Some(Sha384::digest(bytes).to_vec()),
        "SHA-512" => Some(Sha512::digest(bytes).to_vec()),
        _ => None,
    }
}
