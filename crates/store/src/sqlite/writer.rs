//! The one writer: takes all that waits, writes it in one transaction, then tells everybody.

use super::checkpoint::Checkpoints;
use super::format::Durability;
use super::ledger::{Ledger, Unwritten, Write};
use super::line::{Line, Max, Refused};
use super::recent::Recent;
use super::watchers::Watchers;
use crate::StoreError;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Whoever waits for an append before the next has one in here. Only callers that do not wait can
/// fill it: theirs is then refused, as their memory would be the next thing to run out.
const UNWRITTEN_MAX: Max = Max { items: 65_536, bytes: 256 << 20 };

/// A transaction takes at most this much, or those who wait for its end would wait too long.
const BATCH_MAX: Max = Max { items: 1_024, bytes: 8 << 20 };

/// Something to write, and who waits for it.
pub(super) struct Job {
    write: Write,
    done: oneshot::Sender<Verdict>,
}

type Verdict = Result<u64, StoreError>;

/// Where writes are put in line.
pub(super) struct WriteLine(Line<Job>);

impl WriteLine {
    pub(super) const fn new() -> Self {
        Self(Line::new(UNWRITTEN_MAX))
    }

    /// Takes a place in line now; the answer comes when it is written.
    pub(super) fn write(&self, write: Write) -> oneshot::Receiver<Verdict> {
        let (done, verdict) = oneshot::channel();
        let bytes = write.bytes();
        if let Err((job, refused)) = self.0.join(bytes, Job { write, done }) {
            job.tell(Err(match refused {
                Refused::Closed => StoreError::Closed,
                Refused::Full => StoreError::Other("too much waits to be written".into()),
            }));
        }
        verdict
    }

    pub(super) fn close(&self) {
        self.0.close();
    }
}

impl Job {
    fn tell(self, verdict: Verdict) {
        // Whoever asked may have gone away; what is written stays written.
        drop(self.done.send(verdict));
    }
}

/// The state of the writer's thread.
pub(super) struct Writer {
    pub(super) ledger: Ledger,
    pub(super) line: Arc<WriteLine>,
    pub(super) watchers: Arc<Watchers>,
    pub(super) recent: Arc<Recent>,
    pub(super) checkpoints: Checkpoints,
    pub(super) durability: Durability,
    /// What SQLite was last told; `None` before the first time.
    pub(super) syncing: Option<bool>,
}

impl Writer {
    /// Writes until the line is closed and empty.
    pub(super) fn run(mut self) {
        let guard = Abandon(Arc::clone(&self.line));
        let mut jobs = Vec::new();
        while self.line.0.take(BATCH_MAX, &mut jobs) {
            self.write_all(&mut jobs);
            self.checkpoints.after_commit(&self.ledger.conn);
        }
        self.checkpoints.finish(&self.ledger.conn);
        drop(guard);
    }

    /// One transaction for all; if that fails, one for each, so that each gets its own verdict.
    fn write_all(&mut self, jobs: &mut Vec<Job>) {
        match self.transact(jobs) {
            Ok(verdicts) => self.tell(jobs, verdicts),
            Err(error) if jobs.len() == 1 => self.tell(jobs, vec![Err(error.into())]),
            Err(_) => {
                for job in jobs.drain(..) {
                    let verdict = match self.transact(std::slice::from_ref(&job)) {
                        Ok(mut verdicts) => verdicts.swap_remove(0),
                        Err(error) => Err(error.into()),
                    };
                    self.tell(&mut vec![job], vec![verdict]);
                }
            }
        }
    }

    fn tell(&self, jobs: &mut Vec<Job>, verdicts: Vec<Verdict>) {
        for (mut job, verdict) in jobs.drain(..).zip(verdicts) {
            match (&mut job.write, &verdict) {
                (Write::Append(rows), Ok(_)) => {
                    let (execution, expected, last) = (rows.execution, rows.expected, rows.last());
                    self.recent.keep(execution, expected, rows.take_entries());
                    self.watchers.wake(execution, last);
                }
                (Write::Forget(execution), Ok(_)) => self.recent.forget(*execution),
                _ => {}
            }
            job.tell(verdict);
        }
    }

    /// Writes all or nothing, except that a refused job leaves the others alone.
    fn transact(&mut self, jobs: &[Job]) -> Result<Vec<Verdict>, rusqlite::Error> {
        self.sync_if(jobs.iter().any(|job| job.write.synced()))?;
        let done = self.attempt(jobs);
        if done.is_err() {
            self.undo();
        }
        done
    }

    fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Verdict>, rusqlite::Error> {
        #[cfg(test)]
        for job in jobs {
            if let Write::Trouble(pragma) = &job.write {
                self.ledger.conn.execute_batch(pragma)?;
            }
        }
        self.ledger.conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let mut verdicts = Vec::with_capacity(jobs.len());
        for job in jobs {
            verdicts.push(match self.ledger.write(&job.write) {
                Ok(answer) => Ok(answer),
                Err(Unwritten::Refused(why)) => Err(why),
                Err(Unwritten::Broken(error)) => return Err(error),
            });
        }
        self.ledger.conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(verdicts)
    }

    fn undo(&mut self) {
        self.ledger.unlearn();
        // SQLite has ended the transaction itself where the error was grave.
        if !self.ledger.conn.is_autocommit()
            && let Err(error) = self.ledger.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "could not undo a transaction");
        }
    }

    /// A commit is visible to readers only once it is as strong as its strongest job asks.
    fn sync_if(&mut self, synced: bool) -> Result<(), rusqlite::Error> {
        if self.durability == Durability::Nothing || self.syncing == Some(synced) {
            return Ok(());
        }
        let level = if synced { "FULL" } else { "NORMAL" };
        self.ledger.conn.execute_batch(&format!("PRAGMA synchronous = {level}"))?;
        self.syncing = Some(synced);
        Ok(())
    }
}

/// When the writer's thread ends, however it ends, nobody waits for it.
struct Abandon(Arc<WriteLine>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.0.abandon();
    }
}
