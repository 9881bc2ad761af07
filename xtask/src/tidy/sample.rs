//! Draws a sample with a fixed seed: the same tree gives the same sample on every machine.

/// Any number; changing it draws other items.
const SEED: u64 = 0x5EED;

/// At most `n` of `items`, in random order.
pub(super) fn draw(mut items: Vec<String>, n: usize) -> Vec<String> {
    items.sort_by_cached_key(|item| hash(item));
    items.truncate(n);
    items
}

/// FNV-1a, then a mix of the bits: items that differ only in their last letter are not neighbours.
fn hash(text: &str) -> u64 {
    let mut state = 0xCBF2_9CE4_8422_2325 ^ SEED;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    }
    state ^= state >> 33;
    state = state.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    state ^ (state >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_and_has_no_item_twice() {
        let items: Vec<_> = (0..1_000).map(|n| n.to_string()).collect();
        let mut drawn = draw(items, 100);
        let below_half = drawn.iter().filter(|item| item.parse::<u32>().unwrap() < 500).count();
        assert!((30..70).contains(&below_half), "{below_half}");
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), 100);
    }
}
