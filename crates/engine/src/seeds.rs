//! Where programs get their randomness from: the system's, asked for many at once.

use crate::fault::Fault;
use lifecycle::Seed;
use std::sync::{Mutex, PoisonError};

/// Seeds that one question to the system is good for.
const STOCK_MAX: usize = 32;

/// Seeds that nobody has had.
#[derive(Debug, Default)]
pub(crate) struct Seeds(Mutex<Vec<Seed>>);

impl Seeds {
    /// One that nobody gets again.
    pub(crate) fn next(&self) -> Result<Seed, Fault> {
        let mut stock = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seed) = stock.pop() {
            return Ok(seed);
        }
        let mut bytes = [0; STOCK_MAX * size_of::<Seed>()];
        getrandom::fill(&mut bytes).map_err(|e| Fault::new(e, "no randomness; try again"))?;
        let (seeds, _) = bytes.as_chunks();
        stock.extend(seeds.iter().copied().map(Seed));
        let seed = stock.pop();
        Ok(seed.expect("the stock was just filled"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_seed_is_given_twice() {
        let seeds = Seeds::default();
        let given: HashSet<[u8; 32]> =
            (0..3 * STOCK_MAX + 1).map(|_| seeds.next().unwrap().0).collect();
        assert_eq!(given.len(), 3 * STOCK_MAX + 1);
    }
}
