//! Executions of plain execbox hosts: their tools, their console, their words. Nothing of this is journalled, so time and
//! randomness are the machine's own.

mod host;
mod order;
mod session;
mod world;

pub(crate) use order::Order;

use crate::link::Inbox;
use crate::session::End;
use crate::usage;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use world::World;

/// A process that has grown by this much is not used again: what it keeps would blur how much the next program uses.
const GROWTH_BYTES_MAX: u64 = 8 << 20;

/// What serves the plain executions of one link: the next world is built while nobody waits for it.
pub(crate) struct Serving {
    next: Option<World>,
    peak_before: u64,
}

impl Serving {
    pub(crate) fn new() -> Self {
        Self { next: None, peak_before: usage::memory_peak_bytes() }
    }

    fn has_grown(&self) -> bool {
        usage::memory_peak_bytes().saturating_sub(self.peak_before) > GROWTH_BYTES_MAX
    }

    /// Runs one program to its end, in a world of its own, and says so. [`End::Closed`] also where the process has served
    /// long enough: whoever leased it takes another one.
    pub(crate) fn serve(
        &mut self,
        order: &Order,
        inbox: &mut Inbox,
        stream: &Rc<UnixStream>,
    ) -> End {
        let world = self.next.take().unwrap_or_else(World::fresh);
        world.host.connect(stream, &order.id);
        let end = session::run(&world, order, inbox);
        match end {
            End::Done if !self.has_grown() => {
                drop(world);
                self.next = Some(World::fresh());
                End::Done
            }
            // The kernel takes a dead process's memory back faster than we could free it object by object.
            End::Done | End::Closed | End::Broken | End::Diverged => {
                world.host.outbox.disconnect();
                std::mem::forget(world);
                if end == End::Done { End::Closed } else { end }
            }
        }
    }

    /// As above, for a world that nobody will use.
    pub(crate) fn leave(self) {
        std::mem::forget(self.next);
    }
}
