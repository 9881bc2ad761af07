//! Where connections are served: each by one thread from beginning to end.
//!
//! Threads that share their work wake one another whenever there is some, and where there is little, that costs a lone
//! client a tenth of its time. A connection stays in its lane instead, and so does all that is done for it: lanes that have
//! none sleep, and those that have some ask nobody.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Much less than the time for the head of a request, and seldom enough not to be noticed.
const TICK: Duration = Duration::from_secs(30);

/// More threads than this serve nobody better.
const LANES_MAX: usize = 64;

/// Threads besides the one that accepts connections. When this is dropped they end, with whatever is left in them.
#[derive(Debug)]
pub struct Lanes {
    handles: Vec<Handle>,
    _stop: DropGuard,
}

impl Lanes {
    /// A lane for each processor, the caller's own included.
    pub fn start() -> io::Result<Self> {
        let n_processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let stopping = CancellationToken::new();
        let mut lanes = Self { handles: vec![], _stop: stopping.clone().drop_guard() };
        for lane_idx in 1..n_processors.min(LANES_MAX) {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let stopping = stopping.clone();
            lanes.handles.push(runtime.handle().clone());
            std::thread::Builder::new().name(format!("lane-{lane_idx}")).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = stopping.cancelled() => {}
                        never = tick() => match never {},
                    }
                });
                // A thread that waits for a stuck disk must not keep us.
                runtime.shutdown_background();
            })?;
        }
        Ok(lanes)
    }

    /// For [`Config::lanes`](crate::Config::lanes).
    pub fn handles(&self) -> Vec<Handle> {
        self.handles.clone()
    }
}

/// Has a timer set that rings before any connection's does: setting one that would be the next to ring takes a system call,
/// and each request sets one.
async fn tick() -> Infallible {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
    }
}

/// All lanes of a listener, and how many connections each has.
pub(crate) struct Spread(Vec<Lane>);

struct Lane {
    handle: Handle,
    n_connections: Arc<AtomicUsize>,
}

/// A connection's place in a lane, until it is dropped.
pub(crate) struct Seat {
    pub(crate) lane: Handle,
    n_connections: Arc<AtomicUsize>,
}

impl Spread {
    /// Over the runtime of the listener itself, and others.
    pub(crate) fn over(own: Handle, others: &[Handle]) -> Self {
        let handles = std::iter::once(own).chain(others.iter().cloned());
        Self(handles.map(|handle| Lane { handle, n_connections: Arc::default() }).collect())
    }

    /// A place in the emptiest lane, in our own where others are as empty.
    pub(crate) fn seat(&self) -> Seat {
        let n = |lane: &&Lane| lane.n_connections.load(Ordering::Relaxed);
        let lane = self.0.iter().min_by_key(n).expect("our own is always there");
        lane.n_connections.fetch_add(1, Ordering::Relaxed);
        Seat { lane: lane.handle.clone(), n_connections: Arc::clone(&lane.n_connections) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.n_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_and_a_lone_one_stays_where_it_was_accepted() {
        let runtime = || Builder::new_current_thread().build().unwrap();
        let (own, other) = (runtime(), runtime());
        let spread = Spread::over(own.handle().clone(), &[other.handle().clone()]);
        let is_elsewhere = |seat: &Seat| seat.lane.id() != own.handle().id();
        for _ in 0..3 {
            assert!(!is_elsewhere(&spread.seat()), "the one before is gone");
        }
        let seats: Vec<_> = (0..4).map(|_| spread.seat()).collect();
        let elsewhere: Vec<_> = seats.iter().map(is_elsewhere).collect();
        assert_eq!(elsewhere, [false, true, false, true]);
    }

    #[tokio::test]
    async fn a_lane_works_until_it_is_dropped() {
        let lanes = Lanes::start().unwrap();
        let handles = lanes.handles();
        for handle in &handles {
            let there = handle.spawn(async { std::thread::current().id() }).await.unwrap();
            assert_ne!(there, std::thread::current().id());
        }
        let waiting: Vec<_> =
            handles.iter().map(|handle| handle.spawn(std::future::pending::<()>())).collect();
        drop(lanes);
        for task in waiting {
            assert!(task.await.unwrap_err().is_cancelled());
        }
    }
}
