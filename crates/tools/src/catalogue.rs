//! Every tool by its path: checks whether a call is valid, and performs it. The catalogue is live: sources are added,
//! removed and changed during calls, and each call uses the tool that it resolved at its start.

mod arrival;
mod available;
mod found;
mod labelled;
mod section;

use crate::envelope::{self, ToolFailure};
use crate::suggest::suggest;
use crate::{Connection, ConnectionOwner, Integration, IntegrationSlug, Source, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{CallAdmission, CallOutcome, Failure, FailureCode, Json, ToolPath, ToolRevision};
use section::CatalogueSection;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use tokio::sync::watch;

pub use arrival::{IntegrationArrival, ToolAge, ToolAges};
pub use found::FoundTool;
pub(crate) use labelled::LabelledSource;
pub(crate) use section::BUILT_IN;
pub use section::SourceCard;

/// Every tool by its path. Clones are handles to the same catalogue.
#[derive(Clone, Default)]
pub struct Catalogue(Arc<SharedSnapshot>);

/// The newest snapshot, shared by all handles to the catalogue.
#[derive(Default)]
struct SharedSnapshot {
    current: RwLock<Arc<CatalogueSnapshot>>,
    /// Incremented with each new snapshot.
    version: watch::Sender<u64>,
}

/// A weak handle, for sources that are part of the catalogue themselves.
pub(crate) struct WeakCatalogue(Weak<SharedSnapshot>);

impl WeakCatalogue {
    /// The current snapshot; empty if the catalogue no longer exists.
    pub(crate) fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        self.0.upgrade().map(|shelf| Catalogue(shelf).snapshot()).unwrap_or_default()
    }
}

/// An immutable snapshot of the catalogue.
#[derive(Default)]
pub struct CatalogueSnapshot {
    sections: BTreeMap<String, Arc<CatalogueSection>>,
    /// Sections by the first names of their tools' paths.
    firsts: HashMap<String, Vec<Arc<CatalogueSection>>>,
}

/// Why a source could not be put into the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// Two tools have the same path.
    #[error("two tools are called {0}")]
    Duplicate(ToolPath),
    /// A schema that cannot be compiled.
    #[error("the {which} schema of {tool} is wrong: {why}")]
    BadSchema {
        /// The tool that the schema belongs to.
        tool: ToolPath,
        /// `input` or `output`.
        which: &'static str,
        /// What is wrong with the schema.
        why: String,
    },
}

/// What the arrival of an integration changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CatalogueChange {
    /// Tools that were not there before, by their names below a connection.
    pub added: Vec<String>,
    /// Tools that are gone.
    pub removed: Vec<String>,
    /// Tools whose arguments, effect, result or target changed.
    pub changed: Vec<String>,
    /// Changed tools with another shape (arguments, effect or target): an earlier approval did not cover
    /// it.
    pub grown: Vec<String>,
    /// Tools that were left out, each with the reason.
    pub left_out: Vec<String>,
}

impl Catalogue {
    /// Creates a catalogue of Airlock's own tools. Lists the tools of every source and compiles every schema.
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Result<Self, CatalogueError> {
        let catalogue = Self::default();
        for source in sources {
            catalogue.add(source)?;
        }
        Ok(catalogue)
    }

    /// Adds a source of Airlock's own tools. Its tools are listed once.
    pub fn add(&self, source: Arc<dyn Source>) -> Result<(), CatalogueError> {
        let section = CatalogueSection::of_source(source)?;
        self.swap(|snapshot| {
            let taken = section.paths().find(|path| snapshot.find_text(path).is_some());
            if let Some(taken) = taken.and_then(|path| ToolPath::parse(&path).ok()) {
                return Err(CatalogueError::Duplicate(taken));
            }
            let mut key = section.card.name.clone();
            while snapshot.sections.contains_key(&key) {
                key.push('+');
            }
            Ok((snapshot.with(key, section), ()))
        })
    }

    /// Adds an integration under its name, bound by `connections`; replaces an integration of the same name.
    pub fn put(
        &self,
        slug: &IntegrationSlug,
        card: SourceCard,
        integration: Arc<dyn Integration>,
        connections: Vec<Arc<Connection>>,
    ) -> CatalogueChange {
        self.welcome(IntegrationArrival::new(slug, card, integration, connections))
    }

    /// Adds an imported integration under its name; replaces an integration of the same name.
    pub fn welcome(&self, arrival: IntegrationArrival) -> CatalogueChange {
        let IntegrationArrival { slug, section, left_out, grown } = arrival;
        self.swap(|snapshot| {
            let mut section = section;
            let before = snapshot.sections.get(slug.as_str());
            if let Some(before) = before {
                section.demand = Arc::clone(&before.demand);
            }
            let change = section.change_since(before.map(|before| &**before));
            let change = CatalogueChange { left_out, grown, ..change };
            Ok::<_, CatalogueError>((snapshot.with(slug.as_str().into(), section), change))
        })
        .unwrap_or_default()
    }

    /// Replaces the connections of an integration. False if no integration has that name.
    pub fn bind(&self, slug: &IntegrationSlug, connections: Vec<Arc<Connection>>) -> bool {
        self.swap(|snapshot| {
            let section = snapshot.sections.get(slug.as_str()).ok_or(())?.bound(slug, connections);
            Ok::<_, ()>((snapshot.with(slug.as_str().into(), section), ()))
        })
        .is_ok()
    }

    /// Sets the reason why a source is unreachable; none marks it as reachable. Its tools do not change.
    pub fn set_trouble(&self, slug: &IntegrationSlug, card: &SourceCard, trouble: Option<String>) {
        // No swap if nothing changes.
        let _ = self.swap(|snapshot| {
            let known = snapshot.sections.get(slug.as_str());
            let section = match known {
                Some(known) if known.card.trouble == trouble => return Err(()),
                Some(known) => known.troubled(trouble),
                None => CatalogueSection::empty(SourceCard { trouble, ..card.clone() }),
            };
            Ok::<_, ()>((snapshot.with(slug.as_str().into(), section), ()))
        });
    }

    /// Sets the title and description of an integration. False if no integration has that name.
    pub fn rename(&self, slug: &IntegrationSlug, title: String, description: String) -> bool {
        self.swap(|snapshot| {
            let known = snapshot.sections.get(slug.as_str()).ok_or(())?;
            let section = known.carded(SourceCard { title, description, ..known.card.clone() });
            Ok::<_, ()>((snapshot.with(slug.as_str().into(), section), ()))
        })
        .is_ok()
    }

    /// Removes an integration. False if no integration has that name.
    pub fn remove(&self, slug: &IntegrationSlug) -> bool {
        self.swap(|snapshot| {
            snapshot.sections.get(slug.as_str()).ok_or(())?;
            Ok::<_, ()>((snapshot.without(slug.as_str()), ()))
        })
        .is_ok()
    }

    pub(crate) fn downgrade(&self) -> WeakCatalogue {
        WeakCatalogue(Arc::downgrade(&self.0))
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<CatalogueSnapshot> {
        Arc::clone(&self.0.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks that the tool exists and that it accepts these arguments.
    pub fn admit_call(&self, tool: &ToolPath, args: &Json) -> CallAdmission {
        self.admit_seen(tool, args, |_| false)
    }

    /// The same, for a caller from whom a policy hides some tools: those are blocked and never suggested.
    pub fn admit_seen(
        &self,
        tool: &ToolPath,
        args: &Json,
        hides: impl Fn(&FoundTool) -> bool,
    ) -> CallAdmission {
        let snapshot = self.snapshot();
        match snapshot.find(tool) {
            Some(found) if hides(&found) => blocked(&found, tool),
            found => match (snapshot.unavailable_source(tool), found) {
                (Some(source), _) => CallAdmission::Unavailable(source),
                (None, Some(found)) => found.admit_call(args),
                (None, None) => snapshot.not_admitted(tool, hides),
            },
        }
    }

    /// What a program of Executor receives for a path whose first name no source has: a value, as for an unknown tool of a
    /// known source. None if a source has that name.
    pub fn unknown_namespace_value(&self, tool: &ToolPath, failure: &Failure) -> Option<Json> {
        let first = tool.segments().find(|name| *name != "tools")?;
        let is_known = self.snapshot().firsts.contains_key(first);
        let is_missing = failure.code == FailureCode::ToolNotFound;
        (is_missing && !is_known)
            .then(|| ToolFailure::from_code("tool_not_found", failure).into_envelope())
    }

    /// What is wrong with arguments that match their schema, as the value that the program receives.
    pub fn objection(&self, tool: &ToolPath, args: &Json) -> Option<Json> {
        self.find(tool)?.objection(args)
    }

    /// The question that the tool's source composes about a call, or the value that the program
    /// receives instead.
    pub fn compose_question(&self, tool: &ToolPath, args: &Json) -> Option<Result<String, Json>> {
        self.find(tool)?.compose_question(args)
    }

    /// Performs an admitted call. Never panics, even if the tool does; spawns no task.
    pub fn call(&self, request: ToolRequest) -> BoxFuture<'static, CallOutcome> {
        let snapshot = self.snapshot();
        match snapshot.find(&request.tool) {
            Some(found) => found.call(request).boxed(),
            None => {
                let failure = snapshot.not_found(&request.tool, |_| false);
                let outcome = match snapshot.is_enveloped(&request.tool) {
                    true => CallOutcome::Returned {
                        value: Some(
                            ToolFailure::from_code("tool_not_found", &failure).into_envelope(),
                        ),
                    },
                    false => CallOutcome::Failed(failure),
                };
                future::ready(outcome).boxed()
            }
        }
    }

    /// The same for a program that wants the tool's own value, and has failures thrown.
    pub fn call_unwrapped(&self, request: ToolRequest) -> BoxFuture<'static, CallOutcome> {
        let snapshot = self.snapshot();
        let is_enveloped = match snapshot.find(&request.tool) {
            Some(found) => found.is_enveloped(),
            None => snapshot.is_enveloped(&request.tool),
        };
        let calling = self.call(request);
        if !is_enveloped {
            return calling;
        }
        calling.map(envelope::unwrapped_outcome).boxed()
    }

    /// The tool at a path.
    pub fn find(&self, tool: &ToolPath) -> Option<FoundTool> {
        self.snapshot().find(tool)
    }

    /// The revision that an approval of this tool covers: it changes when the tool does.
    pub fn revision(&self, tool: &ToolPath) -> Option<ToolRevision> {
        self.find(tool).map(|found| found.revision())
    }

    /// Readers continue with the snapshot that they hold; later reads see the result of `change`.
    fn swap<T, E>(
        &self,
        change: impl FnOnce(&CatalogueSnapshot) -> Result<(CatalogueSnapshot, T), E>,
    ) -> Result<T, E> {
        let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
        let (next, outcome) = change(&current)?;
        *current = Arc::new(next);
        drop(current);
        self.0.version.send_modify(|version| *version += 1);
        Ok(outcome)
    }
}

impl CatalogueSnapshot {
    /// The tool at a path. The prefix `tools.` is optional.
    pub fn find(&self, tool: &ToolPath) -> Option<FoundTool> {
        self.find_text(tool.as_str())
    }

    fn find_text(&self, path: &str) -> Option<FoundTool> {
        let found = self.find_exactly(path);
        found.or_else(|| self.find_exactly(path.strip_prefix("tools.")?))
    }

    fn find_exactly(&self, path: &str) -> Option<FoundTool> {
        let first = path.split('.').next().unwrap_or_default();
        self.firsts.get(first)?.iter().find_map(|section| FoundTool::in_section(section, path))
    }

    /// Every tool, source by source, sorted by path within each.
    pub fn tools(&self) -> impl Iterator<Item = FoundTool> {
        self.sections.values().flat_map(FoundTool::all)
    }

    /// Every source.
    pub fn cards(&self) -> impl Iterator<Item = (&SourceCard, usize)> {
        self.sections.values().map(|section| (&section.card, section.n_tools()))
    }

    /// An integration's card.
    pub fn card(&self, slug: &str) -> Option<&SourceCard> {
        self.sections.get(slug).map(|section| &section.card)
    }

    /// An integration, if there is one of that name.
    pub fn integration(&self, slug: &str) -> Option<Arc<dyn Integration>> {
        self.sections.get(slug)?.integration()
    }

    fn with(&self, key: String, section: CatalogueSection) -> Self {
        let mut sections = self.sections.clone();
        sections.insert(key, Arc::new(section));
        Self::from_sections(sections)
    }

    fn without(&self, key: &str) -> Self {
        let mut sections = self.sections.clone();
        sections.remove(key);
        Self::from_sections(sections)
    }

    fn from_sections(sections: BTreeMap<String, Arc<CatalogueSection>>) -> Self {
        let mut firsts: HashMap<String, Vec<_>> = HashMap::new();
        for section in sections.values() {
            for first in section.firsts() {
                firsts.entry(first.clone()).or_default().push(Arc::clone(section));
            }
        }
        Self { sections, firsts }
    }

    /// Whether the source at a path answers with `{ok, data}` or `{ok, error}`. Integrations and the management tools do,
    /// also for tools that do not exist.
    fn is_enveloped(&self, tool: &ToolPath) -> bool {
        let mut names = tool.segments().skip_while(|name| *name == "tools");
        let (first, second) = (names.next().unwrap_or_default(), names.next().unwrap_or_default());
        let has_owner = ConnectionOwner::parse(second).is_some() && names.nth(1).is_some();
        let is_integration = self.card(first).is_some_and(|card| card.kind != BUILT_IN);
        let mut sections = self.firsts.get(first).into_iter().flatten();
        has_owner || is_integration || sections.any(|section| section.is_enveloped())
    }

    fn not_admitted(&self, tool: &ToolPath, hides: impl Fn(&FoundTool) -> bool) -> CallAdmission {
        let failure = self.not_found(tool, hides);
        match self.is_enveloped(tool) {
            true => CallAdmission::Told(
                ToolFailure::from_code("tool_not_found", &failure).into_envelope(),
            ),
            false => CallAdmission::Unfit(failure),
        }
    }

    /// There is no such tool: what may have been meant, and whether its source is in trouble.
    pub(crate) fn not_found(&self, tool: &ToolPath, hides: impl Fn(&FoundTool) -> bool) -> Failure {
        let first = tool.segments().next().unwrap_or_default();
        let trouble = self.card(first).and_then(|card| card.trouble.as_deref());
        let known = self.tools().filter(|found| !hides(found)).map(|found| found.path());
        let suggestions = suggest(tool.as_str(), known);
        let hint = match (trouble, suggestions.as_slice()) {
            (Some(trouble), _) => format!(". Its source \"{first}\" is in trouble: {trouble}"),
            (None, []) => String::new(),
            (None, some) => format!(". Did you mean {}?", some.join(", ")),
        };
        let details = serde_json::json!({ "path": tool, "suggestions": suggestions });
        Failure {
            details: Json::from_value(&details).ok(),
            ..Failure::new(FailureCode::ToolNotFound, format!("Tool not found: {tool}{hint}"))
        }
    }
}

/// What a call of a blocked tool returns, in the form in which this tool reports its errors.
fn blocked(found: &FoundTool, tool: &ToolPath) -> CallAdmission {
    let failure = Failure::blocked(tool);
    if !found.is_enveloped() {
        return CallAdmission::Unfit(failure);
    }
    // As in the catalogue over HTTP: the path of a tool without a connection has no `tools.` prefix.
    let address = match found.connection() {
        Some(_) => format!("tools.{}", found.path()),
        None => found.path(),
    };
    let details = serde_json::json!({ "_tag": "ToolBlockedError", "address": address });
    let trouble =
        ToolFailure { details: Some(details), ..ToolFailure::new("tool_blocked", failure.message) };
    CallAdmission::Told(trouble.into_envelope())
}

impl fmt::Debug for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

impl fmt::Debug for CatalogueSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sections.keys()).finish()
    }
}

#[cfg(test)]
mod tests;
