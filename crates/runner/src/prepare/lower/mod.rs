//! Replaces TypeScript's enums, namespaces and `import x = A.b` by the JavaScript that implements them, in place.
//!
//! An enum or namespace becomes a function that is called immediately with the object that holds its
//! members. A member of an enum, and what another declaration of the same namespace exports, is used by its
//! bare name: there `B` becomes `A.B`.

mod entities;
mod enums;
mod exports;
mod names;

#[cfg(test)]
mod tests;

use super::edit::TextEdit;
use super::{SyntaxProblem, problem};
use crate::prepare::scopes::ScopeStack;
use entities::EntityTable;
use names::NameLowering;
use oxc_ast::ast::Program;
use oxc_ast_visit::Visit as _;

/// The edits that turn `program`, which was parsed from `text`, into JavaScript once its types are removed.
pub(super) fn lower(text: &str, program: &Program<'_>) -> Result<Vec<TextEdit>, SyntaxProblem> {
    let entities = EntityTable::collect(text, program)?;
    let mut lowering =
        NameLowering::new(text.as_bytes(), entities, ScopeStack::from_program(program));
    lowering.visit_program(program);
    match lowering.refused {
        Some(refused) => Err(problem(text, refused.at as usize, refused.message)),
        None => Ok(lowering.edits),
    }
}

/// Why a text cannot be lowered, and at which byte.
struct LoweringError {
    at: u32,
    message: &'static str,
}
