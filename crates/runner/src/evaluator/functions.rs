//! The functions that only the prelude of a session calls.

use super::evaluator_state::{CommandFile, send_message};
use crate::host::{GuestHost, payload};
use protocols::execbox::PAYLOAD_BYTES_MAX;
use protocols::execbox::session::FromSession;
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Object, Value};
use std::rc::Rc;

/// Largest descriptor of a command. The server accepts no larger one.
const DESCRIPTOR_BYTES_MAX: usize = 256 << 10;

impl GuestHost {
    fn registered(&self, json: &str) -> bool {
        let fits = json.len() <= DESCRIPTOR_BYTES_MAX
            // The server could not parse a descriptor that is nested too deeply.
            && serde_json::from_str::<serde_json::Value>(json).is_ok();
        let descriptor = payload(json).filter(|_| fits);
        if let Some(descriptor) = descriptor {
            send_message(&self.outbox, &FromSession::Registered(descriptor));
        }
        descriptor.is_some()
    }

    fn progress(&self, task: f64, json: &str) {
        if let (Some(desk), Some(value)) = (self.desk.get(), payload(json)) {
            desk.progress(&self.outbox, task as u64, value);
        }
    }

    fn wrote(&self, task: f64, file: &CommandFile<'_>) -> bool {
        let fits =
            file.base64.len() + file.name.len() + file.content_type.len() < PAYLOAD_BYTES_MAX;
        fits && self.desk.get().is_some_and(|desk| desk.write(&self.outbox, task as u64, file))
    }

    fn display_function(&self, type_name: String, json: String, bytes: f64) {
        if let Some(desk) = self.desk.get() {
            desk.set_display(type_name, json, bytes as u64);
        }
    }

    fn claimed(&self, kind: String, code: String, details: String) {
        if let Some(desk) = self.desk.get() {
            desk.claim(kind, code, details);
        }
    }
}

/// The functions for the prelude of a session.
pub(super) fn session_functions<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<GuestHost>,
) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let of = |host: &Rc<GuestHost>| Rc::clone(host);
    let it = of(host);
    object.set("registered", Func::new(move |json: String| it.registered(&json)))?;
    let it = of(host);
    object.set(
        "unregistered",
        Func::new(move |name: String| {
            send_message(&it.outbox, &FromSession::Unregistered(name.as_str().into()));
        }),
    )?;
    let it = of(host);
    object.set("progress", Func::new(move |task: f64, json: String| it.progress(task, &json)))?;
    let it = of(host);
    object.set(
        "wrote",
        Func::new(move |task: f64, name: String, content_type: String, base64: String| {
            let file = CommandFile { name: &name, content_type: &content_type, base64: &base64 };
            it.wrote(task, &file)
        }),
    )?;
    let it = of(host);
    object.set(
        "shown",
        Func::new(move |type_name: String, json: String, bytes: f64| {
            it.display_function(type_name, json, bytes);
        }),
    )?;
    let it = of(host);
    object.set(
        "claimed",
        Func::new(move |kind: String, code: String, details: String| {
            it.claimed(kind, code, details);
        }),
    )?;
    object.set("isProxy", Func::new(|value: Value<'js>| value.is_proxy()))?;
    Ok(object)
}
