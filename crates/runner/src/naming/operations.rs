//! Finds which operation of a program an error's position refers to.
//!
//! The engine does not record the position of each operation. It records a position when it compiles a name
//! that is read, a call, the operand of `new` and of `throw`, the right side of an operator and the
//! beginning of an expression statement; an error's position is the last one that was recorded before the
//! operation that failed. [`OperationSearch`] walks a program in the order in which the engine compiles it,
//! records the same positions, and finds the operations that follow a given one.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the syntax tree is oxc's: what is not named here is not asked for"
)]

mod marks;
mod visit;

use super::render::expression_name;
pub(super) use marks::is_word;
use marks::mark_at;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;

/// Most expressions that are named if the error's position fits several.
const ALTERNATIVES_MAX: usize = 3;

/// The operation that a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedOperation<'m> {
    /// A call, also with `new`, of a value that cannot be called.
    Call,
    /// A call of a built-in function with an argument that should be a function.
    Callback {
        native: &'m str,
    },
    /// A loop, a spread or a pattern over a value that is not iterable. `value` is its kind, if that is
    /// known.
    Iterate {
        value: Option<&'m str>,
    },
    /// The same, by a built-in function with its argument.
    IteratedArgument {
        native: &'m str,
        value: Option<&'m str>,
    },
    /// Destructuring null or undefined.
    Destructure,
    Read {
        property: &'m str,
        value: &'m str,
    },
    Write {
        property: &'m str,
        value: &'m str,
    },
    /// An assignment to a constant or to a property that is read-only.
    Assign {
        name: &'m str,
    },
    /// An assignment to a property that cannot be added.
    Extend,
    /// An assignment to a property that has only a getter.
    SetWithoutSetter,
    Delete,
    In,
    InstanceOf,
    ClassHeritage,
    /// `new Error(…)`, whose position is that of the last name among its arguments.
    NewError {
        class: &'m str,
    },
}

impl WantedOperation<'_> {
    pub(super) const fn is_call(&self) -> bool {
        matches!(self, Self::Call)
    }

    /// Most operations that may share the position for a message to be given, if the error may be that of
    /// each of them.
    pub(super) const fn names_max(&self) -> Option<usize> {
        match self {
            Self::Call | Self::Destructure => Some(ALTERNATIVES_MAX),
            Self::NewError { .. } => Some(1),
            Self::Callback { .. }
            | Self::Iterate { .. }
            | Self::IteratedArgument { .. }
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::Assign { .. }
            | Self::Extend
            | Self::SetWithoutSetter
            | Self::Delete
            | Self::In
            | Self::InstanceOf
            | Self::ClassHeritage => None,
        }
    }
}

/// A position as the engine reports it, without insertions.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnginePlace {
    /// The bytes of its line where the column is 1, which is also that of functions in which no position is
    /// recorded.
    pub(super) margin: Option<(usize, usize)>,
    /// The byte of the program; `None` before its text.
    pub(super) offset: Option<usize>,
}

/// An operation at the position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundOperation {
    /// Its name, or its description.
    pub(super) text: String,
    /// The byte of the program where it begins.
    pub(super) at: usize,
}

/// A function that is being walked.
struct WalkedFunction {
    /// Where it begins; `None` for the program itself.
    start: Option<u32>,
    /// The last position that was recorded in it.
    noted: Option<u32>,
}

pub(super) struct OperationSearch<'s, 'w> {
    source: &'s str,
    place: EnginePlace,
    wanted: &'w WantedOperation<'w>,
    bodies: Vec<WalkedFunction>,
    found: Vec<FoundOperation>,
}

impl<'s, 'w> OperationSearch<'s, 'w> {
    /// The operations that can fail at `place`, in the order in which they run.
    pub(super) fn run(
        source: &'s str,
        program: &Program<'_>,
        place: EnginePlace,
        wanted: &'w WantedOperation<'w>,
    ) -> Vec<FoundOperation> {
        let bodies = vec![WalkedFunction { start: None, noted: None }];
        let mut search = Self { source, place, wanted, bodies, found: vec![] };
        search.visit_program(program);
        search.found
    }

    fn record_operation(&mut self, at: u32) {
        let body = self.bodies.last_mut().expect("the program's own body is never left");
        body.noted = Some(at);
    }

    /// Records the position of the token that begins at a byte.
    fn note_token(&mut self, at: u32) {
        self.record_operation(mark_at(self.source, at));
    }

    /// Whether an operation that runs now has the position.
    fn is_here(&self) -> bool {
        let body = self.bodies.last().expect("the program's own body is never left");
        let EnginePlace { margin, offset } = self.place;
        match (body.noted, body.start) {
            (Some(noted), _) => offset == Some(noted as usize),
            (None, None) => offset.is_none(),
            (None, Some(start)) => {
                offset == Some(mark_at(self.source, start) as usize)
                    || margin.is_some_and(|(from, to)| (from..to).contains(&(start as usize)))
            }
        }
    }

    fn add(&mut self, at: u32, text: impl Into<String>) {
        self.found.push(FoundOperation { text: text.into(), at: at as usize });
    }

    fn name(&self, expression: &Expression<'_>) -> Option<String> {
        expression_name(self.source, expression)
    }

    fn called(&mut self, callee: &Expression<'_>, arguments: &[Argument<'_>], is_new: bool) {
        let at = callee.span().start;
        if !self.is_here() {
            return;
        }
        if makes_an_error(callee) {
            if matches!(*self.wanted, WantedOperation::NewError { class } if last_name(callee) == Some(class))
            {
                self.add(at, "");
            }
            return;
        }
        let text = match *self.wanted {
            WantedOperation::Call => {
                let ending = if is_new { "is not a constructor" } else { "is not a function" };
                self.name(callee).map(|name| format!("{name} {ending}"))
            }
            WantedOperation::Callback { native } if last_name(callee) == Some(native) => {
                let idx = usize::from(matches!(native, "from" | "groupBy" | "fromAsync"));
                let argument = arguments.get(idx).map(Argument::as_expression);
                match argument {
                    None => Some("undefined".to_owned()),
                    Some(None) => None,
                    Some(Some(argument)) => self.name(argument),
                }
            }
            WantedOperation::IteratedArgument { native, .. }
                if last_name(callee) == Some(native) =>
            {
                arguments.first().and_then(Argument::as_expression).and_then(|it| self.name(it))
            }
            _ => None,
        };
        if let Some(text) = text {
            self.add(at, text);
        }
    }

    fn read(&mut self, at: u32, property: Option<&str>) {
        if let WantedOperation::Read { property: wanted, .. } = *self.wanted
            && self.is_here()
            && property.is_none_or(|property| property == wanted)
        {
            self.add(at, "");
        }
    }

    fn iterated(&mut self, value: &Expression<'_>) {
        if matches!(self.wanted, WantedOperation::Iterate { .. })
            && self.is_here()
            && let Some(name) = self.name(value)
        {
            self.add(value.span().start, name);
        }
    }

    /// A pattern destructures what `value` names. `is` is its kind, if the text shows that.
    fn taken_apart(&mut self, at: u32, pattern: PatternKind<'_>, value: &str, is: Option<&str>) {
        if !self.is_here() {
            return;
        }
        let text = match (pattern, self.wanted) {
            (PatternKind::List, WantedOperation::Iterate { .. }) => {
                value.trim_matches('\'').to_owned()
            }
            (PatternKind::Object(first), WantedOperation::Destructure) => {
                let is = is.unwrap_or("undefined or null");
                match first {
                    Some(first) => {
                        format!("Cannot destructure property '{first}' of {value} as it is {is}.")
                    }
                    None => format!("Cannot destructure {value} as it is {is}."),
                }
            }
            (PatternKind::List | PatternKind::Object(_), _) => return,
        };
        self.add(at, text);
    }

    fn assigned(&mut self, target: &SimpleAssignmentTarget<'_>) {
        if !self.is_here() {
            return;
        }
        let at = target.span().start;
        let property = self.property_of(target);
        let object = target.as_member_expression().and_then(|it| self.name(it.object()));
        let object = object.unwrap_or_else(|| "#<Object>".to_owned());
        let text = match (*self.wanted, property) {
            (WantedOperation::Write { property: wanted, .. }, Some(property))
                if property.as_deref().is_none_or(|it| it == wanted) =>
            {
                String::new()
            }
            (WantedOperation::Assign { name }, None) if is_named(target, name) => {
                format!("Assignment to constant variable '{name}'.")
            }
            (WantedOperation::Assign { name }, Some(property))
                if property.as_deref().is_none_or(|it| it == name) =>
            {
                format!("Cannot assign to read only property '{name}' of object '{object}'")
            }
            (WantedOperation::Extend, Some(Some(property))) => {
                format!("Cannot add property {property}, object is not extensible")
            }
            (WantedOperation::SetWithoutSetter, Some(Some(property))) => {
                format!("Cannot set property {property} of {object} which has only a getter")
            }
            _ => return,
        };
        self.add(at, text);
    }

    /// The property that an assignment target names, if it is one: `Some(None)` if the name is only known
    /// at run time.
    fn property_of(&self, target: &SimpleAssignmentTarget<'_>) -> Option<Option<String>> {
        let member = target.as_member_expression()?;
        Some(member.static_property_name().map(|name| name.to_string()))
    }
}

/// The kind of a pattern.
#[derive(Clone, Copy)]
enum PatternKind<'p> {
    List,
    /// With the first property that it names.
    Object(Option<&'p str>),
}

/// The text and the kind of a literal value.
fn literal_kind(value: &Expression<'_>) -> Option<&'static str> {
    match value {
        Expression::NullLiteral(_) => Some("null"),
        Expression::Identifier(it) if it.name == "undefined" => Some("undefined"),
        _ => None,
    }
}

fn is_named(target: &SimpleAssignmentTarget<'_>, name: &str) -> bool {
    matches!(target, SimpleAssignmentTarget::AssignmentTargetIdentifier(it) if it.name == name)
}

/// `new TypeError("not a function")` has exactly this message.
fn makes_an_error(callee: &Expression<'_>) -> bool {
    last_name(callee).is_some_and(|name| name.ends_with("Error"))
}

fn last_name<'e>(callee: &'e Expression<'_>) -> Option<&'e str> {
    match callee {
        Expression::Identifier(it) => Some(it.name.as_str()),
        Expression::StaticMemberExpression(it) => Some(it.property.name.as_str()),
        Expression::ParenthesizedExpression(it) => last_name(&it.expression),
        _ => None,
    }
}

/// Where modules of this name are imported.
pub(super) fn imports(program: &Program<'_>, specifier: &str) -> Vec<usize> {
    struct ImportNames<'s> {
        specifier: &'s str,
        places: Vec<usize>,
    }
    impl<'a> Visit<'a> for ImportNames<'_> {
        fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
            let is_it = matches!(&it.source, Expression::StringLiteral(text) if text.value == self.specifier);
            if is_it {
                self.places.push(it.span.start as usize);
            }
            walk::walk_import_expression(self, it);
        }
    }
    let mut imports = ImportNames { specifier, places: vec![] };
    imports.visit_program(program);
    imports.places
}

/// Where the last statement begins that returns from the program itself.
pub(super) fn last_return(program: &Program<'_>) -> Option<usize> {
    program.body.iter().rev().find_map(|statement| match statement {
        Statement::ReturnStatement(it) => Some(it.span.start as usize),
        _ => None,
    })
}
