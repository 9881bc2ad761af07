//! Expressions as error messages name them: `o.f(...).b`.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here has no short name"
)]

use oxc_ast::ast::*;
use oxc_span::GetSpan as _;

/// Longest name of an expression: a longer one is less helpful than its position.
const NAME_BYTES_MAX: usize = 120;

/// Longest piece of the program that is quoted as it is.
const SNIPPET_BYTES_MAX: usize = 40;

const UNNAMED: &str = "(intermediate value)";

/// The name of an expression; `None` if it is too long.
pub(super) fn expression_name(source: &str, expression: &Expression<'_>) -> Option<String> {
    let mut name = ExpressionName { source, text: String::new() };
    name.write(expression).then_some(name.text)
}

struct ExpressionName<'s> {
    source: &'s str,
    text: String,
}

impl ExpressionName<'_> {
    /// Appends the text; returns whether it fits.
    fn put(&mut self, text: &str) -> bool {
        self.text.push_str(text);
        self.text.len() <= NAME_BYTES_MAX
    }

    fn write(&mut self, expression: &Expression<'_>) -> bool {
        match expression {
            Expression::Identifier(it) => self.put(it.name.as_str()),
            Expression::ThisExpression(_) => self.put("this"),
            Expression::Super(_) => self.put("super"),
            Expression::NullLiteral(_) => self.put("null"),
            Expression::BooleanLiteral(it) => self.put(if it.value { "true" } else { "false" }),
            Expression::ParenthesizedExpression(it) => self.write(&it.expression),
            Expression::StaticMemberExpression(it) => {
                let dot = if it.optional { "?." } else { "." };
                self.write(&it.object) && self.put(dot) && self.put(it.property.name.as_str())
            }
            Expression::PrivateFieldExpression(it) => {
                self.write(&it.object) && self.put(".#") && self.put(it.field.name.as_str())
            }
            Expression::ComputedMemberExpression(it) => self.write_computed(it),
            Expression::CallExpression(it) => self.write(&it.callee) && self.put("(...)"),
            Expression::NewExpression(it) => {
                self.put("new ") && self.write(&it.callee) && self.put("(...)")
            }
            Expression::AwaitExpression(it) => {
                self.put("(await ") && self.write(&it.argument) && self.put(")")
            }
            Expression::ChainExpression(it) => match &it.expression {
                ChainElement::CallExpression(it) => self.write(&it.callee) && self.put("(...)"),
                ChainElement::StaticMemberExpression(it) => {
                    let dot = if it.optional { "?." } else { "." };
                    self.write(&it.object) && self.put(dot) && self.put(it.property.name.as_str())
                }
                ChainElement::ComputedMemberExpression(it) => self.write_computed(it),
                _ => self.put(UNNAMED),
            },
            Expression::ArrayExpression(it) => {
                self.put(if it.elements.is_empty() { "[]" } else { "[...]" })
            }
            Expression::ObjectExpression(it) => {
                self.put(if it.properties.is_empty() { "{}" } else { "{...}" })
            }
            Expression::FunctionExpression(_)
            | Expression::ArrowFunctionExpression(_)
            | Expression::ClassExpression(_)
            | Expression::SequenceExpression(_)
            | Expression::AssignmentExpression(_) => self.put(UNNAMED),
            _ => self.write_snippet(expression),
        }
    }

    fn write_computed(&mut self, it: &ComputedMemberExpression<'_>) -> bool {
        if !self.write(&it.object) {
            return false;
        }
        if it.optional && !self.put("?.") {
            return false;
        }
        match &it.expression {
            Expression::StringLiteral(key) if is_identifier(key.value.as_str()) && !it.optional => {
                self.put(".") && self.put(key.value.as_str())
            }
            Expression::StringLiteral(_)
            | Expression::NumericLiteral(_)
            | Expression::Identifier(_)
            | Expression::StaticMemberExpression(_) => {
                self.put("[") && self.write(&it.expression) && self.put("]")
            }
            _ => self.put("[...]"),
        }
    }

    /// The expression itself if it is short.
    fn write_snippet(&mut self, expression: &Expression<'_>) -> bool {
        let span = expression.span();
        let text = &self.source[span.start as usize..span.end as usize];
        if text.len() > SNIPPET_BYTES_MAX || text.contains('\n') {
            return self.put(UNNAMED);
        }
        let is_literal =
            expression.is_literal() || matches!(expression, Expression::TemplateLiteral(_));
        match (is_literal, text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''))) {
            (true, Some(text)) if !text.contains(['"', '\\']) => {
                self.put("\"") && self.put(text) && self.put("\"")
            }
            (true, _) => self.put(text),
            (false, _) => self.put("(") && self.put(text) && self.put(")"),
        }
    }
}

fn is_identifier(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    !text.is_empty() && text.chars().all(is_word) && !text.starts_with(|c: char| c.is_ascii_digit())
}
