//! Authentication templates: a template and its values form a credential, and an offer becomes a connection. Pure.

use crate::{BasicConfig, ConnectionConfig, OAuthConfig, SecretText};
use std::collections::BTreeMap;
use tools::{AuthKind, AuthMethod, CredentialPlacement, PlacementKind, ToolCredential};

/// The credential that a request offers for a new connection.
#[derive(Debug, Clone, Default)]
pub struct CredentialOffer {
    /// One of the source's methods, or `none`, `bearer`, `basic`, `header`, `query`, `cookie` or `oauth`.
    pub template: Option<String>,
    /// The value, if the method needs only one.
    pub value: Option<SecretText>,
    /// The values by name.
    pub values: BTreeMap<String, SecretText>,
    /// The OAuth settings.
    pub oauth: Option<OAuthConfig>,
    /// Whether values may be missing: a person enters them later.
    pub is_handed_off: bool,
}

/// The connection for an offer, by the authentication methods of its source.
pub fn connection_from_offer(
    own: &[AuthMethod],
    offer: CredentialOffer,
) -> Result<ConnectionConfig, String> {
    let CredentialOffer { template, value, mut values, oauth, is_handed_off } = offer;
    let template = match (&template, &oauth) {
        (Some(template), _) => template.as_str(),
        (None, Some(_)) => "oauth",
        (None, None) => "none",
    };
    let wants_oauth = oauth.is_some();
    let mut made = ConnectionConfig::default();
    let mut take = |name: &str| values.remove(name).ok_or(format!("values.{name} is missing"));
    match template {
        "none" => {}
        "header" | "query" | "cookie" => {
            let SecretText::Plain(name) = take("name")? else {
                return Err("values.name is a string".into());
            };
            let placed = BTreeMap::from([(name, value.map_or_else(|| take("value"), Ok)?)]);
            match template {
                "header" => made.headers = placed,
                "query" => made.query = placed,
                _ => made.cookies = placed,
            }
        }
        "oauth" | "oauth2" => made.oauth = Some(oauth.unwrap_or_default()),
        other => {
            let method = method(own, other).ok_or_else(|| unknown_template(own, other))?;
            if method.kind == AuthKind::OAuth2 {
                let scheme = Some(other.to_owned());
                made.oauth = Some(OAuthConfig { scheme, ..oauth.unwrap_or_default() });
                return Ok(made);
            }
            if let Some(value) = value {
                values.insert(variables(&method).into_iter().next().unwrap_or_default(), value);
            }
            let missing: Vec<_> =
                variables(&method).into_iter().filter(|name| !values.contains_key(name)).collect();
            match (missing.as_slice(), is_handed_off) {
                ([], _) | (_, true) => {}
                ([only], false) if only == "value" => {
                    return Err("The member \"value\" is missing.".into());
                }
                ([first, ..], false) => return Err(format!("values.{first} is missing")),
            }
            match (method.template.as_str(), missing.is_empty()) {
                ("bearer", true) => made.bearer = values.remove("value"),
                ("basic", true) => made.basic = basic(&mut values),
                (_, _) => (made.template, made.values) = (Some(other.to_owned()), values),
            }
        }
    }
    if wants_oauth && made.oauth.is_none() {
        return Err(format!(
            "The template \"{template}\" gets no tokens: say \"oauth\", or leave \"oauth\" out."
        ));
    }
    Ok(made)
}

fn basic(values: &mut BTreeMap<String, SecretText>) -> Option<BasicConfig> {
    Some(BasicConfig { user: values.remove("user")?, password: values.remove("password")? })
}

fn unknown_template(own: &[AuthMethod], template: &str) -> String {
    let own = own.iter().map(|method| method.template.as_str());
    let usual = ["none", "bearer", "basic", "header", "query", "cookie", "oauth"];
    let mut names: Vec<_> = usual.into_iter().chain(own).collect();
    names.dedup();
    format!("The template \"{template}\" is not known; there are {}.", names.join(", "))
}

/// An authentication method: one of the source's, or a generic one.
pub(crate) fn method(own: &[AuthMethod], template: &str) -> Option<AuthMethod> {
    let known = own.iter().find(|method| method.template == template).cloned();
    known.or_else(|| match template {
        "bearer" => Some(AuthMethod::bearer("bearer")),
        "basic" => Some(AuthMethod { kind: AuthKind::Basic, ..AuthMethod::bearer("basic") }),
        _ => None,
    })
}

/// The names of the values that a method needs, without duplicates.
pub(crate) fn variables(method: &AuthMethod) -> Vec<String> {
    if method.kind == AuthKind::Basic {
        return vec!["user".into(), "password".into()];
    }
    let mut names: Vec<String> =
        method.placements.iter().map(|placement| placement.variable.clone()).collect();
    names.dedup();
    names
}

/// The credential that a method forms of its values, or the names of the missing values.
pub(crate) fn fill(
    method: &AuthMethod,
    values: &BTreeMap<String, String>,
) -> Result<ToolCredential, Vec<String>> {
    let missing: Vec<_> =
        variables(method).into_iter().filter(|name| !values.contains_key(name)).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    if method.kind == AuthKind::Basic {
        return Ok(ToolCredential::basic(&values["user"], &values["password"]));
    }
    let placement = |placed: &tools::PlacementTemplate| CredentialPlacement {
        place: placed.place,
        name: placed.name.clone(),
        value: format!("{}{}", placed.prefix, values[&placed.variable]).as_str().into(),
    };
    Ok(ToolCredential::new(method.placements.iter().map(placement).collect()))
}

/// Where the values of a connection will go, without the values.
pub(crate) fn outline(own: &[AuthMethod], connection: &ConnectionConfig) -> ToolCredential {
    let hole = |place: PlacementKind, name: &str| CredentialPlacement {
        place,
        name: name.into(),
        value: "".into(),
    };
    let names =
        |place: PlacementKind, values: &BTreeMap<String, SecretText>| -> Vec<CredentialPlacement> {
            values.keys().map(|name| hole(place, name)).collect()
        };
    let mut placements = names(PlacementKind::Header, &connection.headers);
    placements.extend(names(PlacementKind::Query, &connection.query));
    placements.extend(names(PlacementKind::Environment, &connection.env));
    if !connection.cookies.is_empty() {
        placements.push(hole(PlacementKind::Header, "cookie"));
    }
    let is_authorization =
        connection.bearer.is_some() || connection.basic.is_some() || connection.oauth.is_some();
    if is_authorization {
        placements.push(hole(PlacementKind::Header, "authorization"));
    }
    let method = connection.template.as_deref().and_then(|template| method(own, template));
    let templated = method.into_iter().flat_map(|method| method.placements);
    placements.extend(templated.map(|placed| hole(placed.place, &placed.name)));
    ToolCredential::new(placements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tools::PlacementTemplate;

    fn pair() -> AuthMethod {
        let placed = |place, name: &str, prefix: &str, variable: &str| PlacementTemplate {
            place,
            name: name.into(),
            prefix: prefix.into(),
            variable: variable.into(),
        };
        AuthMethod {
            template: "apikey-0".into(),
            kind: AuthKind::ApiKey,
            label: "key + app".into(),
            placements: vec![
                placed(PlacementKind::Header, "X-Key", "Token ", "key"),
                placed(PlacementKind::Query, "app", "", "app"),
            ],
            tokens: None,
        }
    }

    fn plain(values: &[(&str, &str)]) -> BTreeMap<String, SecretText> {
        let text =
            |(name, value): &(&str, &str)| ((*name).to_owned(), SecretText::Plain((*value).into()));
        values.iter().map(text).collect()
    }

    #[test]
    fn a_template_puts_values_with_their_prefixes_where_they_belong() {
        let values =
            BTreeMap::from([("key".to_owned(), "k".to_owned()), ("app".into(), "a".into())]);
        let credential = fill(&pair(), &values).unwrap();
        assert_eq!(
            credential.value_at(PlacementKind::Header).collect::<Vec<_>>(),
            [("X-Key", "Token k")]
        );
        assert_eq!(credential.value_at(PlacementKind::Query).collect::<Vec<_>>(), [("app", "a")]);
        assert_eq!(fill(&pair(), &BTreeMap::new()), Err(vec!["key".into(), "app".into()]));
        let basic = method(&[], "basic").unwrap();
        let values =
            BTreeMap::from([("user".to_owned(), "u".to_owned()), ("password".into(), "p".into())]);
        let credential = fill(&basic, &values).unwrap();
        assert_eq!(
            credential.value_at(PlacementKind::Header).collect::<Vec<_>>(),
            [("authorization", "Basic dTpw")]
        );
    }

    #[test]
    fn an_offer_becomes_a_connection_or_is_told_what_is_missing() {
        let offer = |template: &str, values: &[(&str, &str)]| CredentialOffer {
            template: Some(template.to_owned()),
            values: plain(values),
            ..CredentialOffer::default()
        };
        let made = |offer: CredentialOffer| {
            connection_from_offer(&[pair()], offer).map(|made| made.template_name().to_owned())
        };
        assert_eq!(made(CredentialOffer::default()), Ok("none".into()));
        assert_eq!(made(offer("apikey-0", &[("key", "k"), ("app", "a")])), Ok("apikey-0".into()));
        assert_eq!(made(offer("apikey-0", &[("key", "k")])), Err("values.app is missing".into()));
        assert_eq!(made(offer("bearer", &[])), Err("The member \"value\" is missing.".into()));
        assert_eq!(made(offer("basic", &[("user", "u"), ("password", "p")])), Ok("basic".into()));
        assert_eq!(made(offer("cookie", &[("name", "sid"), ("value", "v")])), Ok("cookie".into()));
        assert_eq!(made(offer("oauth", &[])), Ok("oauth".into()));
        let later = CredentialOffer { is_handed_off: true, ..offer("bearer", &[]) };
        assert_eq!(made(later), Ok("bearer".into()));
        assert!(
            made(offer("x", &[])).unwrap_err().contains("none, bearer, basic"),
            "names are told"
        );
    }
}
