//! Reads what /proc reports about this process's own memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The page size of most machines; with larger pages nothing is learned.
pub(super) const PAGE_BYTES: usize = 4 << 10;

/// The size of an entry of `/proc/self/pagemap`; there is one for each page.
const ENTRY_BYTES: usize = 8;

/// Start and end address.
pub(super) type AddressRange = (usize, usize);

/// A line of `/proc/self/maps`.
pub(super) struct MappedRegion<'a> {
    pub(super) range: AddressRange,
    pub(super) rights: &'a str,
    /// The name of the file, or empty.
    pub(super) name: &'a str,
}

/// All lines that can be parsed.
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

/// The private file mappings that are only read or executed.
pub(super) fn read_only(maps: &str) -> impl Iterator<Item = MappedRegion<'_>> {
    mappings(maps).filter(|mapping| {
        mapping.name.starts_with('/') && ["r-xp", "r--p"].contains(&mapping.rights)
    })
}

/// The content of `/proc/self/maps`. Empty if /proc is hidden.
pub(super) fn maps() -> String {
    std::fs::read_to_string("/proc/self/maps").unwrap_or_default()
}

/// The entries of `/proc/self/pagemap` for the pages of a range.
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
