//! Blocks from the system, for what does not fit into a heap's region. They form a list, so that they can
//! be counted, and freed together.

use super::sizes::{ALIGN, WORD_BYTES};
use std::alloc::{GlobalAlloc as _, Layout, System};
use std::ptr::{self, NonNull};

/// Precedes every block of a heap: the number of bytes that its owner may use, which is even; plus one for
/// a block from the system.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct BlockWord(usize);

impl BlockWord {
    const OUTSIDE: usize = 1;

    /// The word of a block within the region.
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

/// Precedes every block from the system.
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

/// The list and its total size. A copy of an empty list is a separate list; others are not copied.
#[derive(Clone)]
pub(super) struct SystemBlocks {
    first: *mut BlockHeader,
    /// Their total size.
    bytes: usize,
}

impl SystemBlocks {
    pub(super) const fn new() -> Self {
        Self { first: ptr::null_mut(), bytes: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Their total size.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// A zeroed block; null if there is no memory for it.
    pub(super) fn take(&mut self, bytes: usize) -> *mut u8 {
        let Some(size) = rounded(bytes) else { return ptr::null_mut() };
        // SAFETY: the layout has a size; the writes are within it, and the block is in no list yet.
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

    /// Frees a block.
    ///
    /// # Safety
    /// The block is from this list, and is not used any more.
    pub(super) unsafe fn give_back(&mut self, block: *mut u8) {
        // SAFETY: as the caller guarantees.
        unsafe { self.free(header_of(block)) };
    }

    /// Returns a block of another size with the content of the old one, which is freed; null, and the old
    /// one stays, if there is no memory. The system may move a large one without copying it.
    ///
    /// # Safety
    /// The block is from this list.
    pub(super) unsafe fn resize(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        let Some(size) = rounded(new_size) else { return ptr::null_mut() };
        // SAFETY: as the caller guarantees; the new size fits a layout.
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

    /// Frees all blocks and empties the list.
    ///
    /// # Safety
    /// The blocks are not used any more.
    pub(super) unsafe fn clear(&mut self) {
        while let Some(header) = NonNull::new(self.first) {
            // SAFETY: as the caller guarantees; the list holds living blocks, each once.
            unsafe { self.free(header.as_ptr()) };
        }
        *self = Self::new();
    }

    /// # Safety
    /// The block is in the list, and is not used any more.
    unsafe fn free(&mut self, header: *mut BlockHeader) {
        // SAFETY: as the caller guarantees.
        unsafe {
            self.delist(header);
            System.dealloc(header.cast(), layout((*header).word.usable_bytes()));
        }
    }

    /// Inserts a block at the front of the list.
    ///
    /// # Safety
    /// The block is from the system and in no list.
    unsafe fn enlist(&mut self, header: *mut BlockHeader) {
        // SAFETY: as the caller guarantees; the list holds living blocks.
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

/// The layout of a system block with this many bytes; `None` if it would be too large.
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
    // SAFETY: every such block is preceded by a header.
    unsafe { block.cast::<BlockHeader>().sub(1) }
}
