//! The walk through a program in the order in which the engine compiles it.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here notes nothing"
)]

use super::{OperationSearch, PatternKind, WalkedFunction, WantedOperation, literal_kind};
use crate::prepare::skip_trivia;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;
use oxc_syntax::scope::ScopeFlags;

impl OperationSearch<'_, '_> {
    fn within_body(&mut self, start: u32, walk: impl FnOnce(&mut Self)) {
        self.bodies.push(WalkedFunction { start: Some(start), noted: None });
        walk(self);
        self.bodies.pop();
    }

    /// The token after the bracket that opens a call's arguments.
    fn first_of_arguments(&self, callee_end: u32, optional: bool) -> u32 {
        let source = self.source.as_bytes();
        let mut at = skip_trivia(source, callee_end as usize);
        if optional {
            at = skip_trivia(source, at + "?.".len());
        }
        skip_trivia(source, at + 1) as u32
    }

    fn take_apart(&mut self, pattern: &BindingPattern<'_>, value: &str, is: Option<&str>) {
        let at = pattern.span().start;
        match pattern {
            BindingPattern::ObjectPattern(it) => {
                let first = it.properties.first().and_then(|it| it.key.static_name());
                self.taken_apart(at, PatternKind::Object(first.as_deref()), value, is);
                for property in &it.properties {
                    if property.computed {
                        self.visit_property_key(&property.key);
                    }
                    let part = property.key.static_name();
                    let part = part.map(|part| format!("'{}.{part}'", value.trim_matches('\'')));
                    self.take_apart(&property.value, part.as_deref().unwrap_or("a member"), None);
                }
                if let Some(rest) = &it.rest {
                    self.take_apart(&rest.argument, value, None);
                }
            }
            BindingPattern::ArrayPattern(it) => {
                self.taken_apart(at, PatternKind::List, value, is);
                for element in it.elements.iter().flatten() {
                    self.take_apart(element, &format!("an item of {value}"), None);
                }
                if let Some(rest) = &it.rest {
                    self.take_apart(&rest.argument, value, None);
                }
                self.note_token(at);
            }
            BindingPattern::AssignmentPattern(it) => {
                self.take_apart(&it.left, value, is);
                self.visit_expression(&it.right);
            }
            BindingPattern::BindingIdentifier(_) => {}
        }
    }

    /// How a message names the value of a pattern, and the value's kind if the text shows it.
    fn value_of_pattern(&self, value: &Expression<'_>) -> (String, Option<&'static str>) {
        let name = self.name(value).unwrap_or_else(|| "(intermediate value)".to_owned());
        (format!("'{name}'"), literal_kind(value))
    }

    fn take_targets_apart(&mut self, target: &AssignmentTarget<'_>, value: &str, is: Option<&str>) {
        let at = target.span().start;
        match target {
            AssignmentTarget::ObjectAssignmentTarget(it) => {
                let first = it.properties.first().and_then(|it| match it {
                    AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(it) => {
                        Some(it.binding.name.to_string())
                    }
                    AssignmentTargetProperty::AssignmentTargetPropertyProperty(it) => {
                        it.name.static_name().map(|name| name.to_string())
                    }
                });
                self.taken_apart(at, PatternKind::Object(first.as_deref()), value, is);
                walk::walk_object_assignment_target(self, it);
            }
            AssignmentTarget::ArrayAssignmentTarget(it) => {
                self.taken_apart(at, PatternKind::List, value, is);
                walk::walk_array_assignment_target(self, it);
                self.note_token(at);
            }
            _ => self.visit_assignment_target(target),
        }
    }

    fn parameters(&mut self, parameters: &FormalParameters<'_>) {
        for (idx, parameter) in parameters.items.iter().enumerate() {
            self.take_apart(&parameter.pattern, &format!("argument {}", idx + 1), None);
            if let Some(initializer) = &parameter.initializer {
                self.visit_expression(initializer);
            }
        }
        if let Some(rest) = &parameters.rest {
            self.take_apart(&rest.rest.argument, "the arguments", None);
        }
    }

    fn operator(&mut self, it: &BinaryExpression<'_>) {
        let text = match (self.wanted, it.operator) {
            (WantedOperation::In, BinaryOperator::In) => {
                let (Some(key), Some(object)) = (self.name(&it.left), self.name(&it.right)) else {
                    return;
                };
                let key = key.trim_matches('"').to_owned();
                format!("Cannot use 'in' operator to search for '{key}' in {object}")
            }
            (WantedOperation::InstanceOf, BinaryOperator::Instanceof) => {
                "Right-hand side of 'instanceof' is not callable".to_owned()
            }
            _ => return,
        };
        if self.is_here() {
            self.add(it.span.start, text);
        }
    }
}

impl<'a> Visit<'a> for OperationSearch<'_, '_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.record_operation(it.span.start);
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        self.note_token(it.span.start);
        walk::walk_expression_statement(self, it);
    }

    fn visit_throw_statement(&mut self, it: &ThrowStatement<'a>) {
        self.note_token(it.argument.span().start);
        walk::walk_throw_statement(self, it);
    }

    fn visit_binary_expression(&mut self, it: &BinaryExpression<'a>) {
        self.visit_expression(&it.left);
        if it.operator != BinaryOperator::Exponential {
            self.note_token(it.right.span().start);
        }
        self.visit_expression(&it.right);
        self.operator(it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        self.visit_expression(&it.callee);
        if !matches!(it.callee, Expression::Super(_)) {
            let first = self.first_of_arguments(it.callee.span().end, it.optional);
            self.note_token(first);
        }
        self.visit_arguments(&it.arguments);
        self.called(&it.callee, &it.arguments, false);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.note_token(it.callee.span().start);
        self.visit_expression(&it.callee);
        self.visit_arguments(&it.arguments);
        self.called(&it.callee, &it.arguments, true);
    }

    fn visit_tagged_template_expression(&mut self, it: &TaggedTemplateExpression<'a>) {
        self.visit_expression(&it.tag);
        self.note_token(it.quasi.span.start);
        self.visit_template_literal(&it.quasi);
        self.called(&it.tag, &[], false);
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        walk::walk_static_member_expression(self, it);
        self.read(it.span.start, Some(it.property.name.as_str()));
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        walk::walk_computed_member_expression(self, it);
        self.read(it.span.start, it.static_property_name().as_deref());
    }

    fn visit_spread_element(&mut self, it: &SpreadElement<'a>) {
        walk::walk_spread_element(self, it);
        self.iterated(&it.argument);
    }

    fn visit_yield_expression(&mut self, it: &YieldExpression<'a>) {
        walk::walk_yield_expression(self, it);
        if let (true, Some(argument)) = (it.delegate, &it.argument) {
            self.iterated(argument);
        }
    }

    fn visit_assignment_expression(&mut self, it: &AssignmentExpression<'a>) {
        match it.left.as_simple_assignment_target() {
            Some(target) => {
                self.visit_simple_assignment_target(target);
                self.visit_expression(&it.right);
                self.assigned(target);
            }
            None => {
                let (value, is) = self.value_of_pattern(&it.right);
                self.take_targets_apart(&it.left, &value, is);
                self.visit_expression(&it.right);
            }
        }
    }

    fn visit_update_expression(&mut self, it: &UpdateExpression<'a>) {
        walk::walk_update_expression(self, it);
        self.assigned(&it.argument);
    }

    fn visit_unary_expression(&mut self, it: &UnaryExpression<'a>) {
        walk::walk_unary_expression(self, it);
        if it.operator == UnaryOperator::Delete
            && matches!(self.wanted, WantedOperation::Delete)
            && self.is_here()
        {
            let member = it.argument.as_member_expression();
            let property = member.and_then(|it| it.static_property_name());
            let object = member.and_then(|it| self.name(it.object()));
            if let (Some(property), Some(object)) = (property, object) {
                self.add(it.span.start, format!("Cannot delete property '{property}' of {object}"));
            }
        }
    }

    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.computed {
            self.visit_property_key(&it.key);
        }
        // `{ a }` reads a name and records no position.
        if !it.shorthand {
            self.visit_expression(&it.value);
        }
    }

    fn visit_assignment_target_property_identifier(
        &mut self,
        it: &AssignmentTargetPropertyIdentifier<'a>,
    ) {
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        let (value, is) = match &it.init {
            Some(init) => self.value_of_pattern(init),
            None => ("the value".to_owned(), None),
        };
        self.take_apart(&it.id, &value, is);
        if let Some(init) = &it.init {
            self.visit_expression(init);
        }
    }

    fn visit_for_statement(&mut self, it: &ForStatement<'a>) {
        if let Some(init) = &it.init {
            self.visit_for_statement_init(init);
        }
        if let Some(test) = &it.test {
            self.visit_expression(test);
        }
        self.visit_statement(&it.body);
        if let Some(update) = &it.update {
            self.visit_expression(update);
        }
    }

    fn visit_for_of_statement(&mut self, it: &ForOfStatement<'a>) {
        self.visit_expression(&it.right);
        self.iterated(&it.right);
        let value = match self.name(&it.right) {
            Some(name) => format!("an item of '{name}'"),
            None => "an item".to_owned(),
        };
        match &it.left {
            ForStatementLeft::VariableDeclaration(it) => {
                for declarator in &it.declarations {
                    self.take_apart(&declarator.id, &value, None);
                }
            }
            left => {
                if let Some(target) = left.as_assignment_target() {
                    self.take_targets_apart(target, &value, None);
                }
            }
        }
        self.visit_statement(&it.body);
        self.note_token(it.span.start);
    }

    fn visit_for_in_statement(&mut self, it: &ForInStatement<'a>) {
        self.visit_expression(&it.right);
        self.visit_for_statement_left(&it.left);
        self.visit_statement(&it.body);
    }

    fn visit_catch_parameter(&mut self, it: &CatchParameter<'a>) {
        self.take_apart(&it.pattern, "what was thrown", None);
    }

    fn visit_function(&mut self, it: &Function<'a>, _: ScopeFlags) {
        self.within_body(it.span.start, |search| {
            search.parameters(&it.params);
            if let Some(body) = &it.body {
                search.visit_function_body(body);
            }
        });
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.within_body(it.span.start, |search| {
            search.parameters(&it.params);
            search.visit_arrow_function_body(&it.body);
        });
    }

    fn visit_class_heritage(&mut self, it: &ClassHeritage<'a>) {
        self.visit_expression(&it.expression);
        if matches!(self.wanted, WantedOperation::ClassHeritage)
            && self.is_here()
            && let Some(name) = self.name(&it.expression)
        {
            let text = format!("Class extends value {name} is not a constructor or null");
            self.add(it.expression.span().start, text);
        }
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if it.computed {
            self.visit_property_key(&it.key);
        }
        if let Some(value) = &it.value {
            self.within_body(it.span.start, |search| search.visit_expression(value));
        }
    }

    fn visit_static_block(&mut self, it: &StaticBlock<'a>) {
        self.within_body(it.span.start, |search| search.visit_statements(&it.body));
    }
}
