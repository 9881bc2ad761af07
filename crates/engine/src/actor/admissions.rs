//! What the catalogue and the policies say about a call before it is decided on.

use super::Actor;
use lifecycle::{
    Admission, CallId, Convention, Failure, FailureCode, Json, Nature, Runs, ToolPath, Traits,
    Verdict,
};

impl Actor {
    /// What the catalogue says about a call; a blocked tool is not in it.
    pub(super) fn admit(&self, tool: &ToolPath, args: &Json) -> Admission {
        let policy = self.shared.config.policies.live();
        let catalogue = &self.shared.config.catalogue;
        let mut admission =
            catalogue.admit_seen(tool, args, |found| !policy.shows(&found.path(), found.traits()));
        // To take a fingerprint of all that is said about a tool costs time: only for those who are asked.
        if let Admission::Fit { traits, revision, about, .. } = &mut admission
            && matches!(policy.verdict(tool, *traits), Verdict::Ask { .. })
        {
            // Nobody is asked about a call that could not be made.
            if let Some(told) = catalogue.objection(tool, args) {
                return Admission::Told(told);
            }
            match catalogue.compose_question(tool, args) {
                Some(Ok(question)) => *about = Some(question),
                Some(Err(told)) => return Admission::Told(told),
                None => {}
            }
            *revision = catalogue.revision(tool);
        }
        admission
    }

    /// The tool that the program means, and the alias by which it does, if it used one.
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
    ) -> Admission {
        let (state, catalogue) = (self.journal.state(), &self.shared.config.catalogue);
        // A call that replay makes again is judged by what was recorded, not by today's catalogue.
        if state.calls.contains_key(&call) {
            return Admission::Unfit(Failure::new(FailureCode::Internal, "known"));
        }
        let at_caller = state.origin.as_ref().is_some_and(|origin| origin.terms.caller_runs(tool));
        if at_caller && catalogue.find(tool).is_none() && !catalogue.is_undescribed(tool) {
            let nature = Nature { read_only: false, runs: Runs::AtCaller };
            let traits = Traits::lasting(false);
            return Admission::Fit { nature, traits, about: None, revision: None };
        }
        let admission = self.admit_as(tool, alias, args);
        let is_executor = state
            .origin
            .as_ref()
            .is_some_and(|origin| origin.program.convention == Convention::ExplicitReturn);
        // Programs of the other protocols expect an exception.
        match &admission {
            Admission::Unfit(failure) if is_executor && alias.is_none() => {
                let value = catalogue.unknown_namespace_value(tool, failure);
                value.map_or(admission, Admission::Told)
            }
            Admission::Unfit(_)
            | Admission::Told(_)
            | Admission::Unavailable(_)
            | Admission::Fit { .. } => admission,
        }
    }

    /// The same for a call by an alias, if it is one: its result is the tool's own value, and its failure is thrown.
    pub(super) fn admit_as(
        &self,
        tool: &ToolPath,
        alias: Option<&ToolPath>,
        args: &Json,
    ) -> Admission {
        let admission = self.admit(tool, args);
        match (admission, alias) {
            (Admission::Told(told), Some(_)) => match tools::envelope::unwrapped(&told) {
                Ok(_) => Admission::Told(told),
                Err(failure) => Admission::Unfit(failure),
            },
            (admission, _) => admission,
        }
    }
}
