//! Uncaught errors have the messages that Node gives them.

use crate::guest::{Guest, Run, done, printed, value};
use lifecycle::ValueConvention::{self, ExplicitReturn, LastExpression};

/// Prepended to each case: values with missing or wrong members.
const WORLD: &str = "const o = { n: null, u: undefined, f() { return this }, g: 1, async p() { return {} } }, key = 'k', c = 1, frozen = Object.freeze({ a: 1 }), list = [1], x = undefined;\n";

fn error_of(code: &str, convention: ValueConvention) -> serde_json::Value {
    let done = done(&Run { convention, ..Run::new(code) });
    assert_eq!(done["ok"], false, "{code}: {done}");
    done["error"].clone()
}

/// Returns `Name: message`, and the innermost frame's position in the case.
fn told(case: &str, convention: ValueConvention) -> (String, String) {
    let error = error_of(&format!("{WORLD}{case}"), convention);
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    let stack = text("stack");
    let place = stack.lines().next().unwrap_or_default();
    let place = place.rsplit_once("program.js:").map_or("", |(_, place)| place);
    let (line, column) = place.trim_end_matches(')').split_once(':').unwrap_or(("1", ""));
    let line = line.parse::<i32>().unwrap() - 1;
    (format!("{}: {}", text("name"), text("message")), format!("{line}:{column}"))
}

#[track_caller]
fn check(cases: &[(&str, &str, &str)]) {
    let mut wrong = vec![];
    for convention in [LastExpression, ExplicitReturn] {
        for (case, message, place) in cases {
            let expected = ((*message).to_owned(), (*place).to_owned());
            let seen = told(case, convention);
            if seen != expected {
                wrong.push(format!("{convention:?} {case}\n  {seen:?}\n  {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_not_a_function_is_named() {
    check(&[
        ("x()", "TypeError: x is not a function", "1:1"),
        ("o.a()", "TypeError: o.a is not a function", "1:1"),
        ("o.f().z()", "TypeError: o.f(...).z is not a function", "1:1"),
        ("o.f(1)(2)", "TypeError: o.f or o.f(...) is not a function", "1:1"),
        ("o[key]()", "TypeError: o[key] is not a function", "1:1"),
        ("o['a']()", "TypeError: o.a is not a function", "1:1"),
        ("o['a b']()", "TypeError: o[\"a b\"] is not a function", "1:1"),
        ("list[0]()", "TypeError: list[0] is not a function", "1:1"),
        ("(await o.p()).a()", "TypeError: (await o.p(...)).a is not a function", "1:1"),
        ("this.x()", "TypeError: this.x is not a function", "1:1"),
        ("o.a`x`", "TypeError: o.a is not a function", "1:1"),
        ("o?.a()", "TypeError: o?.a is not a function", "1:1"),
        ("[].foo()", "TypeError: [].foo is not a function", "1:1"),
        ("'abc'.foo()", "TypeError: \"abc\".foo is not a function", "1:1"),
        ("new o.a()", "TypeError: o.a is not a constructor", "1:5"),
        ("new x", "TypeError: x is not a constructor", "1:5"),
        ("const s = o.a(1, key)", "TypeError: o.a is not a function", "1:11"),
        (
            "console.log(\n  o.f(key),\n  o.zz(key, 'é', o))",
            "TypeError: o.zz is not a function",
            "3:3",
        ),
        ("if (o.has(key)) { 1 }", "TypeError: o.has is not a function", "1:5"),
        ("list.map((it) => it.name())", "TypeError: it.name is not a function", "1:18"),
        (
            "async function load() {\n  const r = await o.p()\n  return r.map(String)\n}\nawait load()",
            "TypeError: r.map is not a function",
            "3:10",
        ),
        ("const f = (a, b = o.zz()) => b\nf(1)", "TypeError: o.zz is not a function", "1:19"),
        (
            "class A { m() { return super.foo() } }\nnew A().m()",
            "TypeError: super.foo is not a function",
            "1:24",
        ),
        (
            "for (let i = 0; i < 3; i++) { o.step(i) }",
            "TypeError: o.step is not a function",
            "1:31",
        ),
        ("return o.a(1)", "TypeError: o.a is not a function", "1:8"),
    ]);
}

#[test]
fn what_is_surely_a_function_is_not_blamed_for_its_argument() {
    check(&[
        ("console.log(o.a())", "TypeError: o.a is not a function", "1:13"),
        ("const seen = []\nseen.push(o.a())", "TypeError: o.a is not a function", "2:11"),
        ("function show(v) { return v }\nshow(o.a())", "TypeError: o.a is not a function", "2:6"),
        // The engine does not report which of the two calls failed.
        ("o.b(o.a())", "TypeError: o.a or o.b is not a function", "1:5"),
    ]);
}

#[test]
fn an_argument_that_should_be_a_function_is_named() {
    check(&[
        ("list.map(key)", "TypeError: key is not a function", "1:1"),
        ("list.forEach()", "TypeError: undefined is not a function", "1:1"),
        ("new Promise(5)", "TypeError: Promise resolver 5 is not a function", "1:5"),
        ("Array.from(list, key)", "TypeError: key is not a function", "1:1"),
    ]);
}

#[test]
fn what_is_read_or_written_of_nothing_is_named() {
    check(&[
        ("o.a.b()", "TypeError: Cannot read properties of undefined (reading 'b')", "1:1"),
        ("o.n.b.c", "TypeError: Cannot read properties of null (reading 'b')", "1:1"),
        ("x[key]", "TypeError: Cannot read properties of undefined (reading 'k')", "1:1"),
        ("x.y.z = o", "TypeError: Cannot read properties of undefined (reading 'y')", "1:1"),
        ("o.n.a = 1", "TypeError: Cannot set properties of null (setting 'a')", "1:1"),
        ("o.u[key] = list", "TypeError: Cannot set properties of undefined (setting 'k')", "1:1"),
        (
            "list.map((it) => it.a.b)",
            "TypeError: Cannot read properties of undefined (reading 'b')",
            "1:18",
        ),
        (
            "o.f({ v: o.n.v, w: 1 })",
            "TypeError: Cannot read properties of null (reading 'v')",
            "1:10",
        ),
    ]);
}

#[test]
fn an_error_is_reported_where_it_happened() {
    check(&[
        ("null.x", "TypeError: Cannot read properties of null (reading 'x')", "1:1"),
        (
            "const a = 1;\n  null.x",
            "TypeError: Cannot read properties of null (reading 'x')",
            "2:3",
        ),
        ("o.f()\nreturn null.x", "TypeError: Cannot read properties of null (reading 'x')", "2:8"),
        (
            "o.f();\nconst { a } = null",
            "TypeError: Cannot destructure property 'a' of 'null' as it is null.",
            "2:7",
        ),
        ("const é = '€😀'; o.a()", "TypeError: o.a is not a function", "1:17"),
        ("const a = 2; o.n.a", "TypeError: Cannot read properties of null (reading 'a')", "1:14"),
    ]);
    let error = error_of("null.x", LastExpression);
    assert_eq!(error["stack"], "    at <anonymous> (program.js:1:1)");
    let error = error_of("const a = 1\nnull.x", LastExpression);
    assert_eq!(error["stack"], "    at <anonymous> (program.js:2:1)");
}

#[test]
fn a_name_that_is_declared_twice_is_named_with_its_place() {
    check(&[
        ("let a = 1;\nlet a", "SyntaxError: Identifier 'a' has already been declared", "2:5"),
        (
            "var a; { class b {} const { c: b } = o }",
            "SyntaxError: Identifier 'b' has already been declared",
            "1:32",
        ),
        ("function f() {} let f", "SyntaxError: Identifier 'f' has already been declared", "1:21"),
        (
            "((a) => { const a = 1 })(1)",
            "SyntaxError: Identifier 'a' has already been declared",
            "1:17",
        ),
    ]);
    // Programs that are valid do not become errors.
    for code in [
        "var a = 1; var a = 7; a",
        "function a() {} function a() { return 7 } a()",
        "let a = 7; { let a = 1 } a",
    ] {
        assert_eq!(value(code), "7", "{code}");
    }
}

#[test]
fn errors_of_the_languages_own_functions_say_what_they_expect() {
    for (code, expected) in [
        ("[].reduce((a) => a)", "Reduce of empty array with no initial value"),
        ("new Map([1])", "Iterator value is not an entry object"),
        ("Object.fromEntries([1])", "Iterator value is not an entry object"),
        ("new Proxy({}, null)", "Cannot create proxy with a non-object as target or handler"),
        ("Object.setPrototypeOf({}, 5)", "Object prototype may only be an Object or null"),
        ("new RegExp('[')", "Invalid regular expression: unexpected end"),
    ] {
        assert_eq!(error_of(code, LastExpression)["message"], expected, "{code}");
    }
}

#[test]
fn an_error_that_the_program_made_is_where_it_was_made() {
    check(&[
        ("throw new TypeError(\n  'm' + key,\n  { cause: o })", "TypeError: mk", "1:11"),
        ("const fail = (m) => { throw Error(m) }\nfail(key)", "Error: k", "1:29"),
        ("throw new Error(missing)", "ReferenceError: missing is not defined", "1:17"),
    ]);
}

#[test]
fn what_cannot_be_destructured_is_named() {
    let of = |what: &str| format!("TypeError: Cannot destructure {what}");
    check(&[
        ("const {a} = null", &of("property 'a' of 'null' as it is null."), "1:7"),
        ("const {a} = x", &of("property 'a' of 'x' as it is undefined or null."), "1:7"),
        ("const {a, b} = o.u", &of("property 'a' of 'o.u' as it is undefined or null."), "1:7"),
        (
            "const {a: {b}} = o",
            &of("property 'a' of 'o' or property 'b' of 'o.a' as it is undefined or null."),
            "1:7",
        ),
        ("let a;\n({a} = x);", &of("property 'a' of 'x' as it is undefined or null."), "2:2"),
        (
            "const f = ({a}) => a\nf()",
            &of("property 'a' of argument 1 as it is undefined or null."),
            "1:12",
        ),
        (
            "function f(n, {a}) { return a }\nf(1)",
            &of("property 'a' of argument 2 as it is undefined or null."),
            "1:15",
        ),
        (
            "for (const {a} of [null]) o.f(a)",
            &of("property 'a' of an item of '[...]' as it is undefined or null."),
            "1:12",
        ),
        (
            "const {r} = await o.u",
            &of("property 'r' of '(await o.u)' as it is undefined or null."),
            "1:7",
        ),
    ]);
}

#[test]
fn what_is_not_iterable_is_named() {
    check(&[
        ("const [a] = x", "TypeError: x is not iterable", "1:7"),
        ("const [a] = o.g", "TypeError: o.g is not iterable", "1:7"),
        ("for (const q of x) o.f(q)", "TypeError: x is not iterable", "1:17"),
        ("for (const q of o) o.f(q)", "TypeError: o is not iterable", "1:17"),
        ("[...o]", "TypeError: o is not iterable", "1:5"),
        ("o.f(...o.g)", "TypeError: o.g is not iterable", "1:8"),
        ("new Map(o)", "TypeError: o is not iterable", "1:5"),
        ("await Promise.all(o.g)", "TypeError: o.g is not iterable", "1:7"),
        ("Object.fromEntries(o)", "TypeError: o is not iterable", "1:1"),
    ]);
}

#[test]
fn other_errors_are_worded_as_in_node() {
    check(&[
        ("c = 2", "TypeError: Assignment to constant variable 'c'.", "1:1"),
        (
            "later; let later = 1",
            "ReferenceError: Cannot access 'later' before initialization",
            "1:1",
        ),
        ("1n + 1", "TypeError: Cannot mix BigInt and other types, use explicit conversions", "1:6"),
        ("`${Symbol()}`", "TypeError: Cannot convert a Symbol value to a string", "1:4"),
        ("key in 5", "TypeError: Cannot use 'in' operator to search for 'key' in 5", "1:1"),
        ("o instanceof 5", "TypeError: Right-hand side of 'instanceof' is not callable", "1:1"),
        (
            "class A {}\nA()",
            "TypeError: Class constructor A cannot be invoked without 'new'",
            "1:1",
        ),
        (
            "class B extends x {}",
            "TypeError: Class extends value x is not a constructor or null",
            "1:17",
        ),
        (
            "(() => { 'use strict'; frozen.a = 1 })()",
            "TypeError: Cannot assign to read only property 'a' of object 'frozen'",
            "1:24",
        ),
        (
            "(() => { 'use strict'; frozen.b = 1 })()",
            "TypeError: Cannot add property b, object is not extensible",
            "1:24",
        ),
        (
            "(() => { 'use strict'; delete frozen.a })()",
            "TypeError: Cannot delete property 'a' of frozen",
            "1:24",
        ),
        (
            "const q = {}; q.q = q; JSON.stringify(q)",
            "TypeError: Converting circular structure to JSON",
            "1:39",
        ),
        ("JSON.stringify(1n)", "TypeError: Do not know how to serialize a BigInt", "1:6"),
        ("new Date(NaN).toISOString()", "RangeError: Invalid time value", "1:15"),
        ("missing", "ReferenceError: missing is not defined", "1:1"),
    ]);
}

#[test]
fn texts_of_the_program_stay_as_they_are() {
    check(&[
        ("throw new TypeError('not a function')", "TypeError: not a function", "1:11"),
        ("const m = 'not a function'; throw new TypeError(m)", "TypeError: not a function", "1:49"),
        (
            "await Promise.reject(new TypeError('value is not iterable'))",
            "TypeError: value is not iterable",
            "1:26",
        ),
        ("throw Object.assign(new Error('m'), { name: 'Mine' })", "Mine: m", "1:25"),
    ]);
}

#[test]
fn thrown_objects_are_shown_as_the_console_shows_them() {
    for (code, message) in [
        ("throw { code: 7, msg: 'x' }", "{ code: 7, msg: 'x' }"),
        (
            "throw { name: 'N', message: 'm', at: [1, { b: 2 }] }",
            "{ name: 'N', message: 'm', at: [ 1, { b: 2 } ] }",
        ),
        ("throw new Map([['a', 1]])", "Map(1) { 'a' => 1 }"),
        (
            "throw new (class Problem { constructor() { this.status = 404 } })()",
            "Problem { status: 404 }",
        ),
        ("throw function f() {}", "[Function: f]"),
        ("throw new Date(0)", "1970-01-01T00:00:00.000Z"),
        ("throw 10n", "10n"),
        ("throw null", "null"),
        ("throw ['a', 'b']", "[ 'a', 'b' ]"),
        ("const o = { a: 1 }; o.o = o; throw o", "{ a: 1, o: [Circular] }"),
        ("await Promise.reject({ status: 500 })", "{ status: 500 }"),
        ("throw new Proxy({}, { ownKeys() { throw 1 } })", "a value that cannot be shown"),
    ] {
        let error = error_of(code, LastExpression);
        let expected = serde_json::json!({ "code": "runtime", "message": message });
        assert_eq!(error, expected, "{code}");
    }
    let long = error_of("throw { a: 'x'.repeat(200000), b: Array(1e6).fill('y') }", LastExpression);
    assert!(long["message"].as_str().unwrap().len() < 1 << 17);
    // An object that inherits from Error without `class` is an error too.
    let old = error_of(
        "function Old(m) { this.message = m }\nOld.prototype = Object.create(Error.prototype, { name: { value: 'Old' } })\nthrow new Old('m')",
        LastExpression,
    );
    assert_eq!((&old["name"], &old["message"]), (&"Old".into(), &"m".into()));
}

#[test]
fn a_failed_call_that_nobody_caught_has_the_line_that_made_it() {
    let stack_of = |code: &str, convention| {
        let mut guest = Guest::new();
        guest.execute(&Run { convention, ..Run::new(code) });
        guest.until("idle");
        guest.reject(1, "tool_not_found", "Tool not found: a.b");
        let error = guest.done()["error"].clone();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&"tool_not_found".into(), &"Tool not found: a.b".into())
        );
        error["stack"].as_str().unwrap_or_default().to_owned()
    };
    for convention in [LastExpression, ExplicitReturn] {
        assert_eq!(
            stack_of(
                "const n: number = 1;\nconst load = async () => {\n  const é = 'é'; return await tools.a.b({ n })\n}\nawait load()",
                convention
            ),
            "    at load (program.js:3:39)\n    at <anonymous> (program.js:5:7)"
        );
    }
    assert_eq!(
        stack_of("await tools.a.b()", LastExpression),
        "    at <anonymous> (program.js:1:15)"
    );
    assert_eq!(
        stack_of("try { await tools.a.b() } catch (error) { throw error }", LastExpression),
        "    at <anonymous> (program.js:1:21)"
    );
    let mut guest = Guest::running("let s; try { await tools.a() } catch (e) { s = e.stack } s");
    guest.until("idle");
    guest.reject(1, "declined", "no");
    assert_eq!(guest.done()["result"], "Error: no\n    at <anonymous> (program.js:1:26)");
}

#[test]
fn a_stack_begins_with_the_errors_class_and_message() {
    for (code, stack) in [
        ("new TypeError('m').stack", "TypeError: m\n    at <anonymous> (program.js:1:5)"),
        (
            "const f = () => new Error('m').stack\nf()",
            "Error: m\n    at f (program.js:1:21)\n    at <anonymous> (program.js:2:1)",
        ),
        ("new Error('').stack", "Error\n    at <anonymous> (program.js:1:5)"),
        (
            "class Mine extends Error { constructor(m) { super(m); this.name = 'Mine' } }\nnew Mine('m').stack.split('\\n')[0]",
            "Mine: m",
        ),
        (
            "const o = {}; let s\ntry { o.a.b() } catch (e) { s = e.stack } s",
            "TypeError: Cannot read properties of undefined (reading 'b')\n    at <anonymous> (program.js:2:7)",
        ),
        (
            "const o = { name: 'N', message: 'm' }; Error.captureStackTrace(o); o.stack",
            "N: m\n    at <anonymous> (program.js:1:64)",
        ),
        (
            "class A extends Error { constructor(m) { super(m); Error.captureStackTrace(this, A) } }\nconst f = () => new A('m')\nf().stack",
            "Error: m\n    at f (program.js:2:21)\n    at <anonymous> (program.js:3:1)",
        ),
        (
            "Error.prepareStackTrace = (e, sites) => 'mine ' + sites.length; new Error('m').stack",
            "mine 1",
        ),
        ("Error.stackTraceLimit = 0; new Error('m').stack", "Error: m"),
        ("const e = new Error('m'); e.stack = 'set'; e.stack", "set"),
        ("String(Object.create(Error.prototype).stack)", "undefined"),
        (
            "const e = new Error('m'); [structuredClone(e).stack === e.stack, Object.keys(e).length, 'stack' in e].join()",
            "true,0,true",
        ),
        (
            "let t; try { Object.getOwnPropertyDescriptor(Error.prototype, 'stack').get.call(1) } catch (e) { t = e.name } t",
            "TypeError",
        ),
        ("let t; try { Error.captureStackTrace(1) } catch (e) { t = e.name } t", "TypeError"),
        (
            "const { get } = Object.getOwnPropertyDescriptor(Error.prototype, 'stack'); [get.name, typeof get.prototype, Error.captureStackTrace.length].join()",
            "get stack,undefined,2",
        ),
    ] {
        assert_eq!(value(code), serde_json::json!(stack).to_string(), "{code}");
    }
}

#[test]
fn what_is_told_of_an_error_has_its_frames_once() {
    let error = error_of("throw new Error('m')", LastExpression);
    assert_eq!(error["message"], "m");
    assert_eq!(error["stack"], "    at <anonymous> (program.js:1:11)");
    let thrown_again =
        "const a = new Error('m');\nconst b = new Error('n'); b.stack = a.stack;\nthrow b";
    let error = error_of(thrown_again, LastExpression);
    assert_eq!(error["message"], "n");
    assert_eq!(error["stack"], "    at <anonymous> (program.js:1:15)");
    assert_eq!(
        printed(
            "console.error(new Error('m')); try { ({}).a() } catch (e) { console.log(e, [e]) }"
        ),
        [
            "Error: m\n    at <anonymous> (program.js:1:19)",
            "TypeError: {}.a is not a function\n    at <anonymous> (program.js:1:38) [ [TypeError: {}.a is not a function] ]"
        ]
    );
}

#[test]
fn causes_are_told_with_the_error() {
    let stack = |code: &str| {
        error_of(code, LastExpression)["stack"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        stack(
            "const f = () => { try { null.x } catch (cause) {\n  throw new Error('outer', { cause }) } }\nf()"
        ),
        "    at f (program.js:2:13)\n    at <anonymous> (program.js:3:1)\n  [cause]: TypeError: Cannot read properties of null (reading 'x')\n      at f (program.js:1:25)\n      at <anonymous> (program.js:3:1)"
    );
    assert_eq!(
        stack("throw new Error('a', { cause: new Error('b', { cause: { status: 1 } }) })"),
        "    at <anonymous> (program.js:1:35)\n  [cause]: Error: b\n      at <anonymous> (program.js:1:35)\n    [cause]: { status: 1 }"
    );
    assert_eq!(
        stack("await Promise.any([Promise.reject(new Error('one')), Promise.reject(2)])"),
        "    at <anonymous> (program.js:1:62)\n  [errors]: [\n    Error: one\n        at <anonymous> (program.js:1:39),\n    2,\n  ]"
    );
    assert_eq!(
        stack("throw new Error('a', { cause: undefined })"),
        "    at <anonymous> (program.js:1:11)\n  [cause]: undefined"
    );
    // Reporting the error runs no getter of the program.
    assert_eq!(
        stack(
            "const e = new Error('a'); Object.defineProperty(e, 'cause', { get() { for (;;); } }); throw e"
        ),
        "    at <anonymous> (program.js:1:15)"
    );
}

#[test]
fn what_is_told_of_causes_is_bounded() {
    for code in [
        "let e = new Error('0'); for (let i = 0; i < 1000; i++) e = new Error('x'.repeat(1000), { cause: e }); throw e",
        "const e = new Error('0'); e.cause = e; throw e",
        "const all = []; for (let i = 0; i < 1000; i++) all.push(new AggregateError(all, 'x'.repeat(100))); throw all[999]",
        "throw new Error('a', { cause: new Proxy(new Error('b'), { getPrototypeOf() { throw 1 }, getOwnPropertyDescriptor() { throw 1 } }) })",
        "throw Object.assign(new Error('a'), { errors: new Proxy([], { getOwnPropertyDescriptor() { throw 1 } }) })",
        "Object.prototype.cause = 1; Array.prototype.errors = [1]; String.prototype.slice = null; throw new Error('a')",
        "const f = () => { throw new Error('m'.repeat(1e6)) }; Object.defineProperty(f, 'name', { value: 'n'.repeat(1e6) }); f()",
    ] {
        let error = error_of(code, LastExpression);
        assert_eq!(error["code"], "runtime", "{code}");
        assert!(error.to_string().len() < 256 << 10, "{code}: {}", error.to_string().len());
    }
}

#[test]
fn what_node_has_and_this_world_has_not_is_said_with_what_to_use() {
    for (code, says) in [
        (
            "require('fs')",
            "require is not defined: there are no modules here; what is outside is reached through tools.*",
        ),
        (
            "process.env.HOME",
            "process is not defined: there is no process and no environment here; what is outside is reached through tools.*",
        ),
        (
            "Buffer.from('x')",
            "Buffer is not defined: use Uint8Array: TextEncoder and TextDecoder for texts",
        ),
        (
            "module.exports = 1",
            "module is not defined: a program is no module; it gives its value with `return`",
        ),
        ("new XMLHttpRequest()", "XMLHttpRequest is not defined: there is no network here"),
        ("window.x", "window is not defined: the global object is `globalThis`"),
        (
            "await import('node:fs')",
            "import(\"node:fs\") is not available: there are no files and no processes here; what is outside is reached through tools.*",
        ),
        (
            "await import('zod')",
            "import(\"zod\") is not available: there are no modules here; what is outside is reached through tools.*",
        ),
    ] {
        let error = error_of(code, LastExpression);
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(says), "{code}: {message}");
        assert_eq!(error["name"], "ReferenceError");
        assert!(error["stack"].as_str().unwrap().contains("program.js:1:"), "{code}: {error}");
    }
    assert_eq!(
        value(
            "[typeof process, typeof require, typeof Buffer, typeof module, 'process' in globalThis].join()"
        ),
        "\"undefined,undefined,undefined,undefined,false\""
    );
    // A variable of the program may have the name of a Node global.
    assert_eq!(value("const process = { env: 1 }; process.env"), "1");
}

#[test]
fn journals_of_the_first_prelude_keep_the_engines_words() {
    let error = |code: &str| {
        let done = done(&Run { prelude: 1, ..Run::new(code) });
        done["error"].clone()
    };
    assert_eq!(error("({}).a()")["message"], "not a function");
    assert_eq!(error("process.env")["message"], "process is not defined");
    assert_eq!(error("throw { code: 7 }")["message"], "[object Object]");
    assert_eq!(
        error("throw new Error('a', { cause: 1 })")["stack"],
        "    at <anonymous> (program.js:1:11)"
    );
    let done = done(&Run { prelude: 1, ..Run::new("new Error('m').stack") });
    assert_eq!(done["result"], "    at <anonymous> (program.js:1:28)\n");
}

#[test]
fn imports_decorators_and_computed_accessors_are_refused_with_what_to_write_instead() {
    for (code, message) in [
        (
            "1;\nimport fs from 'node:fs'\nfs",
            "a program cannot import modules: there are no files and no processes here; what is outside is reached through tools.* (2:1)",
        ),
        (
            "import axios from 'axios'",
            "a program cannot import modules: there is no network here; what is outside is reached through tools.* (1:1)",
        ),
        (
            "import fs = require('fs')",
            "a program cannot import modules: there are no files and no processes here; what is outside is reached through tools.* (1:1)",
        ),
        (
            "const d = (v) => v\n@d class X {}",
            "decorators are not supported: call the function with the class instead, as in `const Decorated = decorate(Plain)` (2:1)",
        ),
        (
            "class X {\n  @d m() {}\n}",
            "decorators are not supported: call the function after the class instead, as in `Type.prototype.method = decorate(Type.prototype.method)` (2:3)",
        ),
        (
            "class X { accessor ['a'] = 1 }",
            "an accessor cannot have a computed name: write a field, a getter and a setter instead (1:21)",
        ),
    ] {
        let error = error_of(code, LastExpression);
        assert_eq!(
            (&error["name"], &error["message"]),
            (&"SyntaxError".into(), &message.into()),
            "{code}"
        );
    }
    assert_eq!(value("'a@b.example'"), "\"a@b.example\"");
}

#[test]
fn accessors_are_fields_with_a_getter_and_a_setter() {
    for (code, expected) in [
        (
            "class A { accessor x = 1 }\nconst a = new A(); a.x += 1; [a.x, Object.keys(a), 'x' in A.prototype]",
            "[2,[],true]",
        ),
        (
            "class A { accessor x: number; static accessor y = 'y'\n  accessor 'a b' = 3; accessor #z = 4; accessor 5 = 6\n  get z() { return this.#z } }\nconst a = new A(); [a.x === undefined, A.y, a['a b'], a.z, a[5]]",
            "[true,\"y\",3,4,6]",
        ),
        (
            "class A { #accessor1 = 7; private accessor x = this.#accessor1 }\nclass B extends A {}\nnew B().x",
            "7",
        ),
        (
            "abstract class A { abstract accessor x: number; accessor y = () => { return 1 } }\nnew (class extends A {} as any)().y()",
            "1",
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}
