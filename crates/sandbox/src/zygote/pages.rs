//! The pages that a runner shares with its zygote until it writes to them.

/// More than a warm zygote has. What lies beyond is copied when it is written to, as always.
const COPIED_BYTES_MAX: usize = 8 << 20;

/// Every private, writable range of this process except its stack.
#[derive(Debug, Default)]
pub(super) struct Writable(Vec<(usize, usize)>);

impl Writable {
    /// Reads them from /proc; where that is hidden there are none.
    pub(super) fn of_this_process() -> Self {
        Self::parse(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    fn parse(maps: &str) -> Self {
        let mut left = COPIED_BYTES_MAX;
        let ranges = maps.lines().filter_map(range).filter(|(start, end)| {
            let bytes = end - start;
            left.checked_sub(bytes).inspect(|rest| left = *rest).is_some()
        });
        Self(ranges.collect())
    }

    /// Copies all of them at once. A runner that waits has the time; one page at a time, on the way to the
    /// first result, costs a trap each.
    pub(super) fn copy_now(&self) {
        for (start, end) in &self.0 {
            // SAFETY: populating a range changes no content, and one that is no longer mapped is refused.
            // An older kernel refuses all of them, which costs nothing but the time saved.
            unsafe {
                libc::madvise(*start as *mut libc::c_void, end - start, libc::MADV_POPULATE_WRITE);
            }
        }
    }
}

fn range(line: &str) -> Option<(usize, usize)> {
    let (range, rest) = line.split_once(' ')?;
    if !rest.starts_with("rw-p") || line.ends_with("[stack]") {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?)).filter(|(start, end)| start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_writable_memory_counts_and_not_too_much_of_it() {
        let maps = "1000-2000 r-xp 0 0:0 0 /a\n\
                    2000-5000 rw-p 0 0:0 0 /a\n\
                    100000-10000000 rw-p 0 0:0 0\n\
                    8000-9000 rw-p 0 0:0 0 [heap]\n\
                    a000-b000 rw-s 0 0:0 0\n\
                    c000-d000 rw-p 0 0:0 0 [stack]\n\
                    nonsense\n";
        assert_eq!(Writable::parse(maps).0, [(0x2000, 0x5000), (0x8000, 0x9000)]);
    }
}
