//! What the sources must keep to, so that a guest cannot reach into them.

use super::{PARTS, V1};
use crate::prepare::scopes::Scopes;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayPattern, CallExpression, Expression, ForOfStatement, IdentifierReference, SpreadElement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::SourceType;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

/// Methods of the language's own objects: called on a value, they are the guest's to replace.
const METHODS: &[&str] = &[
    "apply",
    "at",
    "bind",
    "call",
    "catch",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "exec",
    "every",
    "fill",
    "filter",
    "find",
    "flat",
    "flatMap",
    "hasOwnProperty",
    "includes",
    "indexOf",
    "lastIndexOf",
    "map",
    "match",
    "normalize",
    "padEnd",
    "padStart",
    "pop",
    "push",
    "reduce",
    "repeat",
    "replaceAll",
    "reverse",
    "shift",
    "slice",
    "some",
    "splice",
    "split",
    "startsWith",
    "endsWith",
    "substring",
    "test",
    "then",
    "toFixed",
    "toLowerCase",
    "toString",
    "toUpperCase",
    "trim",
    "unshift",
    "valueOf",
];

/// Constructs that ask a value for methods behind the writer's back.
#[derive(Default)]
struct Habits(Vec<String>);

impl<'a> Visit<'a> for Habits {
    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        self.0.push("a spread".to_owned());
        walk::walk_spread_element(self, it);
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.0.push("for-of".to_owned());
        walk::walk_for_of_statement(self, it);
    }

    fn visit_array_pattern(&mut self, it: &ArrayPattern<'a>) {
        self.0.push("array destructuring".to_owned());
        walk::walk_array_pattern(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        if let Expression::StaticMemberExpression(callee) = &it.callee {
            let name = callee.property.name.as_str();
            let ours = matches!(&callee.object, Expression::Identifier(it) if it.name == "host");
            if METHODS.contains(&name) && !ours {
                self.0.push(format!(".{name}()"));
            }
        }
        walk::walk_call_expression(self, it);
    }
}

/// Names that a source takes from the global object when it runs later than the outermost function.
fn late_globals(source: &str) -> Vec<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::cjs()).parse();
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let mut search =
        LateGlobals { scopes: Scopes::of(&parsed.program), are_functions: vec![], found: vec![] };
    search.visit_program(&parsed.program);
    search.found
}

struct LateGlobals<'a> {
    scopes: Scopes<'a>,
    /// Of each scope around, whether it is a function's.
    are_functions: Vec<bool>,
    found: Vec<String>,
}

impl<'a> Visit<'a> for LateGlobals<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, id: &Cell<Option<ScopeId>>) {
        self.scopes.enter(id);
        self.are_functions.push(flags.is_function());
    }

    fn leave_scope(&mut self) {
        self.scopes.leave();
        self.are_functions.pop();
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        let n_functions = self.are_functions.iter().filter(|it| **it).count();
        let is_nobodys = self.scopes.depth_of(&it.name) == 0;
        if is_nobodys && n_functions > 1 && it.name != "undefined" && it.name != "arguments" {
            self.found.push(it.name.to_string());
        }
    }
}

#[test]
fn a_global_that_is_looked_up_late_is_noticed() {
    let source = "(function (a) { b; var d; return { x: () => a + c, y() { { var e } return d + e + f } }; })";
    assert_eq!(late_globals(source), ["c", "f"]);
}

#[test]
fn nothing_is_looked_up_in_the_global_object_once_the_guest_runs() {
    assert_eq!(late_globals(V1), [""; 0], "the base");
    for (name, source) in PARTS {
        // A part runs late as a whole: it is made one function deeper.
        let deeper = format!("(function () {{ return {source} }})");
        assert_eq!(late_globals(&deeper), [""; 0], "{name}");
    }
}

#[test]
fn no_part_asks_a_value_for_a_method_the_guest_may_have_replaced() {
    for (name, source) in PARTS {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, source, SourceType::cjs()).parse();
        let mut habits = Habits::default();
        habits.visit_program(&parsed.program);
        assert_eq!(habits.0, [""; 0], "{name}");
    }
}

#[test]
fn every_part_that_a_source_names_exists() {
    let all: String = PARTS.iter().map(|(_, source)| *source).chain([V1]).collect();
    for named in all.split("load(\"").skip(1) {
        let (part, _) = named.split_once('"').expect("a closing quote");
        assert!(PARTS.iter().any(|(name, _)| *name == format!("v1/{part}")), "{part}");
    }
}
