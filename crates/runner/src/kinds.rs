//! What an object is, by the engine's own word: no property is looked at, so that nothing of the guest's runs.
#![expect(unsafe_code, reason = "rquickjs has no safe word for most of these")]

use protocols::execbox::PAYLOAD_BYTES_MAX;
use rquickjs::prelude::Func;
use rquickjs::{Object, Value, qjs};

/// The first version of the globals that asks.
const FIRST_VERSION: u32 = 2;

/// Most bytes of one file: in base64 and with its other members they still fit a message.
const FILE_BYTES_MAX: usize = (PAYLOAD_BYTES_MAX - (4 << 10)) / 4 * 3;

/// An object that has a form of its own at the boundary, by the numbers that `prelude/v2/values.js` knows.
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

/// Adds what `prelude/v2/values.js` and `prelude/v2/files.js` ask.
pub(crate) fn add_to<'js>(functions: &Object<'js>, prelude_version: u32) -> rquickjs::Result<()> {
    if prelude_version < FIRST_VERSION {
        return Ok(());
    }
    functions.set("fileBytesMax", FILE_BYTES_MAX)?;
    functions.set("kindOf", Func::new(|value: Value<'js>| kind_of(&value) as i32))
}

fn kind_of(value: &Value<'_>) -> ObjectKind {
    let raw = value.as_raw();
    // SAFETY: the value is alive for the whole call; each of these looks at the class of an object, takes any value, and keeps
    // nothing.
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

/// What is made of bytes is bytes, and what is made of numbers is numbers.
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
