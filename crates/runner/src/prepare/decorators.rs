//! Decorators, which the engine does not have: they are refused with a hint how to replace them.

use super::{SyntaxProblem, problem};
use oxc_ast::ast::{Class, Decorator, Program};
use oxc_ast_visit::{Visit, walk};

const CLASS: &str = "decorators are not supported: call the function with the class instead, as in `const Decorated = decorate(Plain)`";

const MEMBER: &str = "decorators are not supported: call the function after the class instead, as in `Type.prototype.method = decorate(Type.prototype.method)`";

/// Refuses a program with decorators.
pub(super) fn refuse_decorators(text: &str, program: &Program<'_>) -> Result<(), SyntaxProblem> {
    if !text.contains('@') {
        return Ok(());
    }
    let mut search = DecoratorFinder { first: None };
    search.visit_program(program);
    match search.first {
        Some((at, message)) => Err(problem(text, at as usize, message)),
        None => Ok(()),
    }
}

struct DecoratorFinder {
    first: Option<(u32, &'static str)>,
}

impl<'a> Visit<'a> for DecoratorFinder {
    fn visit_class(&mut self, it: &Class<'a>) {
        if let Some(decorator) = it.decorators.first() {
            self.first.get_or_insert((decorator.span.start, CLASS));
        }
        walk::walk_class(self, it);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.first.get_or_insert((it.span.start, MEMBER));
    }
}
