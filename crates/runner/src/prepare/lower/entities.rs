//! The enums and namespaces of a program: which declarations form the same one, and what is known about it by name.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::super::recover::{NAMESPACES_MAX, is_type_only};
use super::super::{SyntaxProblem, problem};
use super::LoweringError;
use super::enums::{MemberValue, member_name};
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use std::collections::{HashMap, HashSet};

/// Longest name that is repeated at each member and at each use of one.
const REPEATED_BYTES_MAX: usize = 64;

/// All declarations of one enum, or of one namespace.
#[derive(Debug, Default)]
pub(super) struct LoweredEntity<'a> {
    /// The members, or what is exported, of all declarations.
    pub(super) names: HashMap<&'a str, MemberValue>,
}

/// One declaration of an enum or namespace.
#[derive(Debug, Clone)]
pub(super) struct EntityDeclaration {
    pub(super) entity: usize,
    /// The keyword that declares its variable, if nothing else does.
    pub(super) keyword: Option<&'static str>,
    /// The name of its object inside its body.
    pub(super) inside: String,
    /// Whether it is a member of the enclosing namespace.
    pub(super) is_exported: bool,
}

#[derive(Debug, Default)]
pub(super) struct EntityTable<'a> {
    pub(super) all: Vec<LoweredEntity<'a>>,
    /// By the positions of their names.
    pub(super) declared: HashMap<u32, EntityDeclaration>,
}

impl<'a> EntityTable<'a> {
    pub(super) fn collect(text: &'a str, program: &Program<'a>) -> Result<Self, SyntaxProblem> {
        let mut collector = EntityCollector { text, ..EntityCollector::default() };
        collector.visit_program(program);
        match collector.refused {
            Some(LoweringError { at, message }) => Err(problem(text, at as usize, message)),
            None => Ok(collector.found),
        }
    }
}

/// Where a name is known: in a list of statements, or as a member of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum NameHome {
    List(usize),
    Entity(usize),
}

/// The kind of a declaration; an enum and a namespace of one name share one object, but do not see each
/// other's members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum DeclarationKind {
    Enum,
    Namespace,
}

/// The list of statements that is being walked.
#[derive(Debug, Default)]
struct StatementList<'a> {
    idx: usize,
    /// Whether it belongs to a block or a namespace: its names are declared with `let`.
    is_block: bool,
    /// The namespace whose body it is, if it is one.
    namespace: Option<usize>,
    /// The names that are declared there already, or will be.
    taken: HashSet<&'a str>,
}

#[derive(Default)]
struct EntityCollector<'a> {
    text: &'a str,
    found: EntityTable<'a>,
    ids: HashMap<(NameHome, DeclarationKind, &'a str), usize>,
    n_lists: usize,
    /// The kind of the next list of statements.
    is_block_next: bool,
    namespace_next: Option<usize>,
    list: StatementList<'a>,
    nesting: usize,
    /// All words of the text, collected when a new one is first needed.
    words: Option<HashSet<&'a str>>,
    n_words_made: usize,
    refused: Option<LoweringError>,
}

impl<'a> EntityCollector<'a> {
    fn refuse(&mut self, at: u32, message: &'static str) {
        self.refused.get_or_insert(LoweringError { at, message });
    }

    fn entity(&mut self, home: NameHome, sort: DeclarationKind, name: &'a str) -> usize {
        let n_entities = self.found.all.len();
        let idx = *self.ids.entry((home, sort, name)).or_insert(n_entities);
        if idx == n_entities {
            self.found.all.push(LoweredEntity::default());
        }
        idx
    }

    fn declare(
        &mut self,
        id: &BindingIdentifier<'a>,
        sort: DeclarationKind,
        owner: Option<usize>,
        is_renamed: bool,
    ) -> usize {
        let name = id.name.as_str();
        let home = owner.map_or(NameHome::List(self.list.idx), NameHome::Entity);
        let entity = self.entity(home, sort, name);
        if let Some(owner) = owner {
            self.found.all[owner].names.insert(name, MemberValue::Unknown);
        }
        let keyword = match (self.list.taken.contains(name), self.list.is_block) {
            (true, _) => None,
            (false, false) => Some("var"),
            (false, true) => Some("let"),
        };
        if self.list.is_block {
            self.list.taken.insert(name);
        }
        let inside = match is_renamed || name.len() > REPEATED_BYTES_MAX {
            true => self.new_word(&name[..name.floor_char_boundary(REPEATED_BYTES_MAX)]),
            false => name.to_owned(),
        };
        let is_exported = owner.is_some();
        let declared = EntityDeclaration { entity, keyword, inside, is_exported };
        self.found.declared.insert(id.span.start, declared);
        entity
    }

    /// Returns a name that does not occur in the text. The number only grows, so that a text full of such
    /// names costs no more.
    fn new_word(&mut self, name: &str) -> String {
        let is_part =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii();
        let words = self.words.get_or_insert_with(|| self.text.split(|c| !is_part(c)).collect());
        loop {
            self.n_words_made += 1;
            let word = format!("{name}_{}", self.n_words_made);
            if !words.contains(word.as_str()) {
                return word;
            }
        }
    }

    fn declare_enum(&mut self, it: &TSEnumDeclaration<'a>, owner: Option<usize>) {
        let is_renamed = binds(it.id.name.as_str(), |search| search.visit_ts_enum_body(&it.body));
        let entity = self.declare(&it.id, DeclarationKind::Enum, owner, is_renamed);
        let names = it.body.members.iter().filter_map(member_name);
        self.found.all[entity].names.extend(names.map(|name| (name, MemberValue::Unknown)));
        self.deeper(it.id.span.start, |this| this.visit_ts_enum_body(&it.body));
    }

    fn declare_namespace(&mut self, it: &TSNamespaceDeclaration<'a>, owner: Option<usize>) {
        let is_renamed = binds(it.id.name.as_str(), |search| {
            search.visit_ts_namespace_declaration_body(&it.body)
        });
        let entity = self.declare(&it.id, DeclarationKind::Namespace, owner, is_renamed);
        self.deeper(it.id.span.start, |this| match &it.body {
            TSNamespaceDeclarationBody::TSModuleBlock(block) => {
                // As in a block: using one of its names too early is an error.
                this.is_block_next = true;
                this.namespace_next = Some(entity);
                this.visit_statements(&block.body);
            }
            // `namespace A.B` is `namespace A { export namespace B }`.
            TSNamespaceDeclarationBody::TSNamespaceDeclaration(inner) => {
                let around = this.open_list(&[]);
                this.declare_namespace(inner, Some(entity));
                this.list = around;
            }
        });
    }

    fn deeper(&mut self, at: u32, visit: impl FnOnce(&mut Self)) {
        if self.nesting == NAMESPACES_MAX {
            self.refuse(at, "namespaces are nested too deeply");
            return;
        }
        self.nesting += 1;
        visit(self);
        self.nesting -= 1;
    }

    /// Begins a list of statements; the caller restores the one before.
    fn open_list(&mut self, statements: &[Statement<'a>]) -> StatementList<'a> {
        self.n_lists += 1;
        let is_block = std::mem::take(&mut self.is_block_next);
        let list = StatementList {
            idx: self.n_lists,
            is_block,
            namespace: self.namespace_next.take(),
            taken: statements.iter().filter_map(|it| lexical_name(it, is_block)).collect(),
        };
        std::mem::replace(&mut self.list, list)
    }

    fn export(&mut self, it: &Declaration<'a>) {
        let Some(owner) = self.list.namespace else {
            walk::walk_declaration(self, it);
            return;
        };
        let mut names = |ids: &[&BindingIdentifier<'a>]| {
            let names = ids.iter().map(|id| (id.name.as_str(), MemberValue::Unknown));
            self.found.all[owner].names.extend(names);
        };
        match it {
            Declaration::TSEnumDeclaration(it) => return self.declare_enum(it, Some(owner)),
            Declaration::TSNamespaceDeclaration(it) => {
                return self.declare_namespace(it, Some(owner));
            }
            Declaration::VariableDeclaration(it) => {
                it.declarations.iter().for_each(|it| names(&it.id.get_binding_identifiers()));
            }
            Declaration::FunctionDeclaration(it) => names(it.id.as_ref().as_slice()),
            Declaration::ClassDeclaration(it) => names(it.id.as_ref().as_slice()),
            Declaration::TSImportEqualsDeclaration(it) => names(&[&it.id]),
            Declaration::TSTypeAliasDeclaration(_)
            | Declaration::TSInterfaceDeclaration(_)
            | Declaration::TSExternalModuleDeclaration(_)
            | Declaration::TSGlobalDeclaration(_) => {}
        }
        walk::walk_declaration(self, it);
    }
}

impl<'a> Visit<'a> for EntityCollector<'a> {
    fn visit_statements(&mut self, it: &oxc_allocator::Vec<'a, Statement<'a>>) {
        let around = self.open_list(it);
        for statement in it.iter().filter(|it| !is_type_only(it)) {
            match statement {
                Statement::ExportDeclaration(it) => self.export(&it.declaration),
                Statement::TSEnumDeclaration(it) => self.declare_enum(it, None),
                Statement::TSNamespaceDeclaration(it) => self.declare_namespace(it, None),
                other => self.visit_statement(other),
            }
        }
        self.list = around;
    }

    fn visit_block_statement(&mut self, it: &BlockStatement<'a>) {
        self.is_block_next = true;
        self.visit_statements(&it.body);
    }

    fn visit_switch_case(&mut self, it: &SwitchCase<'a>) {
        if let Some(test) = &it.test {
            self.visit_expression(test);
        }
        self.is_block_next = true;
        self.visit_statements(&it.consequent);
    }

    /// Only a declaration outside of a statement list is visited here.
    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.refuse(it.span.start, "an enum needs a block around it here");
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        self.refuse(it.span.start, "a namespace needs a block around it here");
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
}

/// The name of a class, or of a function in a block: no variable may have it in the same scope.
fn lexical_name<'a>(statement: &Statement<'a>, is_block: bool) -> Option<&'a str> {
    let exported = match statement {
        Statement::ExportDeclaration(it) => Some(&it.declaration),
        _ => None,
    };
    let id = match exported.or_else(|| statement.as_declaration())? {
        Declaration::ClassDeclaration(it) if !it.declare => it.id.as_ref(),
        Declaration::FunctionDeclaration(it) if is_block && it.body.is_some() => it.id.as_ref(),
        _ => None,
    };
    id.map(|id| id.name.as_str())
}

/// Whether an inner scope binds the name, so that the object needs another name there.
fn binds<'a>(name: &'a str, visit: impl FnOnce(&mut BindingFinder<'a>)) -> bool {
    let mut search = BindingFinder { name, found: false };
    visit(&mut search);
    search.found
}

struct BindingFinder<'n> {
    name: &'n str,
    found: bool,
}

impl<'a> Visit<'a> for BindingFinder<'_> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.found |= it.name == self.name;
    }
}
