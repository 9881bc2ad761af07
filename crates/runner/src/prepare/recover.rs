//! Recovers the value that a program means to return: a last expression, a function to be called, a default
//! export.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::{SyntaxProblem, problem};
use crate::naming::module_hint;
use lifecycle::ValueConvention;
use oxc_ast::ast::ArrowFunctionExpression;
use oxc_ast::ast::{
    Class, Declaration, ExportDefaultDeclarationKind, Expression, Function,
    ImportDeclarationSpecifier, Program, ReturnStatement, Statement, TSModuleReference,
    TSNamespaceDeclarationBody,
};
use oxc_ast_visit::Visit;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;
use std::borrow::Cow;

/// Inserted before a value. The semicolon ends a preceding statement that has none.
pub(crate) const RETURN: &str = ";return (";

pub(super) const IMPORT: &str =
    "a program cannot import modules: what it needs from outside is in tools.*";

/// Deepest nesting of namespaces, and of enums in them. A name is looked up in each enclosing one.
pub(super) const NAMESPACES_MAX: usize = 16;

/// The changes of a text: first bytes are blanked, then texts are inserted.
#[derive(Debug, Default)]
pub(super) struct RecoveryPlan {
    blanks: Vec<Span>,
    /// In the order of their positions.
    inserts: Vec<TextInsertion>,
}

#[derive(Debug)]
struct TextInsertion {
    at: u32,
    text: Cow<'static, str>,
    /// Whether it ends an expression: a semicolon that the stripper wrote into the gap of a last type stays
    /// behind it.
    closes: bool,
}

impl RecoveryPlan {
    /// Applies the plan. `text` is `source` without its types, with the same length in bytes.
    pub(super) fn carry_out(self, source: &str, mut text: Cow<'_, [u8]>) -> Vec<u8> {
        for span in &self.blanks {
            blank(&mut text.to_mut()[span.start as usize..span.end as usize]);
        }
        if self.inserts.is_empty() {
            return text.into_owned();
        }
        let mut result = Vec::with_capacity(text.len() + 32);
        let mut done = 0;
        for insert in &self.inserts {
            let at = insert.at as usize;
            let semicolon_is_ours = || text[at - 1] == b';' && source.as_bytes()[at - 1] != b';';
            let at = if insert.closes && semicolon_is_ours() { at - 1 } else { at };
            result.extend_from_slice(&text[done..at]);
            result.extend_from_slice(insert.text.as_bytes());
            done = at;
        }
        result.extend_from_slice(&text[done..]);
        result
    }

    /// Returns the value of `span`, or the result of calling it. `after` is where the statement before it
    /// ends.
    fn give_back(&mut self, after: u32, span_end: u32, how: ReturnChoice) {
        self.inserts.push(TextInsertion { at: after, text: RETURN.into(), closes: false });
        self.inserts.push(TextInsertion { at: span_end, text: how.closing().into(), closes: true });
    }

    /// Calls a declared function once everything else has run. On its own line: a comment may end the text.
    fn call_at_end(&mut self, text: &str, name: &str) {
        let end = u32::try_from(text.len()).expect("programs are far smaller than 4 GB");
        let text = format!("\n;return {name}();").into();
        self.inserts.push(TextInsertion { at: end, text, closes: false });
    }
}

#[derive(Debug, Clone, Copy)]
enum ReturnChoice {
    Value,
    Call,
}

impl ReturnChoice {
    const fn closing(self) -> &'static str {
        match self {
            Self::Value => ")",
            Self::Call => ")()",
        }
    }
}

/// Overwrites everything but line breaks with spaces.
pub(super) fn blank(bytes: &mut [u8]) {
    for byte in bytes {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Refuses imports and exports, except types and `export default`: a program is not a module.
pub(super) fn check_modules(text: &str, program: &Program<'_>) -> Result<(), SyntaxProblem> {
    const EXPORT: &str = "a program cannot export, except `export default`: use return or emit()";
    for statement in program.body.iter().filter(|statement| !is_type_only(statement)) {
        let message = match statement {
            Statement::ImportDeclaration(it) => import_refusal(it.source.value.as_str()),
            Statement::TSImportEqualsDeclaration(it) => match &it.module_reference {
                TSModuleReference::ExternalModuleReference(it) => {
                    import_refusal(it.expression.value.as_str())
                }
                // An alias for something within the program.
                _ => continue,
            },
            Statement::ExportAllDeclaration(_)
            | Statement::ExportDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_)
            | Statement::TSExportAssignment(_)
            | Statement::TSNamespaceExportDeclaration(_) => EXPORT.to_owned(),
            _ => continue,
        };
        return Err(problem(text, statement.span().start as usize, message));
    }
    Ok(())
}

/// The message about an import: the hosts of execbox call their tools by other names, but have them, too.
pub(super) fn import_refusal(module: &str) -> String {
    format!("a program cannot import modules: {}", module_hint(module, "tools.*"))
}

/// Decides how the program returns its value.
pub(super) fn plan(
    text: &str,
    program: &Program<'_>,
    convention: ValueConvention,
) -> Result<RecoveryPlan, SyntaxProblem> {
    let mut plan = RecoveryPlan::default();
    if let Some(hashbang) = &program.hashbang {
        plan.blanks.push(hashbang.span);
    }
    let real: Vec<usize> =
        (0..program.body.len()).filter(|i| does_something(&program.body[*i])).collect();
    let Some(last) = real.last().copied() else {
        plan_directive(&mut plan, program, convention);
        return Ok(plan);
    };
    if let Some(i) = program.body.iter().position(is_default_export) {
        plan_default_export(&mut plan, text, program, i, last)?;
        return Ok(plan);
    }
    let alone = real.len() == 1 && program.directives.is_empty();
    match &program.body[last] {
        Statement::ExpressionStatement(statement) => {
            let after = end_before(program, last);
            let end = statement.expression.span().end;
            match give(&statement.expression, convention, alone) {
                Some(how) if alone || !returns_early(text, program) => {
                    plan.give_back(after, end, how)
                }
                Some(_) | None => {}
            }
        }
        Statement::FunctionDeclaration(function) if alone => {
            if let Some(id) = &function.id {
                plan.call_at_end(text, id.name.as_str());
            }
        }
        _ => {}
    }
    Ok(plan)
}

/// Decides whether and how a program's last expression is its value.
fn give(
    expression: &Expression<'_>,
    convention: ValueConvention,
    alone: bool,
) -> Option<ReturnChoice> {
    let bare = bare(expression);
    let calls = match convention {
        ValueConvention::ExplicitReturn => is_function(bare),
        ValueConvention::LastExpression => {
            matches!(bare, Expression::ArrowFunctionExpression(arrow) if arrow.r#async)
        }
    };
    match convention {
        _ if alone && calls => Some(ReturnChoice::Call),
        ValueConvention::LastExpression => Some(ReturnChoice::Value),
        ValueConvention::ExplicitReturn => None,
    }
}

/// A text that consists of `"words"` only is parsed as a directive; as a last expression it is a value.
fn plan_directive(plan: &mut RecoveryPlan, program: &Program<'_>, convention: ValueConvention) {
    if let (ValueConvention::LastExpression, Some(last)) = (convention, program.directives.last()) {
        let before = program.directives.len() - 1;
        let after = before.checked_sub(1).map_or(0, |i| program.directives[i].span.end);
        plan.give_back(after, last.expression.span.end, ReturnChoice::Value);
    }
}

fn plan_default_export(
    plan: &mut RecoveryPlan,
    text: &str,
    program: &Program<'_>,
    i: usize,
    last: usize,
) -> Result<(), SyntaxProblem> {
    let Statement::ExportDefaultDeclaration(export) = &program.body[i] else { return Ok(()) };
    let declaration = &export.declaration;
    plan.blanks.push(Span::new(export.span.start, declaration.span().start));
    if let ExportDefaultDeclarationKind::FunctionDeclaration(function) = declaration
        && let Some(id) = &function.id
    {
        plan.call_at_end(text, id.name.as_str());
        return Ok(());
    }
    if i != last {
        let message = "`export default` of a value must be the last statement";
        return Err(problem(text, export.span.start as usize, message));
    }
    let (end, how) = match declaration.as_expression() {
        Some(expression) if is_function(bare(expression)) => {
            (expression.span().end, ReturnChoice::Call)
        }
        Some(expression) => (expression.span().end, ReturnChoice::Value),
        None if matches!(declaration, ExportDefaultDeclarationKind::FunctionDeclaration(_)) => {
            (declaration.span().end, ReturnChoice::Call)
        }
        None => (declaration.span().end, ReturnChoice::Value),
    };
    plan.give_back(end_before(program, i), end, how);
    Ok(())
}

/// Where the statement or directive before statement `i` ends.
fn end_before(program: &Program<'_>, i: usize) -> u32 {
    let statement = i.checked_sub(1).map(|i| program.body[i].span().end);
    let directive = || program.directives.last().map(|directive| directive.span.end);
    let hashbang = || program.hashbang.as_ref().map(|hashbang| hashbang.span.end);
    statement.or_else(directive).or_else(hashbang).unwrap_or(0)
}

/// The expression inside parentheses and types.
pub(super) fn bare<'e, 'a>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    match expression {
        Expression::ParenthesizedExpression(it) => bare(&it.expression),
        Expression::TSAsExpression(it) => bare(&it.expression),
        Expression::TSSatisfiesExpression(it) => bare(&it.expression),
        Expression::TSNonNullExpression(it) => bare(&it.expression),
        Expression::TSTypeAssertion(it) => bare(&it.expression),
        _ => expression,
    }
}

const fn is_function(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_))
}

fn is_default_export(statement: &Statement<'_>) -> bool {
    matches!(statement, Statement::ExportDefaultDeclaration(_)) && !is_type_only(statement)
}

fn does_something(statement: &Statement<'_>) -> bool {
    !matches!(statement, Statement::EmptyStatement(_)) && !is_type_only(statement)
}

/// Whether nothing remains of a statement without its types.
pub(super) fn is_type_only(statement: &Statement<'_>) -> bool {
    is_type_only_within(statement, NAMESPACES_MAX)
}

/// As `is_type_only`, `n_levels` above the deepest namespace that is searched: each level would otherwise
/// search all below it.
fn is_type_only_within(statement: &Statement<'_>, n_levels: usize) -> bool {
    if let Some(declaration) = statement.as_declaration() {
        return is_type_only_declaration(declaration, n_levels);
    }
    match statement {
        Statement::ImportDeclaration(it) => {
            let all_types = it.specifiers.as_ref().is_some_and(|specifiers| {
                !specifiers.is_empty() && specifiers.iter().all(is_type_specifier)
            });
            it.import_kind.is_type() || all_types
        }
        Statement::ExportDeclaration(it) => is_type_only_declaration(&it.declaration, n_levels),
        // `export {}` only marks the file as a module.
        Statement::ExportNamedDeclaration(it) => {
            it.export_kind.is_type() || it.specifiers.iter().all(|it| it.export_kind.is_type())
        }
        Statement::ExportFromDeclaration(it) => it.export_kind.is_type(),
        Statement::ExportAllDeclaration(it) => it.export_kind.is_type(),
        Statement::ExportDefaultDeclaration(it) => match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(function) => function.body.is_none(),
            _ => false,
        },
        _ => false,
    }
}

fn is_type_only_declaration(declaration: &Declaration<'_>, n_levels: usize) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_)
        | Declaration::TSInterfaceDeclaration(_)
        | Declaration::TSExternalModuleDeclaration(_)
        | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || has_only_types(&it.body, n_levels),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind.is_type(),
    }
}

/// Whether a namespace needs no object. Its own imports do not require one.
fn has_only_types(body: &TSNamespaceDeclarationBody<'_>, n_levels: usize) -> bool {
    let Some(n_levels) = n_levels.checked_sub(1) else { return false };
    match body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(it) => {
            has_only_types(&it.body, n_levels)
        }
        TSNamespaceDeclarationBody::TSModuleBlock(it) => it.body.iter().all(|it| {
            matches!(it, Statement::TSImportEqualsDeclaration(_))
                || is_type_only_within(it, n_levels)
        }),
    }
}

fn is_type_specifier(specifier: &ImportDeclarationSpecifier<'_>) -> bool {
    matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(it) if it.import_kind.is_type())
}

/// Whether the program returns by itself, outside of its functions: then its last expression is not its value.
fn returns_early(text: &str, program: &Program<'_>) -> bool {
    let mut search = ReturnFinder { found: false };
    if text.contains("return") {
        search.visit_program(program);
    }
    search.found
}

struct ReturnFinder {
    found: bool,
}

impl<'a> Visit<'a> for ReturnFinder {
    fn visit_return_statement(&mut self, _: &ReturnStatement<'a>) {
        self.found = true;
    }
    fn visit_function(&mut self, _: &Function<'a>, _: ScopeFlags) {}
    fn visit_arrow_function_expression(&mut self, _: &ArrowFunctionExpression<'a>) {}
    fn visit_class(&mut self, _: &Class<'a>) {}
}
