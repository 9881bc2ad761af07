//! Caches the bytecode of our sources: compiling is most of the cost of a world, and all worlds of a
//! process are made of the same texts.
#![expect(
    unsafe_code,
    reason = "rquickjs writes and reads the bytecode of modules only, which guests could import"
)]

use super::FILE_NAME;
use rquickjs::{Ctx, Function, Value, qjs};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::CString;
use std::rc::Rc;

thread_local! {
    /// By the address of the source, which is embedded. Filled before the first guest exists, and only read
    /// afterwards.
    static COMPILED: RefCell<HashMap<usize, Rc<[u8]>>> = RefCell::default();
}

/// The function that `source` is an expression of.
pub(super) fn function<'js>(
    ctx: &Ctx<'js>,
    source: &'static str,
) -> rquickjs::Result<Function<'js>> {
    let compiled = compiled(ctx, source)?;
    // SAFETY: the bytes were written by `compile` in this process, by the engine that reads them, and by
    // nothing else: the engine does not validate bytecode. The engine copies what it retains.
    // JS_EvalFunction takes ownership of the object, also if it fails; the returned value is ours and
    // belongs to this context.
    let value = unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = qjs::JS_READ_OBJ_BYTECODE as i32;
        let object = qjs::JS_ReadObject(raw, compiled.as_ptr(), compiled.len() as _, flags);
        if qjs::JS_IsException(object) {
            return Err(rquickjs::Error::Exception);
        }
        let value = qjs::JS_EvalFunction(raw, object);
        if qjs::JS_IsException(value) {
            return Err(rquickjs::Error::Exception);
        }
        Value::from_raw(ctx.clone(), value)
    };
    value.into_function().ok_or(rquickjs::Error::Unknown)
}

/// Compiles a source unless it is in the cache.
pub(super) fn compiled(ctx: &Ctx<'_>, source: &'static str) -> rquickjs::Result<Rc<[u8]>> {
    let key = source.as_ptr() as usize;
    if let Some(known) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(known);
    }
    let bytes = compile(ctx, source)?;
    COMPILED.with_borrow_mut(|compiled| compiled.insert(key, Rc::clone(&bytes)));
    Ok(bytes)
}

/// Without its text: `toString` of our functions reports native code.
fn compile(ctx: &Ctx<'_>, source: &str) -> rquickjs::Result<Rc<[u8]>> {
    let (text, name) = (CString::new(source)?, CString::new(FILE_NAME)?);
    // SAFETY: both texts end with a zero and live through the call; the object is freed once and not used
    // afterwards; the buffer is the engine's, has the length that it returned, and is copied before it is
    // freed.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let flags = (qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY) as i32;
        let object = qjs::JS_Eval(raw, text.as_ptr(), source.len() as _, name.as_ptr(), flags);
        if qjs::JS_IsException(object) {
            return Err(rquickjs::Error::Exception);
        }
        let mut length = 0;
        let flags = (qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE) as i32;
        let buffer = qjs::JS_WriteObject(raw, &raw mut length, object, flags);
        qjs::JS_FreeValue(raw, object);
        if buffer.is_null() {
            return Err(rquickjs::Error::Exception);
        }
        let bytes = Rc::from(std::slice::from_raw_parts(buffer, length as usize));
        qjs::js_free(raw, buffer.cast());
        Ok(bytes)
    }
}
