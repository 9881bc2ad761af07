//! Finds the name that a program illegally declares twice, which the engine reports without name and
//! position.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here declares nothing"
)]

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::scope::ScopeFlags;
use std::collections::HashMap;

/// The first name that is declared again, and where. Only the declarations directly in one block, and a
/// function's parameters, are compared: a `var` in an inner block is not found.
pub(super) fn redeclared(program: &Program<'_>) -> Option<(String, usize)> {
    let mut search = RedeclarationFinder { first: None };
    search.visit_program(program);
    search.first.map(|(name, at)| (name, at as usize))
}

struct RedeclarationFinder {
    first: Option<(String, u32)>,
}

/// Maps names to whether they belong to `let`, `const` or `class`: such a name must be unique in its block.
type DeclaredNames = HashMap<String, bool>;

impl RedeclarationFinder {
    fn compare(&mut self, names: &mut DeclaredNames, statements: &[Statement<'_>]) {
        for statement in statements {
            match statement {
                Statement::VariableDeclaration(it) => {
                    let is_lexical = it.kind != VariableDeclarationKind::Var;
                    for declarator in &it.declarations {
                        for id in declarator.id.get_binding_identifiers() {
                            self.declare(names, id, is_lexical);
                        }
                    }
                }
                Statement::ClassDeclaration(it) => {
                    it.id.iter().for_each(|id| self.declare(names, id, true));
                }
                Statement::FunctionDeclaration(it) => {
                    it.id.iter().for_each(|id| self.declare(names, id, false));
                }
                _ => {}
            }
        }
    }

    fn declare(&mut self, names: &mut DeclaredNames, id: &BindingIdentifier<'_>, is_lexical: bool) {
        let before = names.insert(id.name.to_string(), is_lexical);
        if before.is_some_and(|was_lexical| is_lexical || was_lexical) && self.first.is_none() {
            self.first = Some((id.name.to_string(), id.span.start));
        }
    }

    fn compare_body(&mut self, parameters: &FormalParameters<'_>, body: &FunctionBody<'_>) {
        let patterns = parameters.items.iter().map(|it| &it.pattern);
        let ids = patterns.flat_map(BindingPattern::get_binding_identifiers);
        let mut names = ids.map(|id| (id.name.to_string(), false)).collect();
        self.compare(&mut names, &body.statements);
    }
}

impl<'a> Visit<'a> for RedeclarationFinder {
    fn visit_statements(&mut self, it: &oxc_allocator::Vec<'a, Statement<'a>>) {
        self.compare(&mut DeclaredNames::new(), it);
        walk::walk_statements(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let Some(body) = &it.body {
            self.compare_body(&it.params, body);
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let ArrowFunctionBody::FunctionBody(body) = &it.body {
            self.compare_body(&it.params, body);
        }
        walk::walk_arrow_function_expression(self, it);
    }
}
