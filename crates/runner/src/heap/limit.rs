//! The limit of the sum of a heap's blocks. The heap enforces the limit itself instead of the engine: it
//! knows which requests it refused, and so whether a program that could not even create an error object has
//! run out of memory.

use std::cell::Cell;

/// The largest real memory of a heap whose program has this limit. Limits are meant as other hosts of
/// QuickJS count them, whose values and pointers are half the size of ours: the same program takes up to
/// 7/4 of that here.
pub const fn heap_bytes_max(memory_bytes: u64) -> u64 {
    memory_bytes.saturating_add(memory_bytes / 4 * 3)
}

/// Extra memory for describing the error once the guest's own memory is used up.
pub(crate) const RESERVE_BYTES: usize = 1 << 20;

/// The refusal of a request as small as this means that hardly any memory is left: the engine takes small
/// blocks in pieces of 4 KiB.
const LITTLE_BYTES_MAX: usize = 8 << 10;

/// The limit of one heap. Without one, everything is admitted.
pub(crate) struct HeapLimit {
    bytes_max: Cell<usize>,
    /// The largest block that is handed out in one piece; arrays that grow may become larger.
    block_bytes_max: Cell<usize>,
    refused_bytes_min: Cell<usize>,
    is_lent: Cell<bool>,
    /// The peak use since the limit was set.
    most_bytes: Cell<usize>,
}

impl Default for HeapLimit {
    fn default() -> Self {
        Self {
            bytes_max: Cell::new(usize::MAX),
            block_bytes_max: Cell::new(usize::MAX),
            refused_bytes_min: Cell::new(usize::MAX),
            is_lent: Cell::new(false),
            most_bytes: Cell::new(0),
        }
    }
}

impl HeapLimit {
    /// Sets the limit for a program with this much memory.
    pub(crate) fn set(&self, memory_bytes: u64) {
        self.bytes_max.set(size(heap_bytes_max(memory_bytes)));
        self.block_bytes_max.set(size(memory_bytes));
        self.is_lent.set(false);
        self.most_bytes.set(0);
        self.forget_refusals();
    }

    /// Admits a little more memory, once.
    pub(crate) fn lend(&self) {
        if !self.is_lent.replace(true) {
            self.bytes_max.set(self.bytes_max.get().saturating_add(RESERVE_BYTES));
        }
    }

    /// Whether a small request was refused.
    pub(crate) fn has_refused_little(&self) -> bool {
        self.refused_bytes_min.get() <= LITTLE_BYTES_MAX
    }

    /// Whether this many bytes were in use at some time since the limit was set.
    pub(crate) fn has_reached(&self, bytes: u64) -> bool {
        self.most_bytes.get() as u64 >= bytes
    }

    pub(crate) fn forget_refusals(&self) {
        self.refused_bytes_min.set(usize::MAX);
    }

    /// Records that a request cannot be fulfilled.
    pub(super) fn refuse(&self, bytes: usize) {
        self.refused_bytes_min.set(self.refused_bytes_min.get().min(bytes));
    }

    /// Whether a block may grow from `old` to `new` bytes while `used` bytes are in use.
    pub(super) fn admits(&self, used: usize, old: usize, new: usize) -> bool {
        let bytes = (used - old).saturating_add(new);
        let is_admitted = new <= old || bytes <= self.bytes_max.get();
        if is_admitted {
            self.most_bytes.set(self.most_bytes.get().max(bytes));
        } else {
            self.refuse(new);
        }
        is_admitted
    }

    /// Whether a new block may be this long.
    pub(super) fn admits_block(&self, bytes: usize) -> bool {
        let is_admitted = bytes <= self.block_bytes_max.get();
        if !is_admitted {
            self.refuse(bytes);
        }
        is_admitted
    }
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_seven_quarters_of_its_limit_and_no_single_block_above_it() {
        let limit = HeapLimit::default();
        assert!(limit.admits(1 << 40, 0, 1 << 40) && limit.admits_block(1 << 40));
        limit.set(100);
        assert_eq!(heap_bytes_max(100), 175);
        assert!(limit.admits(100, 0, 75) && limit.admits(175, 60, 60) && limit.admits_block(100));
        assert!(!limit.admits(100, 0, 76) && !limit.admits_block(101));
        assert!(limit.admits(200, 60, 59), "what shrinks is always admitted");
    }

    #[test]
    fn only_a_little_that_is_refused_means_that_nothing_is_left() {
        let limit = HeapLimit::default();
        limit.set(1 << 20);
        assert!(!limit.admits_block(1 << 30));
        assert!(!limit.has_refused_little());
        assert!(!limit.admits(heap_bytes_max(1 << 20) as usize, 0, 100));
        assert!(limit.has_refused_little());
        limit.lend();
        assert!(limit.admits(heap_bytes_max(1 << 20) as usize, 0, 100));
        limit.forget_refusals();
        assert!(!limit.has_refused_little());
        assert!(limit.has_reached(heap_bytes_max(1 << 20) + 100) && !limit.has_reached(2 << 20));
    }
}
