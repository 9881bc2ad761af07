//! Compiles a document to nodes: one for each reachable schema, cycles included.

use crate::compiled::{Formats, Schema};
use crate::defect::{Defect, joined, pointer_to};
use crate::draft::Draft;
use crate::index::{Home, Index};
use crate::node::{Node, NodeId, Rule};
use crate::shape::Misshape;
use serde_json::Value;
use std::collections::HashMap;

/// How much must be right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rigour {
    /// Everything: the result will be used.
    Full,
    /// Only the shapes of keywords: a schema at this place is never applied.
    Shape,
}

/// One document on its way.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    document: &'a Value,
    pub(crate) index: Index<'a>,
    pub(crate) formats: Formats,
    pub(crate) rigour: Rigour,
    /// Schemas by number, compiled up to `nodes.len()`.
    found: Vec<Home<'a>>,
    numbers: HashMap<*const Value, NodeId>,
    nodes: Vec<Node>,
    /// What references lead to.
    pub(crate) targets: Vec<NodeId>,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(document: &'a Value, draft: Draft, formats: Formats) -> Self {
        Self {
            document,
            index: Index::new(document, draft),
            formats,
            rigour: Rigour::Full,
            found: vec![],
            numbers: HashMap::new(),
            nodes: vec![],
            targets: vec![],
        }
    }

    pub(crate) fn compile(mut self, rigour: Rigour) -> Result<Schema, Defect> {
        self.rigour = rigour;
        let root = self.node_of(self.document, 0);
        self.compile_found()?;
        let n_used = self.nodes.len();
        // Unreachable schemas are checked too, and dropped.
        self.rigour = Rigour::Shape;
        for schema in self.index.schemas.clone() {
            self.node_of(schema, 0);
        }
        self.compile_found()?;
        self.nodes.truncate(n_used);
        for target in self.targets {
            self.nodes[target.0].is_target = true;
        }
        Ok(Schema { nodes: self.nodes, root })
    }

    /// The number of a schema, which is compiled later if it is new: no recursion, however deep.
    pub(crate) fn node_of(&mut self, schema: &'a Value, around: usize) -> NodeId {
        let resource = self.index.home_of(schema, around);
        let next = NodeId(self.found.len());
        let id = *self.numbers.entry(schema).or_insert(next);
        if id == next {
            self.found.push(Home { schema, resource });
        }
        id
    }

    pub(crate) fn number_of(&self, schema: &Value) -> Option<NodeId> {
        self.numbers.get(&std::ptr::from_ref(schema)).copied()
    }

    fn compile_found(&mut self) -> Result<(), Defect> {
        while let Some(home) = self.found.get(self.nodes.len()).copied() {
            let node = self.node(home).map_err(|wrong| self.defect(home.schema, wrong))?;
            self.nodes.push(node);
        }
        Ok(())
    }

    fn node(&mut self, home: Home<'a>) -> Result<Node, Misshape> {
        let empty =
            |rules| Node { rules, unevaluated: None, resource: home.resource, is_target: false };
        match home.schema {
            Value::Bool(true) => Ok(empty(vec![])),
            Value::Bool(false) => Ok(empty(vec![Rule::Never])),
            Value::Object(members) => self.read(members, home.resource),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let what = "must be an object, true or false".to_owned();
                Err(Misshape { keyword: None, what })
            }
        }
    }

    fn defect(&self, schema: &Value, wrong: Misshape) -> Defect {
        let path = pointer_to(self.document, schema).unwrap_or_default();
        let path = wrong.keyword.map_or(path.clone(), |keyword| joined(&path, &keyword));
        Defect { path, what: wrong.what }
    }
}
