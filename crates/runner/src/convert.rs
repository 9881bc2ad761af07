//! Converts values to and from JSON with the engine's own functions, so that a guest that replaces `JSON`
//! has no effect here.

use crate::guest_world::PreludeHook;
use crate::host::payload_within;
use protocols::execbox::wire::RawJson;
use protocols::execbox::{HOST_PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX};
use rquickjs::{Coerced, Ctx, Function, IntoJs as _, Type, Value};

/// Why a value has no JSON form.
#[derive(Debug)]
pub(crate) enum NoJsonForm {
    /// The value's type has no JSON form.
    Type(&'static str),
    /// The engine threw; the exception is pending.
    Threw,
    /// The JSON is larger than a message allows: its bytes, and the limit.
    TooLarge(usize, usize),
}

/// The value as `JSON.stringify` writes it; `None` for undefined.
pub(crate) fn to_json<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
) -> Result<Option<String>, NoJsonForm> {
    to_json_within(ctx, value, PAYLOAD_BYTES_MAX)
}

/// As [`to_json`], for a link with longer messages.
pub(crate) fn to_json_within<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    bytes_max: usize,
) -> Result<Option<String>, NoJsonForm> {
    if value.is_undefined() {
        return Ok(None);
    }
    if let Some(small) = small(&value) {
        return Ok(Some(small));
    }
    let type_name = type_name(&value);
    let json = ctx.json_stringify(value).map_err(|_| NoJsonForm::Threw)?;
    let text =
        json.ok_or(NoJsonForm::Type(type_name))?.to_string().map_err(|_| NoJsonForm::Threw)?;
    if text.len() > bytes_max {
        Err(NoJsonForm::TooLarge(text.len(), bytes_max))
    } else {
        Ok(Some(text))
    }
}

/// The value in the forms that the prelude's `write` produces; `None` for undefined. Guest code runs as
/// often as with `JSON.stringify`.
pub(crate) fn to_json_by<'js>(
    ctx: &Ctx<'js>,
    write: &PreludeHook,
    value: Value<'js>,
) -> Result<Option<String>, NoJsonForm> {
    // Half a surrogate pair in a text survives only the engine's own stringify.
    if value.is_undefined() || value.is_string() || small(&value).is_some() {
        return to_json(ctx, value);
    }
    let type_name = type_name(&value);
    let written =
        write.clone().restore(ctx).and_then(|write| write.call::<_, Value<'js>>((value,)));
    let written = written.map_err(|_| NoJsonForm::Threw)?;
    let text = written.into_string().ok_or(NoJsonForm::Type(type_name))?;
    let text = text.to_string().map_err(|_| NoJsonForm::Threw)?;
    if text.len() > PAYLOAD_BYTES_MAX {
        Err(NoJsonForm::TooLarge(text.len(), PAYLOAD_BYTES_MAX))
    } else {
        Ok(Some(text))
    }
}

/// As [`to_json`], with a text for numbers that JSON does not have: `"NaN"`, `"-Infinity"`, `"10"` for
/// `10n`. Plain JSON would contain null for them, as for no value at all, or nothing.
pub(crate) fn to_named_json<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
) -> Result<Option<String>, NoJsonForm> {
    if let Some(text) = named_value(&value) {
        return Ok(Some(format!("\"{text}\"")));
    }
    let plain = to_json(ctx, value.clone());
    // Only values that may contain such a number are written a second time: each member then costs a call.
    let is_suspect = match &plain {
        Ok(text) => value.is_object() && text.as_ref().is_some_and(|text| text.contains("null")),
        Err(NoJsonForm::Threw) => true,
        Err(NoJsonForm::Type(_) | NoJsonForm::TooLarge(..)) => false,
    };
    if !is_suspect {
        return plain;
    }
    if plain.is_err() {
        drop(ctx.catch());
    }
    let replacer = Function::new(ctx.clone(), replaced).map_err(|_| NoJsonForm::Threw)?;
    let json = ctx.json_stringify_replacer(value, replacer).map_err(|_| NoJsonForm::Threw)?;
    let Some(json) = json else { return plain };
    let text = json.to_string().map_err(|_| NoJsonForm::Threw)?;
    if text.len() > PAYLOAD_BYTES_MAX {
        Err(NoJsonForm::TooLarge(text.len(), PAYLOAD_BYTES_MAX))
    } else {
        Ok(Some(text))
    }
}

fn replaced<'js>(
    ctx: Ctx<'js>,
    _key: Value<'js>,
    value: Value<'js>,
) -> rquickjs::Result<Value<'js>> {
    match named_value(&value) {
        Some(text) => text.into_js(&ctx),
        None => Ok(value),
    }
}

fn named_value(value: &Value<'_>) -> Option<String> {
    match value.as_float() {
        Some(number) if number.is_nan() => Some("NaN".to_owned()),
        Some(number) if number.is_infinite() && number > 0.0 => Some("Infinity".to_owned()),
        Some(number) if number.is_infinite() => Some("-Infinity".to_owned()),
        Some(_) => None,
        None if value.type_of() == Type::BigInt => value.get::<Coerced<String>>().ok().map(|c| c.0),
        None => None,
    }
}

/// A text that [`to_json`] made, in the form that the wire types expect.
pub(crate) fn raw(json: &str) -> RawJson<'_> {
    payload_within(json, HOST_PAYLOAD_BYTES_MAX)
        .expect("the engine's stringify writes JSON, and its length was checked")
}

/// The payload of a message as a guest value.
pub(crate) fn from_json<'js>(ctx: &Ctx<'js>, json: RawJson<'_>) -> rquickjs::Result<Value<'js>> {
    ctx.json_parse(json.as_text())
}

/// A tool's result as a guest value, in which `receive_files` has replaced parts with bytes by files. Most
/// results hold no bytes, and are not searched.
pub(crate) fn from_result<'js>(
    ctx: &Ctx<'js>,
    receive_files: Option<&PreludeHook>,
    json: RawJson<'_>,
) -> rquickjs::Result<Value<'js>> {
    let value = from_json(ctx, json)?;
    let may_hold_files = || FILE_WORDS.iter().any(|word| json.as_text().contains(word));
    match receive_files {
        Some(receive) if value.is_object() && may_hold_files() => {
            receive.clone().restore(ctx)?.call((value,))
        }
        Some(_) | None => Ok(value),
    }
}

/// Every result that holds a file contains one of these: its tag, or a member of an MCP block with bytes.
const FILE_WORDS: [&str; 3] = ["\"ToolFile\"", "\"mimeType\"", "\"blob\""];

/// Serializes a small value without a call into the engine.
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
