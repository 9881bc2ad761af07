//! Calls whose sources are unavailable: they wait here, and are decided when the wait ends.

use super::ExecutionActor;
use super::calls::{CallEnd, SourceWait};
use futures_util::FutureExt;
use lifecycle::{
    Call, CallAdmission, CallId, CallOutcome, Failure, Intent, Json, ToolHost, ToolPath,
    ToolTraits, UnavailableSource,
};

/// Minimum delay before a call that could not be sent is retried.
const UNSENT_RETRY_MS: u64 = 1_000;

impl ExecutionActor {
    /// Whether a dispatched call can go to its tool now. An acceptance is valid for the tool revision that was asked about,
    /// and the catalogue may just have changed.
    pub(super) fn is_callable(&self, call: CallId, known: &Call) -> bool {
        let catalogue = &self.shared.config.catalogue;
        let is_same = known.revision.is_none() || catalogue.revision(&known.tool) == known.revision;
        match self.journal.state().accepted(call) {
            Some(_) => is_same && catalogue.why_uncallable(&known.tool).is_none(),
            None => is_same && !catalogue.is_source_unavailable(&known.tool),
        }
    }

    /// Waits for the source of a call, for as long as the configuration allows.
    pub(super) fn await_source(&mut self, call: CallId) {
        let Some(known) = self.journal.state().calls.get(&call) else { return };
        let (tool, config) = (known.tool.clone(), &self.shared.config);
        let (catalogue, clock) = (config.catalogue.clone(), config.clock.clone());
        let at_work = self.calls.at_work(self.journal.execution());
        let until = clock.now().after_ms(config.source_wait_ms);
        let wait = SourceWait { until, unsent: None };
        let wait = at_work.source_waits.entry(call).or_insert(wait);
        let until = wait.until;
        let retry = match wait.unsent {
            Some(_) => clock.now().after_ms(UNSENT_RETRY_MS).min(until),
            None => clock.now(),
        };
        let waiting = async move {
            while clock.now() < retry {
                clock.wait_until(retry).await;
            }
            let too_long = async {
                while clock.now() < until {
                    clock.wait_until(until).await;
                }
            };
            tokio::select! {
                () = catalogue.source_available(&tool) => {}
                () = too_long => {}
            }
            (call, CallEnd::SourceAwaited)
        };
        at_work.push(waiting.boxed());
    }

    /// The call was not sent, because there is no connection to its source: it waits for one.
    pub(super) fn wait_unsent(&mut self, call: CallId, failure: Failure) {
        let until = self.shared.config.clock.now().after_ms(self.shared.config.source_wait_ms);
        let waits = &mut self.calls.at_work(self.journal.execution()).source_waits;
        let wait = waits.entry(call).or_insert(SourceWait { until, unsent: None });
        wait.unsent = Some(failure.message.clone());
        self.questions.end_call(call);
        if self.submit(Intent::Defer { call }).is_err() {
            self.settle_call(call, CallOutcome::Failed(failure));
        }
    }

    /// The wait for a source has ended: decides on the call by the present catalogue.
    pub(super) fn admit_deferred(&mut self, call: CallId) {
        let state = self.journal.state();
        let (Some(known), Some(args)) = (state.calls.get(&call), state.args(call)) else { return };
        let admission = match (self.given_up(call, &known.tool), state.accepted(call)) {
            (Some(source), _) => Some(CallAdmission::Unavailable(source)),
            (None, Some(_)) => self.admit_held(known, &args),
            (None, None) => Some(self.admit_with_revision(known, &args)),
        };
        let Some(admission) = admission else { return };
        let is_fit = matches!(admission, CallAdmission::Fit { .. });
        if let Err(rejection) = self.submit(Intent::Admit { call, admission }) {
            tracing::debug!(%rejection, %call, "a deferred call is over");
        }
        if !is_fit {
            self.calls.at_work(self.journal.execution()).source_waits.remove(&call);
        }
        self.rest();
    }

    /// Why the call stops waiting although its source is available and cannot be reached.
    fn given_up(&self, call: CallId, tool: &ToolPath) -> Option<UnavailableSource> {
        let config = &self.shared.config;
        let wait = self.calls.source_wait(call)?;
        let why = wait.unsent.as_ref().filter(|_| config.clock.now() >= wait.until)?;
        Some(config.catalogue.unsent(tool, why))
    }

    /// The present admission of a call that a person was asked about. A missing tool counts as one whose
    /// source is unavailable, so that no acceptance is used up by it.
    pub(super) fn admit_held(&self, call: &Call, args: &Json) -> Option<CallAdmission> {
        if call.nature.runs == ToolHost::AtCaller {
            return None; // a caller's tool is not in the catalogue
        }
        let config = &self.shared.config;
        let is_hidden = config.policies.live().hides(&call.tool, ToolTraits::lasting(true));
        match config.catalogue.why_uncallable(&call.tool) {
            Some(source) if !is_hidden => Some(CallAdmission::Unavailable(source)),
            Some(_) | None => Some(self.admit_with_revision(call, args)),
        }
    }

    fn admit_with_revision(&self, call: &Call, args: &Json) -> CallAdmission {
        let mut admission = self.admit_as(&call.tool, call.alias.as_ref(), args);
        if let CallAdmission::Fit { revision, .. } = &mut admission {
            *revision = self.shared.config.catalogue.revision(&call.tool);
        }
        admission
    }
}
