//! A compiled schema and its two questions: does a value fit, and if not, why.

use crate::check::SchemaCheck;
use crate::compile::{CompileRigour, SchemaCompiler};
use crate::defect::SchemaDefect;
use crate::draft::SchemaDraft;
use crate::misfit::SchemaMisfit;
use crate::node::{NodeId, SchemaNode};
use crate::readable::{self, NESTING_MAX, ReadableValue};
use serde_json::Value;

/// How many misfits are examined if our own replacements may have caused some of them.
const TAMED_MISFITS_MAX: usize = 1_000;

/// Whether `format` is an assertion or an annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatMode {
    /// An annotation, as in the later drafts.
    Ignored,
    /// Texts must have the known formats; unknown formats stay annotations.
    Checked,
}

/// A compiled schema.
#[derive(Debug)]
pub struct CompiledSchema {
    pub(crate) nodes: Vec<SchemaNode>,
    pub(crate) root: NodeId,
}

impl CompiledSchema {
    /// Compiles `schema`. All references must resolve inside it: nothing is fetched.
    pub fn compile(schema: &Value, formats: FormatMode) -> Result<Self, SchemaDefect> {
        SchemaCompiler::new(schema, SchemaDraft::Of2020, formats).compile(CompileRigour::Full)
    }

    /// Whether `value` matches. Faster than listing the misfits.
    pub fn is_valid(&self, value: &Value) -> bool {
        SchemaCheck::new(self, 0).run(value).is_ok()
    }

    /// The misfits, `n_max` at most and one at least; none if `value` matches.
    pub fn misfits(&self, value: &Value, n_max: usize) -> Vec<SchemaMisfit> {
        SchemaCheck::new(self, n_max.max(1)).run(value).err().unwrap_or_default()
    }

    /// The same for a text that should be one JSON value; none if it cannot be read. If deep nesting was cut to read
    /// it, missing members are not reported.
    pub fn misfits_in(&self, text: &str, n_max: usize) -> Option<Vec<SchemaMisfit>> {
        let ReadableValue { value, is_tamed } = readable::read(text)?;
        if self.is_valid(&value) {
            return Some(vec![]);
        }
        if !is_tamed {
            return Some(self.misfits(&value, n_max));
        }
        let is_ours = |misfit: &SchemaMisfit| misfit.path.matches('/').count() + 1 >= NESTING_MAX;
        let mut misfits = self.misfits(&value, TAMED_MISFITS_MAX);
        misfits.retain(|misfit| !is_ours(misfit));
        misfits.truncate(n_max);
        Some(misfits)
    }

    pub(crate) fn node(&self, id: NodeId) -> &SchemaNode {
        &self.nodes[id.0]
    }
}

/// Whether `value` looks like a schema of `draft`, by the rules of its metaschema.
pub(crate) fn is_schema(value: &Value, draft: SchemaDraft) -> Result<(), SchemaDefect> {
    SchemaCompiler::new(value, draft, FormatMode::Ignored).compile(CompileRigour::Shape).map(drop)
}
