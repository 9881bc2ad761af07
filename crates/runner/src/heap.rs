//! The memory of a world's JavaScript heap: one region that can be restored to an earlier snapshot.
//!
//! Building a world takes ten times as long as running a small program in it, and so does tearing one down.
//! A runner that serves repeatedly takes a snapshot of its world before the first program, and restores it
//! after each: no byte that a program wrote remains, which is more than a new world in recycled memory
//! guarantees.
#![expect(
    unsafe_code,
    reason = "the engine takes its memory from C's functions; a copy of it is bytes"
)]

mod limit;
mod restore;
mod sizes;
mod system_blocks;

use limit::HeapLimit;
pub(crate) use limit::RESERVE_BYTES;
pub use limit::heap_bytes_max;
use rquickjs::allocator::Allocator;
use sizes::{ALIGN, BLOCK_BYTES_MAX, N_SIZES, WORD_BYTES, fitting};
use std::cell::UnsafeCell;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use system_blocks::{BlockWord, SystemBlocks};

/// Holds a world and small programs. Larger programs get additional memory from the system, block by block.
const REGION_BYTES: usize = 4 << 20;

/// The allocator's state. It is copied with the region.
#[derive(Clone)]
struct AllocatorState {
    /// How many bytes of the region were ever handed out, including words.
    used_bytes: usize,
    /// How many of those bytes were freed.
    free_bytes: usize,
    /// Lists of free blocks, by size; each block holds the address of the next one in its first bytes.
    free: Box<[*mut u8; N_SIZES]>,
    /// Blocks from the system.
    outside: SystemBlocks,
}

struct HeapRegion {
    region: NonNull<u8>,
    books: UnsafeCell<AllocatorState>,
    limit: HeapLimit,
}

/// A world's memory. Clones share it: the engine holds one, the world another.
#[derive(Clone)]
pub(crate) struct GuestHeap(Rc<HeapRegion>);

/// A copy of a heap's content.
pub(crate) struct HeapSnapshot {
    books: AllocatorState,
    bytes: Vec<u8>,
}

impl GuestHeap {
    /// An empty heap; `None` if there is no memory for it.
    pub(crate) fn new() -> Option<Self> {
        let region = map_region()?;
        let free = Box::new([ptr::null_mut(); N_SIZES]);
        // The first word lies right before the first possible place of a block.
        let (used_bytes, free_bytes) = (ALIGN - WORD_BYTES, 0);
        let books = AllocatorState { used_bytes, free_bytes, free, outside: SystemBlocks::new() };
        let books = UnsafeCell::new(books);
        Some(Self(Rc::new(HeapRegion { region, books, limit: HeapLimit::default() })))
    }

    /// The limit of the sum of its blocks, from now on.
    pub(crate) fn limit(&self) -> &HeapLimit {
        &self.0.limit
    }

    /// The bytes in use.
    pub(crate) fn bytes_in_use(&self) -> u64 {
        // SAFETY: as in `picture`.
        let books = unsafe { &*self.0.books.get() };
        books.bytes() as u64
    }

    /// Takes a snapshot; `None` if the heap has grown beyond its region.
    pub(crate) fn picture(&self) -> Option<HeapSnapshot> {
        // SAFETY: there is no other reference to the allocator state: heaps stay in one thread, and no
        // function here calls another that takes such a reference while it holds one.
        let books = unsafe { &*self.0.books.get() };
        if !books.outside.is_empty() {
            return None;
        }
        // SAFETY: the region is longer, and was all zeros before anything was written to it.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.region.as_ptr(), books.used_bytes) };
        Some(HeapSnapshot { books: books.clone(), bytes: bytes.to_vec() })
    }

    /// Restores the heap to the snapshot.
    ///
    /// # Safety
    /// The picture is the last one of this heap. All addresses into the heap that are still in use existed
    /// when it was taken, none that was handed out since is in use, and the engine is not running.
    pub(crate) unsafe fn restore(&self, picture: &HeapSnapshot) {
        // SAFETY: as in `picture`; no block from the system is in use; both pieces of memory are at least
        // this long, and do not overlap.
        unsafe {
            let books = &mut *self.0.books.get();
            books.outside.clear();
            let (region, known) = (self.0.region.as_ptr(), picture.bytes.len());
            let now = std::slice::from_raw_parts_mut(region, known);
            restore::restore(now, &picture.bytes);
            region.add(known).write_bytes(0, books.used_bytes - known);
            books.used_bytes = picture.books.used_bytes;
            books.free_bytes = picture.books.free_bytes;
            books.free.copy_from_slice(&*picture.books.free);
        }
    }

    /// Allocates a block; null if there is no memory for it. The flag is set if the whole block is zero.
    fn take(&self, bytes: usize) -> (*mut u8, bool) {
        // SAFETY: as in `picture`.
        let books = unsafe { &mut *self.0.books.get() };
        let Some((whole, n)) = fitting(bytes) else {
            return (self.take_outside(books, bytes), true);
        };
        let in_use = books.bytes();
        let free = &mut books.free[n];
        let is_within_region = !free.is_null() || whole <= REGION_BYTES - books.used_bytes;
        if is_within_region && !self.0.limit.admits(in_use, 0, whole) {
            return (ptr::null_mut(), true);
        }
        if !free.is_null() {
            let block = *free;
            books.free_bytes -= whole;
            // SAFETY: a block that was given back holds the address of the next one.
            *free = unsafe { block.cast::<*mut u8>().read() };
            return (block, false);
        }
        if !is_within_region {
            return (self.take_outside(books, bytes), true);
        }
        let at = books.used_bytes;
        books.used_bytes += whole;
        // SAFETY: the region has `whole` more bytes from here on, which have not been used since they were
        // zeros; all sizes are multiples of the alignment.
        unsafe {
            let place = self.0.region.as_ptr().add(at).cast::<BlockWord>();
            place.write(BlockWord::within(whole - WORD_BYTES));
            (place.add(1).cast(), true)
        }
    }

    fn take_outside(&self, books: &mut AllocatorState, bytes: usize) -> *mut u8 {
        if !self.0.limit.admits(books.bytes(), 0, bytes) {
            return ptr::null_mut();
        }
        let block = books.outside.take(bytes);
        if block.is_null() {
            self.0.limit.refuse(bytes);
        }
        block
    }

    /// Resizes a block from the system.
    ///
    /// # Safety
    /// The block is from the system, and only the returned block is used afterwards; the block itself if
    /// that is null.
    unsafe fn resize_outside(&self, block: *mut u8, old_size: usize, new_size: usize) -> *mut u8 {
        // SAFETY: allocator state as in `picture`; the block as the caller guarantees.
        unsafe {
            let books = &mut *self.0.books.get();
            if !self.0.limit.admits(books.bytes(), old_size, new_size) {
                return ptr::null_mut();
            }
            let moved = books.outside.resize(block, new_size);
            if moved.is_null() {
                self.0.limit.refuse(new_size);
            }
            moved
        }
    }
}

impl AllocatorState {
    /// The bytes in use.
    const fn bytes(&self) -> usize {
        self.used_bytes - self.free_bytes + self.outside.bytes()
    }
}

/// Maps zero pages, which cost nothing before they are written to. The system's own allocator would write
/// the zeros where it reuses memory, and a zygote would copy all of them to every runner.
fn map_region() -> Option<NonNull<u8>> {
    let (rights, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the kernel chooses where the new memory lies; nothing else refers to it.
    let region = unsafe { libc::mmap(ptr::null_mut(), REGION_BYTES, rights, kind, -1, 0) };
    NonNull::new(region.cast()).filter(|_| region != libc::MAP_FAILED)
}

/// # Safety
/// `block` was handed out by a heap.
unsafe fn word_of(block: *mut u8) -> BlockWord {
    // SAFETY: every block is preceded by a word.
    unsafe { block.cast::<BlockWord>().sub(1).read() }
}

// SAFETY: blocks are aligned to 16 bytes and as long as they report, overlap no other block in use, and do
// not move until they are freed.
unsafe impl Allocator for GuestHeap {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.0.limit.admits_block(size) {
            return ptr::null_mut();
        }
        self.take(size.max(1)).0
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        let Some(bytes) = count.checked_mul(size) else { return ptr::null_mut() };
        if !self.0.limit.admits_block(bytes) {
            return ptr::null_mut();
        }
        let (block, is_zero) = self.take(bytes.max(1));
        if !is_zero && !block.is_null() {
            // SAFETY: the block is at least this long.
            unsafe { block.write_bytes(0, bytes) };
        }
        block
    }

    unsafe fn dealloc(&mut self, block: *mut u8) {
        if block.is_null() {
            return;
        }
        // SAFETY: the caller frees a block that a heap handed out and no longer uses it; a block of the
        // region holds at least an address. Allocator state as in `picture`.
        unsafe {
            let books = &mut *self.0.books.get();
            let word = word_of(block);
            if word.is_outside() {
                books.outside.give_back(block);
            } else if let Some((whole, n)) = fitting(word.usable_bytes()) {
                books.free_bytes += whole;
                block.cast::<*mut u8>().write(books.free[n]);
                books.free[n] = block;
            }
        }
    }

    unsafe fn realloc(&mut self, block: *mut u8, new_size: usize) -> *mut u8 {
        if block.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: as in `dealloc`; the copy is as long as the shorter of the two.
        unsafe {
            let word = word_of(block);
            if word.is_outside() && new_size > BLOCK_BYTES_MAX {
                return self.resize_outside(block, word.usable_bytes(), new_size);
            }
            let old_size = word.usable_bytes();
            if new_size <= old_size && new_size > old_size / 2 {
                return block;
            }
            let moved = self.take(new_size.max(1)).0;
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, old_size.min(new_size));
                self.dealloc(block);
            }
            moved
        }
    }

    unsafe fn usable_size(block: *mut u8) -> usize {
        if block.is_null() {
            return 0;
        }
        // SAFETY: the caller passes a block that a heap handed out.
        unsafe { word_of(block) }.usable_bytes()
    }
}

impl Drop for HeapRegion {
    fn drop(&mut self) {
        // SAFETY: the last heap was dropped, and with it the engine that used its blocks.
        unsafe { self.books.get_mut().outside.clear() };
        // SAFETY: as above.
        unsafe { libc::munmap(self.region.as_ptr().cast(), REGION_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(block: *mut u8, byte: u8, bytes: usize) {
        assert!(!block.is_null() && block.addr().is_multiple_of(ALIGN));
        // SAFETY: the tests write to blocks of that length.
        unsafe { block.write_bytes(byte, bytes) };
    }

    fn read(block: *mut u8, bytes: usize) -> Vec<u8> {
        // SAFETY: the tests read from blocks of that length, which they wrote.
        unsafe { std::slice::from_raw_parts(block, bytes) }.to_vec()
    }

    #[test]
    fn a_restored_heap_is_what_it_was_and_hands_out_what_it_would_have() {
        let mut heap = GuestHeap::new().unwrap();
        let kept = heap.alloc(100);
        write(kept, 1, 100);
        let picture = heap.picture().unwrap();
        let mut handed_out = Vec::new();
        for _ in 0..2 {
            write(kept, 2, 100);
            let (small, large) = (heap.alloc(500), heap.alloc(3 * BLOCK_BYTES_MAX));
            write(small, 3, 500);
            write(large, 3, 3 * BLOCK_BYTES_MAX);
            assert!(heap.picture().is_none(), "a large block lies outside");
            handed_out.push(small);
            // SAFETY: no block that was handed out since is used again.
            unsafe { heap.restore(&picture) };
            assert_eq!(read(kept, 100), [1; 100]);
        }
        assert_eq!(handed_out[0], handed_out[1]);
    }

    #[test]
    fn what_is_in_use_is_known_and_bounded_until_the_heap_is_put_back() {
        let mut heap = GuestHeap::new().unwrap();
        let picture = heap.picture().unwrap();
        let before = heap.bytes_in_use();
        for _ in 0..2 {
            heap.limit().set(4_000_000);
            let first = heap.alloc(1_000_000);
            let small = heap.alloc(1_000);
            assert!((1_001_000..1_002_000).contains(&(heap.bytes_in_use() - before)));
            // SAFETY: the blocks are the heap's, and are not used again.
            unsafe {
                let second = heap.realloc(first, 6_900_000);
                assert!(!second.is_null(), "what grows may become larger than the limit");
                assert!((6_901_000..6_902_000).contains(&(heap.bytes_in_use() - before)));
                assert!(heap.realloc(second, 7_100_000).is_null());
                assert!(heap.alloc(100_000).is_null() && heap.alloc(4_000_001).is_null());
                assert!(!heap.limit().has_refused_little());
                heap.dealloc(second);
                heap.dealloc(small);
            }
            assert_eq!(heap.bytes_in_use(), before);
            let again = heap.alloc(1_000);
            assert_eq!(again, small);
            // SAFETY: no block that was handed out is used again.
            unsafe { heap.restore(&picture) };
            assert_eq!(heap.bytes_in_use(), before);
        }
    }

    #[test]
    fn what_the_system_refuses_is_refused() {
        let mut heap = GuestHeap::new().unwrap();
        assert!(heap.alloc(1 << 60).is_null());
        assert!(!heap.limit().has_refused_little(), "nobody has so much");
        heap.limit().set(1 << 20);
        while !heap.alloc(1_000).is_null() {}
        assert!(heap.limit().has_refused_little());
        assert!(heap.bytes_in_use() <= heap_bytes_max(1 << 20));
    }

    #[test]
    fn blocks_grow_and_shrink_and_keep_what_they_hold() {
        let mut heap = GuestHeap::new().unwrap();
        let sizes = [1, 64, 65, 4096, 70_000, 700_000, 5_000_000, 90_000, 100, 7];
        let mut block = heap.alloc(sizes[0]);
        write(block, 7, 1);
        for size in sizes {
            // SAFETY: the block is the heap's, and only the returned block is used afterwards.
            block = unsafe { heap.realloc(block, size) };
            assert_eq!(read(block, 1), [7]);
            // SAFETY: as above.
            assert!(unsafe { GuestHeap::usable_size(block) } >= size);
            write(block, 7, size);
        }
        // SAFETY: as above.
        unsafe { heap.dealloc(block) };
        assert!(heap.picture().is_some(), "nothing is left outside");
    }

    #[test]
    fn blocks_that_are_used_again_are_zero_where_zeros_are_asked_for() {
        let mut heap = GuestHeap::new().unwrap();
        let first = heap.alloc(256);
        write(first, 9, 256);
        // SAFETY: it is not used again.
        unsafe { heap.dealloc(first) };
        let again = heap.calloc(4, 64);
        assert_eq!(again, first);
        assert_eq!(read(again, 256), [0; 256]);
        assert!(heap.calloc(usize::MAX, 2).is_null());
        assert!(heap.alloc(usize::MAX).is_null());
    }

    #[test]
    fn nothing_that_was_written_after_the_picture_is_left() {
        let mut heap = GuestHeap::new().unwrap();
        heap.alloc(40);
        let picture = heap.picture().unwrap();
        let since = heap.alloc(3_000);
        write(since, 5, 3_000);
        // SAFETY: the block that was handed out since is only read, and lies in the region.
        unsafe { heap.restore(&picture) };
        assert_eq!(read(since, 3_000), [0; 3_000]);
    }

    proptest::proptest! {
        #[test]
        fn no_two_blocks_overlap(steps in proptest::collection::vec((0_usize..200_000, 0_usize..8), 1..80)) {
            let mut heap = GuestHeap::new().unwrap();
            let mut held: Vec<(*mut u8, usize, u8)> = Vec::new();
            for (n, (size, choice)) in steps.into_iter().enumerate() {
                let byte = n as u8;
                match choice {
                    0 | 1 if !held.is_empty() => {
                        let (block, size, byte) = held.swap_remove(size % held.len());
                        proptest::prop_assert!(read(block, size).iter().all(|found| *found == byte));
                        // SAFETY: it is not used again.
                        unsafe { heap.dealloc(block) };
                    }
                    2 if !held.is_empty() => {
                        let at = size % held.len();
                        let (block, old, byte) = held[at];
                        // SAFETY: only the returned block is used afterwards.
                        let block = unsafe { heap.realloc(block, size) };
                        proptest::prop_assert!(read(block, old.min(size)).iter().all(|found| *found == byte));
                        write(block, byte, size);
                        held[at] = (block, size, byte);
                    }
                    _ => {
                        let block = heap.alloc(size);
                        write(block, byte, size);
                        held.push((block, size, byte));
                    }
                }
            }
            for (block, size, byte) in held {
                proptest::prop_assert!(read(block, size).iter().all(|found| *found == byte));
            }
        }
    }
}
