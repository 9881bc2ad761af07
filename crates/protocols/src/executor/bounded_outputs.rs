//! The first outputs of many: what an envelope carries, and where the rest begins.

use super::{OUTPUT_BYTES_MAX, OUTPUTS_MAX};
use lifecycle::Seq;

/// The first outputs of a kind, bounded, and the number of all.
#[derive(Debug, Clone)]
pub(super) struct BoundedOutputs<T> {
    pub(super) first: Vec<T>,
    pub(super) n_left: usize,
    /// The position of the last retained one.
    pub(super) last: Seq,
    n_bytes: usize,
}

impl<T> Default for BoundedOutputs<T> {
    fn default() -> Self {
        Self { first: vec![], n_left: 0, last: Seq(0), n_bytes: 0 }
    }
}

impl<T> BoundedOutputs<T> {
    /// Adds one more, unless a limit is reached.
    pub(super) fn add(&mut self, seq: Seq, n_bytes: usize, output: impl FnOnce() -> T) {
        let has_room = self.first.len() < OUTPUTS_MAX && self.n_bytes < OUTPUT_BYTES_MAX;
        if self.n_left > 0 || !has_room {
            self.n_left += 1;
            return;
        }
        self.n_bytes += n_bytes;
        self.last = seq;
        self.first.push(output());
    }

    /// How many bytes are retained.
    pub(super) const fn held_bytes(&self) -> usize {
        self.n_bytes
    }

    /// How many there were.
    pub(super) fn n_all(&self) -> usize {
        self.first.len() + self.n_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_and_the_rest_is_counted() {
        let mut many = BoundedOutputs::default();
        let mut large = BoundedOutputs::default();
        for n in 1..=OUTPUTS_MAX as u64 + 5 {
            many.add(Seq(n), 1, || n);
            large.add(Seq(n), OUTPUT_BYTES_MAX / 2, || n);
        }
        assert_eq!((many.first.len(), many.n_left, many.last.0), (OUTPUTS_MAX, 5, 1_000));
        assert_eq!((large.first, large.n_left, large.last.0), (vec![1, 2], 1_003, 2));
    }
}
