//! Generates a description of any size, for measurements: resources with five operations each, schemas that
//! refer to each other in cycles, and enough different words for a search.

use serde_json::{Map, Value, json};

const NOUNS: [&str; 12] = [
    "invoice", "customer", "order", "shipment", "ticket", "message", "document", "payment",
    "project", "server", "calendar", "report",
];
const QUALITIES: [&str; 10] = [
    "open", "archived", "shared", "draft", "overdue", "remote", "nested", "internal", "pending",
    "signed",
];

/// A description with at least `n_operations` operations.
pub fn specimen(n_operations: usize) -> String {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for idx in 0..n_operations.div_ceil(5) {
        let noun = NOUNS[idx % NOUNS.len()];
        let quality = QUALITIES[(idx / NOUNS.len()) % QUALITIES.len()];
        let name = format!("{quality}{noun}{idx}");
        let before = format!("#/components/schemas/{}", idx.saturating_sub(1));
        schemas.insert(idx.to_string(), schema(noun, &before));
        let one = json!({ "$ref": format!("#/components/schemas/{idx}") });
        let list = json!({ "type": "array", "items": one });
        let id = json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }]);
        let page = json!([
            { "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": 100 } },
            { "name": "cursor", "in": "query", "description": "Where the last page ended.", "schema": { "type": "string" } },
        ]);
        let operation = |verb: &str, input: Option<&Value>, output: &Value| {
            let mut operation = json!({
                "operationId": format!("{verb}{name}"),
                "tags": [noun],
                "summary": format!("{verb} {quality} {noun}s of department {idx}"),
                "responses": { "200": { "description": "ok", "content": { "application/json": { "schema": output } } } },
            });
            if let Some(schema) = input {
                operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
            }
            operation
        };
        let mut listed = operation("list", None, &list);
        listed["parameters"] = page;
        paths.insert(
            format!("/{name}"),
            json!({ "get": listed, "post": operation("create", Some(&one), &one) }),
        );
        let item = json!({
            "parameters": id,
            "get": operation("get", None, &one),
            "patch": operation("update", Some(&one), &one),
            "delete": operation("delete", None, &json!({})),
        });
        paths.insert(format!("/{name}/{{id}}"), item);
    }
    let description = json!({
        "openapi": "3.1.0",
        "info": { "title": "Specimen", "version": "1" },
        "servers": [{ "url": "https://specimen.invalid" }],
        "paths": paths,
        "components": { "schemas": schemas },
    });
    description.to_string()
}

fn schema(noun: &str, before: &str) -> Value {
    json!({
        "type": "object",
        "required": ["title"],
        "properties": {
            "id": { "type": "string", "readOnly": true },
            "title": { "type": "string", "description": format!("What people call the {noun}."), "maxLength": 200 },
            "state": { "type": "string", "enum": ["new", "active", "done"] },
            "amount": { "type": "number", "minimum": 0 },
            "tags": { "type": "array", "items": { "type": "string" } },
            "parent": { "$ref": before },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Integration as _;
    use crate::openapi::{Options, import};

    #[test]
    fn a_specimen_is_as_large_as_wanted_and_becomes_tools() {
        let api = import(&specimen(1_000), Options::default()).unwrap();
        assert_eq!((api.tools().len(), api.left_out()), (1_000, &[][..]));
    }
}
