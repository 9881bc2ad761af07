//! Errors: their names, their positions and their codes.

use crate::guest::{Guest, Run, done, failure};
use lifecycle::ValueConvention;

#[test]
fn an_uncaught_error_has_name_message_and_the_users_lines() {
    let done = done(&Run::new("function f() {\n  null.x;\n}\n\nf();\n1"));
    let error = &done["error"];
    assert_eq!(error["code"], "runtime");
    assert_eq!(error["name"], "TypeError");
    assert_eq!(error["stack"], "    at f (program.js:2:3)\n    at <anonymous> (program.js:5:1)");
}

#[test]
fn the_first_lines_columns_are_the_users() {
    let column = |run: &Run<'_>| done(run)["error"]["stack"].as_str().unwrap().to_owned();
    let explicit =
        Run { convention: ValueConvention::ExplicitReturn, ..Run::new("throw new Error('x')") };
    assert_eq!(column(&explicit), "    at <anonymous> (program.js:1:11)");
    assert_eq!(column(&Run::new("a.b")), "    at <anonymous> (program.js:1:1)");
    assert_eq!(column(&Run::new("```js\na.b\n```")), "    at <anonymous> (program.js:2:1)");
}

#[test]
fn errors_after_enums_and_namespaces_name_the_users_lines() {
    const DECLARED: &str = "enum Level {\n  Low = 1,\n  High = `\n` as any,\n}\n\nnamespace Text {\n  export const sign = '!'\n}\n";
    let stack = |code: &str| {
        let done = done(&Run::new(&format!("{DECLARED}{code}")));
        done["error"]["stack"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        stack("function f(level: Level) {\n  throw new Error('x')\n}\nf()"),
        "    at f (program.js:11:13)\n    at <anonymous> (program.js:13:1)"
    );
    // An error that only the engine detects.
    assert_eq!(stack("let a = 1\nlet a = 2"), "    at program.js:11:5");
    let value = done(&Run::new(&format!("{DECLARED}[Level.Low, Level[1], Level.High, Text.sign]")));
    assert_eq!(value["result"], serde_json::json!([1, "Low", "\n", "!"]));
    let problem = done(&Run::new(&format!("{DECLARED}\nconst b = ;")));
    assert_eq!(problem["error"]["message"], "Unexpected token (11:11)");
}

#[test]
fn what_is_thrown_need_not_be_an_error() {
    for (code, message) in [
        ("throw 'text'", "text"),
        ("throw 42", "42"),
        ("throw undefined", "undefined"),
        ("throw { message: 'm' }", "{ message: 'm' }"),
        ("throw {}", "{}"),
        ("throw [1, 2]", "[ 1, 2 ]"),
        ("throw Symbol('s')", "Symbol(s)"),
        ("throw Object.create(null)", "[Object: null prototype] {}"),
        (
            "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } })",
            "a value that cannot be shown",
        ),
        ("throw { get message() { throw 1 } }", "{ message: [Getter] }"),
        ("throw Object.assign(new Error(), { message: '\\ud800' })", "\u{FFFD}"),
    ] {
        assert_eq!(failure(code), ("runtime".to_owned(), message.to_owned()), "{code}");
    }
}

#[test]
fn syntax_errors_come_without_started_and_with_the_users_position() {
    let mut guest = Guest::running("const a = 1;\nconst b = ;");
    let first = guest.next().unwrap();
    assert_eq!(first["type"], "done");
    assert_eq!(first["error"]["name"], "SyntaxError");
    assert_eq!(first["error"]["message"], "Unexpected token (2:11)");
    // An error that only the engine detects takes its position from its stack.
    guest.execute(&Run::new("let a = 1;\nlet a = 2"));
    let second = guest.next().unwrap();
    assert_eq!(
        (second["type"].as_str(), second["error"]["name"].as_str()),
        (Some("done"), Some("SyntaxError"))
    );
    assert_eq!(second["error"]["stack"], "    at program.js:2:5");
}

#[test]
fn a_tools_rejection_that_nobody_touched_keeps_its_code() {
    let outcome = |code: &str| {
        let mut guest = Guest::running(code);
        guest.until("idle");
        guest.reject(1, "declined", "no");
        guest.done()["error"]["code"].as_str().unwrap().to_owned()
    };
    assert_eq!(outcome("await tools.a()"), "declined");
    assert_eq!(outcome("try { await tools.a() } catch (e) { throw e }"), "declined");
    assert_eq!(
        outcome("try { await tools.a() } catch (e) { e.code = 'memory_limit'; throw e }"),
        "runtime"
    );
    assert_eq!(
        outcome("try { await tools.a() } catch (e) { e.message = 'x'; throw e }"),
        "runtime"
    );
    assert_eq!(
        outcome(
            "try { await tools.a() } catch (e) { throw Object.assign(new Error(e.message), { code: e.code }) }"
        ),
        "runtime"
    );
}

#[test]
fn codes_that_the_guest_makes_up_mean_nothing() {
    for code in [
        "throw Object.assign(new Error('x'), { code: 'memory_limit' })",
        "throw new Error('out of memory')",
        "throw new Error('interrupted')",
        "throw Object.assign(new RangeError('out of memory'), { name: 'InternalError' })",
        "throw { name: 'InternalError', message: 'out of memory' }",
        "new InternalError('out of memory')",
    ] {
        assert_eq!(failure(code).0, "runtime", "{code}");
    }
}

#[test]
fn cancel_ends_a_waiting_program() {
    let mut guest = Guest::running("await tools.a()");
    guest.until("idle");
    guest.send_line(
        b"{\"type\":\"cancel\",\"id\":\"another\"}\n{\"type\":\"cancel\",\"id\":\"run\"}\n",
    );
    assert_eq!(guest.until("done"), ["failed timeout"]);
}
