//! JSON Schemas of thousands of tools, stored as text: parsed on demand, and shared where they are equal.

use crate::shape::accepted;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Maximum size of the definitions that one schema includes. References beyond that accept anything.
const REACHED_BYTES_MAX: usize = 4 << 20;

/// A JSON Schema. `#/$defs/Name` refers to its own definitions, or to those it shares with others.
#[derive(Clone)]
pub struct SharedSchema {
    text: Arc<str>,
    definitions: Option<Arc<SchemaDefinitions>>,
}

/// Schemas by name, shared by the tools of an integration.
#[derive(Debug, Default)]
pub struct SchemaDefinitions {
    schemas: BTreeMap<String, Box<str>>,
    digest: [u8; 32],
    /// By name; computed when a fingerprint is first needed.
    accepted: OnceLock<BTreeMap<String, AcceptedTypes>>,
}

/// What one schema accepts by itself, and the names of the schemas that it refers to.
#[derive(Debug)]
struct AcceptedTypes {
    digest: [u8; 32],
    reaches: BTreeSet<String>,
}

impl AcceptedTypes {
    fn from_text(text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).unwrap_or(Value::Bool(true));
        Self { digest: accepted(&schema), reaches: names(&schema) }
    }
}

impl SchemaDefinitions {
    /// Each schema by its name. They refer to each other as `#/$defs/Name`.
    pub fn new<'a>(schemas: impl Iterator<Item = (String, &'a Value)>) -> Self {
        Self::of_texts(schemas.map(|(name, schema)| (name, schema.to_string().into())).collect())
    }

    /// As [`Self::new`], from the schemas' texts.
    pub(crate) fn of_texts(schemas: BTreeMap<String, Box<str>>) -> Self {
        let mut hash = Sha256::new();
        for (name, text) in &schemas {
            hash.update(name.len().to_le_bytes());
            hash.update(name);
            hash.update(text.len().to_le_bytes());
            hash.update(text.as_bytes());
        }
        Self { schemas, digest: hash.finalize().into(), accepted: OnceLock::new() }
    }

    fn accepted(&self) -> &BTreeMap<String, AcceptedTypes> {
        self.accepted.get_or_init(|| {
            self.schemas
                .iter()
                .map(|(name, text)| (name.clone(), AcceptedTypes::from_text(text)))
                .collect()
        })
    }
}

impl SharedSchema {
    /// A schema without references to shared definitions.
    pub fn new(schema: &Value) -> Self {
        Self { text: schema.to_string().into(), definitions: None }
    }

    /// A schema that refers to shared definitions. It has no `$defs` itself.
    pub fn sharing(schema: &Value, definitions: &Arc<SchemaDefinitions>) -> Self {
        Self { text: schema.to_string().into(), definitions: Some(Arc::clone(definitions)) }
    }

    /// As [`Self::sharing`], from the schema's text.
    pub(crate) fn of_text(text: &str, definitions: &Arc<SchemaDefinitions>) -> Self {
        Self { text: text.into(), definitions: Some(Arc::clone(definitions)) }
    }

    /// The schema and, under `$defs`, every shared definition that it reaches.
    pub fn whole(&self) -> Value {
        let mut root: Value = serde_json::from_str(&self.text).unwrap_or(Value::Bool(true));
        let Some(shared) = &self.definitions else { return root };
        let mut reached = Map::new();
        let mut n_bytes = 0;
        let mut wanted = names(&root);
        while let Some(name) = wanted.pop_first() {
            if reached.contains_key(&name) {
                continue;
            }
            let text = shared.schemas.get(&name).map_or("true", |text| text);
            n_bytes += text.len();
            let fits = n_bytes <= REACHED_BYTES_MAX;
            let schema = if fits {
                serde_json::from_str(text).unwrap_or(Value::Bool(true))
            } else {
                Value::Bool(true)
            };
            wanted.append(&mut names(&schema));
            reached.insert(name, schema);
        }
        if let (false, Value::Object(members)) = (reached.is_empty(), &mut root) {
            members.insert("$defs".into(), Value::Object(reached));
        }
        root
    }

    /// The fingerprint of what it accepts, with everything that it reaches. Descriptions do not count.
    pub(crate) fn accepted(&self) -> [u8; 32] {
        let own = AcceptedTypes::from_text(&self.text);
        let Some(shared) = self.definitions.as_ref().filter(|_| !own.reaches.is_empty()) else {
            return own.digest;
        };
        let (mut seen, mut unseen) = (BTreeSet::new(), own.reaches.iter().collect::<Vec<_>>());
        while let Some(name) = unseen.pop() {
            if seen.insert(name) {
                let known = shared.accepted().get(name);
                unseen.extend(known.iter().flat_map(|known| &known.reaches));
            }
        }
        let mut hash = Sha256::new();
        hash.update(own.digest);
        for name in seen {
            hash.update(name.len().to_le_bytes());
            hash.update(name);
            hash.update(shared.accepted().get(name).map(|known| known.digest).unwrap_or_default());
        }
        hash.finalize().into()
    }

    /// The schema's own text, without what it shares.
    pub fn schema_text(&self) -> &str {
        &self.text
    }
}

/// Two schemas are equal when they and everything they reach are.
impl PartialEq for SharedSchema {
    fn eq(&self, other: &Self) -> bool {
        let digest = |schema: &Self| schema.definitions.as_ref().map(|shared| shared.digest);
        // Thousands of tools share their definitions: what they reach is compared only if the definitions differ.
        self.text == other.text && (digest(self) == digest(other) || self.whole() == other.whole())
    }
}

impl Eq for SharedSchema {}

impl fmt::Debug for SharedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Names of the definitions that `schema` refers to.
fn names(schema: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut unseen = vec![schema];
    while let Some(value) = unseen.pop() {
        match value {
            Value::Array(items) => unseen.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref", Value::String(reference)) => found.extend(name(reference)),
                        (_, value) => unseen.push(value),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

/// `Pet` of `#/$defs/Pet/properties/name`.
fn name(reference: &str) -> Option<String> {
    let rest = reference.strip_prefix("#/$defs/")?;
    let first = rest.split('/').next().unwrap_or_default();
    Some(first.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_brings_along_what_it_reaches_and_nothing_else() {
        let schemas = [
            ("Pet", json!({"properties": {"owner": {"$ref": "#/$defs/Person"}}})),
            ("Person", json!({"properties": {"pets": {"items": {"$ref": "#/$defs/Pet"}}}})),
            ("Other", json!({"type": "string"})),
        ];
        let shared = schemas.iter().map(|(name, schema)| ((*name).to_owned(), schema));
        let shared = Arc::new(SchemaDefinitions::new(shared));
        let schema = SharedSchema::sharing(&json!({"$ref": "#/$defs/Pet"}), &shared);
        let expected = json!({
            "$ref": "#/$defs/Pet",
            "$defs": { "Pet": schemas[0].1, "Person": schemas[1].1 },
        });
        assert_eq!(schema.whole(), expected);
    }

    #[test]
    fn what_is_not_there_is_anything() {
        let shared = Arc::new(SchemaDefinitions::default());
        let schema = SharedSchema::sharing(&json!({"$ref": "#/$defs/Gone"}), &shared);
        assert_eq!(schema.whole(), json!({"$ref": "#/$defs/Gone", "$defs": {"Gone": true}}));
        assert_eq!(
            SharedSchema::new(&json!({"type": "string"})).whole(),
            json!({"type": "string"})
        );
    }
}
