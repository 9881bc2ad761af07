//! Removes types by overwriting them with spaces: every other byte stays where it was.
//!
//! If the absence of a type would change how the rest is parsed (a line that would join the one before it,
//! a bracket that would begin a block), a semicolon is written into the gap. If a type stands for code, the
//! code is inserted.

use super::edit::{TextEdit, skip_trivia};
use super::lower::lower;
use super::recover::{blank, is_type_only};
use super::{SyntaxProblem, accessors, problem, supers};
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};

const TOO_MANY_SUPERS: &str =
    "a constructor with properties for parameters has too many calls of `super`";

const COMPUTED_ACCESSOR: &str =
    "an accessor cannot have a computed name: write a field, a getter and a setter instead";

/// The result of stripping a text.
#[derive(Debug)]
pub(super) enum StripOutcome {
    /// The text has no types.
    Unchanged,
    /// The types were replaced by spaces.
    Blanked(Vec<u8>),
    /// The types were replaced by spaces, and code must be inserted.
    NeedsCode { blanked: Vec<u8>, edits: Vec<TextEdit> },
}

/// Removes the types of `program`, which was parsed from `text`. Fails if something has no counterpart in JavaScript.
pub(super) fn strip(text: &str, program: &Program<'_>) -> Result<StripOutcome, SyntaxProblem> {
    let mut stripper = TypeStripper {
        source: text.as_bytes(),
        out: None,
        edits: vec![],
        derived: vec![],
        n_accessors: 0,
        has_declarations: false,
        refused: None,
    };
    stripper.visit_program(program);
    if let Some((at, message)) = stripper.refused {
        return Err(problem(text, at as usize, message));
    }
    let mut edits = stripper.edits;
    if stripper.has_declarations {
        // After the stripper's own edits: if both insert at one position, the stripper's bracket must be
        // closed first.
        edits.extend(lower(text, program)?);
    }
    Ok(match stripper.out {
        out if !edits.is_empty() => {
            let blanked = out.unwrap_or_else(|| text.as_bytes().to_vec());
            StripOutcome::NeedsCode { blanked, edits }
        }
        Some(bytes) => StripOutcome::Blanked(bytes),
        None => StripOutcome::Unchanged,
    })
}

struct TypeStripper<'s> {
    source: &'s [u8],
    /// A copy of the source, made when the first type is found.
    out: Option<Vec<u8>>,
    edits: Vec<TextEdit>,
    /// For each enclosing class, whether it extends another.
    derived: Vec<bool>,
    /// Whether there are enums or namespaces, or aliases of their members.
    has_declarations: bool,
    /// How many accessors became fields with a getter and a setter.
    n_accessors: usize,
    /// Where a construct has no counterpart in JavaScript, and the message about it.
    refused: Option<(u32, &'static str)>,
}

impl TypeStripper<'_> {
    fn out(&mut self) -> &mut Vec<u8> {
        self.out.get_or_insert_with(|| self.source.to_vec())
    }

    fn blank(&mut self, start: u32, end: u32) {
        if start < end {
            blank(&mut self.out()[start as usize..end as usize]);
        }
    }

    /// Blanks a separate construct; the semicolon separates its neighbours.
    fn blank_whole(&mut self, span: Span) {
        self.blank(span.start, span.end);
        self.out()[span.start as usize] = b';';
    }

    /// If the last byte of a statement or class member was a type's, writes the semicolon that was implied
    /// after it: otherwise a next line that begins with a bracket would be parsed as its continuation.
    fn close(&mut self, span: Span) {
        let last = span.end as usize - 1;
        let was_type = !self.source[last].is_ascii_whitespace();
        if let Some(byte) = self.out.as_mut().map(|out| &mut out[last])
            && was_type
            && *byte == b' '
        {
            *byte = b';';
        }
    }

    fn has_newline(&self, start: u32, end: u32) -> bool {
        self.source[start as usize..end as usize].contains(&b'\n')
    }

    /// Blanks a single byte such as `?`, if it is the next significant one after `at`.
    fn blank_mark(&mut self, at: u32, mark: u8) {
        let at = skip_trivia(self.source, at as usize);
        if self.source.get(at) == Some(&mark) {
            self.blank(at as u32, at as u32 + 1);
        }
    }

    /// Blanks the keywords before a class member's name that JavaScript does not have.
    fn blank_modifiers(&mut self, decorators: &[Decorator<'_>], span: Span, key_start: u32) {
        let first = decorators.last().map_or(span.start, |decorator| decorator.span.end) as usize;
        let first = skip_trivia(self.source, first);
        if self.blank_words(first, key_start) && decorators.is_empty() {
            self.out()[first] = b';';
        }
    }

    /// The same from `first` on; returns whether the first word was such a keyword.
    fn blank_words(&mut self, first: usize, key_start: u32) -> bool {
        let (mut at, mut is_first_gone) = (first, false);
        while at < key_start as usize {
            let length = self.source[at..].iter().take_while(|b| b.is_ascii_lowercase()).count();
            match &self.source[at..at + length] {
                b"public" | b"private" | b"protected" | b"readonly" | b"override" | b"declare" => {
                    self.blank(at as u32, (at + length) as u32);
                    is_first_gone |= at == first;
                }
                b"static" | b"async" | b"get" | b"set" | b"accessor" => {}
                _ => return is_first_gone,
            }
            at = skip_trivia(self.source, at + length);
        }
        is_first_gone
    }

    fn blank_class_head(&mut self, class: &Class<'_>) {
        if class.r#abstract {
            let start = class.decorators.last().map_or(class.span.start, |it| it.span.end);
            let at = skip_trivia(self.source, start as usize) as u32;
            self.blank(at, at + "abstract".len() as u32);
        }
        if let (Some(first), Some(last)) = (class.implements.first(), class.implements.last()) {
            let head = &self.source[..first.span.start as usize];
            let keyword = head.windows(10).rposition(|word| word == b"implements");
            let start = keyword.map_or(first.span.start, |at| at as u32);
            self.blank(start, last.span.end);
        }
    }

    /// `<T>x`: the rest must not be parsed differently in its new position.
    fn blank_assertion(&mut self, assertion: &TSTypeAssertion<'_>) {
        let (start, inner) = (assertion.span.start, assertion.expression.span().start);
        let changes_meaning =
            matches!(self.source[inner as usize], b'{' | b'f' | b'c' | b'l' | b'a');
        let is_wrapped = changes_meaning || self.has_newline(start, inner);
        self.blank(start, inner);
        if is_wrapped {
            self.out()[start as usize] = b'(';
            self.edits.push(TextEdit::insert(assertion.span.end, ")"));
        }
    }

    /// `constructor(private x: T)`: inserts the assignments of such parameters at the beginning of the
    /// constructor.
    fn assign_parameters(&mut self, begins: u32, constructor: &Function<'_>) {
        let Some(body) = &constructor.body else { return };
        let (mut declared, mut assigned) = (String::new(), vec![]);
        for parameter in &constructor.params.items {
            if parameter.accessibility.is_none() && !parameter.readonly && !parameter.r#override {
                continue;
            }
            // A pattern is impossible here: the parser has refused it.
            if let Some(id) = parameter.pattern.get_binding_identifier() {
                declared.push_str(&format!("{};", id.name));
                assigned.push(format!("this.{0} = {0}", id.name));
            }
        }
        if assigned.is_empty() {
            return;
        }
        self.edits.push(TextEdit::insert(begins, declared));
        if self.derived.last() == Some(&true) {
            match supers::followed_by(&assigned.join(","), body) {
                Ok(edits) => self.edits.extend(edits),
                Err(at) => _ = self.refused.get_or_insert((at, TOO_MANY_SUPERS)),
            }
        } else {
            let directives = body.directives.last().map(|directive| directive.span.end);
            let at = directives.unwrap_or(body.span.start + 1);
            self.edits.push(TextEdit::insert(at, format!(";{};", assigned.join(";"))));
        }
    }
}

impl<'a> Visit<'a> for TypeStripper<'_> {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        if is_type_only(it) {
            self.blank_whole(it.span());
            return;
        }
        walk::walk_statement(self, it);
        self.close(it.span());
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        let before = &self.source[..it.span.start as usize];
        let trimmed = before.trim_ascii_end();
        let marked = matches!(trimmed.last(), Some(b'?' | b'!'));
        let start = if marked { trimmed.len() as u32 - 1 } else { it.span.start };
        self.blank(start, it.span.end);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span.start, it.span.end);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank(it.span.start, it.span.end);
        self.blank_mark(it.span.end, b',');
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.blank(it.span.end - 1, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.blank_assertion(it);
        self.visit_expression(&it.expression);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        walk::walk_arrow_function_expression(self, it);
        if let Some(types) = &it.type_parameters
            && self.has_newline(types.span.start, it.params.span.start)
        {
            // Neither `async` nor `return` may end its line: the parenthesis moves up.
            let (from, to) = (it.params.span.start as usize, types.span.start as usize);
            self.out()[from] = b' ';
            self.out()[to] = b'(';
        }
        if let Some(types) = &it.return_type
            && self.has_newline(it.params.span.end, types.span.end)
        {
            // A line break between `)` and `=>` is a syntax error: the parenthesis moves down.
            let (from, to) = (it.params.span.end as usize - 1, types.span.end as usize - 1);
            self.out()[from] = b' ';
            self.out()[to] = b')';
        }
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            let first = it.decorators.last().map_or(it.span.start, |decorator| decorator.span.end);
            let first = skip_trivia(self.source, first as usize);
            self.blank_words(first, it.pattern.span().start);
        }
        walk::walk_formal_parameter(self, it);
        if it.optional && it.type_annotation.is_none() {
            self.blank_mark(it.pattern.span().end, b'?');
        }
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.blank_class_head(it);
        self.visit_decorators(&it.decorators);
        if let Some(types) = &it.type_parameters {
            self.visit_ts_type_parameter_declaration(types);
        }
        if let Some(heritage) = &it.heritage {
            self.visit_class_heritage(heritage);
        }
        self.derived.push(it.heritage.is_some());
        self.visit_class_body(&it.body);
        self.derived.pop();
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            self.blank_whole(it.span);
            return;
        }
        self.blank_modifiers(&it.decorators, it.span, it.key.span().start);
        walk::walk_property_definition(self, it);
        if it.optional && it.type_annotation.is_none() {
            self.blank_mark(it.key.span().end, b'?');
        }
        self.close(it.span);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        let bodiless = it.value.body.is_none();
        if bodiless || it.r#type == MethodDefinitionType::TSAbstractMethodDefinition {
            self.blank_whole(it.span);
            return;
        }
        self.blank_modifiers(&it.decorators, it.span, it.key.span().start);
        if it.optional {
            let key_end = it.key.span().end;
            let bracket = skip_trivia(self.source, key_end as usize);
            let after_key = if it.computed { bracket as u32 + 1 } else { key_end };
            self.blank_mark(after_key, b'?');
        }
        if it.kind == MethodDefinitionKind::Constructor {
            self.assign_parameters(it.span.start, &it.value);
        }
        walk::walk_method_definition(self, it);
    }

    fn visit_accessor_property(&mut self, it: &AccessorProperty<'a>) {
        if it.r#type == AccessorPropertyType::TSAbstractAccessorProperty {
            self.blank_whole(it.span);
            return;
        }
        self.blank_modifiers(&it.decorators, it.span, it.key.span().start);
        walk::walk_accessor_property(self, it);
        self.close(it.span);
        self.n_accessors += 1;
        match accessors::lowered(self.source, it, self.n_accessors) {
            Some(edits) => self.edits.extend(edits),
            None => _ = self.refused.get_or_insert((it.key.span().start, COMPUTED_ACCESSOR)),
        }
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.blank_whole(it.span);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.has_declarations = true;
        walk::walk_ts_enum_declaration(self, it);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        self.has_declarations = true;
        walk::walk_ts_namespace_declaration(self, it);
    }

    fn visit_ts_import_equals_declaration(&mut self, _: &TSImportEqualsDeclaration<'a>) {
        self.has_declarations = true;
    }
}
