//! Sources of ours as the engine keeps them: compiling is most of what a world costs, and all worlds of a process are
//! made of the same texts.
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
    /// By the address of the source, which is embedded. Filled before any guest is there, and then only read.
    static COMPILED: RefCell<HashMap<usize, Rc<[u8]>>> = RefCell::default();
}

/// The function that `source` is an expression of.
pub(super) fn function<'js>(
    ctx: &Ctx<'js>,
    source: &'static str,
) -> rquickjs::Result<Function<'js>> {
    let compiled = compiled(ctx, source)?;
    // SAFETY: the bytes were written by `compile` in this process, by the engine that reads them, and by nobody else: they are
    // what it checks nothing about. The engine copies what it keeps. JS_EvalFunction takes the object over, also if it fails;
    // the value that comes back is ours and belongs to this context.
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

/// Compiles a source if nobody has yet.
pub(super) fn compiled(ctx: &Ctx<'_>, source: &'static str) -> rquickjs::Result<Rc<[u8]>> {
    let key = source.as_ptr() as usize;
    if let Some(known) = COMPILED.with_borrow(|compiled| compiled.get(&key).cloned()) {
        return Ok(known);
    }
    let bytes = compile(ctx, source)?;
    COMPILED.with_borrow_mut(|compiled| compiled.insert(key, Rc::clone(&bytes)));
    Ok(bytes)
}

/// Without its text: asked for it, the functions of ours say that they are native.
fn compile(ctx: &Ctx<'_>, source: &str) -> rquickjs::Result<Rc<[u8]>> {
    let (text, name) = (CString::new(source)?, CString::new(FILE_NAME)?);
    // SAFETY: both texts end with a zero and live through the call; the object is freed once and not used afterwards; the
    // buffer is the engine's, of the length it says, copied before it is given back.
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
