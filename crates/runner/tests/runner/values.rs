//! The values that programs return and the lines that they print.

use crate::guest::{Guest, Run, done, failure, printed, value};
use lifecycle::ValueConvention;

#[test]
fn values_are_what_json_stringify_makes_of_them_but_for_numbers_it_has_not() {
    for (code, expected) in [
        ("1 + 1", "2"),
        ("1 + 1;", "2"),
        ("(async () => 7)()", "7"),
        ("async () => 7", "7"),
        ("const x: number = 2; x * 3", "6"),
        ("", "undefined"),
        ("undefined", "undefined"),
        ("null", "null"),
        ("NaN", "\"NaN\""),
        ("-1 / 0", "\"-Infinity\""),
        (
            "[NaN, { a: -1 / 0, b: 2n ** 64n }]",
            r#"["NaN",{"a":"-Infinity","b":"18446744073709551616"}]"#,
        ),
        ("10n", "\"10\""),
        ("-0", "0"),
        ("0.5", "0.5"),
        ("'é\\u2028\\ud83d\\ude00'", "\"é\u{2028}😀\""),
        ("new Date(0)", "\"1970-01-01T00:00:00.000Z\""),
        (
            "({ a: undefined, b: [undefined, () => 1], c: new Map([[1, 2]]) })",
            r#"{"b":[null,null],"c":[[1,2]]}"#,
        ),
        ("Promise.resolve({ then(f) { f(3) } })", "3"),
        ("this === globalThis", "true"),
        ("x = 1; x", "1"),
        ("typeof arguments", "\"undefined\""),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

#[test]
fn half_a_surrogate_pair_survives_in_a_value() {
    let mut guest = Guest::running("'\\ud800'");
    let mut line = String::new();
    while !line.contains("\"done\"") {
        line.clear();
        guest.read_line(&mut line);
    }
    assert!(line.contains(r#""result":"\ud800""#), "{line}");
}

#[test]
fn explicit_programs_are_strict_and_return_only_what_they_say() {
    let explicit =
        |code| done(&Run { convention: ValueConvention::ExplicitReturn, ..Run::new(code) });
    assert_eq!(explicit("return 1 + 1")["result"], 2);
    assert_eq!(explicit("1 + 1").get("result"), None);
    assert_eq!(explicit("enum A { B = 4 }\nreturn A.B")["result"], 4);
    assert_eq!(explicit("undeclared = 1")["error"]["name"], "ReferenceError");
}

#[test]
fn what_has_no_json_fails_with_a_reason() {
    for (code, reason) in [
        ("() => 1", "a function"),
        ("Symbol('a')", "a symbol"),
        ("const a = {}; a.a = a; a", "circular"),
        ("({ toJSON() { throw new Error('no way') } })", "no way"),
        ("'x'.repeat(17e6)", "that fit a message"),
    ] {
        let (kind, message) = failure(code);
        assert_eq!(kind, "serialization", "{code}: {message}");
        assert!(message.to_lowercase().contains(reason), "{code}: {message}");
    }
}

#[test]
fn console_shows_values_readably() {
    let shown = printed(
        "console.log('a', 1, null, undefined, true, -0, 10n, Symbol('s'));
         console.log(['b', [1, { c: \"it's\" }]], {}, [], { 'd-e': 1, f: { g: { h: { i: {} } } } });
         console.log(new Map([['k', new Set([1])]]), new Date(0), /x/g, new Uint8Array(2), () => 1, class Foo {});
         class Point { constructor() { this.x = 1 } get y() { return 2 } }
         console.log(new Point(), Object.create(null), { get a() { return 1 }, [Symbol('t')]: 2 }, [, 1]);
         const loop = { name: 'loop' }; loop.self = loop; console.log(loop);
         console.log(new Array(150).fill(0).length, new Array(103).fill(7));
         console.log([new Error('inner')], tools, tools.a.b);
         console.log(); console.log('a\\nb', ['a\\nb'])",
    );
    let sevens = "7,".repeat(102);
    let expected = [
        "a 1 null undefined true -0 10n Symbol(s)",
        r#"["b",[1,{"c":"it's"}]] {} [] {"d-e":1,"f":{"g":{"h":{"i":{}}}}}"#,
        "Map(1) { 'k' => Set(1) { 1 } } 1970-01-01T00:00:00.000Z /x/g Uint8Array(2) [ 0, 0 ] [Function (anonymous)] [class: Foo]",
        "Point { x: 1 } [Object: null prototype] {} { a: [Getter], [Symbol(t)]: 2 } [ <empty>, 1 ]",
        "{ name: 'loop', self: [Circular] }",
        &format!("150 [{sevens}7]"),
        "[ [Error: inner] ] [Function (anonymous)] [Function (anonymous)]",
        "",
        "a\nb [\"a\\nb\"]",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_printed_error_has_the_users_frames() {
    let shown = printed("function f() {\n  return new TypeError('bad')\n}\nconsole.error(f())");
    assert_eq!(
        shown,
        ["TypeError: bad\n    at f (program.js:2:14)\n    at <anonymous> (program.js:4:15)"]
    );
}

#[test]
fn endless_lines_are_cut() {
    let shown = printed("console.log('x'.repeat(1e6)); console.log(['y'.repeat(1e6)])");
    assert!(shown[0].len() < 70_000 && shown[0].ends_with("more characters"), "{}", shown[0].len());
    assert!(shown[1].len() < 11_000 && shown[1].contains("more characters"), "{}", shown[1].len());
}

#[test]
fn output_is_numbered_within_its_input() {
    let mut guest = Guest::running(
        "console.log('a'); emit({ b: 1 }); await tools.t.x(); console.warn('c'); emit(undefined); console.debug('\\ud800')",
    );
    assert_eq!(
        guest.until("idle"),
        ["started", "log a [0.1]", "emit {\"b\":1} [0.2]", "call 1 t.x null", "idle 0"]
    );
    guest.resolve(1, "1", 0);
    assert_eq!(
        guest.until("done"),
        ["warn c [1.1]", "emit null [1.2]", "debug \u{FFFD} [1.3]", "done null"]
    );
}

#[test]
fn emit_refuses_what_has_no_json() {
    assert_eq!(value("try { emit(() => 1) } catch (e) { e.code }"), "undefined");
    assert_eq!(
        value("let c; try { emit(() => 1) } catch (e) { c = e.code } c"),
        "\"serialization\""
    );
}

#[test]
fn fetch_points_to_tools() {
    let (kind, message) = failure("fetch('http://example.com')");
    assert_eq!(kind, "runtime");
    assert!(message.contains("tools.*"), "{message}");
}

#[test]
fn every_execution_on_a_link_has_a_fresh_world() {
    let mut guest = Guest::new();
    for _ in 0..3 {
        guest.execute(&Run::new(
            "globalThis.n = (globalThis.n ?? 0) + 1; Array.prototype.x = 1; [].x + n",
        ));
        assert_eq!(guest.done()["result"], 2);
    }
    assert_eq!(guest.close(), 0);
}

#[test]
fn an_order_sent_beforehand_waits_for_a_program_that_ends_and_is_passed_by_if_it_goes_on() {
    let mut guest = Guest::new();
    guest.execute(&Run::new("6 * 7"));
    guest.execute(&Run::new("6 * 8"));
    assert_eq!(guest.done()["result"], 42);
    assert_eq!(guest.done()["result"], 48);

    guest.execute(&Run::new("await tools.a()"));
    guest.until("idle");
    guest.execute(&Run::new("1"));
    guest.sync(5);
    assert_eq!(guest.until("synced"), ["synced 5"], "the engine starts it elsewhere");
    guest.resolve(1, "7", 0);
    assert_eq!(guest.until("done"), ["done 7"]);
}

#[test]
fn unknown_globals_are_an_honest_failure() {
    let mut guest = Guest::new();
    guest.execute(&Run { prelude: 99, ..Run::new("1") });
    assert_eq!(guest.done()["error"]["code"], "internal");
    guest.execute(&Run::new("1"));
    assert_eq!(guest.done()["result"], 1);
}

#[test]
fn nonsense_on_the_link_is_passed_by() {
    let mut guest = Guest::new();
    guest.send_line(b"\n{}\nnull\n{\"type\":\"execute\"}\n\xff\xfe\n");
    guest.execute(&Run::new("await tools.a()"));
    guest.until("idle");
    guest.send_line(b"what?\n{\"type\":\"tool_result\"}\n");
    guest.resolve(1, "3", 0);
    assert_eq!(guest.done()["result"], 3);
}

#[test]
fn what_was_prepared_once_runs_again_as_it_is() {
    let mut guest = Guest::running("const a: number = 20;\na + 1");
    let started = guest.next().unwrap();
    let prepared = started["airlock"]["prepared"].as_str().unwrap().to_owned();
    assert_eq!(started["airlock"]["fingerprint"], runner::fingerprint());
    assert_eq!(guest.done()["result"], 21);
    let again = done(&Run { prepared: true, ..Run::new(&prepared) });
    assert_eq!(again["result"], 21);
}
