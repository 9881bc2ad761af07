//! Restores memory to an earlier content and writes only what differs: the first write to a page costs a
//! trap and a copy, and most programs write to few pages.

/// The unit of comparison and copying.
const PIECE_BYTES: usize = 512;

/// Makes `now` equal to `was`, which has the same length.
pub(super) fn restore(now: &mut [u8], was: &[u8]) {
    for (now, was) in now.chunks_mut(PIECE_BYTES).zip(was.chunks(PIECE_BYTES)) {
        if now != was {
            now.copy_from_slice(was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_counts() {
        for n_bytes in [1, 7, 8, 100, PIECE_BYTES, 3 * PIECE_BYTES + 13] {
            let was: Vec<u8> = (0..n_bytes).map(|at| at as u8).collect();
            for at in 0..n_bytes {
                let mut now = was.clone();
                now[at] ^= 128;
                restore(&mut now, &was);
                assert!(now == was, "byte {at} of {n_bytes}");
            }
        }
    }
}
