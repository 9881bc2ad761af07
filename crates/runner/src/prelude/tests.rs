//! Rules for the sources, which prevent a guest from reaching into them.

use super::overlays::{OVERLAYS, PreludeOverlay, PreludePart};
use super::{PRELUDE_VERSION, globals_table, overlays_of, part_named, setups_of};
use crate::guest_world::GuestWorld;
use crate::prepare::scopes::ScopeStack;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayPattern, CallExpression, Expression, ForOfStatement, IdentifierReference, SpreadElement,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::SourceType;
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

/// Methods of built-in objects: called on a value, they can be replaced by the guest.
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

/// Constructs that implicitly call methods of a value.
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
    let mut search = LateGlobals {
        scopes: ScopeStack::from_program(&parsed.program),
        are_functions: vec![],
        found: vec![],
    };
    search.visit_program(&parsed.program);
    search.found
}

struct LateGlobals<'a> {
    scopes: ScopeStack<'a>,
    /// For each enclosing scope, whether it is a function's.
    are_functions: Vec<bool>,
    found: Vec<String>,
}

impl<'a> Visit<'a> for LateGlobals<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, id: &Cell<Option<ScopeId>>) {
        self.scopes.enter_scope(id);
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

macro_rules! example {
    (part $name:literal, $globals:literal) => {
        PreludePart {
            name: $name,
            globals: $globals,
            source: include_str!(concat!("../../prelude/example/", $name, ".js")),
        }
    };
}

/// A version that replaces a part, adds a global and changes a built-in.
pub(super) const NEXT: PreludeOverlay = PreludeOverlay {
    base: None,
    setups: &["(function (kit) { kit.define(kit.world.Math, 'answer', 42); })"],
    parts: &[
        PreludePart {
            name: "clone",
            globals: "structuredClone",
            source: "(function () { return { __proto__: null, structuredClone: () => 'replaced' }; })",
        },
        PreludePart {
            name: "added",
            globals: "Added",
            source: "(function (kit) { return { __proto__: null, Added: kit.load('clone').structuredClone }; })",
        },
        // What docs/extending.md shows.
        example!(part "greeting", "greeting"),
    ],
};

const NEXT_VERSION: u32 = PRELUDE_VERSION + 1;

/// What an expression is in a world of one version, as text.
fn evaluated(version: u32, expression: &str) -> String {
    let world = GuestWorld::fresh(version).unwrap();
    world.host.allow_cpu(u64::MAX);
    world.context.with(|ctx| ctx.eval(format!("String({expression})")).unwrap())
}

#[test]
fn a_version_adds_to_the_one_before_it_and_leaves_that_one_as_it_is() {
    let seen =
        "[structuredClone(1), typeof Added === 'function' ? Added() : typeof Added, Math.answer]";
    assert_eq!(evaluated(PRELUDE_VERSION, seen), "1,undefined,");
    assert_eq!(evaluated(NEXT_VERSION, seen), "replaced,replaced,42");
}

#[test]
fn the_global_that_the_documents_show_works() {
    let page = include_str!("../../../../docs/extending.md");
    assert!(page.contains(include_str!("../../prelude/example/greeting.js")));
    assert!(page.contains("v2!(part \"greeting\", \"greeting\"),"));
    assert_eq!(evaluated(NEXT_VERSION, "greeting('Ann')"), "Hello, Ann.");
    assert_eq!(evaluated(PRELUDE_VERSION, "typeof greeting"), "undefined");
}

#[test]
fn a_version_that_does_not_exist_has_no_world() {
    assert!(overlays_of(0).is_none());
    assert!(GuestWorld::fresh(NEXT_VERSION + 1).is_none());
}

#[test]
fn globals_appear_in_the_order_of_their_first_version() {
    let newest = globals_table(overlays_of(NEXT_VERSION).unwrap());
    let before = globals_table(overlays_of(PRELUDE_VERSION).unwrap());
    assert_eq!(newest, format!("{before};added:Added;greeting:greeting"));
}

#[test]
fn nothing_is_looked_up_in_the_global_object_once_the_guest_runs() {
    let setups = setups_of(OVERLAYS).filter(|setup| !NEXT.setups.contains(setup));
    for source in OVERLAYS.iter().filter_map(|overlay| overlay.base).chain(setups) {
        assert_eq!(late_globals(source), [""; 0], "{source}");
    }
    for PreludePart { name, source, .. } in OVERLAYS.iter().flat_map(|overlay| overlay.parts) {
        // A part runs late as a whole: the test wraps it in one more function.
        let deeper = format!("(function () {{ return {source} }})");
        assert_eq!(late_globals(&deeper), [""; 0], "{name}");
    }
}

#[test]
fn no_part_asks_a_value_for_a_method_the_guest_may_have_replaced() {
    let parts = OVERLAYS.iter().flat_map(|overlay| overlay.parts);
    let parts = parts.map(|PreludePart { name, source, .. }| (*name, *source));
    for (name, source) in parts.chain(setups_of(OVERLAYS).map(|setup| ("a setup", setup))) {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, source, SourceType::cjs()).parse();
        let mut habits = Habits::default();
        habits.visit_program(&parsed.program);
        assert_eq!(habits.0, [""; 0], "{name}");
    }
}

#[test]
fn every_part_that_a_source_names_exists() {
    for n_overlays in 1..=OVERLAYS.len() {
        let overlays = &OVERLAYS[..n_overlays];
        let own = &overlays[n_overlays - 1];
        let sources = own.parts.iter().map(|part| part.source).chain(own.base);
        let sources = sources.chain(own.setups.iter().copied());
        for named in sources.flat_map(|source| source.split("load(\"").skip(1)) {
            let (part, _) = named.split_once('"').expect("a closing quote");
            assert!(part_named(overlays, part).is_some(), "{part}");
        }
    }
}
