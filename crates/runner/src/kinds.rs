//! Determines an object's kind by the engine's class tag: no property is read, so that no guest code runs.
#![expect(unsafe_code, reason = "rquickjs has no safe word for most of these")]

use protocols::execbox::PAYLOAD_BYTES_MAX;
use rquickjs::prelude::Func;
use rquickjs::{Object, Value, qjs};

/// The first version of the globals that uses this.
const FIRST_VERSION: u32 = 2;

/// Largest file: in base64 and with its other members it still fits into a message.
const FILE_BYTES_MAX: usize = (PAYLOAD_BYTES_MAX - (4 << 10)) / 4 * 3;

/// An object with its own form at the boundary, by the numbers that `prelude/v2/values.js` uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjectKind {
    Other = 0,
    Map = 1,
    Set = 2,
    Bytes = 3,
    Numbers = 4,
    BigInts = 5,
    Error = 6,
}

/// Adds the functions that `prelude/v2/values.js` and `prelude/v2/files.js` call.
pub(crate) fn add_to<'js>(functions: &Object<'js>, prelude_version: u32) -> rquickjs::Result<()> {
    if prelude_version < FIRST_VERSION {
        return Ok(());
    }
    functions.set("fileBytesMax", FILE_BYTES_MAX)?;
    functions.set("kindOf", Func::new(|value: Value<'js>| kind_of(&value) as i32))
}

fn kind_of(value: &Value<'_>) -> ObjectKind {
    let raw = value.as_raw();
    // SAFETY: the value is alive for the whole call; each of these functions reads the class of an object,
    // accepts any value, and retains nothing.
    unsafe {
        if qjs::JS_IsMap(raw) {
            ObjectKind::Map
        } else if qjs::JS_IsSet(raw) {
            ObjectKind::Set
        } else if qjs::JS_IsArrayBuffer(raw) || qjs::JS_IsDataView(raw) {
            ObjectKind::Bytes
        } else if value.is_error() {
            ObjectKind::Error
        } else {
            typed_array_kind(qjs::JS_GetTypedArrayType(raw))
        }
    }
}

/// An array with byte elements is bytes, any other is numbers.
fn typed_array_kind(type_number: i32) -> ObjectKind {
    let Ok(type_number) = u32::try_from(type_number) else { return ObjectKind::Other };
    match type_number {
        qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8
        | qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8C => ObjectKind::Bytes,
        qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_BIG_INT64
        | qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_BIG_UINT64 => ObjectKind::BigInts,
        _ => ObjectKind::Numbers,
    }
}
