//! Watches: expressions that are evaluated repeatedly, driven by the frames of a virtual clock.

use super::{ReplSession, SessionTask, TaskKind};
use crate::messages;
use crate::repl_store::millis;
use crate::{EVAL_TIME, EVAL_TIME_MAX, WATCHES_MAX};
use protocols::execbox::session::{EvalOrder, ToSession};
use protocols::hotrepl::inbound::SubscribeRequest;
use protocols::hotrepl::outbound::{carried, envelope};
use protocols::hotrepl::wire::{
    ErrorEnvelope, ErrorKind, FromServer, Shown, SubscribeError, SubscribeResult,
};
use sandbox::TaskResult;
use std::time::Duration;
use tokio::time::Instant;

/// The number of consecutive failures after which a watch is ended.
const FAILURES_MAX: u32 = 3;

/// An expression that is evaluated repeatedly.
pub(super) struct SessionWatch {
    subscribe: SubscribeRequest,
    next_frame: u64,
    /// Whether its tick is in progress.
    is_ticking: bool,
    seq: u64,
    n_delivered: u64,
    n_failures: u32,
    last: Option<Shown>,
}

impl ReplSession {
    pub(super) fn subscribe(&mut self, id: String, subscribe: SubscribeRequest) {
        // Replaces a watch of the same name.
        self.watches.remove(&id);
        if self.watches.len() >= WATCHES_MAX {
            let message = format!("A session has at most {WATCHES_MAX} watches.");
            let error = envelope(ErrorKind::Internal, "subscriptionRejected", message);
            return self.send_to_client(&subscribe_error(&id, 0, error, true));
        }
        let next_frame = self.frame(Instant::now()) + subscribe.interval_frames;
        let watch = SessionWatch {
            subscribe,
            next_frame,
            is_ticking: false,
            seq: 0,
            n_delivered: 0,
            n_failures: 0,
            last: None,
        };
        self.watches.insert(id, watch);
    }

    /// Returns the current frame of the virtual clock.
    pub(super) fn frame(&self, now: Instant) -> u64 {
        let hz = f64::from(self.setting.store.settings.frames_per_second);
        (now.duration_since(self.began).as_secs_f64() * hz) as u64
    }

    /// When the next watch is due.
    pub(super) fn next_tick(&self) -> Option<Instant> {
        let frame = self.watches.values().map(|watch| watch.next_frame).min()?;
        let hz = f64::from(self.setting.store.settings.frames_per_second);
        // Slightly after the frame begins: timers are rounded, and waking a frame too early would do nothing.
        let since =
            Duration::from_secs_f64((frame as f64 / hz).min(1e9)) + Duration::from_micros(100);
        Some(self.began + since)
    }

    /// Starts the ticks that are due. Ticks that fall into a busy period are skipped, not made up for.
    pub(super) fn tick(&mut self, now: Instant) {
        let frame = self.frame(now);
        let is_busy = self.evaluator.is_busy();
        let mut due = vec![];
        for (id, watch) in &mut self.watches {
            if watch.next_frame > frame {
                continue;
            }
            let n_missed = (frame - watch.next_frame) / watch.subscribe.interval_frames;
            watch.next_frame += (n_missed + 1).saturating_mul(watch.subscribe.interval_frames);
            if !is_busy && !watch.is_ticking {
                watch.is_ticking = true;
                due.push((id.clone(), watch.subscribe.code.clone(), watch.subscribe.timeout_ms));
            }
        }
        for (id, code, timeout_ms) in due {
            if let Err(refused) = self.evaluator.admit_program() {
                self.refuse_watch(&id, messages::quota_reached(&refused));
                continue;
            }
            self.ensure_runner();
            let timeout = timeout_ms.map_or(EVAL_TIME, Duration::from_millis).min(EVAL_TIME_MAX);
            let task = self.open_task(&id, TaskKind::Tick, Some(timeout));
            let now = self.now();
            let eval = EvalOrder { task, code: code.as_str().into(), now };
            self.evaluator.send_message(&ToSession::Eval(eval));
        }
    }

    pub(super) fn tick_ended(&mut self, open: SessionTask, outcome: TaskResult) {
        let profile = self.profile();
        let plain = self.says_truncated();
        let Some(watch) = self.watches.get_mut(&open.id) else { return };
        watch.is_ticking = false;
        let (value, value_type, truncated, truncated_bytes) = match outcome {
            TaskResult::Failed(failed) => {
                let error = messages::eval_failed(&failed, open.stop);
                return self.tick_failed(&open.id, error);
            }
            TaskResult::Value { type_name, json, bytes } => {
                let carried = carried(json, bytes, profile);
                (carried.value, Some(type_name), carried.truncated, carried.truncated_bytes)
            }
            TaskResult::Nothing | TaskResult::Output(_) => (None, None, plain, None),
        };
        watch.n_failures = 0;
        if watch.subscribe.on_change && watch.n_delivered > 0 && watch.last == value {
            return;
        }
        if watch.subscribe.on_change {
            watch.last.clone_from(&value);
        }
        watch.n_delivered += 1;
        let is_final = watch.subscribe.limit > 0 && watch.n_delivered >= watch.subscribe.limit;
        let result = SubscribeResult {
            id: open.id.clone(),
            seq: watch.seq,
            has_value: value_type.is_some(),
            value,
            value_type,
            duration_ms: millis(open.started.elapsed()),
            is_final,
            truncated,
            truncated_bytes,
        };
        watch.seq += 1;
        if is_final {
            self.watches.remove(&open.id);
        }
        self.send_answer(open.client, &FromServer::SubscribeResult(result));
    }

    fn tick_failed(&mut self, id: &str, error: ErrorEnvelope) {
        let Some(watch) = self.watches.get_mut(id) else { return };
        watch.n_failures += 1;
        let at_once = matches!(error.kind, ErrorKind::Timeout | ErrorKind::ValidationFailed);
        let is_final = at_once || watch.n_failures >= FAILURES_MAX;
        let frame = subscribe_error(id, watch.seq, error, is_final);
        watch.seq += 1;
        if is_final {
            self.watches.remove(id);
        }
        self.send_to_client(&frame);
    }

    /// The evaluator was lost in the middle of a tick; the next tick uses a new one.
    pub(super) fn tick_lost(&mut self, open: &SessionTask) {
        if let Some(watch) = self.watches.get_mut(&open.id) {
            watch.is_ticking = false;
            self.tick_failed(&open.id, messages::lost(open.stop, "eval"));
        }
    }

    /// The watch would fail for ever, so it ends: its client can request it again later.
    fn refuse_watch(&mut self, id: &str, error: ErrorEnvelope) {
        if let Some(watch) = self.watches.remove(id) {
            self.send_to_client(&subscribe_error(id, watch.seq, error, true));
        }
    }

    pub(super) fn end_watch(&mut self, id: &str, message: &str, code: &str) {
        if let Some(watch) = self.watches.remove(id) {
            let error = envelope(ErrorKind::Cancelled, code, message);
            self.send_to_client(&subscribe_error(id, watch.seq, error, true));
        }
    }

    pub(super) fn end_watches(&mut self, message: &str) {
        self.end_watches_with(message, "subscriptionCancelled");
    }

    pub(super) fn end_watches_with(&mut self, message: &str, code: &str) {
        let ids: Vec<String> = self.watches.keys().cloned().collect();
        for id in ids {
            self.end_watch(&id, message, code);
        }
    }
}

fn subscribe_error(id: &str, seq: u64, error: ErrorEnvelope, is_final: bool) -> FromServer {
    FromServer::SubscribeError(SubscribeError { id: id.to_owned(), seq, error, is_final })
}
