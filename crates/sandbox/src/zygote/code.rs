//! The code that runners run, in large pages.
//!
//! Pages of a file are mapped anew in every runner, a trap for a handful of them, and unmapped one by one when it ends.
//! Large pages of the zygote's own are inherited with its page tables: one entry each, and no trap at all.

use super::mapped::{Mapping, pages, read_only};
use std::fs::File;
use std::io;
use std::ptr;

/// What a large page holds.
const BLOCK_BYTES: usize = 2 << 20;

/// What `/proc/self/pagemap` says of a page that is mapped.
const MAPPED: u64 = 1 << 63;

/// A block of which a program touches less is not worth the memory. Sixteen pages are mapped in one trap.
const PAGES_TOUCHED_MIN: usize = 4 * 16;

/// How many blocks are made large: 12 MiB.
const BLOCKS_MAX: usize = 6;

/// A part of a file that fills a large page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    start: usize,
    is_code: bool,
}

/// Every block of a private part of a file that is only read.
pub(super) fn blocks(maps: &str) -> Vec<Block> {
    read_only(maps)
        .flat_map(|Mapping { range: (start, end), rights, .. }| {
            let is_code = rights == "r-xp";
            let first = start.next_multiple_of(BLOCK_BYTES);
            let starts =
                (first..end).step_by(BLOCK_BYTES).filter(move |at| at + BLOCK_BYTES <= end);
            starts.map(move |start| Block { start, is_code })
        })
        .collect()
}

/// Those of `blocks` that this process, a copy that has mapped nothing else, has touched most.
pub(super) fn touched(pagemap: &File, blocks: &[Block]) -> io::Result<Vec<usize>> {
    let mut found = Vec::new();
    for block in blocks {
        let pages = pages(pagemap, (block.start, block.start + BLOCK_BYTES))?;
        let n = pages.into_iter().filter(|page| page & MAPPED != 0).count();
        if n >= PAGES_TOUCHED_MIN {
            found.push((n, block.start));
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.truncate(BLOCKS_MAX);
    Ok(found.into_iter().map(|(_, start)| start).collect())
}

/// Whether an address lies in the block that begins at `start`.
pub(super) fn is_in_block(start: usize, at: usize) -> bool {
    (start..start + BLOCK_BYTES).contains(&at)
}

/// Puts large pages in place of those blocks that begin at `starts`. Where the machine has none left, the rest stays
/// as it is.
pub(super) fn enlarge(blocks: &[Block], starts: &[usize]) {
    for block in blocks.iter().filter(|block| starts.contains(&block.start)) {
        if replace(*block).is_err() {
            return;
        }
    }
}

fn replace(block: Block) -> io::Result<()> {
    let rights = if block.is_code { libc::PROT_READ | libc::PROT_EXEC } else { libc::PROT_READ };
    let room = Room::new()?;
    let fresh = room.block();
    // SAFETY: the room is ours alone and holds a whole block; `block` lies within a readable mapping that nobody writes
    // to. The copy is moved over the original in one step and says the same, so that code that is running there, this
    // function included, goes on as if nothing had happened; the process is single-threaded.
    unsafe {
        done(libc::madvise(fresh, BLOCK_BYTES, libc::MADV_HUGEPAGE))?;
        ptr::copy_nonoverlapping(block.start as *const u8, fresh.cast(), BLOCK_BYTES);
        // Says whether it is one large page, and makes it one where it can. Small ones would make every fork dearer.
        done(libc::madvise(fresh, BLOCK_BYTES, libc::MADV_COLLAPSE))?;
        done(libc::mprotect(fresh, BLOCK_BYTES, rights))?;
        let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let to = block.start as *mut libc::c_void;
        match libc::mremap(fresh, BLOCK_BYTES, BLOCK_BYTES, how, to) {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Memory in which one block lies, wherever blocks begin. What is still there is given back with it.
struct Room(*mut libc::c_void);

impl Room {
    const BYTES: usize = 2 * BLOCK_BYTES;

    fn new() -> io::Result<Self> {
        let (rights, how) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, wherever the kernel likes.
        match unsafe { libc::mmap(ptr::null_mut(), Self::BYTES, rights, how, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            start => Ok(Self(start)),
        }
    }

    fn block(&self) -> *mut libc::c_void {
        (self.0 as usize).next_multiple_of(BLOCK_BYTES) as *mut libc::c_void
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: nobody else knows of this memory; where a block was moved away there is a gap, which is no error.
        // Nothing is mapped between `new` and here that could have taken its place.
        unsafe { libc::munmap(self.0, Self::BYTES) };
    }
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::super::mapped::maps;
    use super::*;
    use std::io::Write as _;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};

    #[test]
    fn a_block_lies_wholly_within_what_is_only_read_of_a_file() {
        let maps = "1ff000-800000 r-xp 00001000 fe:00 7 /a\n\
                    800000-a00000 rw-p 00800000 fe:00 7 /a\n\
                    a00000-dff000 r--p 00a00000 fe:00 7 /a\n\
                    e00000-1200000 r-xp 00000000 00:00 0 [vdso]\n\
                    1200000-1600000 r-xp 00000000 00:00 0\n\
                    nonsense\n";
        let code = |start| Block { start, is_code: true };
        let data = Block { start: 0xa0_0000, is_code: false };
        assert_eq!(blocks(maps), [code(0x20_0000), code(0x40_0000), code(0x60_0000), data]);
    }

    /// A part of a file, three blocks long.
    fn mapped(file: &File) -> *mut libc::c_void {
        // SAFETY: new memory, wherever the kernel likes.
        let start = unsafe {
            let (rights, how) = (libc::PROT_READ, libc::MAP_PRIVATE);
            libc::mmap(ptr::null_mut(), 3 * BLOCK_BYTES, rights, how, file.as_raw_fd(), 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        start
    }

    #[test]
    fn what_is_made_large_says_what_it_said() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES).map(|n| (n / 7 % 251) as u8).collect();
        // SAFETY: the name is a string of C's, and nobody else knows of the new descriptor.
        let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"blocks".as_ptr(), 0)) };
        file.write_all(&bytes).unwrap();
        let start = mapped(&file);
        let range = start as usize..start as usize + bytes.len();
        let is_here = |block: &Block| range.contains(&block.start);
        let ours: Vec<Block> = blocks(&maps()).into_iter().filter(is_here).collect();
        assert!((2..=3).contains(&ours.len()), "{ours:?}");
        enlarge(&ours, &[ours[1].start]);
        // SAFETY: readable from end to end, whether it is still the file or a copy of it.
        let told = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), bytes.len()) };
        assert!(told == bytes, "other bytes are there");
        let left: Vec<Block> = blocks(&maps()).into_iter().filter(is_here).collect();
        let thp = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
        if thp.is_ok_and(|thp| !thp.contains("[never]")) {
            assert_eq!(
                left,
                ours.iter().copied().filter(|one| *one != ours[1]).collect::<Vec<_>>()
            );
        }
    }
}
