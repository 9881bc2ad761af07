//! The sizes of a heap's blocks, and the free list for each size. Pure.

/// The alignment of every block.
pub(super) const ALIGN: usize = 16;
/// The word before every block. Worlds consist of thousands of small blocks, and every page of them costs
/// each runner time: data that not all blocks need is stored elsewhere.
pub(super) const WORD_BYTES: usize = size_of::<usize>();

/// Larger blocks, including their words, come from the system.
pub(super) const BLOCK_BYTES_MAX: usize = 64 << 10;
/// Blocks up to this size have a free list per exact size, larger ones in [`N_STEPS`] sizes for each
/// doubling.
const EXACT_BYTES_MAX: usize = 1 << 10;
const N_STEPS: usize = 8;
const N_EXACT: usize = EXACT_BYTES_MAX / ALIGN + 1;
pub(super) const N_SIZES: usize =
    N_EXACT + (BLOCK_BYTES_MAX / EXACT_BYTES_MAX).ilog2() as usize * N_STEPS;

/// The length of a block that holds this many bytes, including its word, and the index of its free list;
/// `None` if the region holds no such blocks.
pub(super) const fn fitting(bytes: usize) -> Option<(usize, usize)> {
    if bytes > BLOCK_BYTES_MAX - WORD_BYTES {
        return None;
    }
    let whole = (bytes + WORD_BYTES).next_multiple_of(ALIGN);
    if whole <= EXACT_BYTES_MAX {
        return Some((whole, whole / ALIGN));
    }
    // One of the steps between two powers of two, the lower one excluded.
    let power = (whole - 1).ilog2() as usize;
    let step = (1 << power) / N_STEPS;
    let whole = whole.next_multiple_of(step);
    let doublings = power - EXACT_BYTES_MAX.ilog2() as usize;
    Some((whole, N_EXACT + doublings * N_STEPS + (whole - 1) / step - N_STEPS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_kept_where_blocks_of_its_size_are_looked_for() {
        let mut n_before = 1;
        for bytes in 1..=BLOCK_BYTES_MAX - WORD_BYTES {
            let (whole, n) = fitting(bytes).unwrap();
            assert!(whole >= bytes + WORD_BYTES && whole.is_multiple_of(ALIGN), "{bytes}");
            assert!(whole <= (bytes + WORD_BYTES + ALIGN) * 9 / 8, "{bytes} take {whole}");
            assert_eq!(fitting(whole - WORD_BYTES), Some((whole, n)), "{bytes}");
            assert!(n == n_before || n == n_before + 1, "no list without a size");
            n_before = n;
        }
        assert_eq!(n_before, N_SIZES - 1);
        assert_eq!(fitting(BLOCK_BYTES_MAX), None);
    }
}
