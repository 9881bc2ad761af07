//! Compiles a document to nodes: one for each reachable schema, cycles included.

use crate::compiled::{CompiledSchema, FormatMode};
use crate::defect::{SchemaDefect, joined, pointer_to};
use crate::draft::SchemaDraft;
use crate::index::{ResourceIndex, SchemaHome};
use crate::node::{NodeId, SchemaNode, SchemaRule};
use crate::shape::KeywordDefect;
use serde_json::Value;
use std::collections::HashMap;

/// How strictly schemas are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompileRigour {
    /// Everything: the result will be used.
    Full,
    /// Only the shapes of keywords: a schema at this place is never applied.
    Shape,
}

/// One document that is being compiled.
#[derive(Debug)]
pub(crate) struct SchemaCompiler<'a> {
    document: &'a Value,
    pub(crate) index: ResourceIndex<'a>,
    pub(crate) formats: FormatMode,
    pub(crate) rigour: CompileRigour,
    /// Schemas by number, compiled up to `nodes.len()`.
    found: Vec<SchemaHome<'a>>,
    numbers: HashMap<*const Value, NodeId>,
    nodes: Vec<SchemaNode>,
    /// The targets of references.
    pub(crate) targets: Vec<NodeId>,
}

impl<'a> SchemaCompiler<'a> {
    pub(crate) fn new(document: &'a Value, draft: SchemaDraft, formats: FormatMode) -> Self {
        Self {
            document,
            index: ResourceIndex::new(document, draft),
            formats,
            rigour: CompileRigour::Full,
            found: vec![],
            numbers: HashMap::new(),
            nodes: vec![],
            targets: vec![],
        }
    }

    pub(crate) fn compile(mut self, rigour: CompileRigour) -> Result<CompiledSchema, SchemaDefect> {
        self.rigour = rigour;
        let root = self.node_of(self.document, 0);
        self.compile_found()?;
        let n_used = self.nodes.len();
        // Unreachable schemas are checked too, and dropped.
        self.rigour = CompileRigour::Shape;
        for schema in self.index.schemas.clone() {
            self.node_of(schema, 0);
        }
        self.compile_found()?;
        self.nodes.truncate(n_used);
        for target in self.targets {
            self.nodes[target.0].is_target = true;
        }
        Ok(CompiledSchema { nodes: self.nodes, root })
    }

    /// The number of a schema, which is compiled later if it is new: no recursion, however deep.
    pub(crate) fn node_of(&mut self, schema: &'a Value, around: usize) -> NodeId {
        let resource = self.index.home_of(schema, around);
        let next = NodeId(self.found.len());
        let id = *self.numbers.entry(schema).or_insert(next);
        if id == next {
            self.found.push(SchemaHome { schema, resource });
        }
        id
    }

    pub(crate) fn number_of(&self, schema: &Value) -> Option<NodeId> {
        self.numbers.get(&std::ptr::from_ref(schema)).copied()
    }

    fn compile_found(&mut self) -> Result<(), SchemaDefect> {
        while let Some(home) = self.found.get(self.nodes.len()).copied() {
            let node = self.node(home).map_err(|wrong| self.defect(home.schema, wrong))?;
            self.nodes.push(node);
        }
        Ok(())
    }

    fn node(&mut self, home: SchemaHome<'a>) -> Result<SchemaNode, KeywordDefect> {
        let empty = |rules| SchemaNode {
            rules,
            unevaluated: None,
            resource: home.resource,
            is_target: false,
        };
        match home.schema {
            Value::Bool(true) => Ok(empty(vec![])),
            Value::Bool(false) => Ok(empty(vec![SchemaRule::Never])),
            Value::Object(members) => self.read(members, home.resource),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let what = "must be an object, true or false".to_owned();
                Err(KeywordDefect { keyword: None, what })
            }
        }
    }

    fn defect(&self, schema: &Value, wrong: KeywordDefect) -> SchemaDefect {
        let path = pointer_to(self.document, schema).unwrap_or_default();
        let path = wrong.keyword.map_or(path.clone(), |keyword| joined(&path, &keyword));
        SchemaDefect { path, what: wrong.what }
    }
}
