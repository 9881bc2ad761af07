//! Where everything in a schema document is that a reference may name: its resources, their anchors
//! and, by pointer, any place.

use crate::draft::SchemaDraft;
use crate::uri;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// A schema with its own identifier, without the schemas inside it that have one.
#[derive(Debug)]
pub(crate) struct SchemaResource<'a> {
    uri: String,
    pub(crate) root: &'a Value,
    pub(crate) draft: SchemaDraft,
    /// `$dynamicAnchor`s by name; the root's `$recursiveAnchor` has none.
    pub(crate) dynamic_anchors: HashMap<&'a str, &'a Value>,
}

/// All resources of one document.
#[derive(Debug)]
pub(crate) struct ResourceIndex<'a> {
    pub(crate) resources: Vec<SchemaResource<'a>>,
    by_uri: HashMap<String, usize>,
    anchors: HashMap<(usize, String), &'a Value>,
    /// The resource of each schema, which is known by its address.
    homes: HashMap<*const Value, usize>,
    /// Every schema at a place where one is expected.
    pub(crate) schemas: Vec<&'a Value>,
}

/// A schema, and the resource it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaHome<'a> {
    pub(crate) schema: &'a Value,
    pub(crate) resource: usize,
}

impl<'a> ResourceIndex<'a> {
    pub(crate) fn new(document: &'a Value, draft: SchemaDraft) -> Self {
        let root = SchemaResource {
            uri: String::new(),
            root: document,
            draft: draft_named(document).unwrap_or(draft),
            dynamic_anchors: HashMap::new(),
        };
        let mut index = Self {
            resources: vec![root],
            by_uri: HashMap::from([(String::new(), 0)]),
            anchors: HashMap::new(),
            homes: HashMap::new(),
            schemas: vec![],
        };
        index.walk(SchemaHome { schema: document, resource: 0 });
        index
    }

    /// The resource that `schema` belongs to; it is entered now where no keyword led to it before.
    pub(crate) fn home_of(&mut self, schema: &'a Value, around: usize) -> usize {
        if !self.homes.contains_key(&std::ptr::from_ref(schema)) {
            self.walk(SchemaHome { schema, resource: around });
        }
        self.homes[&std::ptr::from_ref(schema)]
    }

    /// What `reference` names inside this document.
    pub(crate) fn look_up(&mut self, from: usize, reference: &str) -> Option<SchemaHome<'a>> {
        let resolved = uri::resolve(&self.resources[from].uri, reference);
        let resource = *self.by_uri.get(&resolved.resource)?;
        let fragment = resolved.fragment;
        if fragment.is_empty() {
            let schema = self.resources[resource].root;
            return Some(SchemaHome { schema, resource });
        }
        if fragment.starts_with('/') {
            return self.follow(resource, &fragment);
        }
        let schema = *self.anchors.get(&(resource, fragment))?;
        Some(SchemaHome { schema, resource: self.home_of(schema, resource) })
    }

    /// The absolute form of a reference.
    pub(crate) fn absolute(&self, from: usize, reference: &str) -> uri::ResolvedReference {
        uri::resolve(&self.resources[from].uri, reference)
    }

    fn follow(&mut self, mut resource: usize, pointer: &str) -> Option<SchemaHome<'a>> {
        let mut schema = self.resources[resource].root;
        for segment in pointer.split('/').skip(1) {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            schema = match schema {
                Value::Object(members) => members.get(&segment)?,
                Value::Array(items) => items.get(segment.parse::<usize>().ok()?)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
            resource = *self.homes.get(&std::ptr::from_ref(schema)).unwrap_or(&resource);
        }
        Some(SchemaHome { schema, resource: self.home_of(schema, resource) })
    }

    /// Enters a schema and all inside it. A list of what is left instead of recursion: documents may
    /// be deep.
    fn walk(&mut self, from: SchemaHome<'a>) {
        let mut open = vec![from];
        while let Some(SchemaHome { schema, resource }) = open.pop() {
            let members = schema.as_object();
            let resource =
                members.map_or(resource, |members| self.index_schema(schema, members, resource));
            if self.homes.insert(schema, resource).is_some() {
                continue;
            }
            self.schemas.push(schema);
            if let Some(members) = members {
                let draft = self.resources[resource].draft;
                let known = members.iter().filter(|(name, _)| draft.knows(name));
                let inner = known.flat_map(|(name, value)| schemas_in(name, value));
                open.extend(inner.map(|schema| SchemaHome { schema, resource }));
            }
        }
    }

    /// Notes the names that a schema gives itself; the resource it belongs to.
    fn index_schema(
        &mut self,
        schema: &'a Value,
        members: &'a Map<String, Value>,
        around: usize,
    ) -> usize {
        let draft = draft_named(schema).unwrap_or(self.resources[around].draft);
        if draft.refs_stand_alone() && members.contains_key("$ref") {
            return around;
        }
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let mut home = around;
        if let Some(id) = text(draft.id_keyword()) {
            let named = uri::resolve(&self.resources[around].uri, id);
            home = self.resource(schema, named.resource, draft, around);
            if !named.fragment.is_empty() && draft <= SchemaDraft::Seven {
                self.anchors.entry((home, named.fragment)).or_insert(schema);
            }
        }
        let known = |name| text(name).filter(|_| draft.knows(name));
        for anchor in [known("$anchor"), known("$dynamicAnchor")].into_iter().flatten() {
            self.anchors.entry((home, anchor.to_owned())).or_insert(schema);
        }
        let resource = &mut self.resources[home];
        if let Some(anchor) = known("$dynamicAnchor") {
            resource.dynamic_anchors.entry(anchor).or_insert(schema);
        }
        let is_root = std::ptr::eq(resource.root, schema);
        let is_recursive = members.get("$recursiveAnchor") == Some(&Value::Bool(true));
        if is_root && is_recursive && draft.knows("$recursiveAnchor") {
            resource.dynamic_anchors.insert("", schema);
        }
        home
    }

    /// The resource `uri`, which begins at `schema` unless it is the one around it.
    fn resource(
        &mut self,
        schema: &'a Value,
        uri: String,
        draft: SchemaDraft,
        around: usize,
    ) -> usize {
        if uri == self.resources[around].uri {
            return around;
        }
        if std::ptr::eq(self.resources[around].root, schema) {
            // The document's own identifier, in addition to the empty one.
            self.by_uri.entry(uri.clone()).or_insert(around);
            self.resources[around].uri = uri;
            return around;
        }
        let idx = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(idx);
        let dynamic_anchors = HashMap::new();
        self.resources.push(SchemaResource { uri, root: schema, draft, dynamic_anchors });
        idx
    }
}

fn draft_named(schema: &Value) -> Option<SchemaDraft> {
    SchemaDraft::from_uri(schema.get("$schema")?.as_str()?)
}

/// The schemas that a keyword contains. Examples and constants are never schemas.
fn schemas_in<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    match (keyword, value) {
        ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(items)) => {
            items.iter().collect()
        }
        (
            "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties"
            | "properties",
            Value::Object(members),
        ) => members.values().filter(|value| !value.is_array()).collect(),
        (
            "additionalItems"
            | "additionalProperties"
            | "contains"
            | "contentSchema"
            | "else"
            | "if"
            | "items"
            | "not"
            | "propertyNames"
            | "then"
            | "unevaluatedItems"
            | "unevaluatedProperties",
            Value::Object(_) | Value::Bool(_),
        ) => vec![value],
        _ => vec![],
    }
}
