//! Where the tokens of a security scheme come from: the `flows` of OAuth 2, and the metadata of its server.

use super::raw::RawMembers;
use crate::{TokenFlow, TokenFlowKind, TokenSource};
use std::collections::BTreeSet;
use url::Url;

/// Maximum number of requested scopes: people do not read more.
const SCOPES_MAX: usize = 50;

/// The known flows, the most usual first.
const KINDS: [TokenFlowKind; 3] =
    [TokenFlowKind::Code, TokenFlowKind::Device, TokenFlowKind::ClientCredentials];

/// Where a scheme's tokens come from. `wanted` are the scopes that operations require. `source` is the address of the
/// description: relative addresses are resolved against it, and none may be less secure than it.
pub(super) fn tokens(
    scheme: &RawMembers<'_>,
    wanted: &BTreeSet<String>,
    source: Option<&Url>,
) -> Option<TokenSource> {
    let document = match scheme.text_member("type")?.as_str() {
        "oauth2" => scheme.text_member("oauth2MetadataUrl"),
        "openIdConnect" => scheme.text_member("openIdConnectUrl"),
        _ => return None,
    };
    let metadata = document.and_then(|text| address(&text, source));
    let declared = scheme.members("flows").unwrap_or_default();
    let flow = |kind: &TokenFlowKind| flow(*kind, &declared.members(kind.as_str())?, source);
    let flows: Vec<_> = KINDS.iter().filter_map(flow).collect();
    let offered: BTreeSet<String> =
        KINDS.iter().flat_map(|kind| offered(&declared, *kind)).collect();
    let scopes = if wanted.is_empty() { &offered } else { wanted };
    let scopes = scopes.iter().take(SCOPES_MAX).cloned().collect();
    Some(TokenSource { metadata, flows, scopes })
}

/// Parses one flow; none if its addresses are missing.
fn flow(kind: TokenFlowKind, members: &RawMembers<'_>, source: Option<&Url>) -> Option<TokenFlow> {
    let address = |name: &str| address(&members.text_member(name)?, source);
    let (authorization, device) = (address("authorizationUrl"), address("deviceAuthorizationUrl"));
    let is_whole = match kind {
        TokenFlowKind::Code => authorization.is_some(),
        TokenFlowKind::Device => device.is_some(),
        TokenFlowKind::ClientCredentials => true,
    };
    let (token, refresh) = (address("tokenUrl").filter(|_| is_whole)?, address("refreshUrl"));
    Some(TokenFlow { kind, authorization, token, refresh, device })
}

/// The names of a flow's scopes; invalid ones are skipped.
fn offered(declared: &RawMembers<'_>, kind: TokenFlowKind) -> Vec<String> {
    let flow = declared.members(kind.as_str()).unwrap_or_default();
    let named = flow.members("scopes").unwrap_or_default();
    named.iter().flat_map(|(name, _)| crate::http::scopes(name)).collect()
}

/// A web address that is at least as secure as the address of the description.
fn address(text: &str, source: Option<&Url>) -> Option<Url> {
    let url = match source {
        Some(source) => source.join(text).ok()?,
        None => Url::parse(text).ok()?,
    };
    let may_be_plain = source.is_none_or(|source| source.scheme() != "https");
    let is_fine = url.scheme() == "https" || (url.scheme() == "http" && may_be_plain);
    (is_fine && url.has_host() && url.username().is_empty() && url.password().is_none())
        .then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(scheme: &Value, wanted: &[&str], source: Option<&str>) -> Option<TokenSource> {
        let text = scheme.to_string();
        let wanted = wanted.iter().map(|scope| (*scope).to_owned()).collect();
        let source = source.map(|url| url.parse().unwrap());
        tokens(&RawMembers::of_text(&text).unwrap(), &wanted, source.as_ref())
    }

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn every_flow_that_hands_no_secret_around_is_read() {
        let scheme = json!({ "type": "oauth2", "oauth2MetadataUrl": "https://as.example/about", "flows": {
            "implicit": { "authorizationUrl": "https://as.example/a", "scopes": { "x": "" } },
            "password": { "tokenUrl": "https://as.example/t", "scopes": {} },
            "clientCredentials": { "tokenUrl": "https://as.example/t", "scopes": { "all": "everything" } },
            "deviceAuthorization": { "tokenUrl": "https://as.example/t", "deviceAuthorizationUrl": "https://as.example/d",
                "scopes": { "read": "" } },
            "authorizationCode": { "authorizationUrl": "https://as.example/a", "tokenUrl": "https://as.example/t",
                "refreshUrl": "https://as.example/r", "scopes": { "read": "", "write": "" } },
        } });
        let found = read(&scheme, &[], None).unwrap();
        let flow = |kind,
                    authorization: Option<&str>,
                    refresh: Option<&str>,
                    device: Option<&str>| TokenFlow {
            kind,
            authorization: authorization.map(url),
            token: url("https://as.example/t"),
            refresh: refresh.map(url),
            device: device.map(url),
        };
        let code = flow(
            TokenFlowKind::Code,
            Some("https://as.example/a"),
            Some("https://as.example/r"),
            None,
        );
        let device = flow(TokenFlowKind::Device, None, None, Some("https://as.example/d"));
        let ours = flow(TokenFlowKind::ClientCredentials, None, None, None);
        assert_eq!(found.flows, [code, device, ours]);
        assert_eq!(found.metadata, Some(url("https://as.example/about")));
        assert_eq!(found.scopes, ["all", "read", "write"]);
        assert_eq!(
            read(&scheme, &["read"], None).unwrap().scopes,
            ["read"],
            "what operations want counts"
        );
    }

    #[test]
    fn addresses_begin_where_the_description_is_and_weaken_nothing() {
        let scheme = |token: &str| json!({ "type": "oauth2", "flows": { "clientCredentials": { "tokenUrl": token } } });
        let token = |text: &str, source: Option<&str>| {
            let found = read(&scheme(text), &[], source).unwrap();
            found.flows.first().map(|flow| flow.token.to_string())
        };
        let https = Some("https://a.example/api/openapi.json");
        assert_eq!(token("../token", https), Some("https://a.example/token".into()));
        assert_eq!(token("http://a.example/token", https), None);
        assert_eq!(token("http://a.example/token", None), Some("http://a.example/token".into()));
        for odd in ["/token", "file:///etc/passwd", "https://u:p@a.example/t", "javascript:1", ""] {
            assert_eq!(token(odd, None), None, "{odd}");
        }
        let code = json!({ "type": "oauth2", "flows": { "authorizationCode": { "tokenUrl": "https://a.example/t" } } });
        assert_eq!(read(&code, &[], None).unwrap().flows, [], "nobody says where people agree");
        assert_eq!(read(&json!({ "type": "apiKey" }), &[], None), None);
    }

    #[test]
    fn open_id_says_where_its_document_is() {
        let place = "https://a.example/.well-known/openid-configuration";
        let scheme = json!({ "type": "openIdConnect", "openIdConnectUrl": place });
        let found = read(&scheme, &["openid"], None).unwrap();
        assert_eq!((found.metadata, found.scopes), (Some(url(place)), vec!["openid".to_owned()]));
    }
}
