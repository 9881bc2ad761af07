//! `structuredClone`.

use crate::guest::value;

#[track_caller]
fn all(rows: &[(&str, &str)]) {
    for (code, expected) in rows {
        assert_eq!(value(code), *expected, "{code}");
    }
}

#[test]
fn copies_share_nothing_with_what_they_were_made_of() {
    all(&[
        (
            "const a = { x: [1, { y: 2 }], u: undefined, n: null, d: -0 }; const b = structuredClone(a); a.x[1].y = 9; [b, b !== a, Object.is(b.d, -0), 'u' in b]",
            r#"[{"d":0,"n":null,"x":[1,{"y":2}]},true,true,true]"#,
        ),
        (
            "[1, 'a', true, null, 10n, undefined].map((x) => structuredClone(x) === x)",
            "[true,true,true,true,true,true]",
        ),
        (
            "const a = [1, , 3]; a.extra = 4; const b = structuredClone(a); [b.length, 1 in b, b.extra]",
            "[3,false,4]",
        ),
        (
            "const d = structuredClone(new Date(5)); [d instanceof Date, d.getTime(), d.constructor === Date, isNaN(structuredClone(new Date(NaN)))]",
            "[true,5,true,true]",
        ),
        (
            "const r = /a.b/giy; r.lastIndex = 2; const c = structuredClone(r); [c.source, c.flags, c.lastIndex, c !== r]",
            r#"["a.b","giy",0,true]"#,
        ),
        (
            "const m = structuredClone(new Map([[{ k: 1 }, new Set([1, 'a'])]])); [m instanceof Map, [...m.keys()][0].k, [...[...m.values()][0]]]",
            r#"[true,1,[1,"a"]]"#,
        ),
        (
            "[Object(1), Object('s'), Object(false), Object(3n)].map((x) => { const c = structuredClone(x); return [typeof c, String(c)] })",
            r#"[["object","1"],["object","s"],["object","false"],["object","3"]]"#,
        ),
        ("structuredClone({ get a() { return 7 } })", r#"{"a":7}"#),
        (
            "class P { x = 1; get y() { return 2 } } const c = structuredClone(new P()); [c, c instanceof P, Object.getPrototypeOf(c) === Object.prototype]",
            r#"[{"x":1},false,true]"#,
        ),
        (
            "Object.getPrototypeOf(structuredClone(Object.assign(Object.create(null), { a: 1 }))) === Object.prototype",
            "true",
        ),
        (
            "const o = { [Symbol('s')]: 1, a: 2 }; Object.defineProperty(o, 'hidden', { value: 3 }); Reflect.ownKeys(structuredClone(o))",
            r#"["a"]"#,
        ),
        (
            "const o = structuredClone(JSON.parse('{\"__proto__\": { \"a\": 1 }}')); [Object.hasOwn(o, '__proto__'), o.a]",
            "[true,null]",
        ),
        ("[structuredClone.name, structuredClone.length]", r#"["structuredClone",1]"#),
    ]);
}

#[test]
fn loops_and_shared_parts_stay_as_they_are() {
    all(&[
        (
            "const a = { n: 1 }; a.self = a; a.list = [a]; a.map = new Map([[a, a]]); const b = structuredClone(a); [b.self === b, b.list[0] === b, b.map.get(b) === b, b !== a]",
            "[true,true,true,true]",
        ),
        (
            "const s = { x: 1 }; const b = structuredClone([s, s]); [b[0] === b[1], b[0] !== s]",
            "[true,true]",
        ),
        (
            "const buffer = new ArrayBuffer(4); const b = structuredClone({ a: new Uint8Array(buffer), b: new Uint16Array(buffer, 2) }); b.a[2] = 1; [b.b[0], b.a.buffer === b.b.buffer]",
            "[1,true]",
        ),
        (
            "const e = new Error('x'); e.cause = e; const c = structuredClone(e); c.cause === c",
            "true",
        ),
    ]);
}

#[test]
fn bytes_are_copied_or_handed_over() {
    all(&[
        (
            "const a = new Uint8Array([1, 2, 3, 4]).subarray(1, 3); const c = structuredClone(a); a[0] = 9; [[...c], c.byteOffset, c.buffer.byteLength]",
            "[[2,3],1,4]",
        ),
        (
            "[new Float64Array([1.5]), new BigInt64Array([-1n]), new Uint8ClampedArray([300]), new Float16Array([0.5])].map((x) => { const c = structuredClone(x); return [c.constructor.name, String(c[0])] })",
            r#"[["Float64Array","1.5"],["BigInt64Array","-1"],["Uint8ClampedArray","255"],["Float16Array","0.5"]]"#,
        ),
        (
            "const v = structuredClone(new DataView(new Uint8Array([1, 2, 3]).buffer, 1, 2)); [v.getUint8(0), v.byteLength]",
            "[2,2]",
        ),
        (
            "const b = structuredClone(new ArrayBuffer(2, { maxByteLength: 8 })); [b.resizable, b.byteLength, b.maxByteLength]",
            "[true,2,8]",
        ),
        (
            "const a = new Uint8Array([1, 2, 3]).subarray(1); const c = structuredClone(a, { transfer: [a.buffer] }); [[...c], a.length, a.buffer.detached]",
            "[[2,3],0,true]",
        ),
        (
            "const b = new ArrayBuffer(1); const e = []; for (const t of [[b, b], [{}], 5]) try { structuredClone(1, { transfer: t }) } catch (x) { e.push(x.name) } [e, b.byteLength]",
            r#"[["DataCloneError","DataCloneError","TypeError"],1]"#,
        ),
    ]);
}

#[test]
fn errors_keep_their_kind() {
    all(&[
        (
            "[Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError].every((T) => { const e = structuredClone(new T('m')); return e instanceof T && e.message === 'm' && e.constructor === T && Object.keys(e).length === 0 })",
            "true",
        ),
        (
            "class Mine extends Error { name = 'Mine'; extra = 1 } const c = structuredClone(new Mine('m', { cause: { a: 1 } })); [c.name, c.message, c.cause, c.extra, c.constructor === Error]",
            r#"["Error","m",{"a":1},null,true]"#,
        ),
        (
            "const e = structuredClone(new DOMException('m', 'AbortError')); [e.name, e.message, e.code, e instanceof DOMException]",
            r#"["AbortError","m",20,true]"#,
        ),
        ("const e = new Error('m'); structuredClone(e).stack === e.stack", "true"),
    ]);
}

#[test]
fn what_cannot_be_cloned_is_refused_by_name() {
    let refusals = "const tried = (x) => { try { structuredClone(x); return 'cloned' } catch (e) { return [e.name, e.code, e instanceof DOMException, e.message] } };";
    for (what, message) in [
        ("() => 1", "a function could not be cloned."),
        ("class A {}", "a function could not be cloned."),
        ("Symbol('s')", "Symbol(s) could not be cloned."),
        ("{ deep: [() => 1] }", "a function could not be cloned."),
        ("Promise.resolve()", "#<Promise> could not be cloned."),
        ("new WeakMap()", "#<WeakMap> could not be cloned."),
        ("new WeakSet()", "#<WeakSet> could not be cloned."),
        ("Object(Symbol())", "#<Symbol> could not be cloned."),
        ("(function* () {})()", "#<Object> could not be cloned."),
        ("new URL('a:b')", "#<URL> could not be cloned."),
        ("new AbortController().signal", "#<AbortSignal> could not be cloned."),
        ("tools", "a function could not be cloned."),
    ] {
        assert_eq!(
            value(&format!("{refusals} tried({what})")),
            format!(r#"["DataCloneError",25,true,"{message}"]"#),
            "{what}"
        );
    }
    all(&[("let e; try { structuredClone() } catch (x) { e = x.name } e", r#""TypeError""#)]);
}

#[test]
fn a_forged_tag_changes_nothing() {
    all(&[
        (
            "structuredClone(Object.assign(Object.create({ [Symbol.toStringTag]: 'Map' }), { a: 1 }))",
            r#"{"a":1}"#,
        ),
        (
            "structuredClone(Object.assign(Object.create({ [Symbol.toStringTag]: 'Date' }), { a: 1 }))",
            r#"{"a":1}"#,
        ),
        (
            "const m = new Map([['a', { x: 1 }]]); Map.prototype.forEach = Map.prototype.set = Set.prototype.add = () => { throw 1 }; Object.defineProperty(Object.prototype, 'x', { set() { throw 1 }, configurable: true }); [...structuredClone(m)]",
            r#"[["a",{"x":1}]]"#,
        ),
        (
            "Object.defineProperty(Array.prototype, 0, { set() { throw 1 }, configurable: true }); const c = structuredClone([1, 2]); delete Array.prototype[0]; c",
            "[1,2]",
        ),
    ]);
}
