//! How deep a guest may recurse. The engine counts the bytes of the stack, and a call of a JavaScript
//! function takes 700 to 950 of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The stack of a thread that serves guests: the guest's share, and a reserve for the host functions that
/// it calls from its deepest frame.
pub const STACK_BYTES: usize = GUEST_STACK_BYTES_MAX + RESERVE_BYTES;

/// Holds 10,000 frames of functions with some variables, and 5,000 levels of JSON several times.
const GUEST_STACK_BYTES_MAX: usize = 12 << 20;

/// Serializing JSON and formatting dates use the most stack of the functions that guests call.
const RESERVE_BYTES: usize = 4 << 20;

/// Least stack that a guest gets.
const GUEST_STACK_BYTES_MIN: usize = 512 << 10;

/// The stack of guests with the first globals: journals may depend on their recursion limit.
const FIRST_STACK_BYTES: usize = 768 << 10;

static GUEST_STACK_BYTES: AtomicUsize = AtomicUsize::new(GUEST_STACK_BYTES_MAX);

/// Sets how much stack the threads that serve guests have, if it is less than [`STACK_BYTES`]. Applies to
/// worlds that are created afterwards.
pub fn have_stack(bytes: usize) {
    let most = bytes.saturating_sub(RESERVE_BYTES);
    GUEST_STACK_BYTES.store(most.clamp(GUEST_STACK_BYTES_MIN, GUEST_STACK_BYTES_MAX), Relaxed);
}

/// The stack of a guest with this version of the globals.
pub(crate) fn guest_stack_bytes(prelude_version: u32) -> usize {
    let bytes = GUEST_STACK_BYTES.load(Relaxed);
    if prelude_version == 1 { bytes.min(FIRST_STACK_BYTES) } else { bytes }
}
