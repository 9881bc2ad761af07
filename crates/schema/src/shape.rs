//! The shapes that keywords must have. Each error fits after the keyword's name.

use crate::node::JsonTypes;
use serde_json::{Map, Number, Value};

/// The defect of a keyword, or of the schema that contains it.
pub(crate) struct KeywordDefect {
    pub(crate) keyword: Option<String>,
    pub(crate) what: String,
}

pub(crate) type ShapeResult<T> = Result<T, String>;

/// Any number, also `2.0`, that counts something.
pub(crate) fn count(value: &Value) -> ShapeResult<u64> {
    let whole = value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        // The cast saturates: what counts beyond u64 limits nothing.
        (float >= 0.0 && float.fract() == 0.0).then_some(float as u64)
    });
    whole.ok_or_else(|| "must be a whole number, zero or more".to_owned())
}

pub(crate) fn number(value: &Value) -> ShapeResult<Number> {
    value.as_number().cloned().ok_or_else(|| "must be a number".to_owned())
}

pub(crate) fn divisor(value: &Value) -> ShapeResult<Number> {
    let number = number(value)?;
    match number.as_f64() {
        Some(float) if float > 0.0 => Ok(number),
        Some(_) | None => Err("must be a number above zero".to_owned()),
    }
}

pub(crate) fn truth(value: &Value) -> ShapeResult<bool> {
    value.as_bool().ok_or_else(|| "must be true or false".to_owned())
}

pub(crate) fn string_shape(value: &Value) -> ShapeResult<&str> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

pub(crate) fn array(value: &Value) -> ShapeResult<&[Value]> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| "must be an array".to_owned())
}

pub(crate) fn object(value: &Value) -> ShapeResult<&Map<String, Value>> {
    value.as_object().ok_or_else(|| "must be an object".to_owned())
}

pub(crate) fn schemas(value: &Value) -> ShapeResult<&[Value]> {
    match array(value)? {
        [] => Err("must have a schema".to_owned()),
        schemas => Ok(schemas),
    }
}

pub(crate) fn texts(value: &Value) -> ShapeResult<Vec<String>> {
    let wrong = || "must be an array of strings".to_owned();
    let texts = value.as_array().ok_or_else(wrong)?;
    texts.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

pub(crate) fn types(value: &Value) -> ShapeResult<JsonTypes> {
    let with = |types: JsonTypes, name: &Value| {
        let known = name.as_str().and_then(|name| types.with(name));
        known.ok_or_else(|| "must be the name of a type, or an array of such".to_owned())
    };
    match value.as_array() {
        Some(names) if !names.is_empty() => names.iter().try_fold(JsonTypes::NONE, with),
        Some(_) | None => with(JsonTypes::NONE, value),
    }
}
