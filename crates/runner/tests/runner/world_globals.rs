//! The global object: its shape, its lazy initialization, which programs cannot observe, and its resistance to tampering.

use crate::guest::{Guest, Run, done, printed, value};

/// Globals that are compiled on first use.
const LAZY: &[&str] = &[
    "tools",
    "emit",
    "fetch",
    "setTimeout",
    "setInterval",
    "clearTimeout",
    "clearInterval",
    "queueMicrotask",
    "crypto",
    "structuredClone",
    "TextEncoder",
    "TextDecoder",
    "URL",
    "URLSearchParams",
    "Event",
    "CustomEvent",
    "EventTarget",
    "AbortController",
    "AbortSignal",
    "ToolFile",
];

#[test]
fn every_global_looks_like_an_ordinary_property() {
    let names = serde_json::to_string(LAZY).unwrap();
    for look in [
        "Object.getOwnPropertyDescriptor(globalThis, n)",
        "Reflect.getOwnPropertyDescriptor(globalThis, n)",
        "Object.getOwnPropertyDescriptors(globalThis)[n]",
    ] {
        let code = format!(
            "{names}.filter((n) => {{ const d = {look}; return !('value' in d) || d.value === undefined || !d.writable || d.enumerable || !d.configurable || d.value !== globalThis[n] }})"
        );
        assert_eq!(value(&code), "[]", "{look}");
    }
    assert_eq!(value("Object.keys(globalThis)"), "[]");
    assert_eq!(
        value(&format!(
            "{names}.filter((n) => !(n in globalThis) || !Object.hasOwn(globalThis, n))"
        )),
        "[]"
    );
    assert_eq!(
        value(
            "[URL.name, URL.length, AbortController.name, structuredClone.name, setTimeout.name, Object.getOwnPropertyDescriptor.name, Object.getOwnPropertyDescriptor.length]"
        ),
        r#"["URL",1,"AbortController","structuredClone","setTimeout","getOwnPropertyDescriptor",2]"#
    );
}

#[test]
fn globals_can_be_replaced_shadowed_and_removed_before_they_are_made() {
    for (code, expected) in [
        (
            "URL = 5; [URL, Object.getOwnPropertyDescriptor(globalThis, 'URL')]",
            r#"[5,{"configurable":true,"enumerable":false,"value":5,"writable":true}]"#,
        ),
        ("globalThis.structuredClone = () => 'mine'; structuredClone(1)", r#""mine""#),
        (
            "delete globalThis.crypto; [typeof crypto, 'crypto' in globalThis]",
            r#"["undefined",false]"#,
        ),
        (
            "const o = Object.create(globalThis); o.URL = 1; [Object.keys(o), typeof URL]",
            r#"[["URL"],"function"]"#,
        ),
        ("const setTimeout = 1; setTimeout", "1"),
        (
            "Object.freeze(globalThis); [new URL('a:b').href, URL === URL, new URL('a:b') instanceof URL]",
            r#"["a:b",true,true]"#,
        ),
        ("Object.defineProperty(globalThis, 'URL', { value: 7 }); URL", "7"),
        ("URL === globalThis.URL && URL === URL && new URL('a:b').constructor === URL", "true"),
        (
            "Object.getOwnPropertyDescriptor(5, 'x') === undefined && Object.getOwnPropertyDescriptor({ a: 1 }, 'a').value",
            "1",
        ),
        (
            "let e; try { Reflect.getOwnPropertyDescriptor(5, 'x') } catch (x) { e = x.name } e",
            r#""TypeError""#,
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

/// Built-ins that a guest can replace before any of our code is compiled in its world.
const TAMPERINGS: &[&str] = &[
    "",
    "JSON.stringify = () => '\"forged\"';",
    "for (const T of [String, Array, Number, Map, Set, WeakMap, RegExp, Date, ArrayBuffer, DataView, Uint8Array, Object.getPrototypeOf(Uint8Array), Symbol, Boolean, BigInt, Error]) for (const k of Reflect.ownKeys(T.prototype)) if (k !== 'constructor' && k !== Symbol.iterator && k !== Symbol.toPrimitive && k !== 'name' && k !== 'message') try { Object.defineProperty(T.prototype, k, { get() { throw new Error('touched ' + String(k)) }, set() { throw new Error('set ' + String(k)) }, configurable: true }) } catch {}",
    "for (const T of [Array, Object, String]) for (const k of ['5', '6', '9', 'a', 'name', 'value', 'length', 'get', 'set', 'next', 'scheme']) try { Object.defineProperty(T.prototype, k, { set() { throw new Error('set ' + k) }, get() { return undefined }, configurable: true }) } catch {}",
    "for (const k of ['call', 'apply', 'bind']) Function.prototype[k] = () => { throw new Error('called') };",
    "const names = Object.getOwnPropertyNames; for (const o of [Reflect, Object, Math, Number, String, Array, ArrayBuffer, Uint8Array]) for (const k of names(o)) if (typeof o[k] === 'function') try { o[k] = () => { throw new Error('static ' + k) } } catch {}",
    "for (const T of [Uint8Array, ArrayBuffer, Promise, RegExp, Array, Map, Set]) { T.prototype.constructor = class { constructor() { throw new Error('species') } }; Object.defineProperty(T, Symbol.species, { get() { throw new Error('species') } }) }",
    "for (const k of Object.getOwnPropertyNames(globalThis)) if (!['tools', 'console', 'URL', 'TextEncoder', 'TextDecoder', 'structuredClone', 'crypto', 'AbortController', 'AbortSignal', 'setTimeout'].includes(k)) try { delete globalThis[k] } catch {}",
    "String.prototype[Symbol.replace] = String.prototype[Symbol.split] = Object.prototype[Symbol.toPrimitive] = () => { throw new Error('symbol') };",
    "let kit = 1, host = 2; (0, eval)('let kit = 1, host = 2, load = 3, create = 4, slice = 5; var define = 6')",
];

#[test]
fn what_is_compiled_after_the_guest_has_tampered_works_all_the_same() {
    let code = "\
        const said = { __proto__: null };\
        const u = new URL('../ü?a=1#f', 'https://Example.com:443/x/y'); u.searchParams.append('b', 'c d'); u.hash = '';\
        said[0] = u.href; said[1] = u.searchParams.get('b');\
        said[2] = new TextDecoder().decode(new TextEncoder().encode('a€'));\
        const c = structuredClone({ k: [1, { z: 2 }] }); said[3] = c.k[1].z;\
        said[4] = (await crypto.subtle.digest('SHA-1', new TextEncoder().encode('abc'))) !== undefined;\
        said[5] = crypto.randomUUID().length;\
        const a = new AbortController(); a.signal.addEventListener('abort', () => { said[6] = 'aborted' }); a.abort();\
        console.log({ a: [1, 'b'] }, said[0], '%s', 5); console.log('%s|%d', 'x', 1); console.table([{ k: 1 }]);\
        setTimeout(() => {}, 5);\
        await tools.done({ said0: said[0], said1: said[1], said2: said[2], said3: said[3], said4: said[4], said5: said[5], said6: said[6] });";
    for tamper in TAMPERINGS {
        let program = format!("{tamper}\n{code}");
        // Twice in one runner: the second world is not pre-warmed.
        let mut guest = Guest::new();
        for round in ["warm", "fresh"] {
            guest.execute(&Run::new(&program));
            let seen = guest.until("idle");
            assert_eq!(
                seen[1..],
                [
                    "log {\"a\":[1,\"b\"]} https://example.com/%C3%BC?a=1&b=c+d %s 5 [0.1]",
                    "log x|1 [0.2]",
                    "log ┌─────────┬───┐\n│ (index) │ k │\n├─────────┼───┤\n│ 0       │ 1 │\n└─────────┴───┘ [0.3]",
                    "timer 1 in 5",
                    "call 1 done {\"said0\":\"https://example.com/%C3%BC?a=1&b=c+d\",\"said1\":\"c d\",\"said2\":\"a€\",\"said3\":2,\"said4\":true,\"said5\":36,\"said6\":\"aborted\"}",
                    "idle 0",
                ],
                "{round}: {tamper}"
            );
            guest.resolve(1, "null", 0);
            guest.until("done");
        }
    }
}

#[test]
fn setters_under_every_index_are_not_met() {
    // Does not use a tool, because the engine's own stringify stores its path in an ordinary array.
    let shown = printed(
        "for (const T of [Array, Object]) for (const k of ['0', '1', '2', '3', 'name', 'value', 'n']) Object.defineProperty(T.prototype, k, { __proto__: null, set() { throw new Error('set ' + k) }, configurable: true });
         const u = new URL('a/b/../ü?x=1&y=2', 'http://bücher.example/'); u.searchParams.sort(); u.searchParams.append('z', 3);
         console.log(u.href, u.searchParams.getAll('x').length, [...u.searchParams].length);
         console.log(new Map([[1, { a: [1, 'q'] }]]), [[1]], new URLSearchParams('a=1')); console.table([[1, 2]]);
         console.log(structuredClone({ a: [1, [2]], m: new Map([[1, new Set([5])]]) }), new TextDecoder().decode(new Uint8Array([104, 105])));
         const t = new EventTarget(); t.addEventListener('e', () => console.log('heard')); t.dispatchEvent(new Event('e'))",
    );
    assert_eq!(
        shown,
        [
            "http://xn--bcher-kva.example/a/%C3%BC?x=1&y=2&z=3 1 3",
            "Map(1) { 1 => { a: [ 1, 'q' ] } } [[1]] URLSearchParams { a: '1' }",
            "┌─────────┬───┬───┐\n│ (index) │ 0 │ 1 │\n├─────────┼───┼───┤\n│ 0       │ 1 │ 2 │\n└─────────┴───┴───┘",
            "{ a: [ 1, [ 2 ] ], m: Map(1) { 1 => Set(1) { 5 } } } hi",
            "heard",
        ]
    );
}

#[test]
fn a_warm_and_a_fresh_world_show_a_guest_the_same() {
    let code = "const seen = [Math.random(), crypto.randomUUID(), Object.getOwnPropertyNames(globalThis).length, new Error('x').stack];
        try { new URL('no') } catch (e) { seen.push(e.stack) } try { structuredClone(() => 1) } catch (e) { seen.push(e.stack) }
        console.log(new Map([[1, { a: 1 }]]), seen); seen";
    let mut guest = Guest::new();
    let run = |guest: &mut Guest| {
        guest.execute(&Run::new(code));
        guest.until("done")
    };
    let warm = run(&mut guest);
    assert_eq!(run(&mut guest), warm);
    assert_eq!(run(&mut guest), warm);
}

#[test]
fn no_door_to_the_host_is_left_open() {
    for (code, expected) in [
        // Classes expose none of our internal helpers.
        (
            "[URL, URLSearchParams, Event, EventTarget, AbortController, AbortSignal, TextDecoder].map((c) => Object.getOwnPropertyNames(c).filter((k) => !['length', 'name', 'prototype'].includes(k)).join())",
            r#"["canParse,parse","","","","","abort,timeout,any",""]"#,
        ),
        // Accessors never receive our internal objects.
        (
            "const seen = new Set(); Object.defineProperty(Object.prototype, 'href', { set(v) { seen.add(typeof v) }, configurable: true }); new URL('a:b').href; console.log(new URL('a:b')); [...seen]",
            "[]",
        ),
        (
            "const seen = []; Object.setPrototypeOf(AbortSignal, function (...args) { seen.push(args.length); return Reflect.construct(EventTarget, [], new.target) }); new AbortController(); seen",
            "[0]",
        ),
        (
            "typeof kit + typeof world + typeof load + typeof clock",
            r#""undefinedundefinedundefinedundefined""#,
        ),
        // The real clock is not reachable through a date that a built-in part has created.
        (
            "structuredClone(new Date()).constructor === Date && new (structuredClone(new Date(0)).constructor)().getTime() === Date.now()",
            "true",
        ),
        (
            "Object.getOwnPropertyNames(tools).length + Object.getOwnPropertyNames(Object.getPrototypeOf(console)).filter((k) => k === 'part').length",
            "0",
        ),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

#[test]
fn a_part_that_did_not_fit_is_tried_again() {
    let code = "let depth = 0; const down = () => { depth += 1; try { down() } catch { if (typeof URL !== 'function') throw 1 } };
        try { down() } catch {} new URL('http://h/').href";
    assert_eq!(value(code), "\"http://h/\"");
    let run = Run {
        memory_bytes: 1 << 20,
        ..Run::new(
            "const hoard = []; try { for (;;) hoard.push(new Array(1000).fill(hoard.length)) } catch {} let e = 0; try { URL } catch { e = 1 } hoard.length = 0; new URL('http://h/').href",
        )
    };
    assert_eq!(done(&run)["result"], "http://h/");
}

#[test]
fn time_stands_still_between_inputs() {
    assert_eq!(
        printed(
            "const a = [Date.now(), performance.now(), new Event('x').timeStamp]; for (let i = 0; i < 1e5; i++); console.log(String(a) === String([Date.now(), performance.now(), new Event('x').timeStamp]), performance.timeOrigin === Date.now())"
        ),
        ["true true"]
    );
}
