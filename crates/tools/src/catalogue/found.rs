//! A tool that was resolved, with the place where it was found: all that a call needs, independent of later changes.

use super::section::{CatalogueEntry, CatalogueSection, MountPoint, SectionOrigin, SourceCard};
use crate::envelope::ToolFailure;
use crate::schema::{SchemaIssue, sentence};
use crate::{Connection, SharedSchema, ToolRequest, ToolSpec, files, proof, scrub};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use lifecycle::{
    CallAdmission, CallOutcome, Failure, FailureCode, Json, ToolNature, ToolPath, ToolRevision,
    ToolTraits,
};
use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Longest message of a failed tool: some put a whole web page there.
pub(super) const FAILURE_CHARS_MAX: usize = 8_000;

/// Largest details of a failed tool; larger ones are dropped.
pub(super) const FAILURE_DETAILS_BYTES_MAX: usize = 64 << 10;

/// A tool in the catalogue.
#[derive(Clone)]
pub struct FoundTool {
    section: Arc<CatalogueSection>,
    mount_idx: usize,
    entry_idx: usize,
}

impl FoundTool {
    pub(super) fn in_section(section: &Arc<CatalogueSection>, path: &str) -> Option<Self> {
        section.mounts.iter().enumerate().find_map(|(mount_idx, mount)| {
            let name = path.strip_prefix(&mount.prefix)?;
            let entry_idx = section.shelf.position(name)?;
            Some(Self { section: Arc::clone(section), mount_idx, entry_idx })
        })
    }

    pub(super) fn at_section(
        section: &Arc<CatalogueSection>,
        mount_idx: usize,
        entry_idx: usize,
    ) -> Self {
        Self { section: Arc::clone(section), mount_idx, entry_idx }
    }

    pub(super) fn all(section: &Arc<CatalogueSection>) -> impl Iterator<Item = Self> + use<> {
        let section = Arc::clone(section);
        let (n_mounts, n_entries) = (section.mounts.len(), section.n_tools());
        (0..n_mounts).flat_map(move |mount_idx| {
            let section = Arc::clone(&section);
            (0..n_entries).map(move |entry_idx| Self {
                section: Arc::clone(&section),
                mount_idx,
                entry_idx,
            })
        })
    }

    /// Its whole path.
    pub fn path(&self) -> String {
        format!("{}{}", self.mount().prefix, self.spec().name)
    }

    /// The tool's description by its source; the name is relative to the connection.
    pub fn spec(&self) -> &ToolSpec {
        &self.entry().spec
    }

    /// Whether a person must approve calls if no policy applies.
    pub fn asks(&self) -> bool {
        self.spec().asks
    }

    /// The traits that policies match on.
    pub fn traits(&self) -> ToolTraits {
        let CatalogueEntry { since, grew, answer_only, .. } = *self.entry();
        ToolTraits { asks: self.asks() || answer_only, since, grew, answer_only }
    }

    /// How recovery treats a call that was interrupted by a crash of the server.
    pub fn nature(&self) -> ToolNature {
        self.entry().nature()
    }

    /// The source that it comes from.
    pub fn card(&self) -> &SourceCard {
        &self.section.card
    }

    /// The connection that binds it; none for our own tools.
    pub fn connection(&self) -> Option<&Connection> {
        self.mount().connection.as_deref()
    }

    /// Whether its result is `{ok, data}` or `{ok, error}`.
    pub fn is_enveloped(&self) -> bool {
        self.section.is_enveloped()
    }

    /// The revision that an approval of this tool covers. Reads the whole definition, so call it only for tools that ask.
    pub fn revision(&self) -> ToolRevision {
        let spec = self.spec();
        let whole = |schema: &Option<SharedSchema>| {
            schema.as_ref().map(|schema| schema.whole().to_string()).unwrap_or_default()
        };
        let parts = [
            self.path(),
            self.section.target(),
            spec.description.clone(),
            whole(&spec.input),
            whole(&spec.output),
            spec.about.clone().unwrap_or_default(),
            format!("{}{}", spec.read_only, spec.asks),
        ];
        // With their lengths, so that no part can borrow from the next.
        ToolRevision::from_text(&parts.map(|part| format!("{} {part}", part.len())).concat())
    }

    pub(super) fn admit_call(&self, args: &Json) -> CallAdmission {
        match self.fitting(args) {
            Ok(_) => CallAdmission::Fit {
                nature: self.nature(),
                traits: self.traits(),
                about: self.spec().about.clone(),
                revision: None,
            },
            Err(failure) if self.is_enveloped() => CallAdmission::Told(
                ToolFailure::from_code("invalid_tool_arguments", &failure).into_envelope(),
            ),
            Err(failure) => CallAdmission::Unfit(failure),
        }
    }

    /// What is wrong with arguments that match their schema, as the value that the program receives; checked before a
    /// person is asked.
    pub(super) fn objection(&self, args: &Json) -> Option<Json> {
        let (SectionOrigin::Integration(integration), Some(connection)) =
            (self.section.origin(), self.connection())
        else {
            return None;
        };
        let args = self.fitting(args).ok()?;
        let outline = connection.proof.outline();
        let why = integration.objection(&self.spec().name, &outline, &args)?;
        let message = format!("The arguments of \"{}\" make no call: {why}.", self.path());
        Some(ToolFailure::new("invalid_tool_arguments", message).into_envelope())
    }

    /// The question that its source composes about a call, or the value that
    /// the program receives instead.
    pub(super) fn compose_question(&self, args: &Json) -> Option<Result<String, Json>> {
        let SectionOrigin::Source(source) = self.section.origin() else { return None };
        let path = ToolPath::parse(&self.path()).ok()?;
        source.compose_question(&path, args)
    }

    pub(super) async fn call(self, mut request: ToolRequest) -> CallOutcome {
        // Checked again: the tool may have changed between the question and the answer.
        request.args = match self.fitting(&request.args) {
            Ok(args) => args,
            Err(failure) if self.is_enveloped() => {
                return CallOutcome::Returned {
                    value: Some(
                        ToolFailure::from_code("invalid_tool_arguments", &failure).into_envelope(),
                    ),
                };
            }
            Err(failure) => return CallOutcome::Failed(failure),
        };
        // Inside the async block, so that a source that panics before its first await is caught too.
        request.person = request.person.spared();
        request.progress = request.progress.spared();
        let guarded = async { self.checked(self.perform_call(request).await?) };
        match AssertUnwindSafe(guarded).catch_unwind().await {
            Ok(Ok(value)) => CallOutcome::Returned { value: value.map(scrub::json) },
            Ok(Err(failure)) => CallOutcome::Failed(bounded(scrub::failure(failure))),
            Err(panic) => CallOutcome::Failed(self.broken(panic.as_ref())),
        }
    }

    fn perform_call(
        &self,
        request: ToolRequest,
    ) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        match (self.section.origin(), self.connection()) {
            (SectionOrigin::Source(source), _) => source.call(request),
            (SectionOrigin::Integration(integration), Some(connection)) => {
                let (integration, proof) = (Arc::clone(integration), Arc::clone(&connection.proof));
                proof::perform_with_proof(integration, proof, self.spec().name.clone(), request)
                    .boxed()
            }
            (SectionOrigin::Integration(_), None) | (SectionOrigin::Nowhere, _) => {
                unreachable!("tools of an integration are found by a connection")
            }
        }
    }

    /// The arguments as the tool takes them, or why they do not match.
    fn fitting(&self, args: &Json) -> Result<Json, Failure> {
        let compiled = self.section.shelf.compiled(self.entry_idx);
        let Some(schema) = &compiled.input else { return Ok(args.clone()) };
        let args = schema.completed(&self.arranged(args));
        let input = self.spec().input.as_ref();
        let args = input.and_then(|input| files::placed(input, &args)).unwrap_or(args);
        match schema.issues(&args).as_slice() {
            [] => Ok(args),
            issues => {
                let about = format!("The arguments of \"{}\" do not fit", self.path());
                let about = match self.missing_argument(&args) {
                    Some(missing) => format!("{missing}. {about}"),
                    None => about,
                };
                let mut failure = unfit(&about, issues);
                if let Some(hint) = files::hint(issues, &args) {
                    failure.message.push(' ');
                    failure.message.push_str(hint);
                }
                Err(failure)
            }
        }
    }

    fn missing_argument(&self, args: &Json) -> Option<String> {
        match self.section.origin() {
            SectionOrigin::Integration(integration) => {
                integration.missing_argument(&self.spec().name, args)
            }
            SectionOrigin::Source(_) | SectionOrigin::Nowhere => None,
        }
    }

    fn arranged(&self, args: &Json) -> Json {
        let arranged = match self.section.origin() {
            SectionOrigin::Integration(integration) => {
                integration.arranged(&self.spec().name, args)
            }
            SectionOrigin::Source(_) | SectionOrigin::Nowhere => None,
        };
        arranged.unwrap_or_else(|| args.clone())
    }

    /// The result, if it matches the output schema of the tool. `undefined` counts as `null`.
    fn checked(&self, value: Option<Json>) -> Result<Option<Json>, Failure> {
        let compiled = self.section.shelf.compiled(self.entry_idx);
        let Some(schema) = &compiled.output else { return Ok(value) };
        let issues = match &value {
            Some(value) => schema.issues(value),
            None => schema.issues(&Json::null()),
        };
        if issues.is_empty() {
            return Ok(value);
        }
        let message = format!("The result of \"{}\" does not fit its schema", self.path());
        Err(unfit(&message, &issues))
    }

    /// A panic message may contain paths of this machine: it goes to the log, and the guest receives a fixed sentence.
    fn broken(&self, panic: &(dyn Any + Send)) -> Failure {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let tool = self.path();
        tracing::error!(tool, panic = text.unwrap_or("?"), "a tool panicked");
        Failure::new(FailureCode::Tool, format!("Tool \"{tool}\" broke down."))
    }

    fn entry(&self) -> &CatalogueEntry {
        &self.section.shelf.entries[self.entry_idx]
    }

    fn mount(&self) -> &MountPoint {
        &self.section.mounts[self.mount_idx]
    }
}

impl fmt::Debug for FoundTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())
    }
}

fn unfit(message: &str, issues: &[SchemaIssue]) -> Failure {
    let details = serde_json::json!({ "issues": issues });
    Failure {
        details: Json::from_value(&details).ok(),
        ..Failure::new(FailureCode::Validation, format!("{message}: {}.", sentence(issues)))
    }
}

fn bounded(mut failure: Failure) -> Failure {
    if let Some((at, _)) = failure.message.char_indices().nth(FAILURE_CHARS_MAX) {
        failure.message.truncate(at);
        failure.message.push('…');
    }
    failure.details.take_if(|details| details.as_text().len() > FAILURE_DETAILS_BYTES_MAX);
    failure
}
