//! Determines which of the pages that a runner shares with its zygote a program touches, and prefaults them.
//!
//! A copy of the zygote runs one small program and checks which pages it has made its own, and which of a
//! file it has read. A runner that has time to wait prefaults exactly those: faulting each page during the
//! first program costs a trap each; prefaulting all pages of the zygote would cost more than the program.

use super::mapped::{AddressRange, PAGE_BYTES, mappings, maps, pages, read_only};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};

/// More than a program touches. Pages beyond are faulted when they are touched, as usual.
const TOUCHED_BYTES_MAX: usize = 8 << 20;

/// Limit of the address space that is checked: more than a warm zygote has mapped.
const MAPPED_BYTES_MAX: usize = 512 << 20;

/// The unit of what the copy sends to the zygote.
const WORD_BYTES: usize = size_of::<usize>();

/// The flags in `/proc/self/pagemap` of a page that is in memory and mapped by this process only.
const OWN: u64 = 1 << 63 | 1 << 56;

/// The flags of a page that is in memory and belongs to a file.
const OF_FILE: u64 = 1 << 63 | 1 << 61;

/// How much of a file the kernel maps in one trap, if it is in memory.
const WINDOW_BYTES: usize = 64 << 10;

/// More windows than a program reads. Windows beyond are mapped when they are touched, as usual.
const WINDOWS_MAX: usize = 64;

/// The pages that a program writes to, and a page of each window of a file that it reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TouchedPages {
    written: Vec<AddressRange>,
    read: Vec<usize>,
}

/// Which process continues after [`TouchedPages::learn`].
pub(super) enum LearningSide {
    /// The copy: runs the program, then reports.
    Copy(TouchReport),
    /// The zygote, with the result.
    Zygote(TouchedPages),
}

/// The copy's obligation to report what it touched.
pub(super) struct TouchReport {
    ranges: Vec<AddressRange>,
    files: Vec<AddressRange>,
    to: PipeWriter,
}

impl TouchedPages {
    /// Learns from a copy of this process. If /proc is hidden nothing is learned.
    pub(super) fn learn() -> io::Result<LearningSide> {
        let maps = maps();
        let (ranges, files) = (writable(&maps), read_only(&maps).map(|file| file.range).collect());
        let (from, to) = io::pipe()?;
        // SAFETY: the process is single-threaded, so the copy finds every lock free.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => Ok(LearningSide::Copy(TouchReport { ranges, files, to })),
            copy => {
                drop(to);
                let heard = Self::receive_from(from);
                // SAFETY: the copy is our child; its status is of no interest and not written.
                unsafe { libc::waitpid(copy, std::ptr::null_mut(), 0) };
                Ok(LearningSide::Zygote(heard.unwrap_or_default()))
            }
        }
    }

    /// Prefaults all of these pages.
    pub(super) fn take_now(&self) {
        let populate = |(start, end): AddressRange, how: libc::c_int| {
            // SAFETY: populating a range changes no content, and one that is no longer mapped is refused.
            // An older kernel refuses all of them, which only loses the time saved.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, how) };
        };
        self.written.iter().for_each(|range| populate(*range, libc::MADV_POPULATE_WRITE));
        for page in &self.read {
            populate((*page, page + PAGE_BYTES), libc::MADV_POPULATE_READ);
        }
    }

    fn receive_from(mut from: PipeReader) -> io::Result<Self> {
        let mut said = Vec::new();
        from.read_to_end(&mut said)?;
        let words = said.as_chunks::<WORD_BYTES>().0.iter().map(|word| usize::from_ne_bytes(*word));
        let words: Vec<usize> = words.collect();
        let (windows, words) = counted(&words).ok_or(io::ErrorKind::UnexpectedEof)?;
        let written: Vec<AddressRange> =
            words.as_chunks::<2>().0.iter().copied().map(AddressRange::from).collect();
        let bytes: usize = written.iter().map(|(start, end)| end - start).sum();
        let written = if bytes <= TOUCHED_BYTES_MAX { written } else { vec![] };
        let read = windows.iter().take(WINDOWS_MAX).copied().collect();
        Ok(Self { written, read })
    }
}

/// Splits off a list that begins with its length; returns it and the rest.
fn counted(words: &[usize]) -> Option<(&[usize], &[usize])> {
    let (n, words) = words.split_first()?;
    words.split_at_checked(*n)
}

impl TouchReport {
    /// Reports what this process has touched since it was forked.
    pub(super) fn send_pages(mut self) -> io::Result<()> {
        let pagemap = File::open("/proc/self/pagemap")?;
        // Before any other code runs: the code that reports is file pages, too.
        let windows = windows(&pagemap, &self.files)?;
        let ranges = touched(&pagemap, &self.ranges)?.into_iter();
        let words = [windows.len()].into_iter().chain(windows);
        let words = words.chain(ranges.flat_map(|(start, end)| [start, end]));
        let said: Vec<u8> = words.flat_map(usize::to_ne_bytes).collect();
        self.to.write_all(&said)
    }
}

/// The parts of `ranges` that are this process's own.
fn touched(pagemap: &File, ranges: &[AddressRange]) -> io::Result<Vec<AddressRange>> {
    let mut found: Vec<AddressRange> = Vec::new();
    for range @ (start, _) in ranges {
        for (n, page) in pages(pagemap, *range)?.into_iter().enumerate() {
            if page & OWN == OWN {
                let page = start + n * PAGE_BYTES;
                // Only neighbours are merged: an additional system call costs less than an additional copy.
                match found.last_mut() {
                    Some((_, last)) if *last == page => *last += PAGE_BYTES,
                    _ => found.push((page, page + PAGE_BYTES)),
                }
            }
        }
    }
    Ok(found)
}

/// A page of each window of `files` that this process, a copy that has mapped nothing else, has read.
fn windows(pagemap: &File, files: &[AddressRange]) -> io::Result<Vec<usize>> {
    let mut found: Vec<usize> = Vec::new();
    for range @ (start, _) in files {
        for (n, page) in pages(pagemap, *range)?.into_iter().enumerate() {
            let at = start + n * PAGE_BYTES;
            let is_next = |last: &usize| last / WINDOW_BYTES != at / WINDOW_BYTES;
            if page & OF_FILE == OF_FILE && found.last().is_none_or(is_next) {
                found.push(at);
            }
        }
    }
    Ok(found)
}

/// Every private, writable range.
fn writable(maps: &str) -> Vec<AddressRange> {
    let mut left = MAPPED_BYTES_MAX;
    let writable = mappings(maps).filter(|mapping| mapping.rights == "rw-p");
    let ranges = writable.map(|mapping| mapping.range).filter(|(start, end)| {
        let rest = left.checked_sub(end - start);
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    ranges.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_counts_and_not_too_much_of_it() {
        let maps = "1000-2000 r-xp 0 0:0 0 /a\n\
                    2000-5000 rw-p 0 0:0 0 /a\n\
                    100000-f0000000 rw-p 0 0:0 0\n\
                    8000-9000 rw-p 0 0:0 0 [heap]\n\
                    a000-b000 rw-s 0 0:0 0\n\
                    nonsense\n";
        assert_eq!(writable(maps), [(0x2000, 0x5000), (0x8000, 0x9000)]);
    }

    #[test]
    fn what_a_copy_writes_is_learned_and_nothing_else() {
        const PAGES: usize = 64;
        let mut memory = vec![1_u8; PAGES * PAGE_BYTES];
        let first = memory.as_ptr() as usize;
        match TouchedPages::learn().unwrap() {
            LearningSide::Copy(saying) => {
                memory[20 * PAGE_BYTES] = 2;
                memory[40 * PAGE_BYTES] = 2;
                let said = std::hint::black_box(&memory).len() == PAGES * PAGE_BYTES
                    && saying.send_pages().is_ok();
                super::super::leave(i32::from(!said));
            }
            LearningSide::Zygote(touched) => {
                let is_learned = |page: usize| {
                    let at = first + page * PAGE_BYTES;
                    touched.written.iter().any(|(start, end)| (*start..*end).contains(&at))
                };
                assert!(is_learned(20) && is_learned(40), "{touched:?}");
                assert!(!is_learned(30) && !is_learned(50), "{touched:?}");
                assert!(!touched.read.is_empty(), "it ran some code");
                let mut windows: Vec<_> = touched.read.iter().map(|at| at / WINDOW_BYTES).collect();
                windows.dedup();
                assert_eq!(windows.len(), touched.read.len(), "{:x?}", touched.read);
                touched.take_now();
                assert_eq!(memory[20 * PAGE_BYTES], 1);
            }
        }
    }
}
