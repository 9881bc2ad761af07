//! How deep a guest may recurse. The engine counts the bytes of the stack, and a call of a function in JavaScript takes 700
//! to 950 of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The stack of a thread that serves guests: what a guest may use, and room above it for the functions of the host that
/// it calls from its deepest frame.
pub const STACK_BYTES: usize = GUEST_STACK_BYTES_MAX + RESERVE_BYTES;

/// Holds 10,000 frames of functions with some variables, and 5,000 levels of JSON several times.
const GUEST_STACK_BYTES_MAX: usize = 12 << 20;

/// Writing JSON and formatting dates take the most of what guests call.
const RESERVE_BYTES: usize = 4 << 20;

/// Least stack that a guest gets.
const GUEST_STACK_BYTES_MIN: usize = 512 << 10;

/// What guests with the first globals had: how deep they came may be in their journals.
const FIRST_STACK_BYTES: usize = 768 << 10;

static GUEST_STACK_BYTES: AtomicUsize = AtomicUsize::new(GUEST_STACK_BYTES_MAX);

/// Says how much stack the threads have that serve guests, where it is less than [`STACK_BYTES`]. Counts for worlds that
/// are made afterwards.
pub fn have_stack(bytes: usize) {
    let most = bytes.saturating_sub(RESERVE_BYTES);
    GUEST_STACK_BYTES.store(most.clamp(GUEST_STACK_BYTES_MIN, GUEST_STACK_BYTES_MAX), Relaxed);
}

/// What a guest with globals of this version may use.
pub(crate) fn guest_stack_bytes(prelude_version: u32) -> usize {
    let bytes = GUEST_STACK_BYTES.load(Relaxed);
    if prelude_version == 1 { bytes.min(FIRST_STACK_BYTES) } else { bytes }
}
