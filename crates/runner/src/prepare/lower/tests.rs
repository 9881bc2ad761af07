//! Texts that are designed to be expensive.

use super::super::{RunnableText, prepare};
use lifecycle::ValueConvention::ExplicitReturn;

/// The length of the prepared text, or why it is refused.
fn prepared(source: &str) -> Result<usize, String> {
    prepare(source, ExplicitReturn)
        .map(|RunnableText(text)| text.len())
        .map_err(|problem| problem.message)
}

#[test]
fn deep_namespaces_are_refused_whatever_is_in_them() {
    let deep = |inside: &str| format!("{}{inside}{}", "namespace a{".repeat(999), "}".repeat(999));
    for text in [deep("f()"), deep(&"type x=1;".repeat(9_000)), deep("enum B {}")] {
        assert_eq!(prepared(&text), Err("namespaces are nested too deeply".into()));
    }
    let dotted = |n| format!("namespace a{} {{ f() }}", ".a".repeat(n));
    assert_eq!(prepared(&dotted(7_000)), Err("namespaces are nested too deeply".into()));
    assert_eq!(prepared(&dotted(9_000)), Err("the program is nested too deeply".into()));
    assert!(prepared(&dotted(10)).is_ok());
}

#[test]
fn a_long_name_is_not_repeated_at_each_member() {
    let members: String = (0..1_000).map(|n| format!("m{n} = B,")).collect();
    let text = format!("enum {} {{ B, {members} }}", "N".repeat(100_000));
    assert!(prepared(&text).is_ok_and(|n_bytes| n_bytes < 10 * text.len()));
}

#[test]
fn what_becomes_too_long_is_refused() {
    let members: String = (0..130_000).map(|n| format!("m{n},")).collect();
    let text = format!("enum A {{ {members} }}");
    assert_eq!(prepared(&text), Err("a program has at most 4194304 bytes as JavaScript".into()));
    let calls = |n| {
        format!("class A extends B {{ constructor(private x: T) {{ {} }} }}", "super();".repeat(n))
    };
    assert!(prepared(&calls(16)).is_ok());
    let message = "a constructor with properties for parameters has too many calls of `super`";
    assert_eq!(prepared(&calls(17)), Err(message.into()));
}
