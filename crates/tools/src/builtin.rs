//! The tools that find tools: `search`, `describe.tool`, and the list of sources under both its names.

use crate::catalogue::{Catalogue, CatalogueSnapshot, FoundTool};
use crate::search::{ToolSearch, words};
use crate::suggest::suggest;
use crate::{Source, SourceCard, Tool, ToolRequest};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};
use lifecycle::{Failure, FailureCode, Json, ToolHost, ToolNature, ToolPath};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;

/// Hits of one search, unless a number is given.
const LIMIT_USUALLY: usize = 12;

/// Maximum number of hits of one search.
const LIMIT_MAX: usize = 200;

/// Suggestions for a path that leads nowhere.
const SUGGESTIONS_MAX: usize = 5;

/// Longest description of a hit; `describe.tool` has the rest.
const HIT_CHARS_MAX: usize = 240;

/// Returns whether the caller may see a tool. Tools that a policy blocks are hidden.
pub type ToolVisibility = Arc<dyn Fn(&FoundTool) -> bool + Send + Sync>;

/// The tools that find tools.
pub struct BuiltinTools {
    catalogue: crate::catalogue::WeakCatalogue,
    shows: ToolVisibility,
}

impl BuiltinTools {
    /// Finds tools in `catalogue`, of which they are part themselves.
    pub fn new(catalogue: &Catalogue, shows: ToolVisibility) -> Self {
        Self { catalogue: catalogue.downgrade(), shows }
    }

    fn answer_request(&self, request: &ToolRequest) -> Result<Json, Failure> {
        let snapshot = self.catalogue.snapshot();
        let args: Value = serde_json::from_str(request.args.as_text()).unwrap_or(Value::Null);
        match request.tool.as_str() {
            "search" => self.search(&snapshot, &args),
            "describe.tool" => self.describe(&snapshot, &args),
            _ => sources(&snapshot, &args),
        }
    }

    fn search(&self, snapshot: &CatalogueSnapshot, args: &Value) -> Result<Json, Failure> {
        let expects = "tools.search expects an object: \
                       { query?: string; namespace?: string; limit?: number; offset?: number }";
        let args = args.as_object().ok_or_else(|| wrong(expects.to_owned()))?;
        let wish = ToolSearch {
            query: text_argument(args, "tools.search", "query")?.unwrap_or_default(),
            namespace: text_argument(args, "tools.search", "namespace")?,
            ..page(args, "tools.search")?
        };
        let page = snapshot.search(&wish, &*self.shows);
        let items: Vec<_> = page.hits.iter().map(|(found, score)| hit(found, *score)).collect();
        Ok(paged(&items, page.total, wish.offset))
    }

    fn describe(&self, snapshot: &CatalogueSnapshot, args: &Value) -> Result<Json, Failure> {
        let path = args.get("path").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if path.is_empty() {
            return Err(wrong("describe.tool requires a path".to_owned()));
        }
        if args.get("includeSchemas").is_some() {
            let why = "describe.tool no longer takes includeSchemas; it always gives TypeScript";
            return Err(wrong(why.to_owned()));
        }
        if let Some(own) = own(path) {
            return Ok(own);
        }
        let found = ToolPath::parse(path).ok().and_then(|path| snapshot.find(&path));
        match found.filter(|found| (self.shows)(found)) {
            Some(found) => Ok(described(&found)),
            None => Ok(self.unknown_tool(snapshot, path)),
        }
    }

    fn unknown_tool(&self, snapshot: &CatalogueSnapshot, path: &str) -> Json {
        let (namespace, leaf) = path.rsplit_once('.').unwrap_or(("", path));
        let first = namespace.split('.').find(|name| *name != "tools").unwrap_or_default();
        let look = |namespace: Option<String>| {
            let wish =
                ToolSearch { query: leaf.to_owned(), namespace, limit: SUGGESTIONS_MAX, offset: 0 };
            let page = snapshot.search(&wish, &*self.shows);
            page.hits.into_iter().map(|(found, _)| found.path()).collect::<Vec<_>>()
        };
        let known = || snapshot.tools().filter(|found| (self.shows)(found));
        let has_source = known().any(|found| found.card().name == first);
        // A tool of another source is never suggested, even if their names share words.
        let mut suggestions = look(has_source.then(|| first.to_owned()));
        if suggestions.is_empty() {
            suggestions = suggest(path, known().map(|found| found.path()));
        }
        let mut error =
            json!({ "code": "tool_not_found", "message": format!("Tool not found: {path}") });
        if !suggestions.is_empty() {
            error["suggestions"] = suggestions.into();
        }
        ordered([("path", path.into()), ("name", path.into()), ("error", error)])
    }
}

impl Source for BuiltinTools {
    fn name(&self) -> &'static str {
        "executor"
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |path: &str, description: &str| Tool {
            description: description.into(),
            nature: ToolNature { read_only: true, runs: ToolHost::Here },
            ..Tool::new(ToolPath::parse(path).expect("our own paths are paths"))
        };
        OWN.iter().map(|own| tool(own.path, own.description)).collect()
    }

    fn call(&self, request: ToolRequest) -> BoxFuture<'static, Result<Option<Json>, Failure>> {
        future::ready(self.answer_request(&request).map(Some)).boxed()
    }
}

impl fmt::Debug for BuiltinTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Builtin")
    }
}

/// One of Airlock's own tools. Arguments are checked here, so that the error texts are those that clients know.
struct BuiltinTool {
    path: &'static str,
    description: &'static str,
    input: &'static str,
    output: &'static str,
}

const OWN: [BuiltinTool; 4] = [
    BuiltinTool {
        path: "search",
        description: "Finds tools by intent and key nouns.",
        input: "{ query?: string; namespace?: string; limit?: number; offset?: number; }",
        output: "{ items: { path: string; name: string; description?: string; integration: string; score: number; }[]; \
                 total: number; hasMore: boolean; nextOffset: number | null; }",
    },
    BuiltinTool {
        path: "describe.tool",
        description: "Says what a tool takes and gives, in TypeScript.",
        input: "{ path: string; }",
        output: "{ path: string; name: string; description?: string; inputTypeScript?: string; outputTypeScript?: string; \
                 typeScriptDefinitions?: { [k: string]: string; }; }",
    },
    BuiltinTool { path: "executor.sources.list", ..SOURCES },
    BuiltinTool { path: "executor.integrations.list", ..SOURCES },
];

const SOURCES: BuiltinTool = BuiltinTool {
    path: "",
    description: "Lists the sources of tools.",
    input: "{ query?: string; limit?: number; offset?: number; }",
    output: "{ items: { id: string; name: string; description?: string; kind: string; canRemove: boolean; \
             canRefresh: boolean; toolCount: number; }[]; total: number; hasMore: boolean; nextOffset: number | null; }",
};

fn own(path: &str) -> Option<Json> {
    let bare = path.strip_prefix("tools.").unwrap_or(path);
    let own = OWN.iter().find(|own| own.path == bare)?;
    Some(ordered([
        ("path", own.path.into()),
        ("name", own.path.into()),
        ("description", own.description.into()),
        ("inputTypeScript", own.input.into()),
        ("outputTypeScript", own.output.into()),
    ]))
}

fn described(found: &FoundTool) -> Json {
    let told = found.describe();
    let definitions = Some(json!(told.definitions)).filter(|_| !told.definitions.is_empty());
    ordered([
        ("path", found.path().into()),
        ("name", found.spec().name.clone().into()),
        ("description", told.description.into()),
        ("inputTypeScript", told.input.into()),
        ("outputTypeScript", told.output.into()),
        ("typeScriptDefinitions", definitions.into()),
    ])
}

fn hit(found: &FoundTool, score: f32) -> Json {
    let spec = found.spec();
    let description = Some(shortened(&spec.description)).filter(|text| !text.is_empty());
    ordered([
        ("path", found.path().into()),
        ("name", spec.name.clone().into()),
        ("description", description.into()),
        ("integration", found.card().name.clone().into()),
        ("score", json!((f64::from(score) * 1_000.0).round() / 1_000.0)),
    ])
}

/// An object whose members have Executor's order, without those that are null.
fn ordered<const N: usize>(members: [(&str, Value); N]) -> Json {
    let members = members.iter().filter(|(_, value)| !value.is_null());
    let written: Vec<_> = members.map(|(name, value)| format!("\"{name}\":{value}")).collect();
    Json::parse(format!("{{{}}}", written.join(","))).expect("members of JSON make an object")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(HIT_CHARS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

fn sources(snapshot: &CatalogueSnapshot, args: &Value) -> Result<Json, Failure> {
    let empty = Map::new();
    let args = args.as_object().unwrap_or(&empty);
    let name = "tools.executor.sources.list";
    let wanted = words(&text_argument(args, name, "query")?.unwrap_or_default());
    let ToolSearch { limit, offset, .. } = page(args, name)?;
    let mut fitting: Vec<_> = snapshot
        .cards()
        .filter(|(card, _)| {
            let known = words(&format!("{} {} {}", card.name, card.description, card.kind));
            wanted.iter().all(|word| known.contains(word))
        })
        .collect();
    fitting.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    let total = fitting.len();
    let shown = fitting.into_iter().skip(offset).take(limit);
    let items: Vec<_> = shown.map(|(card, n)| source(card, n)).collect();
    Ok(paged(&items, total, offset))
}

fn source(card: &SourceCard, n_tools: usize) -> Json {
    let description = Some(card.description.as_str()).filter(|text| !text.is_empty());
    ordered([
        ("id", card.name.clone().into()),
        ("name", card.title.clone().into()),
        ("description", description.into()),
        ("kind", card.kind.clone().into()),
        ("canRemove", card.can_remove.into()),
        ("canRefresh", card.can_refresh.into()),
        ("toolCount", n_tools.into()),
        ("trouble", card.trouble.clone().into()),
    ])
}

/// A page in Executor's order. `nextOffset` is null on the last one.
fn paged(items: &[Json], total: usize, offset: usize) -> Json {
    let end = offset.saturating_add(items.len());
    let has_more = end < total;
    let next = if has_more { end.to_string() } else { "null".to_owned() };
    let items: Vec<_> = items.iter().map(Json::as_text).collect();
    let text = format!(
        "{{\"items\":[{}],\"total\":{total},\"hasMore\":{has_more},\"nextOffset\":{next}}}",
        items.join(",")
    );
    Json::parse(text).expect("a page of JSON is JSON")
}

fn text_argument(
    args: &Map<String, Value>,
    tool: &str,
    name: &str,
) -> Result<Option<String>, Failure> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(format!("{tool} {name} must be a string when provided"))),
    }
}

fn page(args: &Map<String, Value>, tool: &str) -> Result<ToolSearch, Failure> {
    let number = |name: &str| match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or(()),
    };
    let limit = match number("limit") {
        Ok(None) => LIMIT_USUALLY,
        Ok(Some(limit)) if limit > 0.0 => (limit as usize).clamp(1, LIMIT_MAX),
        Ok(Some(_)) | Err(()) => {
            return Err(wrong(format!("{tool} limit must be a positive number when provided")));
        }
    };
    let offset = match number("offset") {
        Ok(None) => 0,
        Ok(Some(offset)) if offset >= 0.0 => offset as usize,
        Ok(Some(_)) | Err(()) => {
            return Err(wrong(format!(
                "{tool} offset must be a non-negative number when provided"
            )));
        }
    };
    Ok(ToolSearch { limit, offset, ..ToolSearch::default() })
}

fn wrong(why: String) -> Failure {
    Failure::new(FailureCode::Validation, why)
}

#[cfg(test)]
mod tests;
