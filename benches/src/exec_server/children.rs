//! The memory and threads of a process tree.

use anyhow::{Context, Result};
use std::fs;

/// Memory and threads of a server without the programs it has started.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Weight {
    pub(super) bytes: f64,
    /// Threads of the server itself.
    pub(super) n_threads: f64,
}

/// Measures a server and its descendants except `program`. Each page is counted once.
pub(super) fn weigh(server: u32, program: &str) -> Result<Weight> {
    let status = fs::read_to_string(format!("/proc/{server}/status"))?;
    let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
    let n_threads = threads.context("/proc tells no threads")?.trim().parse()?;
    let mut weight = Weight { bytes: 0.0, n_threads };
    let mut below = vec![server];
    while let Some(pid) = below.pop() {
        for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            below.extend(children.split_whitespace().flat_map(str::parse::<u32>));
        }
        let name = fs::read_to_string(format!("/proc/{pid}/comm"))?;
        if name.trim() != program {
            let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
            weight.bytes +=
                crate::durable::pss_bytes(&rollup).context("/proc tells no Pss")? as f64;
        }
    }
    Ok(weight)
}
