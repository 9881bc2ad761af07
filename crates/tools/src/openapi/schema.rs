//! Converts the schemas of a description to JSON Schema 2020-12 that a validator accepts. Schemas that several
//! operations use are converted once and shared. If a description contradicts itself, the result is permissive:
//! the server rejects invalid calls, whereas a schema that rejects valid ones makes the tool unusable.

use super::document::OpenApiDocument;
use super::raw;
use crate::SchemaDefinitions;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of shared schemas; the largest public descriptions have a tenth.
const DEFINITIONS_MAX: usize = 100_000;

/// Longest description of a field: models read it, and every token costs.
const DESCRIPTION_CHARS_MAX: usize = 400;

/// Largest default that is shown.
const DEFAULT_BYTES_MAX: usize = 200;

/// Maximum number of distinct patterns that are compiled; the rest are dropped, because an invalid one would
/// invalidate the schema.
const PATTERNS_MAX: usize = 5_000;

/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 1_000;

/// The name of the shared schema of files.
const FILE: &str = "ToolFile";

/// Converts the schemas of one description.
pub(crate) struct SchemaConverter<'d, 'a> {
    document: &'d OpenApiDocument<'a>,
    /// The name of each reference among the definitions.
    names: HashMap<String, String>,
    taken: HashSet<String>,
    /// References that are named and not yet converted.
    pending: Vec<String>,
    patterns: HashMap<String, bool>,
    wants_file: bool,
}

impl<'d, 'a> SchemaConverter<'d, 'a> {
    /// A converter that has converted nothing yet.
    pub(crate) fn new(document: &'d OpenApiDocument<'a>) -> Self {
        Self {
            document,
            names: HashMap::new(),
            taken: HashSet::from([FILE.to_owned()]),
            pending: vec![],
            patterns: HashMap::new(),
            wants_file: false,
        }
    }

    /// Converts one schema. One that cannot be parsed accepts anything.
    pub(crate) fn convert(&mut self, raw: &RawValue) -> Value {
        raw::value(raw).map_or(Value::Bool(true), |value| self.schema(value))
    }

    /// The schema of a file.
    pub(crate) fn file(&mut self) -> Value {
        self.wants_file = true;
        json!({ "$ref": format!("#/$defs/{FILE}") })
    }

    /// The definitions that the converted schemas share.
    pub(crate) fn finish(mut self) -> Arc<SchemaDefinitions> {
        let mut texts = BTreeMap::new();
        while let Some(reference) = self.pending.pop() {
            let found = self.document.look_up(&reference);
            let schema = found.map_or(Value::Bool(true), |raw| self.convert(raw));
            texts.insert(self.names[&reference].clone(), schema.to_string().into_boxed_str());
        }
        if self.wants_file {
            texts.insert(FILE.into(), file().to_string().into());
        }
        Arc::new(SchemaDefinitions::of_texts(texts))
    }

    fn schema(&mut self, value: Value) -> Value {
        match value {
            Value::Bool(_) => value,
            Value::Object(members) => self.object(members),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Value::Bool(true)
            }
        }
    }

    fn object(&mut self, mut members: Map<String, Value>) -> Value {
        let Some(Value::String(reference)) = members.remove("$ref") else {
            return self.keywords(members).into();
        };
        let target = json!({ "$ref": self.named_reference(&reference) });
        let mut schema = match members.get("nullable") {
            Some(Value::Bool(true)) => json!({ "anyOf": [target, { "type": "null" }] }),
            Some(_) | None => target,
        };
        if let Some(Value::String(text)) = members.get("description") {
            schema["description"] = shortened(text).into();
        }
        schema
    }

    /// `#/$defs/Name` for a reference.
    fn named_reference(&mut self, reference: &str) -> String {
        if let Some(name) = self.names.get(reference) {
            return format!("#/$defs/{name}");
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let fine = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let base: String = last.chars().map(fine).take(100).collect();
        let base = if base.is_empty() { "Schema".to_owned() } else { base };
        let mut name = base.clone();
        let mut n = 1;
        while self.taken.contains(&name) {
            n += 1;
            name = format!("{base}_{n}");
        }
        if self.names.len() < DEFINITIONS_MAX {
            self.pending.push(reference.to_owned());
        }
        self.taken.insert(name.clone());
        self.names.insert(reference.to_owned(), name.clone());
        format!("#/$defs/{name}")
    }

    fn keywords(&mut self, members: Map<String, Value>) -> Map<String, Value> {
        if is_binary(&members) {
            let text = json!({ "type": "string" });
            let either = json!([text, self.file()]);
            return Map::from_iter([("anyOf".to_owned(), either)]);
        }
        let is_nullable = members.get("nullable") == Some(&Value::Bool(true));
        let optional = read_only_names(&members);
        let mut schema = Map::new();
        for (name, value) in members {
            if let Some((name, value)) = self.keyword(&name, value, &optional) {
                insert(&mut schema, name, value);
            }
        }
        exclusive(&mut schema, "exclusiveMinimum", "minimum");
        exclusive(&mut schema, "exclusiveMaximum", "maximum");
        spelled_out(&mut schema);
        if is_nullable { nullable(schema) } else { schema }
    }

    /// A supported keyword, in its 2020-12 form.
    fn keyword(
        &mut self,
        name: &str,
        value: Value,
        optional: &[String],
    ) -> Option<(&'static str, Value)> {
        Some(match name {
            "type" => ("type", types(value)?),
            "properties" => ("properties", self.each_member(value)?),
            "patternProperties" => ("patternProperties", self.each_pattern(value)?),
            "dependentSchemas" => ("dependentSchemas", self.each_member(value)?),
            "items" if value.is_array() => ("prefixItems", self.each_item(value)?),
            "items" => ("items", self.schema(value)),
            "additionalProperties" => ("additionalProperties", self.schema(value)),
            "not" => ("not", self.schema(value)),
            "contains" => ("contains", self.schema(value)),
            "propertyNames" => ("propertyNames", self.schema(value)),
            "prefixItems" => ("prefixItems", self.each_item(value)?),
            "allOf" => ("allOf", self.each_item(value)?),
            // Descriptions often write `oneOf` for `anyOf`: their branches overlap.
            "anyOf" | "oneOf" => ("anyOf", self.each_item(value)?),
            "required" => ("required", required(value, optional)?),
            "enum" => ("enum", choices(value)?),
            "const" => ("const", value),
            "default" => {
                ("default", Some(value).filter(|v| v.to_string().len() <= DEFAULT_BYTES_MAX)?)
            }
            "description" => ("description", shortened(value.as_str()?).into()),
            "format" => ("format", Value::String(value.as_str()?.to_owned())),
            "pattern" => ("pattern", self.pattern(value.as_str()?)?.into()),
            "exclusiveMinimum" => ("exclusiveMinimum", value),
            "exclusiveMaximum" => ("exclusiveMaximum", value),
            "deprecated" => {
                ("deprecated", Some(value).filter(|value| *value == Value::Bool(true))?)
            }
            "readOnly" => ("readOnly", Some(value).filter(|value| *value == Value::Bool(true))?),
            "uniqueItems" => ("uniqueItems", Some(value).filter(Value::is_boolean)?),
            other => return number(other, value),
        })
    }

    fn each_member(&mut self, value: Value) -> Option<Value> {
        let Value::Object(members) = value else { return None };
        Some(members.into_iter().map(|(name, value)| (name, self.schema(value))).collect())
    }

    fn each_pattern(&mut self, value: Value) -> Option<Value> {
        let Value::Object(members) = value else { return None };
        let mut kept = Map::new();
        for (pattern, value) in members {
            if let Some(pattern) = self.pattern(&pattern) {
                kept.insert(pattern, self.schema(value));
            }
        }
        Some(kept.into())
    }

    fn each_item(&mut self, value: Value) -> Option<Value> {
        let Value::Array(items) = value else { return None };
        let items: Vec<_> = items.into_iter().map(|item| self.schema(item)).collect();
        (!items.is_empty()).then_some(items.into())
    }

    /// A pattern that the validator accepts; an invalid one would invalidate the whole schema.
    fn pattern(&mut self, pattern: &str) -> Option<String> {
        if !self.patterns.contains_key(pattern) && self.patterns.len() < PATTERNS_MAX {
            let compiles = pattern.len() <= PATTERN_BYTES_MAX
                && crate::schema::ToolSchema::compile(&json!({ "pattern": pattern })).is_ok();
            self.patterns.insert(pattern.to_owned(), compiles);
        }
        let compiles = self.patterns.get(pattern).copied().unwrap_or(false);
        compiles.then(|| pattern.to_owned())
    }
}

/// Adds a keyword. `oneOf` beside `anyOf` must both hold.
fn insert(schema: &mut Map<String, Value>, name: &str, value: Value) {
    match (name, schema.contains_key(name)) {
        ("anyOf", true) => {
            let branch = json!({ "anyOf": value });
            match schema.get_mut("allOf") {
                Some(Value::Array(all)) => all.push(branch),
                _ => drop(schema.insert("allOf".into(), json!([branch]))),
            }
        }
        ("allOf", true) => {
            if let (Some(Value::Array(all)), Value::Array(more)) = (schema.get_mut("allOf"), value)
            {
                all.extend(more);
            }
        }
        _ => drop(schema.insert(name.into(), value)),
    }
}

fn types(value: Value) -> Option<Value> {
    let known = |name: &str| {
        Some(match name.to_ascii_lowercase().as_str() {
            "string" | "date" | "datetime" | "date-time" | "uuid" | "email" => "string",
            "integer" | "int" | "long" | "int32" | "int64" => "integer",
            "number" | "float" | "double" | "decimal" => "number",
            "boolean" | "bool" => "boolean",
            "array" => "array",
            "object" => "object",
            "null" => "null",
            _ => return None,
        })
    };
    match value {
        Value::String(name) => known(&name).map(Value::from),
        Value::Array(names) => {
            let all: Option<Vec<_>> = names.iter().map(|name| known(name.as_str()?)).collect();
            let mut all = all?;
            all.sort_unstable();
            all.dedup();
            (!all.is_empty()).then_some(all.into())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Names of read-only fields: the server fills them in, so no caller can be required to send them.
fn read_only_names(members: &Map<String, Value>) -> Vec<String> {
    let Some(Value::Object(fields)) = members.get("properties") else { return vec![] };
    let is_read_only = |field: &Value| field.get("readOnly") == Some(&Value::Bool(true));
    fields.iter().filter(|(_, field)| is_read_only(field)).map(|(name, _)| name.clone()).collect()
}

fn required(value: Value, optional: &[String]) -> Option<Value> {
    let Value::Array(names) = value else { return None };
    let mut names: Vec<_> = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    names.retain(|name| !optional.contains(name));
    names.sort();
    names.dedup();
    (!names.is_empty()).then_some(names.into())
}

fn choices(value: Value) -> Option<Value> {
    let Value::Array(values) = value else { return None };
    let mut seen = HashSet::new();
    let values: Vec<_> =
        values.into_iter().filter(|value| seen.insert(value.to_string())).collect();
    (!values.is_empty()).then_some(values.into())
}

/// A keyword whose value is a number.
fn number(name: &str, value: Value) -> Option<(&'static str, Value)> {
    const COUNTS: [&str; 8] = [
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "minContains",
        "maxContains",
    ];
    if let Some(name) = COUNTS.into_iter().find(|count| *count == name) {
        return value.as_u64().map(|n| (name, n.into()));
    }
    let name = ["minimum", "maximum", "multipleOf"].into_iter().find(|known| *known == name)?;
    let is_fine = name != "multipleOf" || value.as_f64().is_some_and(|step| step > 0.0);
    (value.is_number() && is_fine).then_some((name, value))
}

/// OpenAPI 3.0 has `exclusiveMinimum: true` beside `minimum: 1`.
fn exclusive(schema: &mut Map<String, Value>, name: &str, bound: &str) {
    match schema.get(name) {
        Some(Value::Bool(true)) => match schema.remove(bound) {
            Some(value) => drop(schema.insert(name.into(), value)),
            None => drop(schema.remove(name)),
        },
        Some(Value::Number(_)) | None => {}
        Some(_) => drop(schema.remove(name)),
    }
}

/// An enumeration of strings that was written as `[1, true]` in YAML is converted to strings.
fn spelled_out(schema: &mut Map<String, Value>) {
    if schema.get("type").and_then(Value::as_str) != Some("string") {
        return;
    }
    if let Some(Value::Array(choices)) = schema.get_mut("enum") {
        for choice in choices.iter_mut().filter(|c| c.is_number() || c.is_boolean()) {
            *choice = choice.to_string().into();
        }
        let mut seen = HashSet::new();
        choices.retain(|choice| seen.insert(choice.to_string()));
    }
}

/// The same schema, or `null`.
fn nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Array(choices)) = schema.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    let is_composed = schema.contains_key("allOf") || schema.contains_key("const");
    if schema.is_empty() {
        return schema;
    }
    match schema.get_mut("type").filter(|_| !is_composed) {
        Some(Value::Array(names)) => {
            if !names.contains(&json!("null")) {
                names.push("null".into());
            }
        }
        Some(name) => *name = json!([name, "null"]),
        None => {
            let description = schema.remove("description");
            let either = json!([schema, { "type": "null" }]);
            schema = Map::from_iter([("anyOf".to_owned(), either)]);
            schema.extend(description.map(|text| ("description".to_owned(), text)));
        }
    }
    schema
}

/// Whether a schema describes binary data, which JSON cannot hold.
fn is_binary(members: &Map<String, Value>) -> bool {
    let is = |name: &str, value: &str| members.get(name).and_then(Value::as_str) == Some(value);
    let is_unencoded = !members.contains_key("contentEncoding");
    let is_labelled = members.get("contentMediaType").and_then(Value::as_str);
    is("format", "binary")
        || is("type", "file")
        || (is_unencoded && is_labelled == Some("application/octet-stream"))
}

fn file() -> Value {
    json!({
        "type": "object",
        "description": "A file: base64 in `data`.",
        "properties": {
            "_tag": { "const": FILE },
            "name": { "type": "string" },
            "mimeType": { "type": "string" },
            "encoding": { "const": "base64" },
            "data": { "type": "string" },
            "byteLength": { "type": "integer" },
        },
        "required": ["data"],
    })
}

/// A description on one line, truncated if it is long.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, DESCRIPTION_CHARS_MAX)
}

/// Text on one line, at most so long.
pub(crate) fn cut(text: &str, n_chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(n_chars_max) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}
