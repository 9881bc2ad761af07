//! Checks a call against the catalogue and the policies before it is decided.

use super::ExecutionActor;
use lifecycle::{
    CallAdmission, CallId, Failure, FailureCode, Json, PolicyVerdict, ToolHost, ToolNature,
    ToolPath, ToolTraits, ValueConvention,
};

impl ExecutionActor {
    /// Checks a call against the catalogue; blocked tools are not in it.
    pub(super) fn admit_call(&self, tool: &ToolPath, args: &Json) -> CallAdmission {
        let policy = self.shared.config.policies.live();
        let catalogue = &self.shared.config.catalogue;
        let mut admission =
            catalogue.admit_seen(tool, args, |found| !policy.shows(&found.path(), found.traits()));
        // A fingerprint of the whole tool definition is expensive: it is computed only for calls that ask.
        if let CallAdmission::Fit { traits, revision, about, .. } = &mut admission
            && matches!(policy.verdict(tool, *traits), PolicyVerdict::Ask { .. })
        {
            // No question is asked about a call that could not be made.
            if let Some(told) = catalogue.objection(tool, args) {
                return CallAdmission::Told(told);
            }
            match catalogue.compose_question(tool, args) {
                Some(Ok(question)) => *about = Some(question),
                Some(Err(told)) => return CallAdmission::Told(told),
                None => {}
            }
            *revision = catalogue.revision(tool);
        }
        admission
    }

    /// The tool that the program means, and the alias that it used, if any.
    pub(super) fn resolve(&self, said: ToolPath) -> (ToolPath, Option<ToolPath>) {
        match &self.journal.state().origin {
            Some(origin) => origin.terms.resolve(said),
            None => (said, None),
        }
    }

    pub(super) fn admission(
        &self,
        call: CallId,
        (tool, alias): (&ToolPath, Option<&ToolPath>),
        args: &Json,
    ) -> CallAdmission {
        let (state, catalogue) = (self.journal.state(), &self.shared.config.catalogue);
        // A call that a replay repeats is judged by what was recorded, not by the present catalogue.
        if state.calls.contains_key(&call) {
            return CallAdmission::Unfit(Failure::new(FailureCode::Internal, "known"));
        }
        let at_caller = state.origin.as_ref().is_some_and(|origin| origin.terms.caller_runs(tool));
        if at_caller && catalogue.find(tool).is_none() && !catalogue.is_undescribed(tool) {
            let nature = ToolNature { read_only: false, runs: ToolHost::AtCaller };
            let traits = ToolTraits::lasting(false);
            return CallAdmission::Fit { nature, traits, about: None, revision: None };
        }
        let admission = self.admit_as(tool, alias, args);
        let is_executor = state
            .origin
            .as_ref()
            .is_some_and(|origin| origin.program.convention == ValueConvention::ExplicitReturn);
        // Programs of the other protocols expect an exception.
        match &admission {
            CallAdmission::Unfit(failure) if is_executor && alias.is_none() => {
                let value = catalogue.unknown_namespace_value(tool, failure);
                value.map_or(admission, CallAdmission::Told)
            }
            CallAdmission::Unfit(_)
            | CallAdmission::Told(_)
            | CallAdmission::Unavailable(_)
            | CallAdmission::Fit { .. } => admission,
        }
    }

    /// The same, for a call by an alias: its result is the tool's own value, and its failure is thrown.
    pub(super) fn admit_as(
        &self,
        tool: &ToolPath,
        alias: Option<&ToolPath>,
        args: &Json,
    ) -> CallAdmission {
        let admission = self.admit_call(tool, args);
        match (admission, alias) {
            (CallAdmission::Told(told), Some(_)) => match tools::envelope::unwrapped(&told) {
                Ok(_) => CallAdmission::Told(told),
                Err(failure) => CallAdmission::Unfit(failure),
            },
            (admission, _) => admission,
        }
    }
}
