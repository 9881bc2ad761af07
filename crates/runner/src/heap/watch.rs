//! Which pages of a world its programs write to, so that only those are compared with its picture.
//!
//! A world is a hundred pages, and most programs write to twenty of them. All others are made read-only: a program that
//! writes to one is stopped by the processor, the page is noted and opened, and the program goes on without having
//! noticed. To look at the rest would take longer than a small program, and push out of the processor's caches
//! what everybody else needs.

use super::REGION_BYTES;
use std::ptr::{self, NonNull};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What is put back at once of a page that has changed.
const PIECE_BYTES: usize = 512;

/// After so many programs, pages that were opened and are no longer changed are closed again: a program that touched
/// everything must not make all that follow it slower. Not sooner: some pages are written to and end as they were.
const REVIEW_EVERY: u32 = 1_024;

/// The smallest page there is.
const PAGE_BYTES_MIN: usize = 4 << 10;
const N_WORDS: usize = REGION_BYTES / PAGE_BYTES_MIN / 64;

/// The watched memory of this process, as the handler of its faults sees it: there is one, as there is one world in a
/// runner. Where a second world asks, as in tests, it is compared as a whole.
static WATCHED: Watched = Watched {
    is_taken: AtomicBool::new(false),
    start: AtomicUsize::new(0),
    bytes: AtomicUsize::new(0),
    page_bytes: AtomicUsize::new(PAGE_BYTES_MIN),
    opened: [const { AtomicU64::new(0) }; N_WORDS],
};

struct Watched {
    is_taken: AtomicBool,
    start: AtomicUsize,
    /// Whole pages.
    bytes: AtomicUsize,
    page_bytes: AtomicUsize,
    /// A bit for each page that may be written to.
    opened: [AtomicU64; N_WORDS],
}

/// One memory under watch.
pub(super) struct Watch {
    region: NonNull<u8>,
    n_pages: usize,
    page_bytes: usize,
    /// Pages that had to be put back since the last review.
    changed: [u64; N_WORDS],
    n_restores: u32,
}

impl Watch {
    /// Watches the whole pages among the first `bytes` of a region; `None` where that cannot be.
    pub(super) fn begin(region: NonNull<u8>, bytes: usize) -> Option<Self> {
        let page_bytes = page_bytes()?;
        let n_pages = bytes / page_bytes;
        if n_pages == 0 || WATCHED.is_taken.swap(true, Relaxed) {
            return None;
        }
        WATCHED.opened.iter().for_each(|word| word.store(0, Relaxed));
        WATCHED.page_bytes.store(page_bytes, Relaxed);
        WATCHED.start.store(region.as_ptr().addr(), Relaxed);
        WATCHED.bytes.store(n_pages * page_bytes, Relaxed);
        let watch = Self { region, n_pages, page_bytes, changed: [0; N_WORDS], n_restores: 0 };
        (hear_faults() && watch.set(0, n_pages, libc::PROT_READ)).then_some(watch)
    }

    /// Makes the watched pages what they were, and says how many bytes they are.
    pub(super) fn put_back(&mut self, was: &[u8]) -> usize {
        for n in 0..self.n_pages {
            if !is_set(WATCHED.opened[n / 64].load(Relaxed), n) {
                continue;
            }
            let page = n * self.page_bytes..(n + 1) * self.page_bytes;
            // SAFETY: the page is part of the region, and open; nobody else looks at it meanwhile.
            let now = unsafe {
                let start = self.region.as_ptr().add(page.start);
                std::slice::from_raw_parts_mut(start, self.page_bytes)
            };
            if put_back(now, &was[page]) {
                self.changed[n / 64] |= 1 << (n % 64);
            }
        }
        self.n_restores += 1;
        if self.n_restores >= REVIEW_EVERY {
            self.review();
        }
        self.n_pages * self.page_bytes
    }

    fn review(&mut self) {
        self.n_restores = 0;
        for n in 0..self.n_pages {
            let is_idle = !is_set(self.changed[n / 64], n);
            let opened = &WATCHED.opened[n / 64];
            if is_idle && is_set(opened.load(Relaxed), n) && self.set(n, 1, libc::PROT_READ) {
                opened.fetch_and(!(1 << (n % 64)), Relaxed);
            }
        }
        self.changed = [0; N_WORDS];
    }

    fn set(&self, first: usize, n: usize, rights: i32) -> bool {
        // SAFETY: the pages are part of the region.
        unsafe {
            let start = self.region.as_ptr().add(first * self.page_bytes);
            libc::mprotect(start.cast(), n * self.page_bytes, rights) == 0
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.set(0, self.n_pages, libc::PROT_READ | libc::PROT_WRITE);
        WATCHED.bytes.store(0, Relaxed);
        WATCHED.is_taken.store(false, Relaxed);
    }
}

/// Makes `now` what it was, and says whether it was different.
pub(super) fn put_back(now: &mut [u8], was: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { put_back_widely(now, was) };
    }
    put_back_pieces(now, was)
}

/// The same with twice as much in each step. In a runner C's own comparison does without: its kind is chosen together with
/// that of mathematics, which must be the same on every machine.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn put_back_widely(now: &mut [u8], was: &[u8]) -> bool {
    put_back_pieces(now, was)
}

#[inline(always)]
fn put_back_pieces(now: &mut [u8], was: &[u8]) -> bool {
    let mut has_changed = false;
    for (now, was) in now.chunks_mut(PIECE_BYTES).zip(was.chunks(PIECE_BYTES)) {
        if is_different(now, was) {
            now.copy_from_slice(was);
            has_changed = true;
        }
    }
    has_changed
}

/// Looks at all of it without asking in between: the compiler makes wide steps of that.
#[inline(always)]
fn is_different(now: &[u8], was: &[u8]) -> bool {
    let ((now, now_rest), (was, was_rest)) = (now.as_chunks::<8>(), was.as_chunks::<8>());
    let difference = now.iter().zip(was).fold(0, |difference, (now, was)| {
        difference | (u64::from_ne_bytes(*now) ^ u64::from_ne_bytes(*was))
    });
    difference != 0 || now_rest != was_rest
}

const fn is_set(word: u64, n: usize) -> bool {
    word >> (n % 64) & 1 != 0
}

fn page_bytes() -> Option<usize> {
    // SAFETY: it only answers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| *bytes >= PAGE_BYTES_MIN)
}

/// Has faults told to [`on_fault`], from now on. Whether that is so.
fn hear_faults() -> bool {
    static INSTALLED: Once = Once::new();
    static IS_HEARD: AtomicBool = AtomicBool::new(false);
    INSTALLED.call_once(|| {
        // SAFETY: an all-zero action is valid; the handler only does what a handler may.
        let answer = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as libc::sighandler_t;
            // A guest that has used up its stack must end as it would without us.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut())
        };
        IS_HEARD.store(answer == 0, Relaxed);
    });
    IS_HEARD.load(Relaxed)
}

/// Opens the page that somebody wrote to, who then tries again. Any other fault ends the process, as it would without us.
extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel says where; the rest is loads, stores and system calls, which are allowed here.
    unsafe {
        if !open((*info).si_addr().addr()) {
            libc::signal(signal, libc::SIG_DFL);
        }
    }
}

fn open(address: usize) -> bool {
    let (start, page_bytes) = (WATCHED.start.load(Relaxed), WATCHED.page_bytes.load(Relaxed));
    let at = address.wrapping_sub(start);
    if at >= WATCHED.bytes.load(Relaxed) {
        return false;
    }
    let n = at / page_bytes;
    // One that is open already has another reason.
    if is_set(WATCHED.opened[n / 64].fetch_or(1 << (n % 64), Relaxed), n) {
        return false;
    }
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the page belongs to a watched region.
    unsafe {
        libc::mprotect((start + n * page_bytes) as *mut libc::c_void, page_bytes, rights) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::map_region;

    const N_PAGES: usize = 70;

    /// Some pages of a region, each full of its own number, and how they were. One test at a time has the watch.
    fn watched() -> (Watch, Vec<u8>) {
        let (region, page_bytes) = (map_region().unwrap(), page_bytes().unwrap());
        let was: Vec<u8> = (0..N_PAGES * page_bytes).map(|at| (at / page_bytes) as u8).collect();
        // SAFETY: the region is longer, and nobody else knows of it.
        unsafe { region.as_ptr().copy_from_nonoverlapping(was.as_ptr(), was.len()) };
        loop {
            match Watch::begin(region, was.len() + 1) {
                Some(watch) => return (watch, was),
                None => std::thread::yield_now(),
            }
        }
    }

    impl Watch {
        fn write(&self, page: usize, byte: u8) {
            // SAFETY: the page is part of the region.
            unsafe { self.region.as_ptr().add(page * self.page_bytes + 5).write_volatile(byte) };
        }

        fn is_as_it_was(&self, was: &[u8]) -> bool {
            // SAFETY: the region is longer, and nobody writes to it meanwhile.
            was == unsafe { std::slice::from_raw_parts(self.region.as_ptr(), was.len()) }
        }

        fn opened(&self) -> Vec<usize> {
            let is_open = |n: &usize| is_set(WATCHED.opened[n / 64].load(Relaxed), *n);
            (0..self.n_pages).filter(is_open).collect()
        }
    }

    #[test]
    fn pages_are_opened_by_whoever_writes_to_them_and_closed_when_nobody_does() {
        let (mut watch, was) = watched();
        assert!(watch.opened().is_empty());
        for round in 0..3 {
            watch.write(3, 200);
            watch.write(66, 200 + round);
            assert_eq!(watch.opened(), [3, 66]);
            assert!(!watch.is_as_it_was(&was));
            assert_eq!(watch.put_back(&was), was.len());
            assert!(watch.is_as_it_was(&was));
        }
        for _ in 0..2 * REVIEW_EVERY {
            watch.write(66, 99);
            watch.put_back(&was);
        }
        assert_eq!(watch.opened(), [66]);
        watch.write(3, 1);
        watch.put_back(&was);
        assert!(watch.is_as_it_was(&was));
        assert_eq!(watch.opened(), [3, 66]);
    }

    #[test]
    fn every_byte_counts() {
        for n_bytes in [1, 7, 8, 100, PIECE_BYTES, 3 * PIECE_BYTES + 13] {
            let was: Vec<u8> = (0..n_bytes).map(|at| at as u8).collect();
            for at in 0..n_bytes {
                let mut now = was.clone();
                now[at] ^= 128;
                assert!(put_back(&mut now, &was) && now == was, "byte {at} of {n_bytes}");
                now[at] ^= 1;
                assert!(put_back_pieces(&mut now, &was) && now == was, "byte {at} of {n_bytes}");
                assert!(!put_back(&mut now, &was));
            }
        }
    }

    #[test]
    fn a_second_memory_is_not_watched_and_faults_elsewhere_are_not_ours() {
        let (watch, _) = watched();
        assert!(Watch::begin(map_region().unwrap(), 9 * watch.page_bytes).is_none());
        let start = watch.region.as_ptr().addr();
        assert!(!open(start - 1) && !open(start + N_PAGES * watch.page_bytes));
        assert!(open(start) && !open(start), "an open page has another reason to fault");
    }
}
