//! The target of requests: the servers that a description names, and which of them a program may choose.

use super::document::OpenApiDocument;
use super::raw::{self, RawMembers};
use super::schema::shortened;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

/// Servers that an operation may choose from.
const SERVERS_MAX: usize = 64;

/// A server: a URL with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerTemplate {
    pub(crate) url: String,
    pub(crate) variables: Vec<ServerVariable>,
}

/// A variable in a server's URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerVariable {
    pub(crate) name: String,
    pub(crate) default: String,
    /// Its allowed values; empty for any.
    pub(crate) choices: Vec<String>,
    pub(crate) description: Option<String>,
}

/// The `servers` of a description, a path or an operation; none if it has none.
pub(crate) fn servers(members: &RawMembers<'_>) -> Option<Vec<ServerTemplate>> {
    let list = members.list_member("servers");
    let servers: Vec<_> = list.into_iter().filter_map(server).take(SERVERS_MAX).collect();
    (!servers.is_empty()).then_some(servers)
}

/// The servers of a whole description. By default, the origin of the description itself.
pub(crate) fn default_servers(document: &OpenApiDocument<'_>) -> Vec<ServerTemplate> {
    servers(&document.top)
        .unwrap_or_else(|| vec![ServerTemplate { url: "/".into(), variables: vec![] }])
}

fn server(raw: &RawValue) -> Option<ServerTemplate> {
    let members = RawMembers::from_raw(raw)?;
    let url = members.text_member("url")?.trim().to_owned();
    let variables = members.members("variables").unwrap_or_default();
    let variables = variables.iter().filter_map(|(name, raw)| variable(name, raw)).collect();
    Some(ServerTemplate { url, variables })
}

fn variable(name: &str, raw: &RawValue) -> Option<ServerVariable> {
    let members = RawMembers::from_raw(raw)?;
    let choices: Vec<String> =
        members.list_member("enum").into_iter().filter_map(plain_text).collect();
    let default = members.raw("default").and_then(plain_text);
    let default = default.or_else(|| choices.first().cloned()).unwrap_or_default();
    let description = members.text_member("description").map(|text| shortened(&text));
    Some(ServerVariable { name: name.to_owned(), default, choices, description })
}

/// Text, also for a scalar such as `8080` without quotes.
fn plain_text(raw: &RawValue) -> Option<String> {
    match raw::value(raw)? {
        Value::String(text) => Some(text),
        number @ Value::Number(_) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The schema of the `server` argument; none if there is nothing to choose.
pub(crate) fn input(servers: &[ServerTemplate]) -> Option<Value> {
    let mut members = Map::new();
    if servers.len() > 1 {
        let urls: Vec<_> = servers.iter().map(|server| server.url.as_str()).collect();
        members.insert("url".into(), json!({ "type": "string", "enum": urls, "default": urls[0] }));
    }
    let mut variables = Map::new();
    for variable in servers.iter().flat_map(|server| &server.variables) {
        let mut schema = json!({ "type": "string", "default": variable.default });
        if !variable.choices.is_empty() {
            schema["enum"] = json!(variable.choices);
        }
        if let Some(text) = &variable.description {
            schema["description"] = text.as_str().into();
        }
        variables.entry(variable.name.clone()).or_insert(schema);
    }
    if !variables.is_empty() {
        let schema =
            json!({ "type": "object", "properties": variables, "additionalProperties": false });
        members.insert("variables".into(), schema);
    }
    (!members.is_empty())
        .then(|| json!({ "type": "object", "properties": members, "additionalProperties": false }))
}

/// The choice of a program.
#[derive(Debug, Default)]
pub(crate) struct ServerChoiceArgument {
    url: Option<String>,
    variables: BTreeMap<String, String>,
}

impl ServerChoiceArgument {
    /// From the `server` argument.
    pub(crate) fn from_argument(argument: Option<&Value>) -> Self {
        let Some(argument) = argument else { return Self::default() };
        let url = argument.get("url").and_then(Value::as_str).map(str::to_owned);
        let variables = argument.get("variables").and_then(Value::as_object);
        let variables = variables.into_iter().flatten();
        let variables =
            variables.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Self { url, variables: variables.collect() }
    }
}

/// The base URL of requests. `source` is the address of the description.
pub(crate) fn base(
    servers: &[ServerTemplate],
    choice: &ServerChoiceArgument,
    source: Option<&Url>,
    has_credential: bool,
) -> Result<Url, String> {
    let server = match &choice.url {
        Some(url) => servers.iter().find(|server| server.url == *url),
        None => servers.first(),
    };
    let server = server.ok_or("there is no such server")?;
    let chosen = absolute(&filled(server, &choice.variables)?, source)?;
    // A program that could choose any host could have the credential sent to itself.
    let enumerated =
        |name: &String| server.variables.iter().any(|v| v.name == *name && !v.choices.is_empty());
    let harmless = choice.variables.iter().filter(|(name, _)| enumerated(name));
    let harmless = harmless.map(|(name, value)| (name.clone(), value.clone())).collect();
    let expected = absolute(&filled(server, &harmless)?, source);
    let is_same = expected.is_ok_and(|expected| expected.origin() == chosen.origin());
    if has_credential && !is_same {
        return Err("a program cannot choose the host to which a credential is sent".into());
    }
    Ok(chosen)
}

fn filled(server: &ServerTemplate, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut url = server.url.clone();
    for variable in &server.variables {
        let value = values.get(&variable.name).unwrap_or(&variable.default);
        if !variable.choices.is_empty() && !variable.choices.contains(value) {
            return Err(format!("{} is none of {}", variable.name, variable.choices.join(", ")));
        }
        let is_given = values.contains_key(&variable.name);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if is_given && variable.choices.is_empty() && !value.chars().all(is_plain) {
            return Err(format!("{} has characters that are not plain", variable.name));
        }
        url = url.replace(&format!("{{{}}}", variable.name), value);
    }
    Ok(url)
}

fn absolute(url: &str, source: Option<&Url>) -> Result<Url, String> {
    if let Some(open) = url.find('{') {
        return Err(format!("the server's address {url} has a hole at {}", &url[open..]));
    }
    let parsed = match (Url::parse(url), source) {
        (Ok(url), _) => Ok(url),
        (Err(_), Some(source)) => source.join(url).map_err(|error| error.to_string()),
        (Err(_), None) => Err(format!(
            "the description names no server but \"{url}\"; set a base URL for this source"
        )),
    }?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host().is_none() {
        return Err(format!("the server's address {url} is not a web address"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, variables: &[(&str, &str, &[&str])]) -> ServerTemplate {
        let variables = variables.iter().map(|(name, default, choices)| ServerVariable {
            name: (*name).into(),
            default: (*default).into(),
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            description: None,
        });
        ServerTemplate { url: url.into(), variables: variables.collect() }
    }

    fn said(servers: &[ServerTemplate], argument: Value, has_credential: bool) -> String {
        let source: Url = "https://specs.example.com/v1/openapi.yaml".parse().unwrap();
        match base(
            servers,
            &ServerChoiceArgument::from_argument(Some(&argument)),
            Some(&source),
            has_credential,
        ) {
            Ok(url) => url.to_string(),
            Err(why) => why,
        }
    }

    #[test]
    fn relative_servers_begin_where_the_description_was_found() {
        assert_eq!(said(&[server("/api", &[])], json!({}), false), "https://specs.example.com/api");
        assert_eq!(said(&[server("../x", &[])], json!({}), false), "https://specs.example.com/x");
        let nowhere = base(&[server("/api", &[])], &ServerChoiceArgument::default(), None, false)
            .unwrap_err();
        assert_eq!(
            nowhere,
            "the description names no server but \"/api\"; set a base URL for this source"
        );
    }

    #[test]
    fn a_server_is_a_web_address() {
        for url in ["file:///etc", "ftp://a.com", "javascript:1", "data:,x"] {
            assert!(
                said(&[server(url, &[])], json!({}), false).ends_with("not a web address"),
                "{url}"
            );
        }
    }

    #[test]
    fn a_program_chooses_a_server_and_fills_its_holes() {
        let servers = [
            server(
                "https://{region}.a.com/{base}",
                &[("region", "eu", &["eu", "us"]), ("base", "v1", &[])],
            ),
            server("https://b.com", &[]),
        ];
        assert_eq!(said(&servers, json!({}), true), "https://eu.a.com/v1");
        assert_eq!(said(&servers, json!({"url": "https://b.com"}), true), "https://b.com/");
        let chosen = json!({"variables": {"region": "us", "base": "v2"}});
        assert_eq!(said(&servers, chosen, true), "https://us.a.com/v2");
        assert_eq!(
            said(&servers, json!({"variables": {"region": "mars"}}), true),
            "region is none of eu, us"
        );
    }

    #[test]
    fn a_program_cannot_send_a_credential_to_a_host_of_its_choice() {
        let servers = [server("https://{tenant}.a.com", &[("tenant", "demo", &[])])];
        let evil = json!({"variables": {"tenant": "evil.com/"}});
        assert_eq!(said(&servers, evil, false), "tenant has characters that are not plain");
        let other = json!({"variables": {"tenant": "other"}});
        assert_eq!(said(&servers, other.clone(), false), "https://other.a.com/");
        let refused = "a program cannot choose the host to which a credential is sent";
        assert_eq!(said(&servers, other, true), refused);
    }
}
