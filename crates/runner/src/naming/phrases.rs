//! Maps the engine's messages to Node's: some need the program, others only another wording.

use super::operations::WantedOperation;
use super::stack::StackTop;

/// How a message is rewritten.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RewordedMessage<'m> {
    /// This text.
    Text(String),
    /// The text for `import(…)` of this module.
    Import(&'m str),
    /// The text for a name that is declared twice.
    Redeclaration,
    /// [`sentence`] describes the operation that failed.
    Operation(WantedOperation<'m>),
}

/// `None` if the engine's own wording is as good.
pub(super) fn phrase<'m>(
    name: &'m str,
    message: &'m str,
    top: &StackTop<'m>,
) -> Option<RewordedMessage<'m>> {
    match name {
        "TypeError" => type_error(message, top),
        "ReferenceError" => reference_error(message),
        "RangeError" => range_error(message, top),
        "SyntaxError" => syntax_error(message, top),
        _ => None,
    }
    .or_else(|| new_error(name, top))
}

/// An error that the program constructed: only its position is wanted.
fn new_error<'m>(name: &'m str, top: &StackTop<'m>) -> Option<RewordedMessage<'m>> {
    let is_one = top.native.is_none() && top.user.is_some() && name.ends_with("Error");
    is_one.then_some(RewordedMessage::Operation(WantedOperation::NewError { class: name }))
}

fn type_error<'m>(message: &'m str, top: &StackTop<'m>) -> Option<RewordedMessage<'m>> {
    if let Some(text) = other_words(message, top) {
        return Some(RewordedMessage::Text(text));
    }
    let wanted = match (message, top.native) {
        ("not a function" | "not a constructor", None) => WantedOperation::Call,
        ("not a function", Some(native)) => WantedOperation::Callback { native },
        ("value is not iterable", None) => WantedOperation::Iterate { value: None },
        ("value is not iterable", Some(native)) => {
            WantedOperation::IteratedArgument { native, value: None }
        }
        ("Cannot convert undefined or null to object", None) => WantedOperation::Destructure,
        ("object is not extensible", None) => WantedOperation::Extend,
        ("no setter for property", None) => WantedOperation::SetWithoutSetter,
        ("could not delete property", None) => WantedOperation::Delete,
        ("invalid 'in' operand", None) => WantedOperation::In,
        ("invalid 'instanceof' right operand", None) => WantedOperation::InstanceOf,
        ("parent class must be constructor", None) => WantedOperation::ClassHeritage,
        _ => return access(message, top).map(RewordedMessage::Operation),
    };
    Some(RewordedMessage::Operation(wanted))
}

/// `cannot read property 'x' of null` and its like.
fn access<'m>(message: &'m str, top: &StackTop<'m>) -> Option<WantedOperation<'m>> {
    if let Some(name) = between(message, "'", "' is read-only") {
        return top.native.is_none().then_some(WantedOperation::Assign { name });
    }
    let (reads, rest) = match message.strip_prefix("cannot read property '") {
        Some(rest) => (true, rest),
        None => (false, message.strip_prefix("cannot set property '")?),
    };
    let (property, value) = rest.rsplit_once("' of ")?;
    let value = ["null", "undefined"].into_iter().find(|it| *it == value)?;
    Some(match (property, top.native) {
        ("Symbol.iterator" | "Symbol.asyncIterator", None) if reads => {
            WantedOperation::Iterate { value: Some(value) }
        }
        ("Symbol.iterator" | "Symbol.asyncIterator", Some(native)) if reads => {
            WantedOperation::IteratedArgument { native, value: Some(value) }
        }
        _ if reads => WantedOperation::Read { property, value },
        _ => WantedOperation::Write { property, value },
    })
}

fn other_words(message: &str, top: &StackTop<'_>) -> Option<String> {
    const BIGINT_TO_NUMBER: &str = "Cannot convert a BigInt value to a number";
    let text = match (message, top.native) {
        ("cannot convert BigInt to number", None) => {
            "Cannot mix BigInt and other types, use explicit conversions"
        }
        ("cannot convert BigInt to number" | "bigint argument with unary +", _) => BIGINT_TO_NUMBER,
        ("cannot convert symbol to string", _) => "Cannot convert a Symbol value to a string",
        ("cannot convert symbol to number", _) => "Cannot convert a Symbol value to a number",
        ("circular reference", Some("stringify")) => "Converting circular structure to JSON",
        ("BigInt are forbidden in JSON.stringify", _) => "Do not know how to serialize a BigInt",
        ("empty array", Some("reduce" | "reduceRight")) => {
            "Reduce of empty array with no initial value"
        }
        ("not an object", Some("Map" | "WeakMap" | "fromEntries")) => {
            "Iterator value is not an entry object"
        }
        ("not an object", Some("Proxy")) => {
            "Cannot create proxy with a non-object as target or handler"
        }
        ("not an object", Some("setPrototypeOf")) => {
            "Object prototype may only be an Object or null"
        }
        ("promise self resolution", _) => "Chaining cycle detected for promise #<Promise>",
        ("class constructors must be invoked with 'new'", None) => {
            let class =
                top.user.and_then(|frame| frame.function).filter(|name| *name != "<anonymous>")?;
            return Some(format!("Class constructor {class} cannot be invoked without 'new'"));
        }
        _ => {
            let field = between(message, "private class field '", "' does not exist")?;
            return Some(format!(
                "Cannot access private member {field} from an object whose class did not declare it"
            ));
        }
    };
    Some(text.to_owned())
}

fn reference_error(message: &str) -> Option<RewordedMessage<'_>> {
    if let Some(name) = message.strip_suffix(" is not initialized") {
        return Some(RewordedMessage::Text(format!(
            "Cannot access '{name}' before initialization"
        )));
    }
    let module = message.strip_prefix("could not load module ")?;
    let module = module.strip_prefix("filename ").unwrap_or(module);
    between(module, "'", "'").map(RewordedMessage::Import)
}

fn range_error<'m>(message: &str, top: &StackTop<'_>) -> Option<RewordedMessage<'m>> {
    let text = match (message, top.native) {
        ("Date value is NaN", _) => "Invalid time value",
        ("invalid array length", _) => "Invalid array length",
        _ => return None,
    };
    Some(RewordedMessage::Text(text.to_owned()))
}

fn syntax_error<'m>(message: &str, top: &StackTop<'_>) -> Option<RewordedMessage<'m>> {
    match top.native {
        None if message.starts_with("invalid redefinition of ") => {
            Some(RewordedMessage::Redeclaration)
        }
        Some("RegExp") => {
            Some(RewordedMessage::Text(format!("Invalid regular expression: {message}")))
        }
        _ => None,
    }
}

fn between<'m>(text: &'m str, before: &str, after: &str) -> Option<&'m str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

/// The text for an operation that failed. `found` are its names in the program; `None` if they are needed
/// and missing.
pub(super) fn sentence(wanted: &WantedOperation<'_>, found: &[&str]) -> Option<String> {
    let first = found.first().copied();
    Some(match wanted {
        WantedOperation::Read { property, value } => {
            format!("Cannot read properties of {value} (reading '{property}')")
        }
        WantedOperation::Write { property, value } => {
            format!("Cannot set properties of {value} (setting '{property}')")
        }
        WantedOperation::Iterate { value } | WantedOperation::IteratedArgument { value, .. } => {
            format!("{} is not iterable", first.or(*value)?)
        }
        WantedOperation::Call => joined(found)?,
        WantedOperation::Callback { native: "Promise" } => {
            format!("Promise resolver {} is not a function", first?)
        }
        WantedOperation::Callback { .. } => format!("{} is not a function", first?),
        WantedOperation::Destructure => destructured(found)?,
        WantedOperation::NewError { .. } => return None,
        WantedOperation::Assign { .. }
        | WantedOperation::Extend
        | WantedOperation::SetWithoutSetter
        | WantedOperation::Delete
        | WantedOperation::In
        | WantedOperation::InstanceOf
        | WantedOperation::ClassHeritage => first?.to_owned(),
    })
}

/// If several patterns fit, all of them: `property 'a' of 'o' or property 'b' of 'o.a'`.
fn destructured(found: &[&str]) -> Option<String> {
    let (first, rest) = found.split_first()?;
    let (before, after) = first.split_once(" as it is ")?;
    // A literal null is certainly the cause.
    if after == "null." || after == "undefined." {
        return Some((*first).to_owned());
    }
    let mut text = before.to_owned();
    for other in rest {
        let other = other.split_once(" as it is ").map_or(*other, |(before, _)| before);
        text += " or ";
        text += other.strip_prefix("Cannot destructure ").unwrap_or(other);
    }
    Some(format!("{text} as it is {after}"))
}

/// `a.b is not a function`; if several fit, `a.b or c.d is not a function`.
fn joined(found: &[&str]) -> Option<String> {
    const ENDINGS: [&str; 2] = [" is not a function", " is not a constructor"];
    let ending = ENDINGS.into_iter().find(|ending| found.iter().all(|it| it.ends_with(ending)));
    match (found, ending) {
        ([], _) => None,
        (_, Some(ending)) => {
            let names: Vec<_> = found.iter().filter_map(|it| it.strip_suffix(ending)).collect();
            Some(names.join(" or ") + ending)
        }
        (_, None) => Some(found.join(", or ")),
    }
}
