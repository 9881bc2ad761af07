//! Third-party documents: API descriptions, schemas, configuration files.

use crate::text;
use protocols::typescript::TypeDefinitions;
use schema::{CompiledSchema, FormatMode};
use serde_json::Value;
use tools::{Integration, SharedSchema, graphql as graphql_import, openapi as openapi_import};
use url::Url;

/// An OpenAPI description. Each tool has a name, and its TypeScript types can be generated.
pub fn openapi(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let options = openapi_import::Options {
        source: Url::parse("https://api.example.test/openapi.json").ok(),
        ..openapi_import::Options::default()
    };
    if let Ok(api) = openapi_import::import(text, options) {
        check_integration(&api);
    }
}

/// The response to a GraphQL introspection query.
pub fn graphql(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let endpoint = Url::parse("https://api.example.test/graphql").expect("it is an address");
    let client = tools::http::ApiClient::default();
    if let Ok(api) = graphql_import::import(text, graphql_import::Options { endpoint, client }) {
        check_integration(&api);
    }
}

/// Number of tools of one description that are checked: enough to cover every kind of operation.
const TOOLS_MAX: usize = 50;

fn check_integration(integration: &dyn Integration) {
    let _ = integration.target();
    let _ = integration.auth_methods();
    let tools = integration.tools();
    assert!(!tools.is_empty(), "an import without tools is an error");
    for tool in tools.iter().take(TOOLS_MAX) {
        assert!(!tool.name.is_empty());
        for schema in [&tool.input, &tool.output].into_iter().flatten() {
            check_schema(&SharedSchema::whole(schema));
        }
    }
}

fn check_schema(schema: &Value) {
    let _ = TypeDefinitions::default().write(schema);
    if let Ok(compiled) = CompiledSchema::compile(schema, FormatMode::Checked) {
        let _ = compiled.misfits(&Value::Null, 3);
    }
}

/// A schema and, after a line break, a value. A value without misfits is valid.
pub fn json_schema(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let (schema, value) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return };
    let _ = TypeDefinitions::default().write(&schema);
    let Ok(schema) = CompiledSchema::compile(&schema, FormatMode::Checked) else { return };
    let Some(readable) = schema::readable::read(value) else { return };
    let misfits = schema.misfits(&readable.value, 5);
    assert_eq!(schema.is_valid(&readable.value), misfits.is_empty());
}

/// A configuration file, alone and merged with itself.
pub fn configuration(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Ok(file) = sources::config::ConfigDocument::parse(text) {
        let _ = file.clone().merged_over(file);
    }
}
