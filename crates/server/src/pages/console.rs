//! The shell of the console and its assets: static files, compiled in, the same for all callers.
//!
//! They hold no data: the scripts fetch it from the public API with the browser's own session.

use crate::error::RequestError;
use crate::query::PathId;
use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};

/// Scripts, styles and data from this server only; nothing inline, nothing framed, no forms sent.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const SHELL: &str = include_str!("console/shell.html");

/// The page where a person enters a secret.
const HANDOFF: &str = include_str!("console/handoff.html");

/// The page for an unknown path.
const MISSING: &str = include_str!("console/missing.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every asset, by its name.
const ASSETS: [(&str, &str, &str); 16] = [
    ("console.css", "text/css; charset=utf-8", include_str!("console/console.css")),
    ("icon.svg", "image/svg+xml", include_str!("console/icon.svg")),
    ("main.js", SCRIPT, include_str!("console/main.js")),
    ("api.js", SCRIPT, include_str!("console/api.js")),
    ("session.js", SCRIPT, include_str!("console/session.js")),
    ("elevation.js", SCRIPT, include_str!("console/elevation.js")),
    ("browsers.js", SCRIPT, include_str!("console/browsers.js")),
    ("dom.js", SCRIPT, include_str!("console/dom.js")),
    ("inbox.js", SCRIPT, include_str!("console/inbox.js")),
    ("story.js", SCRIPT, include_str!("console/story.js")),
    ("decision.js", SCRIPT, include_str!("console/decision.js")),
    ("card.js", SCRIPT, include_str!("console/card.js")),
    ("editor.js", SCRIPT, include_str!("console/editor.js")),
    ("form.js", SCRIPT, include_str!("console/form.js")),
    ("show.js", SCRIPT, include_str!("console/show.js")),
    ("handoff.js", SCRIPT, include_str!("console/handoff.js")),
];

/// `/` and `/resume/{id}` for a browser.
pub(crate) async fn shell() -> Response {
    page(StatusCode::OK, "text/html; charset=utf-8", SHELL)
}

/// `/connect`: the secret of the handoff is in the fragment, which browsers do not send.
pub(crate) async fn handoff() -> Response {
    page(StatusCode::OK, "text/html; charset=utf-8", HANDOFF)
}

/// Any other path: a page for browsers, JSON for programs.
pub(crate) async fn missing(uri: Uri, headers: HeaderMap) -> Response {
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/html") {
        return page(StatusCode::NOT_FOUND, "text/html; charset=utf-8", MISSING);
    }
    RequestError::no_route(uri.path()).into_response()
}

/// `/console/{name}`.
pub(crate) async fn asset(PathId(name): PathId) -> Result<Response, RequestError> {
    let asset = ASSETS.iter().find(|(known, ..)| *known == name);
    let (_, kind, text) =
        asset.ok_or_else(|| RequestError::no_route(&format!("/console/{name}")))?;
    Ok(page(StatusCode::OK, kind, text))
}

fn page(status: StatusCode, kind: &'static str, text: &'static str) -> Response {
    let headers =
        [(CONTENT_TYPE, kind), (CONTENT_SECURITY_POLICY, POLICY), (X_FRAME_OPTIONS, "DENY")];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_loads_only_what_we_ship() {
        let quoted = [SHELL, HANDOFF, MISSING]
            .into_iter()
            .flat_map(|page| page.split('"'))
            .filter(|text| text.starts_with('/'));
        for path in quoted.filter(|path| *path != "/") {
            let name = path.strip_prefix("/console/").unwrap_or(path);
            assert!(ASSETS.iter().any(|(known, ..)| *known == name), "{path}");
        }
        for (name, _, text) in ASSETS {
            assert!(!text.contains("http://") || name == "icon.svg", "{name}");
            assert!(!text.contains("https://"), "{name}");
            assert!(!text.contains("innerHTML"), "{name} writes text, never markup");
        }
    }
}
