//! A compiled schema and its two questions: does a value fit, and if not, why.

use crate::check::Check;
use crate::compile::{Compiler, Rigour};
use crate::defect::Defect;
use crate::draft::Draft;
use crate::misfit::Misfit;
use crate::node::{Node, NodeId};
use serde_json::Value;

/// Whether `format` counts or is a remark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// A remark, as the later drafts have it.
    Ignored,
    /// Texts must have the formats that are known; those that are not known are remarks still.
    Checked,
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: NodeId,
}

impl Schema {
    /// Compiles `schema`. What it refers to must stand in it: nothing is ever fetched.
    pub fn compile(schema: &Value, formats: Formats) -> Result<Self, Defect> {
        Compiler::new(schema, Draft::Of2020, formats).compile(Rigour::Full)
    }

    /// Whether `value` fits. Quicker than asking for what does not.
    pub fn is_valid(&self, value: &Value) -> bool {
        Check::new(self, 0).run(value).is_ok()
    }

    /// What does not fit, `n_max` at most and one at least; nothing when `value` fits.
    pub fn misfits(&self, value: &Value, n_max: usize) -> Vec<Misfit> {
        Check::new(self, n_max.max(1)).run(value).err().unwrap_or_default()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }
}

/// Whether `value` looks like a schema of `draft`, as the metaschema of that name would say.
pub(crate) fn is_schema(value: &Value, draft: Draft) -> Result<(), Defect> {
    Compiler::new(value, draft, Formats::Ignored).compile(Rigour::Shape).map(drop)
}
