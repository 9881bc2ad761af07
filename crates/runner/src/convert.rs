//! Values to JSON and back, with the engine's own functions: what the guest did to `JSON` does not matter here.

use crate::host::payload;
use protocols::execbox::PAYLOAD_BYTES_MAX;
use protocols::execbox::wire::RawJson;
use rquickjs::{Ctx, Value};

/// A value that has no JSON.
#[derive(Debug)]
pub(crate) enum NotJson {
    /// Of a type for which there is none.
    Type(&'static str),
    /// The engine threw; the exception is pending.
    Threw,
    /// More than fits a message.
    TooLarge(usize),
}

/// The value as `JSON.stringify` writes it; `None` for undefined.
pub(crate) fn to_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Option<String>, NotJson> {
    if value.is_undefined() {
        return Ok(None);
    }
    if let Some(small) = small(&value) {
        return Ok(Some(small));
    }
    let type_name = type_name(&value);
    let json = ctx.json_stringify(value).map_err(|_| NotJson::Threw)?;
    let text = json.ok_or(NotJson::Type(type_name))?.to_string().map_err(|_| NotJson::Threw)?;
    if text.len() > PAYLOAD_BYTES_MAX { Err(NotJson::TooLarge(text.len())) } else { Ok(Some(text)) }
}

/// A text that [`to_json`] made, as the wire wants it.
pub(crate) fn raw(json: &str) -> RawJson<'_> {
    payload(json).expect("the engine's stringify writes JSON, and its length was checked")
}

/// The payload of a message as a value of the guest's.
pub(crate) fn from_json<'js>(ctx: &Ctx<'js>, json: RawJson<'_>) -> rquickjs::Result<Value<'js>> {
    ctx.json_parse(json.text())
}

/// What needs no call into the engine.
fn small(value: &Value<'_>) -> Option<String> {
    if let Some(number) = value.as_int() {
        return Some(number.to_string());
    }
    if let Some(truth) = value.as_bool() {
        return Some(truth.to_string());
    }
    value.is_null().then(|| "null".to_owned())
}

fn type_name(value: &Value<'_>) -> &'static str {
    if value.is_function() {
        "a function"
    } else if value.is_symbol() {
        "a symbol"
    } else {
        "this value"
    }
}
