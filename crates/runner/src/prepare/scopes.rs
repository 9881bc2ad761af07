//! Tracks which scopes of a program declare which names, as far as name resolution needs it.

use oxc_ast::ast::{
    BindingIdentifier, Class, Function, Program, TSInterfaceDeclaration, TSTypeAliasDeclaration,
    TSTypeParameter, VariableDeclaration,
};
use oxc_ast_visit::{Visit, walk};
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;
use std::collections::HashMap;

/// The scopes around a position in a program. The code that walks the program enters and leaves them.
pub(crate) struct ScopeStack<'a> {
    /// The names that each scope declares, by its id.
    declared: Vec<Vec<&'a str>>,
    open: Vec<usize>,
    /// For each name, the depths of the open scopes that declare it. It is indexed by name: walking all
    /// open scopes for each name would take too long in a text that consists of brackets only.
    depths: HashMap<&'a str, Vec<usize>>,
}

impl<'a> ScopeStack<'a> {
    /// Gives each scope of the program its id. No scope is open yet.
    pub(crate) fn from_program(program: &Program<'a>) -> Self {
        let mut declarations = DeclarationFinder::default();
        declarations.visit_program(program);
        Self { declared: declarations.declared, open: vec![], depths: HashMap::new() }
    }

    pub(crate) fn enter_scope(&mut self, id: &Cell<Option<ScopeId>>) {
        let Some(id) = id.get().map(ScopeId::index) else {
            // A scope of types: it declares no values.
            self.open.push(usize::MAX);
            return;
        };
        self.open.push(id);
        for name in &self.declared[id] {
            self.depths.entry(name).or_default().push(self.open.len());
        }
    }

    pub(crate) fn leave(&mut self) {
        let names = self.open.pop().and_then(|id| self.declared.get(id));
        for name in names.into_iter().flatten() {
            self.depths.get_mut(name).and_then(Vec::pop);
        }
    }

    /// How many scopes are open.
    pub(crate) const fn depth(&self) -> usize {
        self.open.len()
    }

    /// The depth of the scope that a name refers to here, from 1; 0 if no scope declares it.
    pub(crate) fn depth_of(&self, name: &str) -> usize {
        self.depths.get(name).and_then(|depths| depths.last()).copied().unwrap_or(0)
    }
}

#[derive(Default)]
struct DeclarationFinder<'a> {
    declared: Vec<Vec<&'a str>>,
    /// The enclosing scopes, and whether they are the scope of a `var`.
    open: Vec<(usize, bool)>,
    /// For each enclosing class, its name if only the class itself sees it.
    own_names: Vec<Option<&'a str>>,
    /// The name that the next scope declares in addition.
    held: Option<&'a str>,
}

impl<'a> DeclarationFinder<'a> {
    fn declare(&mut self, name: &'a str) {
        if let Some((id, _)) = self.open.last() {
            self.declared[*id].push(name);
        }
    }
}

impl<'a> Visit<'a> for DeclarationFinder<'a> {
    fn enter_scope(&mut self, flags: ScopeFlags, id: &Cell<Option<ScopeId>>) {
        id.set(Some(ScopeId::new(self.declared.len())));
        self.open.push((self.declared.len(), flags.intersects(ScopeFlags::Var)));
        self.declared.push(self.held.take().into_iter().collect());
    }

    fn leave_scope(&mut self) {
        self.open.pop();
    }

    /// Visits patterns, parameters and the names of declarations.
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        let name = it.name.as_str();
        match self.own_names.last() {
            Some(Some(own)) if std::ptr::eq(*own, name) => self.held = Some(name),
            Some(_) | None => self.declare(name),
        }
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        let home = self.open.iter().rev().find(|(_, keeps_var)| *keeps_var).map(|(id, _)| *id);
        if let (true, Some(home)) = (it.kind.is_var(), home) {
            let names = it.declarations.iter().flat_map(|it| it.id.get_binding_identifiers());
            self.declared[home].extend(names.map(|id| id.name.as_str()));
        }
        walk::walk_variable_declaration(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        if let (true, Some(id)) = (it.is_declaration(), &it.id) {
            self.declare(id.name.as_str());
        }
        walk::walk_function(self, it, flags);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        let own = it.id.as_ref().filter(|_| it.is_expression()).map(|id| id.name.as_str());
        self.own_names.push(own);
        walk::walk_class(self, it);
        self.own_names.pop();
    }

    // Names of types are no names of values.
    fn visit_ts_type_parameter(&mut self, _: &TSTypeParameter<'a>) {}
    fn visit_ts_interface_declaration(&mut self, _: &TSInterfaceDeclaration<'a>) {}
    fn visit_ts_type_alias_declaration(&mut self, _: &TSTypeAliasDeclaration<'a>) {}
}
