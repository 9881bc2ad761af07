//! The first steps of a zygote's clone: it closes inherited descriptors, shuts its jail, and serves.

use super::{NOT_SHUT, leave, signals};
use crate::jail;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a runner must know about its zygote.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChildSetup {
    pub(super) zygote_pid: u32,
    pub(super) mapped_bytes: u64,
    pub(super) memory_bytes: u64,
}

/// Turns the process into a runner and serves until the link ends.
pub(super) fn serve(birth: ChildSetup, link: OwnedFd, serve: impl FnOnce(UnixStream) -> i32) -> ! {
    if shut(birth, &link).is_err() {
        leave(NOT_SHUT);
    }
    let link = UnixStream::from(link);
    // A panic is a crash and must look like one from outside; unwinding further would run the zygote's code.
    match catch_unwind(AssertUnwindSafe(|| serve(link))) {
        Ok(code) => leave(code),
        Err(_) => std::process::abort(),
    }
}

fn shut(birth: ChildSetup, link: &OwnedFd) -> std::io::Result<()> {
    jail::die_with_parent()?;
    // The zygote may have ended before the request to die with it.
    if std::os::unix::process::parent_id() != birth.zygote_pid {
        leave(0);
    }
    close_all_but(link);
    signals::forget_children()?;
    jail::shut_runner(std::process::id(), birth.mapped_bytes, birth.memory_bytes)
}

/// Closes the control socket and all other descriptors that a runner does not need; the standard ones are
/// /dev/null.
fn close_all_but(link: &OwnedFd) {
    let kept = link.as_raw_fd().unsigned_abs();
    super::close_range(super::CONTROL_DESCRIPTOR, kept - 1);
    super::close_range(kept + 1, u32::MAX);
}
