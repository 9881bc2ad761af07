//! The class that one execution counts in, maintained by its actor.

use super::{QuotaBook, class_of};
use lifecycle::{CallerName, CallerUsage, ExecutionId, ExecutionPhase, State};
use std::sync::Arc;

/// The class that an execution counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaClass {
    /// It runs, or waits for a runner.
    Running,
    /// It waits for people or timers.
    Waiting,
}

impl QuotaClass {
    pub(super) const fn count_of(self, usage: &mut CallerUsage) -> &mut u64 {
        match self {
            Self::Running => &mut usage.running,
            Self::Waiting => &mut usage.waiting,
        }
    }
}

/// The count of one execution. While an actor has this, nothing else changes that count.
#[derive(Debug)]
pub(crate) struct QuotaClaim {
    book: Arc<QuotaBook>,
    execution: ExecutionId,
    /// None before the start and after the end.
    as_class: Option<(CallerName, QuotaClass)>,
}

impl QuotaClaim {
    pub(crate) const fn new(book: Arc<QuotaBook>, execution: ExecutionId) -> Self {
        Self { book, execution, as_class: None }
    }

    /// A start was admitted, and thereby counted.
    pub(crate) fn admitted(&mut self, caller: CallerName) {
        // An earlier start of the same execution, whose journal failed, was counted too.
        self.cede();
        self.as_class = Some((caller, QuotaClass::Running));
    }

    /// The actor has read the journal: the execution counts by its phase, or as running if the last actor failed.
    pub(crate) fn loaded(&mut self, state: &State) {
        let caller = state.origin.as_ref().map(|origin| origin.caller.clone());
        let by_phase = || Some((caller?, class_of(state.phase)?));
        self.as_class = match self.book.take_broken(self.execution) {
            Some(caller) => Some((caller, QuotaClass::Running)),
            None => by_phase(),
        };
    }

    /// Updates its class.
    pub(crate) fn update(&mut self, state: &State, waits_for_timers: bool) {
        let class = match (state.phase, waits_for_timers) {
            (ExecutionPhase::Running, true) => Some(QuotaClass::Waiting),
            (phase, _) => class_of(phase),
        };
        let counted = self.as_class.as_ref().map(|(_, class)| *class);
        if class == counted {
            return;
        }
        let caller = match (self.as_class.take(), &state.origin) {
            (Some((caller, _)), _) => caller,
            (None, Some(origin)) => origin.caller.clone(),
            (None, None) => return,
        };
        self.book.move_count(&caller, counted, class);
        self.as_class = class.map(|class| (caller, class));
    }

    /// The actor failed, and the journal may differ from what it counted. Until another actor has read the
    /// journal, the execution counts as running.
    pub(crate) fn fail(&mut self, state: &State) {
        let counted = self.as_class.take();
        let class = counted.as_ref().map(|(_, class)| *class);
        let origin = state.origin.as_ref().map(|origin| origin.caller.clone());
        let Some(caller) = counted.map(|(caller, _)| caller).or(origin) else { return };
        self.book.move_count(&caller, class, Some(QuotaClass::Running));
        self.book.set_broken(self.execution, caller);
    }

    /// Another server has the execution, and counts it.
    pub(crate) fn cede(&mut self) {
        if let Some((caller, class)) = self.as_class.take() {
            self.book.move_count(&caller, Some(class), None);
        }
    }
}
