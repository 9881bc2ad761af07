//! How `console` formats values.

use crate::guest::{Guest, printed};

/// Each row: the arguments of `console.log`, and the line that it prints.
#[track_caller]
fn lines(rows: &[(&str, &str)]) {
    let code: String = rows.iter().map(|(args, _)| format!("console.log({args});\n")).collect();
    for ((args, expected), found) in rows.iter().zip(printed(&code)) {
        assert_eq!(found, *expected, "console.log({args})");
    }
}

#[test]
fn texts_and_numbers_alone_look_the_same_as_among_values() {
    let quick = printed(
        "console.log('a', 1, 'b', 2.5, -7, NaN); console.log('%'); console.log(0, -0); console.log('\\ud800')",
    );
    assert_eq!(quick, ["a 1 b 2.5 -7 NaN", "%", "0 -0", "\u{FFFD}"]);
    let slow = printed(
        "console.log({}); console.log('a', 1, 'b', 2.5, -7, NaN); console.log('%'); console.log(0, -0); console.log('\\ud800')",
    );
    assert_eq!(slow[1..], quick);
}

#[test]
fn format_directives_are_followed() {
    lines(&[
        ("'%s is %d years and %i, %f', 'Ann', 42, 42.9, '1.5x'", "Ann is 42 years and 42, 1.5"),
        ("'%s %s %s %s', null, undefined, 10n, Symbol('x')", "null undefined 10n Symbol(x)"),
        ("'%s', { a: { b: 1 } }", "{ a: [Object] }"),
        ("'%d %d %i %f', 'x', 10n, {}, Symbol('x')", "NaN 10n NaN NaN"),
        ("'%j', { a: [1] }", "{\"a\":[1]}"),
        ("'%o|%O', [1], { a: 's' }", "[ 1 ]|{ a: 's' }"),
        ("'%cred%c plain', 'color: red', ''", "red plain"),
        ("'100%% of %s', 'it'", "100% of it"),
        ("'100%%'", "100%%"),
        ("'%s'", "%s"),
        ("'%s and %s', 'one'", "one and %s"),
        ("'%s', 'a', 'b', { c: 1 }", "a b {\"c\":1}"),
        ("'%x %', 1", "%x % 1"),
        ("{ a: 1 }, '%s', 'b'", "{\"a\":1} %s b"),
        ("'%j', (() => { const o = {}; o.o = o; return o })()", "[a value that cannot be shown]"),
    ]);
}

#[test]
fn data_is_shown_as_json_and_what_json_would_lose_as_what_it_is() {
    lines(&[
        (
            "{ a: 1, b: [1, { c: 'x\\n' }], d: null }, 'x', [1, -0], []",
            r#"{"a":1,"b":[1,{"c":"x\n"}],"d":null} x [1,0] []"#,
        ),
        (
            "{ at: new Date(5) }, Object.create(null)",
            r#"{"at":"1970-01-01T00:00:00.005Z"} [Object: null prototype] {}"#,
        ),
        ("[[[[[[1]]]]]]", "[[[[[[1]]]]]]"),
        ("{ a: undefined }, { a: NaN }", "{ a: undefined } { a: NaN }"),
        ("{ a: 1n }, { f() {} }", "{ a: 1n } { f: [Function: f] }"),
        ("{ m: new Map([[1, 2]]) }, [, 1]", "{ m: Map(1) { 1 => 2 } } [ <empty>, 1 ]"),
        ("{ get a() { return 1 } }", "{ a: [Getter] }"),
        ("{ toJSON() { return 1 } }", "{ toJSON: [Function: toJSON] }"),
        ("(() => { const o = { a: 1 }; o.o = o; return o })()", "{ a: 1, o: [Circular] }"),
        ("new (class P { x = 1 })()", "P { x: 1 }"),
    ]);
    let long = printed("console.log(Array.from({ length: 40_000 }, (_, n) => n))");
    assert!(long[0].starts_with("[0,1,2,") && long[0].contains("... "), "{}", long[0].len());
}

#[test]
fn every_kind_of_value_has_its_own_look() {
    lines(&[
        (
            "async () => 1, function* g() {}, async function* h() {}",
            "[AsyncFunction (anonymous)] [GeneratorFunction: g] [AsyncGeneratorFunction: h]",
        ),
        ("class A {}, class B extends (class C {}) {}", "[class: A] [class: B extends C]"),
        ("Object.assign(function f() {}, { a: 1 })", "[Function: f] { a: 1 }"),
        (
            "new (class Foo extends Map {})([[1, 2]]), new (class Bar extends Array {})(1, 2)",
            "Foo(1) { 1 => 2 } Bar(2) [ 1, 2 ]",
        ),
        (
            "new Float32Array([1.5]), new BigInt64Array(1), new Uint8Array(0)",
            "Float32Array(1) [ 1.5 ] BigInt64Array(1) [ 0n ] Uint8Array(0) []",
        ),
        (
            "new ArrayBuffer(3), new DataView(new ArrayBuffer(4), 1)",
            "ArrayBuffer { byteLength: 3 } DataView { byteLength: 3, byteOffset: 1 }",
        ),
        (
            "Object(1), Object('s'), Object(true), Object(1n), Object(Symbol('q'))",
            "[Number: 1] [String: 's'] [Boolean: true] [BigInt: 1n] [Symbol: Symbol(q)]",
        ),
        (
            "new WeakMap(), new WeakSet(), Promise.resolve(1)",
            "WeakMap { <items unknown> } WeakSet { <items unknown> } Promise {}",
        ),
        ("(function () { return arguments })(1, 2)", "[Arguments] [ 1, 2 ]"),
        (
            "(function* () {})(), [][Symbol.iterator]()",
            "Object [Generator] {} Object [Array Iterator] {}",
        ),
        (
            "{ [Symbol.toStringTag]: 'Tagged', a: 1 }",
            "Object [Tagged] { a: 1, [Symbol(Symbol.toStringTag)]: 'Tagged' }",
        ),
        ("new Date(NaN), new Date(5)", "Invalid Date 1970-01-01T00:00:00.005Z"),
        (
            "{ get a() { throw 1 }, set b(x) {}, get c() { return 1 }, set c(x) {} }",
            "{ a: [Getter], b: [Setter], c: [Getter/Setter] }",
        ),
        ("Object.assign([1], { x: 2 }), Object.create({ a: 1 })", "[ 1, x: 2 ] {}"),
        (
            "Object.create((class P {}).prototype), Object.create(Object.create((class Q {}).prototype))",
            "P {} Q {}",
        ),
        ("Math, JSON, globalThis === this", "Object [Math] {} Object [JSON] {} true"),
        ("console.log, Math.max", "[Function: log] [Function: max]"),
    ]);
}

#[test]
fn our_own_objects_are_shown_by_what_they_hold() {
    lines(&[
        (
            "new URL('https://h:1/a?b#c')",
            "URL { href: 'https://h:1/a?b#c', origin: 'https://h:1', protocol: 'https:', host: 'h:1', pathname: '/a', search: '?b', hash: '#c' }",
        ),
        ("new URLSearchParams('a=1&b=2')", "URLSearchParams { a: '1', b: '2' }"),
        (
            "new AbortController(), AbortSignal.abort()",
            "AbortController { signal: AbortSignal { aborted: false } } AbortSignal { aborted: true }",
        ),
        ("new Event('x')", "Event { type: 'x' }"),
        ("[new DOMException('gone', 'AbortError')]", "[ [AbortError: gone] ]"),
    ]);
}

#[test]
fn errors_show_what_they_carry() {
    let shown = printed(
        "const strip = (e) => { e.stack = ''; return e };
         console.log(strip(Object.assign(new Error('a'), { code: 'X', n: 1 })));
         console.log(strip(new Error('outer', { cause: strip(new TypeError('inner')) })));
         console.log(strip(new AggregateError([strip(new Error('one'))], 'all')));
         console.log({ e: Object.assign(new RangeError('deep'), { code: 7 }) });
         class MyError extends Error { name = 'MyError' } console.log(strip(new MyError('mine')).message)",
    );
    assert_eq!(
        shown,
        [
            "Error: a { code: 'X', n: 1 }",
            "Error: outer\n  [cause]: [TypeError: inner]",
            "AggregateError: all\n  [errors]: [ [Error: one] ]",
            "{ e: [RangeError: deep] { code: 7 } }",
            "mine",
        ]
    );
}

#[test]
fn dir_shows_as_deep_as_it_is_told() {
    assert_eq!(
        printed(
            "const deep = { a: { b: { c: { d: { e: { f: 1 } } } } } };
             console.dir(deep); console.dir(deep, { depth: 0 }); console.dir(deep, { depth: null }); console.dir('text');
             let abyss = {}; for (let i = 0; i < 1e4; i++) abyss = { abyss }; console.dir(abyss, { depth: Infinity }); console.dir([[[[[[[[new Map([[1, 2]])]]]]]]]], { depth: 99 })"
        )
        .iter()
        .map(|line| if line.len() > 200 { "long".to_owned() } else { line.clone() })
        .collect::<Vec<_>>(),
        [
            "{ a: { b: { c: { d: [Object] } } } }",
            "{ a: [Object] }",
            "{ a: { b: { c: { d: { e: { f: 1 } } } } } }",
            "'text'",
            "long",
            "[ [ [ [ [ [ [ [ Map(1) { 1 => 2 } ] ] ] ] ] ] ] ]",
        ]
    );
}

#[test]
fn tables_are_drawn() {
    let shown = printed(
        "console.table([{ a: 1, b: 'x' }, { a: 22, c: true }]);
         console.table([[1, 2], [3, 4]], ['1']);
         console.table(new Map([['k', 1]])); console.table({ r: { c: 1 } }); console.table(5); console.table([])",
    );
    assert_eq!(
        shown[0],
        "┌─────────┬────┬─────┬──────┐\n\
         │ (index) │ a  │ b   │ c    │\n\
         ├─────────┼────┼─────┼──────┤\n\
         │ 0       │ 1  │ 'x' │      │\n\
         │ 1       │ 22 │     │ true │\n\
         └─────────┴────┴─────┴──────┘"
    );
    assert_eq!(
        shown[1],
        "┌─────────┬───┐\n│ (index) │ 1 │\n├─────────┼───┤\n│ 0       │ 2 │\n│ 1       │ 4 │\n└─────────┴───┘"
    );
    assert_eq!(
        shown[2],
        "┌─────────┬────────┐\n│ (index) │ Values │\n├─────────┼────────┤\n│ 'k'     │ 1      │\n└─────────┴────────┘"
    );
    assert!(shown[3].contains("│ r       │ 1 │"), "{}", shown[3]);
    assert_eq!(shown[4], "5");
    assert_eq!(shown[5], "┌─────────┐\n│ (index) │\n├─────────┤\n└─────────┘");
}

#[test]
fn counters_assertions_groups_and_traces_work() {
    assert_eq!(
        printed(
            "console.count(); console.count('x'); console.count(); console.countReset(); console.count(); console.countReset('nope');
             console.assert(true, 'never'); console.assert(false); console.assert(0, 'is %s', 'zero', { a: 1 });
             console.group('outer'); console.log('in\\nside'); console.group(); console.log([1]); console.groupEnd(); console.groupEnd(); console.groupEnd(); console.log('out');
             function where() { console.trace('here') }\nwhere()"
        ),
        [
            "default: 1", "x: 1", "default: 2", "default: 1", "Count for 'nope' does not exist", "Assertion failed",
            "Assertion failed: is zero {\"a\":1}", "outer", "  in\n  side", "    [1]", "out",
            "Trace: here\n    at where (program.js:4:41)\n    at <anonymous> (program.js:5:1)",
        ]
    );
}

#[test]
fn each_method_has_its_level() {
    let mut guest = Guest::running(
        "console.info('a'); console.warn({}); console.error('%s', 'c'); console.debug(1); console.assert(false); typeof console.time + typeof console.timeEnd",
    );
    assert_eq!(
        guest.until("done"),
        [
            "started",
            "info a [0.1]",
            "warn {} [0.2]",
            "error c [0.3]",
            "debug 1 [0.4]",
            "error Assertion failed [0.5]",
            "done undefinedundefined"
        ]
    );
}

#[test]
fn nothing_of_the_guests_is_run_to_show_a_value() {
    assert_eq!(
        printed(
            "let ran = 0; const touch = () => { ran += 1; return 'x' };
             console.log({ get a() { return touch() }, toString: touch, toJSON: touch, inspect: touch, [Symbol.toPrimitive]: touch, [Symbol.iterator]: touch, [Symbol.for('nodejs.util.inspect.custom')]: touch });
             console.log(Object.create({ get constructor() { return touch() }, get [Symbol.toStringTag]() { return touch() } }));
             class Sneaky { get x() { return touch() } static get name() { return touch() } } console.log(new Sneaky(), Sneaky); console.table([{ get a() { return touch() } }]);
             console.log(ran)"
        )
        .last()
        .unwrap(),
        // The language itself reads the tag of one object.
        "1"
    );
}
