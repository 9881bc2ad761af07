//! Walks a program, rewrites its enums and namespaces as code, and resolves each name.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::super::edit::{TextEdit, skip_trivia};
use super::super::recover::is_type_only;
use super::super::scopes::ScopeStack;
use super::LoweringError;
use super::entities::{EntityDeclaration, EntityTable};
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::scope::{ScopeFlags, ScopeId};
use std::cell::Cell;

pub(super) struct NameLowering<'a, 't> {
    pub(super) source: &'t [u8],
    pub(super) entities: EntityTable<'a>,
    scopes: ScopeStack<'a>,
    /// The enclosing functions, enums and namespaces.
    around: Vec<EnclosingScope>,
    pub(super) edits: Vec<TextEdit>,
    /// The first construct that cannot be lowered.
    pub(super) refused: Option<LoweringError>,
}

enum EnclosingScope {
    Function,
    /// An enum or namespace, and the depth of its body's scope.
    Body {
        declared: EntityDeclaration,
        depth: usize,
    },
}

impl<'a, 't> NameLowering<'a, 't> {
    pub(super) const fn new(
        source: &'t [u8],
        entities: EntityTable<'a>,
        scopes: ScopeStack<'a>,
    ) -> Self {
        Self { source, entities, scopes, around: vec![], edits: vec![], refused: None }
    }

    pub(super) fn refuse(&mut self, at: u32, message: &'static str) {
        self.refused.get_or_insert(LoweringError { at, message });
    }

    /// The name of the object of the namespace whose body is being walked.
    pub(super) fn owner(&self) -> Option<&str> {
        match self.around.last()? {
            EnclosingScope::Body { declared, .. } => Some(&declared.inside),
            EnclosingScope::Function => None,
        }
    }

    /// The object of which a bare name is a member: no scope between here and the object's own declares the
    /// name.
    fn holder(&self, name: &str) -> Option<&str> {
        let depth_bound = self.scopes.depth_of(name);
        let bodies = self.around.iter().rev().filter_map(|around| match around {
            EnclosingScope::Body { declared, depth } => Some((declared, *depth)),
            EnclosingScope::Function => None,
        });
        bodies
            .take_while(|(_, depth)| *depth > depth_bound)
            .find(|(declared, _)| self.entities.all[declared.entity].names.contains_key(name))
            .map(|(declared, _)| declared.inside.as_str())
    }

    /// Inserts the object before a name that is its member, and `name: ` before that in a shorthand property.
    fn qualify(&mut self, it: &IdentifierReference<'a>, is_shorthand: bool) {
        let name = it.name.as_str();
        let Some(holder) = self.holder(name) else { return };
        let before = if is_shorthand { format!("{name}: {holder}.") } else { format!("{holder}.") };
        self.edits.push(TextEdit::insert(it.span.start, before));
    }

    /// Replaces everything up to the body: `head` ends where the body begins.
    fn open(&mut self, name: &str, head: Span, declared: &EntityDeclaration) {
        let variable = declared.keyword.map_or_else(String::new, |word| format!("{word} {name}"));
        // In its own block: a program that ends here must not be mistaken for one that ends in an expression.
        let code = format!("{variable};{{(function ({}) {{", declared.inside);
        self.edits.push(TextEdit::replace(self.source, head, code));
        let depth = self.scopes.depth() + 1;
        self.around.push(EnclosingScope::Body { declared: declared.clone(), depth });
    }

    /// Replaces the end of the body, and adds its call.
    fn close(&mut self, name: &str, foot: Span, declared: &EntityDeclaration) {
        self.around.pop();
        let object = match self.owner() {
            Some(owner) if declared.is_exported => {
                format!("{name} = {owner}.{name} || ({owner}.{name} = {{}})")
            }
            Some(_) | None => format!("{name} || ({name} = {{}})"),
        };
        self.edits.push(TextEdit::replace(self.source, foot, format!("}})({object})}}")));
    }

    fn in_function(&mut self, visit: impl FnOnce(&mut Self)) {
        self.around.push(EnclosingScope::Function);
        visit(self);
        self.around.pop();
    }

    /// Refuses constructs that would belong to the function around an enum or namespace.
    fn refuse_in_body(&mut self, at: u32, message: &'static str) {
        if self.owner().is_some() {
            self.refuse(at, message);
        }
    }

    /// Where the dot after a part of a qualified name is.
    fn dot_after(&self, part: Span) -> u32 {
        skip_trivia(self.source, part.end as usize) as u32
    }
}

impl<'a> Visit<'a> for NameLowering<'a, '_> {
    fn enter_scope(&mut self, _: ScopeFlags, id: &Cell<Option<ScopeId>>) {
        self.scopes.enter_scope(id);
    }

    fn leave_scope(&mut self) {
        self.scopes.leave();
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        if !is_type_only(it) {
            walk::walk_statement(self, it);
        }
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        let Some(declared) = self.entities.declared.get(&it.id.span.start).cloned() else { return };
        let body = it.body.span;
        self.open(it.id.name.as_str(), Span::new(it.span.start, body.start + 1), &declared);
        self.scopes.enter_scope(&it.body.scope_id);
        self.members(&it.body, &declared);
        self.scopes.leave();
        self.close(it.id.name.as_str(), Span::new(body.end - 1, body.end), &declared);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        let Some(declared) = self.entities.declared.get(&it.id.span.start).cloned() else { return };
        let (head_end, foot) = match &it.body {
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                (block.span.start + 1, Span::new(block.span.end - 1, block.span.end))
            }
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                (inner.span.start, Span::empty(it.span.end))
            }
        };
        self.open(it.id.name.as_str(), Span::new(it.span.start, head_end), &declared);
        walk::walk_ts_namespace_declaration(self, it);
        self.close(it.id.name.as_str(), foot, &declared);
    }

    fn visit_export_declaration(&mut self, it: &ExportDeclaration<'a>) {
        self.export(it);
    }

    /// `import x = A.b` is another name for a value, whose namespace may contain types only.
    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        let (first, mut rest) = match &it.module_reference {
            TSModuleReference::IdentifierReference(id) => (&**id, None),
            TSModuleReference::QualifiedName(name) => match name.left.get_identifier_reference() {
                Some(first) => (first, Some(name)),
                None => return self.refuse(name.span.start, "`this` has no members to import"),
            },
            TSModuleReference::ExternalModuleReference(_) => {
                return self.refuse(it.span.start, super::super::recover::IMPORT);
            }
        };
        let keyword = Span::sized(it.span.start, "import".len() as u32);
        self.edits.push(TextEdit::replace(self.source, keyword, "var   "));
        let holder =
            self.holder(first.name.as_str()).map_or_else(String::new, |it| format!("{it}."));
        let first = format!("{holder}{}", first.name);
        let guard = format!("typeof {first} == \"undefined\" ? undefined : {holder}");
        self.edits.push(TextEdit::insert(it.module_reference.span().start, guard));
        while let Some(name) = rest {
            self.edits.push(TextEdit::insert(self.dot_after(name.left.span()), "?"));
            rest = match &name.left {
                TSTypeName::QualifiedName(left) => Some(left),
                TSTypeName::IdentifierReference(_) | TSTypeName::ThisExpression(_) => None,
            };
        }
        // The next line may begin with a bracket, which would otherwise continue this value.
        self.edits.push(TextEdit::insert(it.span.end, ";"));
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.qualify(it, false);
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        match &it.value {
            Expression::Identifier(id) if it.shorthand => self.qualify(id, true),
            _ => walk::walk_object_property(self, it),
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        self.qualify(&it.binding, true);
        if let Some(value) = &it.init {
            self.visit_expression(value);
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.in_function(|this| walk::walk_function(this, it, flags));
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.in_function(|this| walk::walk_arrow_function_expression(this, it));
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        self.refuse_in_body(it.span.start, "an enum cannot wait: move `await` before it");
        walk::walk_await_expression(self, it);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        self.refuse_in_body(it.span.start, "an enum cannot yield");
        walk::walk_yield_expression(self, it);
    }

    fn visit_return_statement(&mut self, it: &ReturnStatement<'a>) {
        self.refuse_in_body(it.span.start, "a namespace cannot return");
        walk::walk_return_statement(self, it);
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        self.refuse_in_body(it.span.start, super::exports::UNEXPORTED);
        walk::walk_export_default_declaration(self, it);
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        self.refuse(it.span.start, super::exports::UNEXPORTED);
    }

    fn visit_export_from_declaration(&mut self, it: &ExportFromDeclaration<'a>) {
        self.refuse(it.span.start, super::exports::UNEXPORTED);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.refuse(it.span.start, super::exports::UNEXPORTED);
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.refuse(it.span.start, super::exports::UNEXPORTED);
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        self.refuse(it.span.start, super::super::recover::IMPORT);
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if !it.declare && it.r#type == PropertyDefinitionType::PropertyDefinition {
            walk::walk_property_definition(self, it);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_some() && it.r#type == MethodDefinitionType::MethodDefinition {
            walk::walk_method_definition(self, it);
        }
    }

    // Types are already blank: nothing may be inserted into them.
    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
    fn visit_ts_type_annotation(&mut self, _: &TSTypeAnnotation<'a>) {}
    fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}
    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}
    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}
    fn visit_ts_index_signature(&mut self, _: &TSIndexSignature<'a>) {}
}
