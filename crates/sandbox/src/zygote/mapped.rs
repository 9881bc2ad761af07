//! What /proc says of this process's own memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The only size of page on most machines; where pages are larger nothing is learned.
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// `/proc/self/pagemap`: one of these for each page.
const ENTRY_BYTES: usize = 8;

/// From where to where.
pub(super) type AddressRange = (usize, usize);

/// A line of `/proc/self/maps`.
pub(super) struct MappedRegion<'a> {
    pub(super) range: AddressRange,
    pub(super) rights: &'a str,
    /// Of the file, or empty.
    pub(super) name: &'a str,
}

/// All lines that can be read.
pub(super) fn mappings(maps: &str) -> impl Iterator<Item = MappedRegion<'_>> {
    maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let range = Some((address(start)?, address(end)?)).filter(|(start, end)| start < end)?;
        let rights = words.next()?;
        Some(MappedRegion { range, rights, name: words.nth(3).unwrap_or_default() })
    })
}

/// Those of private parts of files that are only read, or run.
pub(super) fn read_only(maps: &str) -> impl Iterator<Item = MappedRegion<'_>> {
    mappings(maps).filter(|mapping| {
        mapping.name.starts_with('/') && ["r-xp", "r--p"].contains(&mapping.rights)
    })
}

/// The present lines. None where /proc is hidden.
pub(super) fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// What `/proc/self/pagemap` says of each page of a range.
pub(super) fn pages(pagemap: &File, (start, end): AddressRange) -> io::Result<Vec<u64>> {
    let mut entries = vec![0; (end - start) / PAGE_BYTES * ENTRY_BYTES];
    pagemap.read_exact_at(&mut entries, (start / PAGE_BYTES * ENTRY_BYTES) as u64)?;
    Ok(entries
        .as_chunks::<ENTRY_BYTES>()
        .0
        .iter()
        .map(|entry| u64::from_ne_bytes(*entry))
        .collect())
}
