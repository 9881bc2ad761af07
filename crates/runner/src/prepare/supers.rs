//! Finds the calls of `super` in a constructor: parameters that are properties are assigned right after them.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::edit::TextEdit;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::scope::ScopeFlags;

/// Most calls in one constructor: the code is repeated at each.
const CALLS_MAX: usize = 16;

/// The edits that make each call of `super` in a constructor's body be followed by `code`, an expression.
/// Fails with the position of the first call beyond the limit.
pub(super) fn followed_by(code: &str, body: &FunctionBody<'_>) -> Result<Vec<TextEdit>, u32> {
    let mut calls =
        SuperCalls { code, statement: u32::MAX, n_calls: 0, one_too_many: None, edits: vec![] };
    calls.visit_function_body(body);
    calls.one_too_many.map_or(Ok(calls.edits), Err)
}

struct SuperCalls<'c> {
    code: &'c str,
    /// Where the last expression statement began.
    statement: u32,
    n_calls: usize,
    one_too_many: Option<u32>,
    edits: Vec<TextEdit>,
}

impl SuperCalls<'_> {
    /// Counts a call; returns whether the limit allows it.
    fn count(&mut self, at: u32) -> bool {
        self.n_calls += 1;
        if self.n_calls > CALLS_MAX {
            self.one_too_many.get_or_insert(at);
        }
        self.one_too_many.is_none()
    }
}

impl<'a> Visit<'a> for SuperCalls<'_> {
    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        match &it.expression {
            Expression::CallExpression(call) if matches!(call.callee, Expression::Super(_)) => {
                self.visit_arguments(&call.arguments);
                if self.count(call.span.start) {
                    self.edits.push(TextEdit::insert(call.span.end, format!(",{}", self.code)));
                }
            }
            _ => {
                self.statement = it.span.start;
                walk::walk_expression_statement(self, it);
            }
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if !matches!(it.callee, Expression::Super(_)) {
            walk::walk_call_expression(self, it);
        } else if self.count(it.span.start) {
            // A statement that begins with a bracket could be parsed as a continuation of the line before
            // it.
            let before = if it.span.start == self.statement { "void 0,(" } else { "(" };
            self.edits.push(TextEdit::insert(it.span.start, before));
            self.visit_arguments(&it.arguments);
            self.edits.push(TextEdit::insert(it.span.end, format!(",{},this)", self.code)));
        }
    }

    // Functions and classes have their own `super`; arrow functions do not.
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
    fn visit_class(&mut self, _: &Class<'a>) {}
}
