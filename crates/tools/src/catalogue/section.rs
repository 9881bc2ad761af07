//! One source in the catalogue: its tools, stored once, and every place where they are bound.

use super::{CatalogueChange, CatalogueError};
use crate::schema::ToolSchema;
use crate::search::ToolIndex;
use crate::{Connection, Integration, IntegrationSlug, SharedSchema, Source, ToolSpec};
use lifecycle::{Timestamp, ToolHost, ToolNature, ToolPath};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Notify;

/// Maximum number of tools of one integration: the largest public descriptions have a third of this.
pub(crate) const TOOLS_MAX: usize = 50_000;

/// Compiled schemas cached per source. Most tools are never called; compiling one again costs about ten
/// microseconds.
const COMPILED_MAX: usize = 512;

/// The kind of a source of Airlock's own tools.
pub(crate) const BUILT_IN: &str = "built-in";

/// The public description of a source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceCard {
    /// Its name in paths.
    pub name: String,
    /// Its display name.
    pub title: String,
    /// What it is good for.
    pub description: String,
    /// `built-in`, or the name of its kind.
    pub kind: String,
    /// Its address, for display.
    pub url: Option<String>,
    /// Whether it can be removed.
    pub can_remove: bool,
    /// Whether it can be refreshed.
    pub can_refresh: bool,
    /// Whether its tools may ask the person behind a call.
    pub may_elicit: bool,
    /// Why it cannot be reached, if it cannot.
    pub trouble: Option<String>,
}

impl SourceCard {
    /// Its description, or its title if it has none.
    pub fn about(&self) -> &str {
        match self.description.as_str() {
            "" => &self.title,
            description => description,
        }
    }
}

/// One source in the catalogue.
pub(super) struct CatalogueSection {
    pub(super) card: SourceCard,
    origin: SectionOrigin,
    pub(super) shelf: Arc<ToolShelf>,
    pub(super) mounts: Vec<MountPoint>,
    /// First names of its tools' paths.
    firsts: BTreeSet<String>,
    /// Notified when the source is needed and unavailable.
    pub(super) demand: Arc<Notify>,
}

#[derive(Clone)]
pub(super) enum SectionOrigin {
    /// Not reached yet.
    Nowhere,
    Source(Arc<dyn Source>),
    Integration(Arc<dyn Integration>),
}

/// The tools of a source, sorted by name. Shared by all snapshots between two imports.
#[derive(Default)]
pub(super) struct ToolShelf {
    pub(super) entries: Vec<CatalogueEntry>,
    compiled: Mutex<HashMap<usize, Arc<ToolSchemas>>>,
    index: OnceLock<ToolIndex>,
}

/// A tool, independent of where it is bound.
pub(super) struct CatalogueEntry {
    pub(super) spec: ToolSpec,
    pub(super) runs: ToolHost,
    /// Whether a result that does not match the schema is a failure.
    pub(super) is_bound_to_output: bool,
    /// When a refresh added it, and when its shape last changed; 0 for never.
    pub(super) since: Timestamp,
    pub(super) grew: Timestamp,
    /// Whether each call needs an answer of its own.
    pub(super) answer_only: bool,
}

/// A place where the tools are found.
pub(super) struct MountPoint {
    /// Empty, or `<integration>.<owner>.<connection>.`.
    pub(super) prefix: String,
    pub(super) connection: Option<Arc<Connection>>,
}

/// The schemas of a tool, ready to check with. None: takes anything.
#[derive(Default)]
pub(super) struct ToolSchemas {
    pub(super) input: Option<ToolSchema>,
    pub(super) output: Option<ToolSchema>,
}

impl CatalogueSection {
    /// Whether its tools return `{ok, data}` or `{ok, error}`.
    pub(super) fn is_enveloped(&self) -> bool {
        match &self.origin {
            SectionOrigin::Integration(_) => true,
            SectionOrigin::Source(source) => source.is_enveloped(),
            SectionOrigin::Nowhere => false,
        }
    }

    /// Airlock's own tools, each at its full path. A wrong schema is a bug of ours and is an error.
    pub(super) fn of_source(source: Arc<dyn Source>) -> Result<Self, CatalogueError> {
        let mut tools = BTreeMap::new();
        for tool in source.tools() {
            if let Some(twice) = tools.insert(tool.path.clone(), tool) {
                return Err(CatalogueError::Duplicate(twice.path));
            }
        }
        let firsts = tools.keys().filter_map(|path| path.segments().next()).map(str::to_owned);
        let firsts = firsts.collect();
        let entries = tools.into_values().map(|tool| CatalogueEntry {
            runs: tool.nature.runs,
            is_bound_to_output: true,
            // Newer than every approved pattern, also than future ones.
            since: Timestamp(if tool.by_name_only { i64::MAX } else { 0 }),
            grew: Timestamp(0),
            answer_only: tool.answer_only,
            spec: ToolSpec {
                name: tool.path.as_str().to_owned(),
                description: tool.description,
                input: tool.input_schema.as_ref().map(SharedSchema::new),
                output: tool.output_schema.as_ref().map(SharedSchema::new),
                read_only: tool.nature.read_only,
                asks: tool.asks,
                about: tool.about,
                job: tool.job,
            },
        });
        let shelf = ToolShelf { entries: entries.collect(), ..ToolShelf::default() };
        shelf.compile_all()?;
        let name = source.name().to_owned();
        let card = SourceCard {
            title: name.clone(),
            name,
            kind: BUILT_IN.into(),
            ..SourceCard::default()
        };
        let mounts = vec![MountPoint { prefix: String::new(), connection: None }];
        let (origin, shelf, demand) =
            (SectionOrigin::Source(source), Arc::new(shelf), Arc::default());
        Ok(Self { card, origin, shelf, mounts, firsts, demand })
    }

    /// Tools of an integration, and why some of them were left out.
    pub(super) fn of_integration(
        slug: &IntegrationSlug,
        card: SourceCard,
        integration: Arc<dyn Integration>,
        connections: Vec<Arc<Connection>>,
    ) -> (Self, Vec<String>) {
        let mut left_out = vec![];
        let mut specs = BTreeMap::new();
        for spec in integration.tools() {
            if let Err(why) = ToolPath::parse(&spec.name) {
                left_out.push(format!("{}: {why}", spec.name.escape_debug()));
            } else if specs.len() == TOOLS_MAX {
                left_out.push(format!("{}: there are {TOOLS_MAX} tools already", spec.name));
            } else if let Some(twice) = specs.insert(spec.name.clone(), spec) {
                left_out.push(format!("{}: another tool has this name", twice.name));
            }
        }
        let entries = specs.into_values().map(|spec| CatalogueEntry {
            spec,
            runs: ToolHost::Here,
            is_bound_to_output: false,
            since: Timestamp(0),
            grew: Timestamp(0),
            answer_only: false,
        });
        let shelf = Arc::new(ToolShelf { entries: entries.collect(), ..ToolShelf::default() });
        let card = SourceCard { name: slug.as_str().into(), trouble: None, ..card };
        let origin = SectionOrigin::Integration(integration);
        let firsts = BTreeSet::from([slug.as_str().to_owned()]);
        let (mounts, demand) = (mounts(slug, connections), Arc::default());
        (Self { card, origin, shelf, mounts, firsts, demand }, left_out)
    }

    /// A source that is known and was never read.
    pub(super) fn empty(card: SourceCard) -> Self {
        let firsts = BTreeSet::from([card.name.clone()]);
        let (origin, shelf, demand) = (SectionOrigin::Nowhere, Arc::default(), Arc::default());
        Self { card, origin, shelf, mounts: vec![], firsts, demand }
    }

    /// The same tools at other places.
    pub(super) fn bound(&self, slug: &IntegrationSlug, connections: Vec<Arc<Connection>>) -> Self {
        Self {
            card: self.card.clone(),
            origin: self.origin.clone(),
            shelf: Arc::clone(&self.shelf),
            mounts: mounts(slug, connections),
            firsts: self.firsts.clone(),
            demand: Arc::clone(&self.demand),
        }
    }

    /// The same section with another state.
    pub(super) fn troubled(&self, trouble: Option<String>) -> Self {
        self.carded(SourceCard { trouble, ..self.card.clone() })
    }

    /// The same with another card.
    pub(super) fn carded(&self, card: SourceCard) -> Self {
        let mounts = self.mounts.iter().map(|mount| MountPoint {
            prefix: mount.prefix.clone(),
            connection: mount.connection.clone(),
        });
        Self {
            card,
            origin: self.origin.clone(),
            shelf: Arc::clone(&self.shelf),
            mounts: mounts.collect(),
            firsts: self.firsts.clone(),
            demand: Arc::clone(&self.demand),
        }
    }

    pub(super) fn firsts(&self) -> impl Iterator<Item = &String> {
        self.firsts.iter()
    }

    pub(super) fn origin(&self) -> &SectionOrigin {
        &self.origin
    }

    /// Whether there is no description of it.
    pub(super) fn is_undescribed(&self) -> bool {
        matches!(self.origin, SectionOrigin::Nowhere)
    }

    /// Why it is unavailable, if it is.
    pub(super) fn outage(&self) -> Option<String> {
        match &self.origin {
            SectionOrigin::Nowhere => {
                let trouble = self.card.trouble.clone();
                Some(trouble.unwrap_or_else(|| "it was not read yet".into()))
            }
            SectionOrigin::Integration(integration) => integration.outage(),
            SectionOrigin::Source(_) => None,
        }
    }

    pub(super) fn integration(&self) -> Option<Arc<dyn Integration>> {
        match &self.origin {
            SectionOrigin::Integration(integration) => Some(Arc::clone(integration)),
            SectionOrigin::Source(_) | SectionOrigin::Nowhere => None,
        }
    }

    /// Where its calls go.
    pub(super) fn target(&self) -> String {
        self.integration().map(|integration| integration.target()).unwrap_or_default()
    }

    pub(super) fn n_tools(&self) -> usize {
        self.shelf.entries.len()
    }

    /// Every path, by place and name.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.mounts.iter().flat_map(|mount| {
            self.shelf.entries.iter().map(|entry| format!("{}{}", mount.prefix, entry.spec.name))
        })
    }

    /// The difference to the previous section at its place.
    pub(super) fn change_since(&self, before: Option<&Self>) -> CatalogueChange {
        let Some(before) = before else {
            let added = self.shelf.entries.iter().map(|entry| entry.spec.name.clone()).collect();
            return CatalogueChange { added, ..CatalogueChange::default() };
        };
        let moved = self.target() != before.target();
        let old: HashMap<_, _> = before
            .shelf
            .entries
            .iter()
            .map(|entry| (entry.spec.name.as_str(), &entry.spec))
            .collect();
        let mut change = CatalogueChange::default();
        for CatalogueEntry { spec, .. } in &self.shelf.entries {
            match old.get(spec.name.as_str()) {
                None => change.added.push(spec.name.clone()),
                Some(known) if moved || *known != spec => change.changed.push(spec.name.clone()),
                Some(_) => {}
            }
        }
        let now: BTreeSet<_> = self.shelf.entries.iter().map(|entry| &entry.spec.name).collect();
        let gone = before.shelf.entries.iter().map(|entry| &entry.spec.name);
        change.removed = gone.filter(|name| !now.contains(name)).cloned().collect();
        change
    }
}

impl ToolShelf {
    /// The search index of its tools, built once: in the background at the start, or by the first search.
    pub(super) fn index(&self) -> &ToolIndex {
        self.index.get_or_init(|| ToolIndex::new(self.entries.iter().map(|entry| &entry.spec)))
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
    }

    /// Which entry has this name.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.entries.binary_search_by(|entry| entry.spec.name.as_str().cmp(name)).ok()
    }

    /// The schemas of an entry. A schema that cannot be compiled checks nothing: an invalid description must not make
    /// a tool unusable.
    pub(super) fn compiled(&self, at: usize) -> Arc<ToolSchemas> {
        if let Some(known) = self.lock().get(&at) {
            return Arc::clone(known);
        }
        let entry = &self.entries[at];
        let compiled = Arc::new(entry.compile().unwrap_or_else(|(which, why)| {
            tracing::warn!(
                tool = entry.spec.name,
                which,
                why,
                "a schema is wrong; nothing is checked"
            );
            ToolSchemas::default()
        }));
        let mut known = self.lock();
        if known.len() >= COMPILED_MAX {
            known.clear();
        }
        known.insert(at, Arc::clone(&compiled));
        compiled
    }

    fn compile_all(&self) -> Result<(), CatalogueError> {
        for (at, entry) in self.entries.iter().enumerate() {
            let compiled = entry.compile().map_err(|(which, why)| CatalogueError::BadSchema {
                tool: ToolPath::parse(&entry.spec.name).expect("it came as a path"),
                which,
                why,
            })?;
            self.lock().insert(at, Arc::new(compiled));
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<usize, Arc<ToolSchemas>>> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CatalogueEntry {
    pub(super) const fn nature(&self) -> ToolNature {
        ToolNature { read_only: self.spec.read_only, runs: self.runs }
    }

    fn compile(&self) -> Result<ToolSchemas, (&'static str, String)> {
        let compile = |which, schema: Option<&SharedSchema>| {
            let compiled = schema.map(|schema| ToolSchema::compile(&schema.whole())).transpose();
            compiled.map_err(|why| (which, why))
        };
        let output = self.spec.output.as_ref().filter(|_| self.is_bound_to_output);
        Ok(ToolSchemas {
            input: compile("input", self.spec.input.as_ref())?,
            output: compile("output", output)?,
        })
    }
}

fn mounts(slug: &IntegrationSlug, connections: Vec<Arc<Connection>>) -> Vec<MountPoint> {
    let mount = |connection: Arc<Connection>| MountPoint {
        prefix: format!("{slug}.{}.{}.", connection.owner, connection.name),
        connection: Some(connection),
    };
    let mut mounts: Vec<_> = connections.into_iter().map(mount).collect();
    mounts.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    mounts.dedup_by(|a, b| a.prefix == b.prefix);
    mounts
}
