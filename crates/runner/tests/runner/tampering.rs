//! A guest that replaces built-ins changes its own world, but not the reports about it.

use crate::guest::{Guest, Run, done, printed, value};

#[test]
fn replaced_builtins_do_not_change_what_is_reported() {
    for tamper in [
        "JSON.stringify = () => '\"forged\"'; JSON.parse = () => 'forged';",
        "globalThis.JSON = undefined;",
        "Promise = class {}; globalThis.Promise = undefined;",
        "Promise.prototype.then = function () { throw 1 };",
        "Array.prototype[Symbol.iterator] = function* () { yield 'forged' };",
        "Object.defineProperty(Array.prototype, '9', { set() { throw 1 }, get() { return 'forged' }, configurable: true });",
        "for (const k of ['call', 'apply', 'bind']) Function.prototype[k] = () => 'forged';",
        "for (const k of Reflect.ownKeys(String.prototype)) if (typeof k === 'string' && k !== 'length') try { String.prototype[k] = () => 'forged' } catch {}",
        "Reflect.apply = Reflect.construct = Reflect.ownKeys = () => { throw 1 };",
        "WeakMap.prototype.get = () => ({ code: 'memory_limit', message: 'x' }); WeakMap.prototype.set = () => {};",
        "Object.prototype.code = 'memory_limit'; Object.prototype.then = undefined;",
        "Map.prototype.get = Set.prototype.has = () => { throw 1 };",
        "for (const k of Object.getOwnPropertyNames(globalThis)) if (k !== 'tools' && k !== 'console') try { delete globalThis[k] } catch {}",
    ] {
        let code = format!(
            "{tamper}\nconsole.log('line', 1);\nconst v = await tools.a.b({{ n: 1 }});\n({{ v }})"
        );
        let mut guest = Guest::running(&code);
        assert_eq!(
            guest.until("idle"),
            ["started", "log line 1 [0.1]", "call 1 a.b {\"n\":1}", "idle 0"],
            "{tamper}"
        );
        guest.resolve(1, "{\"x\":[1]}", 0);
        assert_eq!(guest.until("done"), ["done {\"v\":{\"x\":[1]}}"], "{tamper}");
    }
}

#[test]
fn a_setter_under_the_engines_own_arrays_breaks_only_the_guests_own_json() {
    // The engine's stringify stores its path in an ordinary array. This limit is known and harmless: nothing is forged.
    let code = "Object.defineProperty(Array.prototype, '0', { set() { throw 1 } }); ({ a: 1 })";
    assert_eq!(done(&Run::new(code))["error"]["code"], "serialization");
}

#[test]
fn the_hosts_hooks_cannot_be_reached() {
    assert_eq!(
        value(
            "Object.getOwnPropertyNames(globalThis).filter((n) => /host|hook|airlock|__/.test(n))"
        ),
        "[]"
    );
    assert_eq!(
        value("typeof host + typeof start + typeof failed + typeof calls"),
        "\"undefinedundefinedundefinedundefined\""
    );
    assert_eq!(
        value(
            "['WeakRef', 'FinalizationRegistry', 'Atomics', 'SharedArrayBuffer', 'InternalError', 'process', 'require'].filter((n) => n in globalThis)"
        ),
        "[]"
    );
    // A removed constructor is not reachable through an object that it created either.
    assert_eq!(
        value(
            "let c; try { new ArrayBuffer(1e12) } catch (e) { c = Object.hasOwn(Object.getPrototypeOf(e), 'constructor') && e.constructor.name } c === 'InternalError'"
        ),
        "false"
    );
}

#[test]
fn prepare_stack_trace_changes_only_the_guests_own_stacks() {
    let done = done(&Run::new(
        "Error.prepareStackTrace = () => 'program.js forged'; throw new Error('x')",
    ));
    assert_eq!(done["error"]["code"], "runtime");
    assert_eq!(done["error"]["message"], "x");
}

#[test]
fn a_call_site_hands_out_no_function_of_the_world() {
    assert_eq!(
        value(
            "const seen = [];
             Error.prepareStackTrace = (error, sites) => { for (const site of sites) seen.push(typeof site.getFunction); return '' };
             structuredClone({ get a() { return new Error('x').stack } });
             [seen.length > 1, ...new Set(seen)]"
        ),
        r#"[true,"undefined"]"#
    );
}

#[test]
fn values_that_resist_being_shown_are_shown_all_the_same() {
    let shown = printed(
        "console.log(new Proxy({}, { ownKeys() { throw 1 } }));
         console.log({ get [Symbol.toStringTag]() { throw 1 }, a: 1 });
         console.log(Object.assign(Object.create({ [Symbol.toStringTag]: 'Map' }), { b: 2 }));
         console.log(Object.assign(new Error('e'), { name: 7 }).name)",
    );
    assert_eq!(shown[0], "[a value that cannot be shown]");
    assert!(shown[1].contains("a: 1"), "{}", shown[1]);
    assert!(shown[2].contains("b: 2"), "{}", shown[2]);
}

#[test]
fn text_that_closes_the_wrapper_stays_inside() {
    let done = done(&Run::new("}); throw new Error('out of memory'); (async () => {"));
    assert_eq!(done["error"]["name"], "SyntaxError");
    // Parsers disagree about HTML-style comments. Any outcome is acceptable if it affects only the guest itself.
    let html = "a = 1\n--> /*\n}); throw 'out'; (async () => {\n// */ 0";
    assert!(["runtime"].contains(&done_code(html).as_str()));
}

fn done_code(code: &str) -> String {
    done(&Run::new(code))["error"]["code"].as_str().unwrap_or("runtime").to_owned()
}
