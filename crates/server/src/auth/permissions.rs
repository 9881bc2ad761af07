//! Who may use which route and which management tool. Each door declares its routes' permissions beside them, in
//! `routes.rs`; handlers check the same independently; `crates/airlock/tests/permissions.rs` requests every route
//! with every scope and compares.

use super::Scope;
use crate::doors::{self, DoorSettings};
use crate::routes;
use lifecycle::ToolPath;

/// What a request to a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Nothing: the route reveals nothing that needs protection.
    Public,
    /// No token, but a secret issued for this purpose: in the path, the query or the body.
    Secret,
    /// Any valid token or browser session.
    AnyCaller,
    /// A token with this scope.
    Scoped(Scope),
    /// A token with `answer`. A browser session does not count: it could renew itself.
    AnswerToken,
    /// To see an execution: its owner with `run`, `answer` if the execution has asked a question, or `admin`.
    SeeExecution,
    /// To answer a question: `answer`, or the owner if the setting `answers` lets programs' owners answer. For a
    /// management tool also the scope of [`accept_scope`].
    AnswerQuestion,
    /// To end an execution: its owner with `run`, or `admin`.
    EndExecution,
    /// A session of the enclave protocol by its name: the caller that chose the name, with `run`. Each caller has its
    /// own names; `admin` reaches other callers' sessions by the ids of their executions.
    OwnSession,
}

/// A route and what a request to it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutePermission {
    /// The HTTP method, in capitals.
    pub method: &'static str,
    /// The path as registered with the router.
    pub path: &'static str,
    /// What a request needs.
    pub access: RouteAccess,
}

/// A management tool and the equivalent route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagementPermission {
    /// The tool's path.
    pub tool: &'static str,
    /// The method and path of the route.
    pub route: (&'static str, &'static str),
}

/// The path prefixes of management tools. A tool there without a row requires `admin`.
const MANAGEMENT_PREFIXES: [&str; 4] =
    ["executor.coreTools.", "executor.openapi.", "executor.graphql.", "executor.mcp."];

/// Whether a path belongs to the management tools.
pub(crate) fn is_management(tool: &ToolPath) -> bool {
    MANAGEMENT_PREFIXES.iter().any(|prefix| tool.as_str().starts_with(prefix))
}

/// The scope that a token needs, besides the right to answer, so that its *accept* of a call of `tool` takes effect;
/// none if the right to answer is sufficient.
pub fn accept_scope(tool: &ToolPath) -> Option<Scope> {
    if !is_management(tool) {
        return None;
    }
    let tool = tool.as_str();
    let row = MANAGEMENT.iter().find(|row| row.tool == tool);
    match row.and_then(|row| route_access(row.route.0, row.route.1)) {
        Some(RouteAccess::Scoped(Scope::Run)) => None,
        Some(RouteAccess::Scoped(scope)) => Some(scope),
        Some(_) | None => Some(Scope::Admin),
    }
}

/// What a request to a route needs; none if there is no such route.
pub fn route_access(method: &str, path: &str) -> Option<RouteAccess> {
    let rows = route_permissions().into_iter();
    rows.filter(|row| row.method == method && row.path == path).map(|row| row.access).next()
}

const fn tool(
    tool: &'static str,
    method: &'static str,
    path: &'static str,
) -> ManagementPermission {
    ManagementPermission { tool, route: (method, path) }
}

/// Every management tool.
pub const MANAGEMENT: [ManagementPermission; 21] = [
    tool("executor.coreTools.integrations.list", "GET", "/api/integrations"),
    tool("executor.coreTools.integrations.detect", "POST", "/api/integrations/detect"),
    tool("executor.coreTools.integrations.refresh", "POST", "/api/integrations/{slug}/refresh"),
    tool("executor.coreTools.integrations.remove", "DELETE", "/api/integrations/{slug}"),
    tool("executor.coreTools.connections.list", "GET", "/api/connections"),
    tool("executor.coreTools.connections.create", "POST", "/api/connections"),
    tool("executor.coreTools.connections.createHandoff", "POST", "/api/connections"),
    tool("executor.coreTools.oauth.start", "POST", "/api/oauth/start"),
    tool("executor.coreTools.oauth.cancel", "POST", "/api/oauth/cancel"),
    tool(
        "executor.coreTools.connections.remove",
        "DELETE",
        "/api/connections/{owner}/{slug}/{name}",
    ),
    tool(
        "executor.coreTools.connections.refresh",
        "POST",
        "/api/connections/{owner}/{slug}/{name}/refresh",
    ),
    tool("executor.coreTools.policies.list", "GET", "/api/policies"),
    tool("executor.coreTools.policies.create", "POST", "/api/policies"),
    tool("executor.coreTools.policies.update", "PATCH", "/api/policies/{id}"),
    tool("executor.coreTools.policies.remove", "DELETE", "/api/policies/{id}"),
    tool("executor.openapi.previewSpec", "POST", "/api/openapi/preview"),
    tool("executor.openapi.addSpec", "POST", "/api/openapi/specs"),
    tool("executor.graphql.addIntegration", "POST", "/api/graphql/integrations"),
    tool("executor.mcp.probe", "POST", "/api/mcp/probe"),
    tool("executor.mcp.addServer", "POST", "/api/mcp/servers"),
    tool("executor.mcp.refreshServer", "POST", "/api/integrations/{slug}/refresh"),
];

/// Short names for the rows of the doors' tables.
pub(crate) mod access {
    use super::{RouteAccess, RoutePermission, Scope};

    pub(crate) const PUBLIC: RouteAccess = RouteAccess::Public;
    pub(crate) const SECRET: RouteAccess = RouteAccess::Secret;
    pub(crate) const ANY: RouteAccess = RouteAccess::AnyCaller;
    pub(crate) const RUN: RouteAccess = RouteAccess::Scoped(Scope::Run);
    pub(crate) const ANSWER: RouteAccess = RouteAccess::Scoped(Scope::Answer);
    pub(crate) const PROCESS: RouteAccess = RouteAccess::Scoped(Scope::Process);
    pub(crate) const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);
    pub(crate) const SEE: RouteAccess = RouteAccess::SeeExecution;
    pub(crate) const REPLY: RouteAccess = RouteAccess::AnswerQuestion;
    pub(crate) const END: RouteAccess = RouteAccess::EndExecution;
    pub(crate) const OWN: RouteAccess = RouteAccess::OwnSession;

    /// A row: a method in capitals, a path as registered with the router, and what a request needs.
    pub(crate) const fn route(
        method: &'static str,
        path: &'static str,
        access: RouteAccess,
    ) -> RoutePermission {
        RoutePermission { method, path, access }
    }
}

/// What a request to each route needs, for the server and all its doors.
pub fn route_permissions() -> Vec<RoutePermission> {
    let doors = doors::open(DoorSettings::default());
    let of_doors = doors.iter().flat_map(|door| door.permissions());
    routes::PERMISSIONS.iter().chain(of_doors).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::served_routes;
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    /// The routes that are registered in the files `routes.rs` of the server and of its doors.
    fn served() -> BTreeSet<(String, String)> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = std::fs::read_dir(source.join("doors")).unwrap();
        let mut files: Vec<_> = folders.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.is_dir());
        assert!(files.len() > 6, "{files:?}");
        files.push(source);
        let read = |folder: &PathBuf| std::fs::read_to_string(folder.join("routes.rs")).unwrap();
        files.iter().map(read).flat_map(|text| served_routes(&text)).collect()
    }

    #[test]
    fn every_route_has_a_row_and_every_row_a_route() {
        let rows: Vec<_> = route_permissions()
            .into_iter()
            .map(|row| (row.method.to_owned(), row.path.to_owned()))
            .collect();
        let unique: BTreeSet<_> = rows.iter().cloned().collect();
        assert_eq!(unique.len(), rows.len(), "a route has one row");
        assert_eq!(unique, served());
    }

    #[test]
    fn every_management_tool_has_a_row_and_asks_where_its_route_needs_more_than_run() {
        let known: Vec<_> = sources::management_tools().collect();
        let rows: BTreeSet<_> = MANAGEMENT.iter().map(|row| row.tool).collect();
        assert_eq!(known.iter().map(|(tool, _)| *tool).collect::<BTreeSet<_>>(), rows);
        for row in MANAGEMENT {
            let access = route_access(row.route.0, row.route.1);
            assert!(matches!(access, Some(RouteAccess::Scoped(_))), "{row:?}");
        }
        for (tool, answer_only) in known {
            let scope = accept_scope(&ToolPath::parse(tool).unwrap());
            assert_eq!((tool, scope.is_some()), (tool, answer_only));
        }
    }

    #[test]
    fn a_management_tool_without_a_row_needs_an_administrator_and_other_tools_need_none() {
        let scope = |tool: &str| accept_scope(&ToolPath::parse(tool).unwrap());
        assert_eq!(scope("executor.coreTools.tokens.create"), Some(Scope::Admin));
        assert_eq!(scope("executor.mcp.anything"), Some(Scope::Admin));
        assert_eq!(scope("executor.coreTools.policies.create"), Some(Scope::Admin));
        assert_eq!(scope("executor.coreTools.integrations.list"), None);
        assert_eq!(scope("executor.sources.list"), None);
        assert_eq!(scope("mail.send"), None);
    }
}
