//! Admission: how the memory budget for runners is shared between callers.

mod budget;
mod fair_queue;
mod release_plan;
#[cfg(test)]
mod tests;

pub(crate) use budget::{AdmissionQueue, MemoryGrant};
pub(crate) use fair_queue::CallerKey;
pub use release_plan::ReleaseOffer;
