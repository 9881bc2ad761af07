//! The memory of both servers: idle, and the maximum while 32 clients run programs.

use super::rival::{Rival, VERSION};
use super::trivial::return_one;
use crate::directory::directory;
use crate::durable::client::{Client, share_out};
use crate::durable::served::Served;
use anyhow::Result;
use bench::{Report, Size};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// All processes of an idle server.
const IDLE_BYTES_MAX: f64 = 40e6;

/// Programs of one load, by all clients together.
const N_PROGRAMS: usize = 4_000;
const N_CLIENTS: usize = 32;

pub(super) fn idle(rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    let bytes = served.memory_bytes()? as f64;
    let name = "all processes of an idle server".to_owned();
    report.add_size(Size { name, bytes, bytes_max: Some(IDLE_BYTES_MAX) });
    served.stop()?;
    if let Some(rival) = rival {
        let (name, bytes) = (format!("executor {VERSION}, idle"), rival.bytes_now()? as f64);
        report.add_size(Size { name, bytes, bytes_max: None });
    }
    Ok(())
}

pub(super) fn under_load(rival: Option<&Rival>, report: &mut Report) -> Result<()> {
    let directory = directory()?;
    let served = Served::start(directory.path())?;
    let mut clients = (0..N_CLIENTS).map(|_| served.client()).collect::<Result<Vec<_>>>()?;
    let bytes = most(&mut clients, || served.bytes_now())?;
    let name = "all processes while 32 clients run programs".to_owned();
    report.add_size(Size { name, bytes, bytes_max: None });
    served.stop()?;
    if let Some(rival) = rival {
        let bytes = most(&mut rival.clients(N_CLIENTS)?, || rival.bytes_now())?;
        let name = format!("executor {VERSION}, the same load");
        report.add_size(Size { name, bytes, bytes_max: None });
    }
    Ok(())
}

/// The maximum while the programs ran.
fn most(clients: &mut [Client], look: impl Fn() -> Result<u64> + Sync) -> Result<f64> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| -> Result<u64> {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(look()?);
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(most)
        });
        let ran = share_out(clients, N_PROGRAMS, return_one);
        is_over.store(true, Ordering::Relaxed);
        let most = looking.join().map_err(|_| anyhow::anyhow!("the looking panicked"))?;
        ran?;
        Ok(most? as f64)
    })
}
