//! Describes the outcome of a guest after its turn has ended: only then can memory be lent to it.

use crate::clock::CLOCK_STANDS;
use crate::convert::NoJsonForm;
use crate::failure::{self, DescribedError};
use crate::guest_world::{GuestWorld, PreludeHook};
use crate::run_order::{HostKind, RunOrder};
use protocols::execbox::wire::Failed;
use rquickjs::{Persistent, Type, Value};

/// A value that the guest threw, stored until it is described.
pub(crate) type ThrownValue = Persistent<Value<'static>>;

/// How a session ended.
pub(crate) enum SessionEnding {
    /// The program's value as JSON; `None` for undefined.
    Value(Option<String>),
    /// A failure that needs no access to the guest.
    Failed(Failed<'static>),
    /// An uncaught error.
    Threw(ThrownValue),
    /// An error in a timer or microtask, which no code could catch.
    Crashed,
    /// A value that has no JSON form, and the engine's exception about it.
    NotJson(NoJsonForm, Option<ThrownValue>),
    /// The engine closed the link.
    Closed,
    /// The link broke or an invalid message arrived.
    Broken,
    /// `diverged` was sent.
    Diverged,
}

/// Converts the end of a session into its outcome.
pub(crate) struct OutcomeJudge<'s> {
    pub(crate) world: &'s GuestWorld,
    pub(crate) order: &'s RunOrder,
}

impl OutcomeJudge<'_> {
    /// The failure for an uncaught value.
    pub(crate) fn threw(&self, thrown: ThrownValue) -> Failed<'static> {
        let Self { world, order } = self;
        if world.host.is_out_of_time() {
            return out_of_time(world, order);
        }
        let is_exhausted = world.is_exhausted(order.memory_bytes);
        world.lend_memory(order.memory_bytes);
        let nothing = world.context.with(|ctx| {
            let thrown = thrown.clone().restore(&ctx).expect("thrown in this world");
            matches!(thrown.type_of(), Type::Null | Type::Uninitialized)
        });
        // The engine throws null when not even an error object could be allocated; a guest may throw null, too.
        if nothing && is_exhausted {
            return failure::memory_limit(order.memory_bytes);
        }
        self.described(&world.hooks.describe, Some(thrown))
    }

    /// The failure for an error in a timer or microtask.
    pub(crate) fn crashed(&self) -> Failed<'static> {
        self.world.lend_memory(self.order.memory_bytes);
        self.described(&self.world.hooks.describe_crash, None)
    }

    /// The failure for a value without JSON: the reason why the engine could not serialize it comes first.
    pub(crate) fn not_json(
        &self,
        why: &NoJsonForm,
        thrown: Option<ThrownValue>,
    ) -> Failed<'static> {
        let failed = thrown.map(|thrown| self.threw(thrown));
        match (failed, &self.order.manner) {
            (Some(failed), _) if failed.limit.is_some() => failed,
            (None, HostKind::Hosted(_)) if matches!(why, NoJsonForm::TooLarge(..)) => {
                failure::serialization(why, None)
            }
            (_, HostKind::Hosted(_)) => failure::plain("serialization", failure::NO_JSON),
            (Some(failed), HostKind::Journalled(_)) => {
                failure::serialization(why, Some(&failed.message))
            }
            (None, HostKind::Journalled(_)) => failure::serialization(why, None),
        }
    }

    fn described(&self, hook: &PreludeHook, thrown: Option<ThrownValue>) -> Failed<'static> {
        let Self { world, order } = self;
        let asked = world.context.with(|ctx| {
            let describe = hook.clone().restore(&ctx)?;
            let asked = match thrown {
                Some(thrown) => describe.call::<_, ()>((thrown,)),
                None => describe.call::<_, ()>(()),
            };
            asked.inspect_err(|_| drop(ctx.catch()))
        });
        let said = world.host.described.borrow_mut().take();
        match (asked, said) {
            (Ok(()), Some(DescribedError { code, ours: false, .. })) if code == "memory_limit" => {
                failure::memory_limit(order.memory_bytes)
            }
            (Ok(()), Some(said)) => {
                let shifts = world.host.shifts.borrow();
                match world.is_of_first_globals() {
                    true => said.into_failed(&shifts),
                    false => with_bigint_limit(said).into_failed(&shifts),
                }
            }
            // The prelude catches everything that the guest throws; only exhaustion stops it.
            _ if world.host.is_out_of_time() => out_of_time(world, order),
            _ => failure::memory_limit(order.memory_bytes),
        }
    }
}

/// Largest BigInt of the engine, its sign included.
const BIGINT_BITS_MAX: &str = "1,048,576";

/// The engine reports that a BigInt is too large, but not the limit.
pub(crate) fn with_bigint_limit(mut said: DescribedError) -> DescribedError {
    let is_too_large =
        matches!(said.message.as_str(), "BigInt is too large" | "BigInt is too large to allocate");
    if is_too_large && said.name == "RangeError" {
        said.message = format!("BigInt is too large: it may have {BIGINT_BITS_MAX} bits");
    }
    said
}

/// The program's time is used up.
pub(crate) fn out_of_time(world: &GuestWorld, order: &RunOrder) -> Failed<'static> {
    if let Some(max) = order.loop_rounds_max().filter(|_| world.host.has_looped_too_often()) {
        return failure::rounds_limit(max);
    }
    if world.host.has_waited_for_clock() {
        return failure::plain("timeout", CLOCK_STANDS);
    }
    match &order.manner {
        HostKind::Journalled(_) => failure::cpu_limit(order.cpu_ms(world.host.inputs())),
        HostKind::Hosted(_) => failure::deadline(),
    }
}

/// The host that ordered the program has cancelled it.
pub(crate) fn cancelled(order: &RunOrder) -> Failed<'static> {
    match &order.manner {
        HostKind::Journalled(_) => failure::plain("timeout", "was cancelled"),
        HostKind::Hosted(_) => failure::deadline(),
    }
}
