//! The targets of a measurement.

use crate::Measured;
use crate::table::nanoseconds;

/// A promise about a measurement. Prefer the ratio: it holds on other machines too.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// The subject is at most this many times slower than its floor.
    RatioMax(f64),
    /// The median is at most this.
    MedianNsMax(f64),
    /// The 99th percentile is at most this.
    P99NsMax(f64),
}

/// Whether a target was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was met.
    Met,
    /// It was missed.
    Missed,
}

impl Target {
    /// Compares a measurement with this target.
    pub fn judge(&self, measured: &Measured) -> Verdict {
        let (found, max) = match *self {
            Self::RatioMax(max) => (measured.ratio(), max),
            Self::MedianNsMax(max) => (measured.subject.median_ns(), max),
            Self::P99NsMax(max) => (measured.subject.p99_ns(), max),
        };
        // Written so that NaN counts as a miss.
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
