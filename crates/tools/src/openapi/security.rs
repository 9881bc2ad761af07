//! The authentication methods of an API, as templates for connections.

use super::document::OpenApiDocument;
use super::flows;
use super::plan::{ParameterCarrier, ReservedParameter};
use super::raw::RawMembers;
use crate::{AuthKind, AuthMethod, PlacementKind, PlacementTemplate, TokenSource};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// Maximum number of methods; descriptions with more repeat themselves.
const METHODS_MAX: usize = 32;

/// One security scheme.
#[derive(Debug, Clone, PartialEq)]
struct SecurityScheme {
    name: String,
    kind: AuthKind,
    place: PlacementKind,
    /// The name of the header, parameter or cookie.
    field: String,
    prefix: String,
    /// Where its tokens come from.
    tokens: Option<TokenSource>,
}

/// The scopes that operations require, by the name of the scheme.
type RequiredScopes = BTreeMap<String, BTreeSet<String>>;

/// The authentication methods: schemes that are required together form one method, the author's first choice first.
/// `required` are the requirements of single operations, `source` is the address of the description.
pub(crate) fn methods<'a>(
    document: &OpenApiDocument<'a>,
    required: impl Iterator<Item = &'a RawValue>,
    source: Option<&Url>,
) -> Vec<AuthMethod> {
    let wanted = wanted(document.top.list_member("security").into_iter().chain(required));
    let known = schemes(document, &wanted, source);
    let mut groups: Vec<Vec<&SecurityScheme>> = vec![];
    let wanted = document.top.list_member("security").into_iter().map(|raw| group(raw, &known));
    let single = known.iter().map(|scheme| vec![scheme]);
    for group in wanted.chain(single) {
        let is_covered = group.is_empty()
            || groups.contains(&group)
            || (group.len() == 1 && groups.iter().any(|other| other.contains(&group[0])));
        if !is_covered {
            groups.push(group);
        }
    }
    let mut n_keys = 0;
    groups.iter().take(METHODS_MAX).map(|group| method(group, &mut n_keys)).collect()
}

/// Parameters that a credential fills, so that no program is asked for them.
pub(crate) fn reserved(document: &OpenApiDocument<'_>) -> Vec<ReservedParameter> {
    let fill = |scheme: SecurityScheme| match scheme.place {
        PlacementKind::Query => (ParameterCarrier::Query, scheme.field),
        PlacementKind::Header if scheme.field == "cookie" => {
            (ParameterCarrier::Cookie, scheme.prefix.trim_end_matches('=').to_owned())
        }
        PlacementKind::Header | PlacementKind::Environment => {
            (ParameterCarrier::Header, scheme.field)
        }
    };
    schemes(document, &RequiredScopes::new(), None).into_iter().map(fill).collect()
}

/// The scopes that requirements name for each scheme.
fn wanted<'a>(requirements: impl Iterator<Item = &'a RawValue>) -> RequiredScopes {
    let mut wanted = RequiredScopes::new();
    for requirement in requirements {
        for (scheme, raw) in RawMembers::from_raw(requirement).unwrap_or_default().iter() {
            let named: Vec<String> = serde_json::from_str(raw.get()).unwrap_or_default();
            let scopes = named.iter().flat_map(|scope| crate::http::scopes(scope));
            wanted.entry(scheme.to_owned()).or_default().extend(scopes);
        }
    }
    wanted
}

fn schemes(
    document: &OpenApiDocument<'_>,
    wanted: &RequiredScopes,
    source: Option<&Url>,
) -> Vec<SecurityScheme> {
    let components = document.top.members("components").unwrap_or_default();
    let declared = components.members("securitySchemes").unwrap_or_default();
    let resolved =
        declared.iter().filter_map(|(name, raw)| Some((name, document.resolve(raw).ok()?)));
    let none = BTreeSet::new();
    let read = |(name, members): (&str, RawMembers<'_>)| {
        let tokens = flows::tokens(&members, wanted.get(name).unwrap_or(&none), source);
        Some(SecurityScheme { tokens, ..scheme(name, &members)? })
    };
    resolved.filter_map(read).collect()
}

fn scheme(name: &str, members: &RawMembers<'_>) -> Option<SecurityScheme> {
    let scheme = |kind, place, field: &str, prefix: &str| {
        let (name, field, prefix) = (name.to_owned(), field.to_owned(), prefix.to_owned());
        Some(SecurityScheme { name, kind, place, field, prefix, tokens: None })
    };
    match members.text_member("type")?.as_str() {
        "apiKey" => {
            let field = members.text_member("name").filter(|field| !field.trim().is_empty())?;
            match members.text_member("in")?.as_str() {
                "header" => scheme(AuthKind::ApiKey, PlacementKind::Header, &field, ""),
                "query" => scheme(AuthKind::ApiKey, PlacementKind::Query, &field, ""),
                "cookie" => {
                    scheme(AuthKind::ApiKey, PlacementKind::Header, "cookie", &format!("{field}="))
                }
                _ => None,
            }
        }
        "http" => {
            let word = members.text_member("scheme").unwrap_or_else(|| "bearer".into());
            match word.to_ascii_lowercase().as_str() {
                "basic" => {
                    scheme(AuthKind::Basic, PlacementKind::Header, "authorization", "Basic ")
                }
                "bearer" => {
                    scheme(AuthKind::Bearer, PlacementKind::Header, "authorization", "Bearer ")
                }
                _ => scheme(
                    AuthKind::ApiKey,
                    PlacementKind::Header,
                    "authorization",
                    &format!("{word} "),
                ),
            }
        }
        "oauth2" | "openIdConnect" => {
            scheme(AuthKind::OAuth2, PlacementKind::Header, "authorization", "Bearer ")
        }
        _ => None,
    }
}

/// The schemes that one requirement names together.
fn group<'s>(raw: &RawValue, known: &'s [SecurityScheme]) -> Vec<&'s SecurityScheme> {
    let members = RawMembers::from_raw(raw).unwrap_or_default();
    let names = members.iter().map(|(name, _)| name);
    names.filter_map(|name| known.iter().find(|scheme| scheme.name == name)).collect()
}

fn method(group: &[&SecurityScheme], n_keys: &mut usize) -> AuthMethod {
    let oauth = group.iter().find(|scheme| scheme.kind == AuthKind::OAuth2);
    let template = match oauth {
        Some(scheme) => format!("oauth-{}", scheme.name),
        None => {
            // Numbered from zero, as in Executor: scripts of its users contain these names.
            *n_keys += 1;
            format!("apikey-{}", *n_keys - 1)
        }
    };
    let kind = match (group, oauth) {
        ([only], _) => only.kind,
        (_, Some(_)) => AuthKind::OAuth2,
        (_, None) => AuthKind::ApiKey,
    };
    let label = group.iter().map(|scheme| scheme.name.as_str()).collect::<Vec<_>>().join(" + ");
    let placements = group.iter().map(|scheme| PlacementTemplate {
        place: scheme.place,
        name: scheme.field.clone(),
        prefix: scheme.prefix.clone(),
        variable: if group.len() == 1 { "value".into() } else { variable(&scheme.name) },
    });
    let tokens = oauth.and_then(|scheme| scheme.tokens.clone());
    AuthMethod { template, kind, label, placements: placements.collect(), tokens }
}

fn variable(name: &str) -> String {
    let fine = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    name.chars().map(fine).collect::<String>().trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_scheme_becomes_a_template_and_what_belongs_together_stays_together() {
        let text = json!({
            "security": [{"key": [], "app id": []}, {"oauth": ["read"]}, {}],
            "components": {"securitySchemes": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "app id": {"type": "apiKey", "in": "query", "name": "app"},
                "session": {"type": "apiKey", "in": "cookie", "name": "sid"},
                "token": {"type": "http", "scheme": "Bearer"},
                "login": {"type": "http", "scheme": "basic"},
                "own": {"type": "http", "scheme": "HMAC"},
                "oauth": {"type": "oauth2", "flows": {}},
                "alias": {"$ref": "#/components/securitySchemes/token"},
                "odd": {"type": "mutualTLS"},
            }},
        });
        let text = text.to_string();
        let document = OpenApiDocument::new(&text).unwrap();
        let shown: Vec<_> = methods(&document, std::iter::empty(), None)
            .iter()
            .map(|method| {
                let places = method
                    .placements
                    .iter()
                    .map(|p| format!("{:?} {} {:?} <{}>", p.place, p.name, p.prefix, p.variable));
                format!(
                    "{} {}: {}",
                    method.template,
                    method.kind.as_str(),
                    places.collect::<Vec<_>>().join(", ")
                )
            })
            .collect();
        let expected = [
            "apikey-0 apiKey: Query app \"\" <app_id>, Header X-Key \"\" <key>",
            "oauth-oauth oauth2: Header authorization \"Bearer \" <value>",
            "apikey-1 bearer: Header authorization \"Bearer \" <value>",
            "apikey-2 basic: Header authorization \"Basic \" <value>",
            "apikey-3 apiKey: Header authorization \"HMAC \" <value>",
            "apikey-4 apiKey: Header cookie \"sid=\" <value>",
            "apikey-5 bearer: Header authorization \"Bearer \" <value>",
        ];
        let mut sorted = shown.clone();
        sorted.sort();
        let mut wanted = expected.map(str::to_owned).to_vec();
        wanted.sort();
        assert_eq!(sorted.len(), wanted.len(), "{shown:#?}");
        assert_eq!(shown[0], expected[0]);
        assert_eq!(shown[1], expected[1]);
    }
}
