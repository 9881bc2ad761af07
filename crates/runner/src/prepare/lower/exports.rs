//! Assigns the exports of a namespace to its object where they are declared.

use super::super::edit::{TextEdit, skip_trivia};
use super::names::NameLowering;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit as _, walk};
use oxc_span::{GetSpan as _, Span};

pub(super) const UNEXPORTED: &str = "a namespace can export declarations, and nothing else";

/// Otherwise, a change of the variable would have to be visible in the namespace's object, and the other
/// way round.
const CHANGEABLE: &str = "a namespace cannot export a variable that may change: use `const`, or a function that gives its value";

impl<'a> NameLowering<'a, '_> {
    pub(super) fn export(&mut self, it: &ExportDeclaration<'a>) {
        let Some(owner) = self.owner().map(str::to_owned) else {
            self.refuse(it.span.start, UNEXPORTED);
            return;
        };
        let declaration = &it.declaration;
        let word = Span::new(it.span.start, declaration.span().start);
        self.edits.push(TextEdit::replace(self.source, word, " ".repeat(word.size() as usize)));
        let names = match declaration {
            Declaration::VariableDeclaration(it) => return self.export_variables(it, &owner),
            Declaration::FunctionDeclaration(it) => it.id.as_ref(),
            Declaration::ClassDeclaration(it) => it.id.as_ref(),
            Declaration::TSImportEqualsDeclaration(it) => Some(&it.id),
            // Enums and namespaces export themselves.
            Declaration::TSEnumDeclaration(_) | Declaration::TSNamespaceDeclaration(_) => None,
            // Types leave no code.
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_)
            | Declaration::TSGlobalDeclaration(_) => None,
        };
        walk::walk_declaration(self, declaration);
        if let Some(id) = names {
            self.edits.push(TextEdit::insert(declaration.span().end, assigned(&owner, &[id])));
        }
    }

    /// Each variable is assigned to the object before the next one is initialized, which may read it there.
    fn export_variables(&mut self, it: &VariableDeclaration<'a>, owner: &str) {
        if !it.kind.is_const() {
            let at = it.declarations.first().map_or(it.span.start, |it| it.id.span().start);
            self.refuse(at, CHANGEABLE);
            return;
        }
        let last = it.declarations.len() - 1;
        for (idx, variable) in it.declarations.iter().enumerate() {
            self.visit_variable_declarator(variable);
            let code = assigned(owner, &variable.id.get_binding_identifiers());
            self.edits.push(if idx < last {
                let comma = skip_trivia(self.source, variable.span.end as usize) as u32;
                TextEdit::replace(self.source, Span::sized(comma, 1), format!("{code}const "))
            } else {
                TextEdit::insert(it.span.end, code)
            });
        }
    }
}

fn assigned(owner: &str, names: &[&BindingIdentifier<'_>]) -> String {
    let each = names.iter().map(|id| format!("{owner}.{0} = {0};", id.name));
    format!(";{}", each.collect::<String>())
}
