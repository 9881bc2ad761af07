//! What a measurement must reach.

use crate::Measured;
use crate::table::nanoseconds;

/// A promise about a measurement. Prefer the ratio: it holds on other machines too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The subject is at most this many times slower than its floor.
    RatioMax(f64),
    /// The median is at most this.
    MedianNsMax(f64),
    /// Ninety-nine of a hundred operations take at most this long.
    P99NsMax(f64),
}

/// Whether a target was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Met,
    /// It was not.
    Missed,
}

impl Target {
    /// Holds a measurement against this target.
    pub fn judge(&self, measured: &Measured) -> Verdict {
        let (found, max) = match *self {
            Self::RatioMax(max) => (measured.ratio(), max),
            Self::MedianNsMax(max) => (measured.subject.median_ns(), max),
            Self::P99NsMax(max) => (measured.subject.p99_ns(), max),
        };
        // Written so that a measurement that is not a number misses.
        if found <= max { Verdict::Met } else { Verdict::Missed }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::RatioMax(max) => write!(f, "ratio <= {max:.2}"),
            Self::MedianNsMax(max) => write!(f, "median <= {}", nanoseconds(max)),
            Self::P99NsMax(max) => write!(f, "p99 <= {}", nanoseconds(max)),
        }
    }
}
