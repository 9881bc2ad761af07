//! From the start of a process to a server that answers, on a directory with existing data.

use super::served::{Served, binary, load_and_leave};
use anyhow::Result;
use bench::{Contender, Plan, Report, Size, Target};
use std::path::Path;
use std::time::Duration;

/// A restart that no client notices.
const READY_NS_MAX: f64 = 50e6;

const PLAN: Plan =
    Plan { warm_up_ops: 1, n_rounds: 21, round_ops: 1, round_time_max: Duration::MAX };

pub(super) fn run(data_dir: &Path, report: &mut Report) -> Result<()> {
    let subject = Contender::timed("start to ready, 2,000 programs wait", || {
        let served = Served::start(data_dir)?;
        let took = served.took;
        served.stop()?;
        Ok(took)
    });
    let floor = Contender::timed("the same binary tells its version", load_and_leave);
    report.add(PLAN.compare(subject, floor)?, vec![Target::MedianNsMax(READY_NS_MAX)]);
    let bytes = std::fs::metadata(binary()?)?.len() as f64;
    report.add_size(Size { name: "the binary".into(), bytes, bytes_max: None });
    Ok(())
}
