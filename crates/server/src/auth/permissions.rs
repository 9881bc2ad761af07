//! The one table that states who may use which route and which management tool. Handlers check the same by themselves;
//! `crates/airlock/tests/permissions.rs` walks every row with every scope and compares.

use super::Scope;
use lifecycle::ToolPath;

/// What a request to a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteAccess {
    /// Nothing: the route tells nothing that needs protection.
    Public,
    /// No token, but a secret that was given out for this purpose: in the path, the query or the body.
    Secret,
    /// Any valid token or browser session.
    AnyCaller,
    /// A token with this scope.
    Scoped(Scope),
    /// A token with `answer`. A browser session does not count: it could renew itself.
    AnswerToken,
    /// To see an execution: its owner with `run`, `answer` if the execution has asked something, or `admin`.
    SeeExecution,
    /// To answer a question: `answer`, or the owner where the setting `answers` lets programs' owners answer. For a
    /// management tool also the scope of [`accept_scope`].
    AnswerQuestion,
    /// To end an execution: its owner with `run`, or `admin`.
    EndExecution,
    /// A session of the enclave protocol by its name: the caller that gave the name, with `run`. Names are each caller's
    /// own; `admin` reaches other callers' sessions by the ids of their executions.
    OwnSession,
}

/// A route and what a request to it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoutePermission {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path as the router has it.
    pub path: &'static str,
    /// What a request needs.
    pub access: RouteAccess,
}

/// A management tool and the route that does the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManagementPermission {
    /// The tool's path.
    pub tool: &'static str,
    /// The method and path of the route.
    pub route: (&'static str, &'static str),
}

/// Where management tools are found. A tool there without a row needs `admin`.
const MANAGEMENT_PREFIXES: [&str; 4] =
    ["executor.coreTools.", "executor.openapi.", "executor.graphql.", "executor.mcp."];

/// Whether a path is where management tools are found.
pub(crate) fn is_management(tool: &ToolPath) -> bool {
    MANAGEMENT_PREFIXES.iter().any(|prefix| tool.as_str().starts_with(prefix))
}

/// The scope that a token needs, besides the right to answer, so that its *accept* of a call of `tool` counts; none where
/// the right to answer is enough.
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

/// What a request to a route needs; none where there is no such route.
pub fn route_access(method: &str, path: &str) -> Option<RouteAccess> {
    ROUTES.iter().find(|row| row.method == method && row.path == path).map(|row| row.access)
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

const PUBLIC: RouteAccess = RouteAccess::Public;
const SECRET: RouteAccess = RouteAccess::Secret;
const ANY: RouteAccess = RouteAccess::AnyCaller;
const RUN: RouteAccess = RouteAccess::Scoped(Scope::Run);
const ANSWER: RouteAccess = RouteAccess::Scoped(Scope::Answer);
const PROCESS: RouteAccess = RouteAccess::Scoped(Scope::Process);
const ADMIN: RouteAccess = RouteAccess::Scoped(Scope::Admin);
const SEE: RouteAccess = RouteAccess::SeeExecution;
const REPLY: RouteAccess = RouteAccess::AnswerQuestion;
const END: RouteAccess = RouteAccess::EndExecution;
const OWN: RouteAccess = RouteAccess::OwnSession;

const fn route(method: &'static str, path: &'static str, access: RouteAccess) -> RoutePermission {
    RoutePermission { method, path, access }
}

/// Every route of the server.
pub const ROUTES: &[RoutePermission] = &[
    // Pages, and what tells whether the server works.
    route("GET", "/", PUBLIC),
    route("GET", "/resume/{id}", PUBLIC),
    route("GET", "/console/{name}", PUBLIC),
    route("GET", "/connect", PUBLIC),
    route("GET", "/browsers", PUBLIC),
    route("GET", "/healthz", PUBLIC),
    route("GET", "/readyz", PUBLIC),
    route("GET", "/api/health", PUBLIC),
    route("GET", "/api/openapi.json", PUBLIC),
    route("GET", "/metrics", ADMIN),
    route("GET", "/api/status", ADMIN),
    // Who asks.
    route("GET", "/api/session", ANY),
    route("DELETE", "/api/session", ANY),
    route("POST", "/api/session/elevation", ANY),
    route("GET", "/api/sessions", ANSWER),
    route("DELETE", "/api/sessions/{id}", ANSWER),
    route("POST", "/api/tickets", ANY),
    route("POST", "/api/prove", SECRET),
    route("GET", "/api/sign-in", PUBLIC),
    route("POST", "/api/sign-in", SECRET),
    route("POST", "/api/sign-in/codes", RouteAccess::AnswerToken),
    route("GET", "/api/tokens", ADMIN),
    route("POST", "/api/tokens", ADMIN),
    route("PATCH", "/api/tokens/{name}", ADMIN),
    route("DELETE", "/api/tokens/{name}", ADMIN),
    route("GET", "/api/settings", ADMIN),
    route("POST", "/api/settings", ADMIN),
    route("GET", "/api/settings/history", ADMIN),
    // Executions and their questions.
    route("GET", "/api/questions", ANY),
    route("GET", "/api/executions", ANY),
    route("POST", "/api/executions", RUN),
    route("GET", "/api/executions/{id}", SEE),
    route("DELETE", "/api/executions/{id}", END),
    route("POST", "/api/executions/{id}/resume", REPLY),
    route("GET", "/api/mcp-sessions/{session}/executions/{id}", SEE),
    route("POST", "/api/mcp-sessions/{session}/executions/{id}/resume", REPLY),
    route("GET", "/api/executions/{id}/questions", SEE),
    route("POST", "/api/executions/{id}/answers", REPLY),
    route("GET", "/api/executions/{id}/result", SEE),
    route("POST", "/api/executions/{id}/cancel", END),
    route("POST", "/api/executions/{id}/continue", ADMIN),
    route("POST", "/api/executions/continue", ADMIN),
    route("GET", "/api/executions/{id}/events", SEE),
    route("GET", "/api/executions/{id}/journal", SEE),
    route("GET", "/api/callback", SECRET),
    // Other protocols.
    route("GET", "/exec", PROCESS),
    route("GET", "/execbox", RUN),
    route("GET", "/mcp", RUN),
    route("POST", "/mcp", RUN),
    route("DELETE", "/mcp", RUN),
    route("GET", "/sessions", RUN),
    route("POST", "/sessions", RUN),
    route("POST", "/execute", RUN),
    route("GET", "/sessions/{id}", OWN),
    route("DELETE", "/sessions/{id}", OWN),
    route("GET", "/sessions/{id}/stream", OWN),
    route("POST", "/sessions/{id}/tool-result", OWN),
    route("POST", "/sessions/{id}/cancel", OWN),
    route("GET", "/enclave/ws", RUN),
    route("GET", "/enclave/identity", RUN),
    route("GET", "/repl", RUN),
    route("GET", "/repl/artifacts/{capability}/{name}", SECRET),
    // Who may call what.
    route("GET", "/api/policies", ADMIN),
    route("POST", "/api/policies", ADMIN),
    route("GET", "/api/policies/test", ADMIN),
    route("PATCH", "/api/policies/{id}", ADMIN),
    route("DELETE", "/api/policies/{id}", ADMIN),
    route("POST", "/api/policies/{id}/confirm", ADMIN),
    // Tools and where they come from.
    route("GET", "/api/tools", RUN),
    route("GET", "/api/tools/schema", RUN),
    route("POST", "/api/sources", ADMIN),
    route("GET", "/api/integrations", RUN),
    route("POST", "/api/integrations/detect", ADMIN),
    route("GET", "/api/integrations/{slug}", RUN),
    route("DELETE", "/api/integrations/{slug}", ADMIN),
    route("PATCH", "/api/integrations/{slug}", ADMIN),
    route("POST", "/api/integrations/{slug}/refresh", ADMIN),
    route("POST", "/api/openapi/preview", ADMIN),
    route("POST", "/api/openapi/specs", ADMIN),
    route("GET", "/api/openapi/integrations/{slug}", RUN),
    route("DELETE", "/api/openapi/integrations/{slug}", ADMIN),
    route("POST", "/api/openapi/integrations/{slug}/spec", ADMIN),
    route("GET", "/api/openapi/integrations/{slug}/config", ADMIN),
    route("POST", "/api/openapi/integrations/{slug}/config", ADMIN),
    route("POST", "/api/graphql/integrations", ADMIN),
    route("GET", "/api/graphql/integrations/{slug}", RUN),
    route("DELETE", "/api/graphql/integrations/{slug}", ADMIN),
    route("GET", "/api/graphql/integrations/{slug}/config", ADMIN),
    route("POST", "/api/graphql/integrations/{slug}/config", ADMIN),
    route("POST", "/api/mcp/probe", ADMIN),
    route("POST", "/api/mcp/servers", ADMIN),
    route("GET", "/api/mcp/servers/{slug}", RUN),
    route("DELETE", "/api/mcp/servers/{slug}", ADMIN),
    route("GET", "/api/mcp/servers/{slug}/config", ADMIN),
    route("POST", "/api/mcp/servers/{slug}/config", ADMIN),
    // Connections and their secrets.
    route("GET", "/api/connections", RUN),
    route("POST", "/api/connections", ADMIN),
    route("GET", "/api/connections/{owner}/{slug}/{name}", RUN),
    route("PATCH", "/api/connections/{owner}/{slug}/{name}", ADMIN),
    route("DELETE", "/api/connections/{owner}/{slug}/{name}", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/refresh", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/health", ADMIN),
    route("POST", "/api/connections/{owner}/{slug}/{name}/handoff", ADMIN),
    route("GET", "/api/handoffs/{state}", SECRET),
    route("POST", "/api/handoffs/{state}", SECRET),
    route("GET", "/api/providers", RUN),
    route("GET", "/api/providers/{key}/items", ADMIN),
    route("GET", "/api/oauth/clients", ADMIN),
    route("POST", "/api/oauth/clients", ADMIN),
    route("POST", "/api/oauth/clients/register-dynamic", ADMIN),
    route("DELETE", "/api/oauth/clients/{slug}", ADMIN),
    route("GET", "/api/oauth/client-id-metadata.json", PUBLIC),
    route("POST", "/api/oauth/probe", ADMIN),
    route("POST", "/api/oauth/start", ADMIN),
    route("POST", "/api/oauth/complete", ADMIN),
    route("GET", "/api/oauth/await/{state}", ADMIN),
    route("POST", "/api/oauth/cancel", ADMIN),
    route("GET", "/api/oauth/callback", SECRET),
    route("GET", "/api/vault", ADMIN),
    route("POST", "/api/vault/rotate", ADMIN),
    route("POST", "/api/vault/export", ADMIN),
    route("POST", "/api/vault/import", ADMIN),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::served_routes;
    use std::collections::BTreeSet;

    /// The files that add routes.
    const ROUTERS: [&str; 3] = [
        include_str!("../routes.rs"),
        include_str!("../doors/enclave/mod.rs"),
        include_str!("../doors/hotrepl/mod.rs"),
    ];

    #[test]
    fn every_route_has_a_row_and_every_row_a_route() {
        let rows: Vec<_> =
            ROUTES.iter().map(|row| (row.method.to_owned(), row.path.to_owned())).collect();
        let unique: BTreeSet<_> = rows.iter().cloned().collect();
        assert_eq!(unique.len(), rows.len(), "a route has one row");
        let served: BTreeSet<_> = ROUTERS.into_iter().flat_map(served_routes).collect();
        assert_eq!(unique, served);
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
