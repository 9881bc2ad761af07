//! How a program ended, put into words. It runs after the guest's turn is over, with a little memory lent to it.

use crate::convert::NotJson;
use crate::failure::{self, Described};
use crate::order::Order;
use crate::usage;
use crate::world::{Hook, World};
use protocols::execbox::wire::Failed;
use rquickjs::{Persistent, Type, Value};

/// Something the guest threw, kept until it is described.
pub(crate) type Thrown = Persistent<Value<'static>>;

/// What a session came to.
pub(crate) enum Ending {
    /// The program's value as JSON; `None` for undefined.
    Value(Option<String>),
    /// A failure that needs no look at the guest.
    Failed(Failed<'static>),
    /// An error nobody caught.
    Threw(Thrown),
    /// An error in a timer or microtask, which nobody could catch.
    Crashed,
    /// A value that has no JSON, with what the engine threw about it.
    NotJson(NotJson, Option<Thrown>),
    /// The engine closed the link.
    Closed,
    /// The link broke or made no sense.
    Broken,
    /// `diverged` was sent.
    Diverged,
}

/// The failure that an uncaught value means.
pub(crate) fn threw(world: &World, order: &Order, thrown: Thrown) -> Failed<'static> {
    if world.host.cpu_exhausted() {
        return cpu_limit(world, order);
    }
    world.lend_memory(order.memory_bytes);
    let nothing = world.context.with(|ctx| {
        let thrown = thrown.clone().restore(&ctx).expect("thrown in this world");
        matches!(thrown.type_of(), Type::Null | Type::Uninitialized)
    });
    // Null is what the engine throws when not even an error object could be allocated. A guest's own `throw null` is told
    // from it by the kernel: only in the first case has the process really come near its limit.
    if nothing && usage::memory_peak_bytes() > order.memory_bytes / 2 {
        return failure::memory_limit(order.memory_bytes);
    }
    described(world, order, &world.hooks.describe, Some(thrown))
}

/// The failure that an error in a timer or microtask means.
pub(crate) fn crashed(world: &World, order: &Order) -> Failed<'static> {
    world.lend_memory(order.memory_bytes);
    described(world, order, &world.hooks.describe_crash, None)
}

/// The failure that a value without JSON means: what stopped the engine from writing it comes first.
pub(crate) fn not_json(
    world: &World,
    order: &Order,
    why: &NotJson,
    thrown: Option<Thrown>,
) -> Failed<'static> {
    let Some(thrown) = thrown else {
        return failure::serialization(why, None);
    };
    let failed = threw(world, order, thrown);
    if failed.limit.is_some() { failed } else { failure::serialization(why, Some(&failed.message)) }
}

/// The allowance of processor time is used up.
pub(crate) fn cpu_limit(world: &World, order: &Order) -> Failed<'static> {
    failure::cpu_limit(order.cpu_ms(world.host.inputs()))
}

fn described(world: &World, order: &Order, hook: &Hook, thrown: Option<Thrown>) -> Failed<'static> {
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
        (Ok(()), Some(Described { code, .. })) if code == "memory_limit" => {
            failure::memory_limit(order.memory_bytes)
        }
        (Ok(()), Some(said)) => said.into_failed(world.host.first_line_shift.get()),
        // The prelude catches whatever the guest does; only exhaustion stops it.
        _ if world.host.cpu_exhausted() => cpu_limit(world, order),
        _ => failure::memory_limit(order.memory_bytes),
    }
}
