//! The preview of a description in the form that Executor's clients use. Parses the text only and makes no tools.

use super::document::OpenApiDocument;
use super::import::{DescribedOperation, ImportError, about, operations, with_json};
use super::raw::{self, RawMembers};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Operations that a preview lists; `operationCount` counts all.
const LISTED_MAX: usize = 5_000;

/// Security schemes that a preview lists; descriptions with more repeat themselves.
const SCHEMES_MAX: usize = 64;

/// The preview of a description in JSON or YAML.
pub fn outline(text: &str) -> Result<Value, ImportError> {
    with_json(text, |text| {
        let document = OpenApiDocument::new(text)?;
        let found = operations(&document)?;
        let mut tags: BTreeSet<String> = BTreeSet::new();
        for operation in &found {
            tags.extend(tags_of(&operation.members));
        }
        let schemes = security_schemes(&document);
        let strategies = auth_strategies(&document, &schemes);
        let about = about(&document);
        Ok(json!({
            "title": filled(about.title),
            "version": filled(about.version),
            "servers": servers(&document),
            "operationCount": found.len(),
            "operations": found.iter().take(LISTED_MAX).map(operation).collect::<Vec<_>>(),
            "tags": tags,
            "headerPresets": header_presets(&schemes, &strategies),
            "oauth2Presets": schemes.iter().flat_map(oauth2_presets).collect::<Vec<_>>(),
            "authStrategies": strategies.iter().map(|names| json!({ "schemes": names })).collect::<Vec<_>>(),
            "securitySchemes": schemes,
        }))
    })
}

fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn operation(operation: &DescribedOperation<'_>) -> Value {
    let members = &operation.members;
    let (method, path) = (&operation.named.method, &operation.named.path);
    let id = operation.named.id.clone().unwrap_or_else(|| default_id(method, path));
    json!({
        "operationId": id,
        "method": method,
        "path": path,
        "summary": members.text_member("summary"),
        "tags": tags_of(members),
        "deprecated": members.flag("deprecated") == Some(true),
    })
}

/// The id of an operation that has none: `get_items_id`.
fn default_id(method: &str, path: &str) -> String {
    let words = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words).collect::<Vec<_>>().join("_")
}

fn tags_of(members: &RawMembers<'_>) -> Vec<String> {
    let tags = members.list_member("tags").into_iter();
    let tags = tags.filter_map(|raw| serde_json::from_str::<String>(raw.get()).ok());
    tags.filter(|tag| !tag.trim().is_empty()).collect()
}

fn servers(document: &OpenApiDocument<'_>) -> Vec<Value> {
    let servers = document.top.list_member("servers").into_iter().filter_map(RawMembers::from_raw);
    let server = |members: RawMembers<'_>| {
        let url = members.text_member("url")?;
        let variables = members.raw("variables").and_then(raw::value);
        Some(
            json!({ "url": url, "description": members.text_member("description"), "variables": variables }),
        )
    };
    servers.filter_map(server).collect()
}

/// The schemes with the members that Executor's clients read; those that are absent are null.
fn security_schemes(document: &OpenApiDocument<'_>) -> Vec<Value> {
    let components = document.top.members("components").unwrap_or_default();
    let declared = components.members("securitySchemes").unwrap_or_default();
    let scheme = |(name, raw)| {
        let members = document.resolve(raw).ok()?;
        let text = |name: &str| members.text_member(name);
        let kind = text("type").filter(|kind| {
            matches!(kind.as_str(), "http" | "apiKey" | "oauth2" | "openIdConnect")
        })?;
        let flows = members.raw("flows").filter(|_| kind == "oauth2").and_then(raw::value);
        Some(json!({
            "name": name,
            "type": kind,
            "scheme": text("scheme"),
            "bearerFormat": text("bearerFormat"),
            "in": text("in"),
            "headerName": text("name"),
            "description": text("description"),
            "flows": flows,
            "openIdConnectUrl": text("openIdConnectUrl"),
        }))
    };
    declared.iter().take(SCHEMES_MAX).filter_map(scheme).collect()
}

/// Which schemes are used together: as the description requires, or each by itself.
fn auth_strategies(document: &OpenApiDocument<'_>, schemes: &[Value]) -> Vec<Vec<String>> {
    let required = document.top.list_member("security").into_iter().take(SCHEMES_MAX);
    let required = required.filter_map(RawMembers::from_raw);
    let required: Vec<Vec<String>> =
        required.map(|members| members.iter().map(|(name, _)| name.to_owned()).collect()).collect();
    match required.is_empty() {
        true => {
            schemes.iter().filter_map(|it| Some(vec![it["name"].as_str()?.to_owned()])).collect()
        }
        false => required,
    }
}

/// The headers that each strategy needs. A strategy with OAuth 2 has a separate preset.
fn header_presets(schemes: &[Value], strategies: &[Vec<String>]) -> Vec<Value> {
    let find = |name: &String| schemes.iter().find(|scheme| scheme["name"] == name.as_str());
    let preset = |names: &Vec<String>| {
        let known: Vec<&Value> = names.iter().filter_map(find).collect();
        let is_oauth =
            |scheme: &&Value| scheme["type"] == "oauth2" || scheme["type"] == "openIdConnect";
        if known.is_empty() || known.iter().any(is_oauth) {
            return None;
        }
        let (mut labels, mut headers) = (vec![], Map::new());
        for scheme in known {
            let (label, header) = header(scheme);
            labels.push(label);
            headers.extend(header.map(|header| (header, Value::Null)));
        }
        let secret: Vec<_> = headers.keys().cloned().collect();
        Some(json!({ "label": labels.join(" + "), "headers": headers, "secretHeaders": secret }))
    };
    strategies.iter().filter_map(preset).collect()
}

/// The display name of a scheme, and the header that it fills, if any.
fn header(scheme: &Value) -> (String, Option<String>) {
    let text = |name: &str| scheme[name].as_str().unwrap_or_default().to_owned();
    match (text("type").as_str(), text("scheme").as_str(), text("in").as_str()) {
        ("http", "bearer", _) => ("Bearer Token".into(), Some("Authorization".into())),
        ("http", "basic", _) => ("Basic Auth".into(), Some("Authorization".into())),
        ("apiKey", _, "header") => {
            (text("name"), Some(filled(text("headerName")).unwrap_or_else(|| text("name"))))
        }
        ("apiKey", _, place) => (format!("{} ({place})", text("name")), None),
        (_, _, _) => (text("name"), None),
    }
}

fn oauth2_presets(scheme: &Value) -> Vec<Value> {
    let flows =
        [("authorizationCode", "Authorization Code"), ("clientCredentials", "Client Credentials")];
    let preset = |(flow, title): (&str, &str)| {
        let found = &scheme["flows"][flow];
        let (token, authorization) =
            (found["tokenUrl"].as_str()?, found["authorizationUrl"].as_str());
        // An authorization code flow requires an authorization URL.
        if flow == "authorizationCode" && authorization.is_none() {
            return None;
        }
        let name = scheme["name"].as_str().unwrap_or_default();
        Some(json!({
            "label": format!("OAuth2 {title} · {name}"),
            "securitySchemeName": name,
            "flow": flow,
            "authorizationUrl": authorization,
            "tokenUrl": token,
            "refreshUrl": found["refreshUrl"].as_str(),
            "scopes": found["scopes"].as_object().cloned().unwrap_or_default(),
            "identityScopes": if flow == "authorizationCode" { json!("auto") } else { json!(false) },
        }))
    };
    flows.into_iter().filter_map(preset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_has_the_members_that_executors_clients_read() {
        let text = r#"
openapi: 3.0.3
info: { title: Shop, version: "2" }
servers: [{ url: https://shop.example }]
security: [{ key: [] }]
paths:
  /items/{id}:
    get: { operationId: getItem, summary: Get one, tags: [items], deprecated: true, responses: {} }
    delete: { responses: {} }
components:
  securitySchemes:
    key: { type: apiKey, in: header, name: X-Key }
    login:
      type: oauth2
      flows: { clientCredentials: { tokenUrl: https://shop.example/token, scopes: { all: All } } }
"#;
        let told = outline(text).unwrap();
        let expected = json!([
            { "operationId": "getItem", "method": "get", "path": "/items/{id}", "summary": "Get one",
              "tags": ["items"], "deprecated": true },
            { "operationId": "delete_items_id", "method": "delete", "path": "/items/{id}", "summary": null,
              "tags": [], "deprecated": false },
        ]);
        assert_eq!(told["operations"], expected);
        assert_eq!((&told["operationCount"], &told["tags"]), (&json!(2), &json!(["items"])));
        let servers =
            json!([{ "url": "https://shop.example", "description": null, "variables": null }]);
        assert_eq!(told["servers"], servers);
        assert_eq!(told["authStrategies"], json!([{ "schemes": ["key"] }]));
        let preset =
            json!([{ "label": "key", "headers": { "X-Key": null }, "secretHeaders": ["X-Key"] }]);
        assert_eq!(told["headerPresets"], preset);
        assert_eq!(told["oauth2Presets"][0]["flow"], "clientCredentials");
        assert_eq!(told["securitySchemes"][0]["headerName"], "X-Key");
        assert!(outline("{}").is_ok() && outline("[").is_err());
    }
}
