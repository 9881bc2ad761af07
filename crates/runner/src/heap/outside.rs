//! Blocks from the system, for what the region of a heap does not hold. They are in a list, so that all of them can be given
//! back at once, and counted.

use super::sizes::{ALIGN, WORD_BYTES};
use std::alloc::{GlobalAlloc as _, Layout, System};
use std::ptr::{self, NonNull};

/// Stands before every block of a heap: how many bytes its owner may use, which is even; one more for a block from the
/// system.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct BlockWord(usize);

impl BlockWord {
    const OUTSIDE: usize = 1;

    /// Of a block within the region.
    pub(super) const fn within(usable_bytes: usize) -> Self {
        Self(usable_bytes)
    }

    pub(super) const fn usable_bytes(self) -> usize {
        self.0 & !Self::OUTSIDE
    }

    pub(super) const fn is_outside(self) -> bool {
        self.0 & Self::OUTSIDE != 0
    }
}

/// Stands before every block from the system.
#[repr(C, align(16))]
struct BlockHeader {
    /// Neighbours in the list of such blocks. Null at the ends.
    previous: *mut Self,
    next: *mut Self,
    padding: usize,
    word: BlockWord,
}
const HEADER_BYTES: usize = size_of::<BlockHeader>();
const _: () = assert!(size_of::<BlockWord>() == WORD_BYTES);
const _: () = assert!(std::mem::offset_of!(BlockHeader, word) == HEADER_BYTES - WORD_BYTES);

/// The list, and what it adds up to. A copy of an empty one is another; nobody copies others.
#[derive(Clone)]
pub(super) struct SystemBlocks {
    first: *mut BlockHeader,
    /// What they take together.
    bytes: usize,
}

impl SystemBlocks {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), bytes: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// What they take together.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// A zeroed block; null if there is no memory for it.
    pub(super) fn take(&mut self, bytes: usize) -> *mut u8 {
        let Some(size) = rounded(bytes) else { return ptr::null_mut() };
        // SAFETY: the layout has a size; what is written lies within it, and is in no list yet.
        unsafe {
            let header = System.alloc_zeroed(layout(size)).cast::<BlockHeader>();
            if header.is_null() {
                return ptr::null_mut();
            }
            let (previous, next) = (ptr::null_mut(), ptr::null_mut());
            header.write(BlockHeader {
                previous,
                next,
                padding: 0,
                word: BlockWord(size | BlockWord::OUTSIDE),
            });
            self.enlist(header);
            header.add(1).cast()
        }
    }

    /// Gives a block back.
    ///
    /// # Safety
    /// The block is from this list, and nobody uses it any more.
    pub(super) unsafe fn give_back(&mut self, block: *mut u8) {
        // SAFETY: as the caller says.
        unsafe { self.free(header_of(block)) };
    }

    /// A block of another size with what that one held, which is gone then; null, and it stays, if there is no memory. The
    /// system may move a large one without copying it.
    ///
    /// # Safety
    /// The block is from this list.
    pub(super) unsafe fn resize(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        let Some(size) = rounded(new_size) else { return ptr::null_mut() };
        // SAFETY: as the caller says; the new size fits a layout.
        unsafe {
            let header = header_of(block);
            self.delist(header);
            let old = layout((*header).word.usable_bytes());
            let moved =
                System.realloc(header.cast(), old, size + HEADER_BYTES).cast::<BlockHeader>();
            if moved.is_null() {
                self.enlist(header);
                return ptr::null_mut();
            }
            (*moved).word = BlockWord(size | BlockWord::OUTSIDE);
            self.enlist(moved);
            moved.add(1).cast()
        }
    }

    /// Gives all of them back, and knows of none.
    ///
    /// # Safety
    /// Nobody uses them any more.
    pub(super) unsafe fn clear(&mut self) {
        while let Some(header) = NonNull::new(self.first) {
            // SAFETY: as the caller says; the list holds living blocks, each once.
            unsafe { self.free(header.as_ptr()) };
        }
        *self = Self::new();
    }

    /// # Safety
    /// The block is in the list, and nobody uses it any more.
    unsafe fn free(&mut self, header: *mut BlockHeader) {
        // SAFETY: as the caller says.
        unsafe {
            self.delist(header);
            System.dealloc(header.cast(), layout((*header).word.usable_bytes()));
        }
    }

    /// Makes a block the first of the list.
    ///
    /// # Safety
    /// The block is from the system and in no list.
    unsafe fn enlist(&mut self, header: *mut BlockHeader) {
        // SAFETY: as the caller says; the list holds living blocks.
        unsafe {
            (*header).previous = ptr::null_mut();
            (*header).next = self.first;
            if let Some(next) = self.first.as_mut() {
                next.previous = header;
            }
            self.first = header;
            self.bytes += (*header).word.usable_bytes() + HEADER_BYTES;
        }
    }

    /// Takes a block out of the list.
    ///
    /// # Safety
    /// The block is in the list.
    unsafe fn delist(&mut self, header: *mut BlockHeader) {
        // SAFETY: the neighbours of a block in the list are in it too.
        unsafe {
            let BlockHeader { previous, next, word, .. } = header.read();
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => self.first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            self.bytes -= word.usable_bytes() + HEADER_BYTES;
        }
    }
}

/// What is asked of the system for so many bytes; `None` if nobody has so many.
fn rounded(bytes: usize) -> Option<usize> {
    let size = bytes.checked_next_multiple_of(ALIGN)?;
    (size <= isize::MAX as usize / 2).then_some(size)
}

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size + HEADER_BYTES, ALIGN).expect("sizes are checked when taken")
}

/// # Safety
/// `block` is from the system.
unsafe fn header_of(block: *mut u8) -> *mut BlockHeader {
    // SAFETY: every such block has a header before it.
    unsafe { block.cast::<BlockHeader>().sub(1) }
}
