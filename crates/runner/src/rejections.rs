//! Rejected promises that are not handled, as the engine reports them. At the end of a turn they are
//! errors, as in Node.

use rquickjs::{Ctx, Persistent, Runtime, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// A guest value that is stored between two turns.
pub(crate) type SavedValue = Persistent<Value<'static>>;

/// The rejections of one world. Empty unless they are watched: values that are stored here must be dropped
/// before the world.
#[derive(Default)]
pub(crate) struct UnhandledRejections {
    is_watched: Cell<bool>,
    /// How many rejections were reported without a handler.
    n_reported: Cell<u64>,
    /// By promise: the number of its rejection, and the reason.
    unhandled: RefCell<HashMap<SavedValue, (u64, SavedValue)>>,
}

impl UnhandledRejections {
    /// Makes the engine report the rejections of a world.
    pub(crate) fn track(runtime: &Runtime) -> Rc<Self> {
        let rejections = Rc::new(Self::default());
        let tracked = Rc::clone(&rejections);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                tracked.report(&ctx, promise, reason, is_handled);
            },
        )));
        rejections
    }

    /// Begins to record rejections.
    pub(crate) fn watch(&self) {
        self.is_watched.set(true);
    }

    /// Drops all recorded rejections and stops recording.
    pub(crate) fn clear(&self) {
        self.is_watched.set(false);
        self.n_reported.set(0);
        self.unhandled.take();
    }

    fn report<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        is_handled: bool,
    ) {
        if !self.is_watched.get() {
            return;
        }
        let promise = Persistent::save(ctx, promise);
        if is_handled {
            self.unhandled.borrow_mut().remove(&promise);
            return;
        }
        let n = self.n_reported.get();
        self.n_reported.set(n + 1);
        self.unhandled.borrow_mut().insert(promise, (n, Persistent::save(ctx, reason)));
    }

    /// The reason of the first unhandled rejection; `None` if it is that of `awaited`, for which the host
    /// waits.
    pub(crate) fn first<'js>(&self, ctx: &Ctx<'js>, awaited: &Value<'js>) -> Option<SavedValue> {
        if self.unhandled.borrow().is_empty() {
            return None;
        }
        let awaited = Persistent::save(ctx, awaited.clone());
        let unhandled = self.unhandled.borrow();
        let (promise, (_, reason)) = unhandled.iter().min_by_key(|(_, (n, _))| *n)?;
        (*promise != awaited).then(|| reason.clone())
    }

    /// Takes the reasons of all unhandled rejections, in their order, without those of the promises for
    /// which the host waits.
    pub(crate) fn take_all<'js>(
        &self,
        ctx: &Ctx<'js>,
        is_awaited: impl Fn(&Value<'js>) -> bool,
    ) -> Vec<Value<'js>> {
        if self.unhandled.borrow().is_empty() {
            return vec![];
        }
        let mut reasons: Vec<(u64, Value<'js>)> = vec![];
        for (promise, (n, reason)) in self.unhandled.take() {
            let (Ok(promise), Ok(reason)) = (promise.restore(ctx), reason.restore(ctx)) else {
                continue;
            };
            if !is_awaited(&promise) {
                reasons.push((n, reason));
            }
        }
        reasons.sort_by_key(|(n, _)| *n);
        reasons.into_iter().map(|(_, reason)| reason).collect()
    }
}
