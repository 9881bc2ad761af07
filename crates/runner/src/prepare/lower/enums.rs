//! Turns each member of an enum into an assignment in place.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is left as it is"
)]

use super::super::edit::{TextEdit, skip_trivia};
use super::entities::EntityDeclaration;
use super::names::NameLowering;
use oxc_ast::ast::*;
use oxc_ast_visit::Visit as _;
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::operator::{BinaryOperator, UnaryOperator};

/// What is known about a member's value before the program runs. A number can also be looked up by its
/// value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemberValue {
    Number,
    String,
    Unknown,
}

/// The value of a member without an initializer.
enum NextMember {
    Known(i64),
    OneMoreThan(String),
    /// After a string. TypeScript's compiler reports an error, and emits this.
    Undefined,
}

/// Larger whole numbers cannot be distinguished from their neighbours.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

impl<'a> NameLowering<'a, '_> {
    pub(super) fn members(&mut self, it: &TSEnumBody<'a>, declared: &EntityDeclaration) {
        let mut next = NextMember::Known(0);
        for member in &it.members {
            let name = literal(self.source, &member.id);
            let kind = match &member.initializer {
                Some(value) => self.given(member, value, &name, declared),
                None => self.counted(member, &next, &name, declared),
            };
            if let Some(name) = member_name(member) {
                self.entities.all[declared.entity].names.insert(name, kind);
            }
            next = match (&member.initializer, next) {
                (Some(value), _) => self.after(value, kind, name),
                (None, NextMember::Known(value)) => NextMember::Known(value.saturating_add(1)),
                (None, NextMember::OneMoreThan(_)) => NextMember::OneMoreThan(name),
                (None, NextMember::Undefined) => NextMember::Undefined,
            };
        }
    }

    /// `B = value`.
    fn given(
        &mut self,
        member: &TSEnumMember<'a>,
        value: &Expression<'a>,
        name: &str,
        declared: &EntityDeclaration,
    ) -> MemberValue {
        let object = &declared.inside;
        let kind = self.kind(value, declared);
        let (before, after) = match kind {
            MemberValue::Number => (format!("{object}[{object}[{name}]"), format!("] = {name}")),
            MemberValue::String => (format!("{object}[{name}]"), String::new()),
            MemberValue::Unknown => (
                format!("typeof ({object}[{name}]"),
                format!(") == \"number\" && ({object}[{object}[{name}]] = {name})"),
            ),
        };
        let name_span = Span::new(member.span.start, self.name_end(&member.id));
        self.edits.push(TextEdit::replace(self.source, name_span, before));
        self.visit_expression(value);
        self.edits.push(TextEdit::insert(value.span().end, after));
        self.end_member(member);
        kind
    }

    /// `B`.
    fn counted(
        &mut self,
        member: &TSEnumMember<'a>,
        next: &NextMember,
        name: &str,
        declared: &EntityDeclaration,
    ) -> MemberValue {
        let object = &declared.inside;
        let value = match next {
            NextMember::Known(value) => value.to_string(),
            NextMember::OneMoreThan(before) => format!("{object}[{before}] + 1"),
            NextMember::Undefined => "void 0".to_owned(),
        };
        let code = format!("{object}[{object}[{name}] = {value}] = {name}");
        self.edits.push(TextEdit::replace(self.source, member.span, code));
        self.end_member(member);
        if matches!(next, NextMember::Undefined) {
            MemberValue::Unknown
        } else {
            MemberValue::Number
        }
    }

    fn end_member(&mut self, member: &TSEnumMember<'a>) {
        let at = skip_trivia(self.source, member.span.end as usize);
        self.edits.push(match self.source.get(at) {
            Some(b',') => TextEdit::replace(self.source, Span::sized(at as u32, 1), ";"),
            Some(_) | None => TextEdit::insert(member.span.end, ";"),
        });
    }

    /// Where a member's name ends, including its bracket if it has one.
    fn name_end(&self, name: &TSEnumMemberName<'_>) -> u32 {
        let end = name.span().end;
        match name {
            TSEnumMemberName::Identifier(_) | TSEnumMemberName::String(_) => end,
            TSEnumMemberName::ComputedString(_) | TSEnumMemberName::ComputedTemplateString(_) => {
                let bracket = skip_trivia(self.source, end as usize);
                if self.source.get(bracket) == Some(&b']') { bracket as u32 + 1 } else { end }
            }
        }
    }

    fn after(&self, value: &Expression<'a>, kind: MemberValue, name: String) -> NextMember {
        match (whole(value), kind) {
            (Some(value), _) => NextMember::Known(value.saturating_add(1)),
            (None, MemberValue::String) => NextMember::Undefined,
            (None, MemberValue::Number | MemberValue::Unknown) => NextMember::OneMoreThan(name),
        }
    }

    fn kind(&self, value: &Expression<'a>, declared: &EntityDeclaration) -> MemberValue {
        let of_member = |name: &str| {
            let names = &self.entities.all[declared.entity].names;
            names.get(name).copied().unwrap_or(MemberValue::Unknown)
        };
        match super::super::recover::bare(value) {
            Expression::NumericLiteral(_) => MemberValue::Number,
            Expression::StringLiteral(_) | Expression::TemplateLiteral(_) => MemberValue::String,
            Expression::Identifier(it) => of_member(it.name.as_str()),
            Expression::StaticMemberExpression(it) => match &it.object {
                Expression::Identifier(object) if object.name == declared.inside.as_str() => {
                    of_member(it.property.name.as_str())
                }
                _ => MemberValue::Unknown,
            },
            Expression::UnaryExpression(it) => match it.operator {
                // This operator converts anything to a number.
                UnaryOperator::UnaryPlus => MemberValue::Number,
                UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot => {
                    match self.kind(&it.argument, declared) {
                        MemberValue::Number => MemberValue::Number,
                        // It may be a bigint.
                        MemberValue::String | MemberValue::Unknown => MemberValue::Unknown,
                    }
                }
                _ => MemberValue::Unknown,
            },
            Expression::BinaryExpression(it) => {
                let sides = [self.kind(&it.left, declared), self.kind(&it.right, declared)];
                let are_numbers = sides == [MemberValue::Number; 2];
                match it.operator {
                    BinaryOperator::Addition if sides.contains(&MemberValue::String) => {
                        MemberValue::String
                    }
                    it if are_numbers && (it.is_arithmetic() || it.is_bitwise()) => {
                        MemberValue::Number
                    }
                    _ => MemberValue::Unknown,
                }
            }
            _ => MemberValue::Unknown,
        }
    }
}

/// The name of a member. `None` if a Rust string cannot hold it.
pub(super) fn member_name<'a>(member: &TSEnumMember<'a>) -> Option<&'a str> {
    match &member.id {
        TSEnumMemberName::Identifier(it) => Some(it.name.as_str()),
        TSEnumMemberName::String(it) | TSEnumMemberName::ComputedString(it) => {
            (!it.lone_surrogates).then(|| it.value.as_str())
        }
        TSEnumMemberName::ComputedTemplateString(it) => {
            let text = it.quasis.first().filter(|text| !text.lone_surrogates)?;
            text.value.cooked.map(|text| text.as_str())
        }
    }
}

/// The name of a member as a literal, in one line.
fn literal(source: &[u8], name: &TSEnumMemberName<'_>) -> String {
    let cooked = |text: &str| serde_json::Value::from(text).to_string();
    let written = || {
        let span = name.span();
        String::from_utf8_lossy(&source[span.start as usize..span.end as usize]).replace('\n', "")
    };
    match name {
        TSEnumMemberName::Identifier(it) => cooked(it.name.as_str()),
        TSEnumMemberName::String(it) | TSEnumMemberName::ComputedString(it) => {
            // Half of a surrogate pair can only be written as in the source.
            if it.lone_surrogates { written() } else { cooked(it.value.as_str()) }
        }
        TSEnumMemberName::ComputedTemplateString(it) => {
            let text = it.quasis.first().filter(|text| !text.lone_surrogates);
            text.and_then(|text| text.value.cooked)
                .map_or_else(written, |text| cooked(text.as_str()))
        }
    }
}

/// The value of a literal whole number.
fn whole(value: &Expression<'_>) -> Option<i64> {
    let (number, sign) = match value {
        Expression::NumericLiteral(it) => (it.value, 1),
        Expression::UnaryExpression(it) if it.operator == UnaryOperator::UnaryNegation => {
            match &it.argument {
                Expression::NumericLiteral(it) => (it.value, -1),
                _ => return None,
            }
        }
        _ => return None,
    };
    (number.fract() == 0.0 && number < WHOLE_MAX).then_some(number as i64 * sign)
}
