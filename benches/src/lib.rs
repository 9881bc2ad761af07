//! The method of measurement: a subject beside its floor, in the same run, on the same machine, in turns.
//!
//! A number alone says more about the machine than about the code. Each benchmark therefore names a
//! floor, the least that could do the job (a bare socket round trip, a bare `fork`), and the figure to
//! watch is the ratio of the two. Each ratio comes with the variation between rounds: where
//! that is large, the machine was busy with something else and the ratio means less.

mod measure;
mod plan;
mod report;
mod table;
mod target;

pub use measure::{Contender, Measured, Samples};
pub use plan::Plan;
pub use report::{Count, Report, Row, Size};
pub use target::{Target, Verdict};
