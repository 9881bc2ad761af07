//! Metadata of resources and authorization servers (RFC 9728, RFC 8414, OpenID Connect), and which of it is trusted. Pure.

use serde_json::Value;
use url::Url;

/// The metadata of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerMetadata {
    /// Its issuer; none if only its addresses are configured.
    pub(super) issuer: Option<String>,
    pub(super) authorization: Option<Url>,
    pub(super) token: Url,
    /// The address for renewals, if it is another.
    pub(super) refresh: Option<Url>,
    pub(super) registration: Option<Url>,
    pub(super) device: Option<Url>,
    /// Whether its redirects carry its issuer (RFC 9207).
    pub(super) names_itself: bool,
    /// Whether the client secret goes into the body, not into a header.
    pub(super) secret_in_body: bool,
    /// Whether it supports Client ID Metadata Documents.
    pub(super) takes_documents: bool,
}

impl ServerMetadata {
    /// A server of which only the token endpoint is known.
    pub(super) const fn with_endpoints(token: Url) -> Self {
        Self {
            issuer: None,
            authorization: None,
            token,
            refresh: None,
            registration: None,
            device: None,
            names_itself: false,
            secret_in_body: false,
            takes_documents: false,
        }
    }
}

/// The metadata of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceMetadata {
    /// Its identifier: the resource indicator of its tokens.
    pub(super) resource: String,
    pub(super) issuer: String,
    pub(super) scopes: Vec<String>,
}

/// Where a resource's metadata may be, the most likely first.
pub(super) fn resource_places(resource: &Url) -> Vec<Url> {
    with_path(resource, "oauth-protected-resource")
}

/// Where a server's metadata may be, the most likely first.
pub(super) fn server_places(issuer: &Url) -> Vec<Url> {
    let mut places = vec![];
    for word in ["oauth-authorization-server", "openid-configuration"] {
        places.extend(with_path(issuer, word).into_iter().take(1));
    }
    let mut own = issuer.clone();
    own.set_path(&format!(
        "{}/.well-known/openid-configuration",
        issuer.path().trim_end_matches('/')
    ));
    places.push(own);
    places.dedup();
    places
}

fn with_path(url: &Url, word: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let mut places = vec![];
    for path in [path, ""] {
        let mut place = url.clone();
        place.set_query(None);
        place.set_fragment(None);
        place.set_path(&format!("/.well-known/{word}{path}"));
        places.push(place);
    }
    places.dedup();
    places
}

/// Parses a resource's metadata. Metadata for another resource are rejected.
pub(super) fn resource(text: &str, asked: &Url) -> Result<ResourceMetadata, String> {
    let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let name = document["resource"].as_str().ok_or("it names no resource")?;
    let url = Url::parse(name).map_err(|_| "the resource it names is no address")?;
    let rest = asked.path().strip_prefix(url.path().trim_end_matches('/'));
    let is_inside = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if url.origin() != asked.origin() || !is_inside {
        return Err("it speaks for another resource".into());
    }
    let issuer =
        document["authorization_servers"][0].as_str().ok_or("it names no authorization server")?;
    let scopes = document["scopes_supported"].as_array().into_iter().flatten();
    let scopes = scopes.filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(ResourceMetadata { resource: name.to_owned(), issuer: issuer.to_owned(), scopes })
}

/// Parses a server's metadata from a linked place: a document applies to its own origin only.
pub(super) fn server_found_at(text: &str, place: &Url) -> Result<ServerMetadata, String> {
    let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let issuer = document["issuer"].as_str().ok_or("it does not say its name")?;
    match Url::parse(issuer).is_ok_and(|url| url.origin() == place.origin()) {
        true => server(text, issuer),
        false => Err("it speaks for another server".into()),
    }
}

/// Parses a server's metadata. The issuer must be the requested one, and none of its addresses may be less secure than
/// its own. A trailing slash is ignored in the comparison: servers write one where the resources that name them do not,
/// and the reverse. From here on, the server's own spelling is used.
pub(super) fn server(text: &str, asked: &str) -> Result<ServerMetadata, String> {
    let document: Value = serde_json::from_str(text).map_err(|_| "it is not JSON".to_owned())?;
    let is_asked = |name: &&str| name.trim_end_matches('/') == asked.trim_end_matches('/');
    let issuer = document["issuer"].as_str().filter(is_asked).ok_or("it calls itself otherwise")?;
    let is_guarded = issuer.starts_with("https:");
    let address = |name: &str| -> Result<Option<Url>, String> {
        let Some(text) = document[name].as_str() else { return Ok(None) };
        let url = Url::parse(text).map_err(|_| format!("its {name} is no address"))?;
        match url.scheme() {
            "https" => Ok(Some(url)),
            "http" if !is_guarded => Ok(Some(url)),
            _ => Err(format!("its {name} is not https")),
        }
    };
    let lists = |name: &str, word: &str| {
        document[name].as_array().map(|list| list.iter().any(|item| item.as_str() == Some(word)))
    };
    if lists("code_challenge_methods_supported", "S256") == Some(false) {
        return Err("it does not take PKCE with S256".into());
    }
    let methods = "token_endpoint_auth_methods_supported";
    let takes_header = lists(methods, "client_secret_basic").unwrap_or(true);
    Ok(ServerMetadata {
        issuer: Some(issuer.to_owned()),
        authorization: address("authorization_endpoint")?,
        registration: address("registration_endpoint")?,
        device: address("device_authorization_endpoint")?,
        names_itself: document["authorization_response_iss_parameter_supported"] == true,
        takes_documents: document["client_id_metadata_document_supported"] == true,
        secret_in_body: !takes_header && lists(methods, "client_secret_post") == Some(true),
        ..ServerMetadata::with_endpoints(
            address("token_endpoint")?.ok_or("it has no token_endpoint")?,
        )
    })
}

/// Whether the server that sent a browser back is the one that it was sent to.
pub(super) fn is_from(issuer: Option<&str>, names_itself: bool, document: Option<&str>) -> bool {
    match (issuer, document) {
        (Some(issuer), Some(document)) => issuer == document,
        (_, None) => !names_itself,
        (None, Some(_)) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn shown(places: Vec<Url>) -> Vec<String> {
        places.into_iter().map(String::from).collect()
    }

    #[test]
    fn metadata_is_looked_for_where_the_specifications_say() {
        let places = shown(resource_places(&url("https://a.example/mcp/v1?x=1")));
        let expected = [
            "https://a.example/.well-known/oauth-protected-resource/mcp/v1",
            "https://a.example/.well-known/oauth-protected-resource",
        ];
        assert_eq!(places, expected);
        let places = shown(server_places(&url("https://a.example/tenant")));
        let expected = [
            "https://a.example/.well-known/oauth-authorization-server/tenant",
            "https://a.example/.well-known/openid-configuration/tenant",
            "https://a.example/tenant/.well-known/openid-configuration",
        ];
        assert_eq!(places, expected);
        assert_eq!(server_places(&url("https://a.example")).len(), 2);
    }

    #[test]
    fn a_resource_speaks_for_itself_only() {
        let document = |resource: &str| {
            json!({"resource": resource, "authorization_servers": ["https://as.example"]})
                .to_string()
        };
        let asked = url("https://a.example/mcp");
        assert!(resource(&document("https://a.example/mcp"), &asked).is_ok());
        assert!(resource(&document("https://a.example"), &asked).is_ok());
        assert!(
            resource(&document("https://a.example/mcp"), &url("https://a.example/mcp/v1")).is_ok()
        );
        for other in [
            "https://b.example/mcp",
            "https://a.example/other",
            "https://a.example/mc",
            "http://a.example/mcp",
            "x",
        ] {
            assert!(resource(&document(other), &asked).is_err(), "{other}");
        }
        assert!(resource("{}", &asked).is_err());
        assert!(resource("<html>", &asked).is_err());
    }

    #[test]
    fn a_server_is_who_it_was_asked_for_and_weakens_nothing() {
        let document = |issuer: &str, token: &str, methods: &[&str]| {
            let document = json!({"issuer": issuer, "token_endpoint": token, "code_challenge_methods_supported": methods});
            server(&document.to_string(), "https://as.example")
        };
        let fine = document("https://as.example", "https://as.example/token", &["S256"]).unwrap();
        assert_eq!((fine.names_itself, fine.secret_in_body), (false, false));
        let slashed =
            document("https://as.example/", "https://as.example/token", &["S256"]).unwrap();
        assert_eq!(slashed.issuer.as_deref(), Some("https://as.example/"), "its own spelling");
        assert!(document("https://as.example/t", "https://as.example/token", &["S256"]).is_err());
        assert!(document("https://as.example", "http://as.example/token", &["S256"]).is_err());
        assert!(document("https://as.example", "file:///etc/passwd", &["S256"]).is_err());
        assert!(document("https://as.example", "https://as.example/token", &["plain"]).is_err());
    }

    #[test]
    fn a_document_speaks_for_the_origin_that_it_was_found_at() {
        let text =
            json!({"issuer": "https://as.example/t", "token_endpoint": "https://as.example/token"});
        let found = |place: &str| server_found_at(&text.to_string(), &url(place));
        assert_eq!(
            found("https://as.example/about").unwrap().issuer.as_deref(),
            Some("https://as.example/t")
        );
        assert!(found("https://other.example/about").is_err());
        assert!(server_found_at("{}", &url("https://as.example")).is_err());
    }

    #[test]
    fn a_browser_comes_back_from_the_server_it_was_sent_to() {
        assert!(is_from(Some("https://a"), true, Some("https://a")));
        assert!(!is_from(Some("https://a"), true, Some("https://b")));
        assert!(!is_from(Some("https://a"), false, Some("https://b")));
        assert!(!is_from(Some("https://a"), true, None), "who promises to say its name must");
        assert!(is_from(Some("https://a"), false, None));
    }
}
