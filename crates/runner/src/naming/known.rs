//! Knows which callees are certainly functions, for an error whose position fits several calls.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is not asked for"
)]

use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::scope::ScopeFlags;
use std::collections::HashMap;

/// Objects of the world whose members are functions.
const NAMESPACES: &[&str] = &[
    "console",
    "JSON",
    "Math",
    "Object",
    "Array",
    "Promise",
    "Number",
    "String",
    "Reflect",
    "Date",
    "Symbol",
    "BigInt",
    "crypto",
    "performance",
    "tools",
];

/// Functions of the world.
const FUNCTIONS: &[&str] = &[
    "String",
    "Number",
    "Boolean",
    "BigInt",
    "Symbol",
    "Array",
    "Object",
    "Date",
    "Map",
    "Set",
    "WeakMap",
    "WeakSet",
    "Promise",
    "RegExp",
    "Error",
    "TypeError",
    "RangeError",
    "URL",
    "URLSearchParams",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "encodeURIComponent",
    "decodeURIComponent",
    "structuredClone",
    "setTimeout",
    "clearTimeout",
    "setInterval",
    "clearInterval",
    "queueMicrotask",
    "atob",
    "btoa",
    "emit",
    "callTool",
    "parallel",
    "fetch",
];

/// Methods of lists, texts, maps and sets.
const METHODS: &[&str] = &[
    "push",
    "pop",
    "shift",
    "unshift",
    "map",
    "filter",
    "find",
    "findIndex",
    "forEach",
    "reduce",
    "some",
    "every",
    "includes",
    "indexOf",
    "join",
    "slice",
    "splice",
    "concat",
    "sort",
    "reverse",
    "flat",
    "flatMap",
    "at",
    "fill",
    "keys",
    "values",
    "entries",
    "add",
    "set",
    "get",
    "has",
    "delete",
    "replace",
    "split",
    "trim",
    "startsWith",
    "endsWith",
    "repeat",
    "padStart",
    "padEnd",
    "toUpperCase",
    "toLowerCase",
];

/// What a name of the program certainly refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameKind {
    Function,
    /// A list, a text, a map or a set, which has methods.
    Collection,
    /// Declared more than once, or of another kind.
    Unsure,
}

/// The names of a program by what they refer to.
pub(super) struct KnownFunctions<'a> {
    names: HashMap<&'a str, NameKind>,
}

impl<'a> KnownFunctions<'a> {
    pub(super) fn from_program(program: &Program<'a>) -> Self {
        let mut known = Self { names: HashMap::new() };
        known.visit_program(program);
        known
    }

    /// Whether a callee that an error such as `console.log is not a function` names is certainly a
    /// function.
    pub(super) fn has(&self, denied: &str) -> bool {
        let Some(callee) = denied.strip_suffix(" is not a function") else { return false };
        let (object, method) = callee.split_once('.').unwrap_or((callee, ""));
        match (self.names.get(object), method) {
            (Some(known), "") => *known == NameKind::Function,
            (Some(known), method) => *known == NameKind::Collection && METHODS.contains(&method),
            (None, "") => FUNCTIONS.contains(&object),
            (None, method) => {
                NAMESPACES.contains(&object) && (object == "tools" || !method.contains('.'))
            }
        }
    }

    fn learn(&mut self, name: &'a str, known: NameKind) {
        self.names.entry(name).and_modify(|it| *it = NameKind::Unsure).or_insert(known);
    }
}

impl<'a> Visit<'a> for KnownFunctions<'a> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.learn(it.name.as_str(), NameKind::Unsure);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        match &it.id {
            Some(id) if it.is_declaration() => {
                self.learn(id.name.as_str(), NameKind::Function);
                self.visit_formal_parameters(&it.params);
                if let Some(body) = &it.body {
                    self.visit_function_body(body);
                }
            }
            Some(_) | None => walk::walk_function(self, it, flags),
        }
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        for declarator in &it.declarations {
            match (&declarator.id, &declarator.init) {
                (BindingPattern::BindingIdentifier(id), Some(init)) => {
                    let known = if it.kind.is_const() { known_of(init) } else { NameKind::Unsure };
                    self.learn(id.name.as_str(), known);
                }
                (pattern, _) => self.visit_binding_pattern(pattern),
            }
            if let Some(init) = &declarator.init {
                self.visit_expression(init);
            }
        }
    }
}

fn known_of(init: &Expression<'_>) -> NameKind {
    match init {
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_) => {
            NameKind::Function
        }
        Expression::ArrayExpression(_)
        | Expression::StringLiteral(_)
        | Expression::TemplateLiteral(_) => NameKind::Collection,
        Expression::NewExpression(it) => match &it.callee {
            Expression::Identifier(id) if ["Map", "Set", "Array"].contains(&id.name.as_str()) => {
                NameKind::Collection
            }
            _ => NameKind::Unsure,
        },
        _ => NameKind::Unsure,
    }
}
