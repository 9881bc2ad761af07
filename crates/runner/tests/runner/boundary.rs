//! Values at the boundary: the values that programs return, pass to tools and emit, and the conversion of tool results.

use crate::guest::{Guest, Run, done, failure, printed, value};
use crate::hosted;
use serde_json::{Value, json};

/// Values that JSON cannot represent, and their representation at the boundary.
const FORMS: &[(&str, &str)] = &[
    ("new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
    ("new Date(NaN)", "null"),
    ("[10n, -(2n ** 64n)]", r#"["10","-18446744073709551616"]"#),
    ("[NaN, Infinity, { a: -Infinity }]", r#"["NaN","Infinity",{"a":"-Infinity"}]"#),
    ("new Map([['b', 1], ['a', new Map()]])", r#"{"b":1,"a":{}}"#),
    ("new Map([['a', 1], [2, 'b'], [{ c: 3 }, null]])", r#"[["a",1],[2,"b"],[{"c":3},null]]"#),
    ("new Map([['__proto__', { x: 1 }], ['toJSON', 1]])", r#"{"__proto__":{"x":1},"toJSON":1}"#),
    ("new Map([['a', undefined], ['b', () => 1], ['c', Symbol()]])", "{}"),
    ("new Set([1, 'a', undefined, new Set([1n])])", r#"[1,"a",null,["1"]]"#),
    (
        "new Uint8Array([104, 105])",
        r#"{"_tag":"ToolFile","mimeType":"application/octet-stream","encoding":"base64","data":"aGk=","byteLength":2}"#,
    ),
    (
        "[new Uint8ClampedArray(1), new ArrayBuffer(1), new DataView(new ArrayBuffer(3), 1, 1)].map((b) => ({ b })).map((o) => JSON.stringify(o)).length",
        "3",
    ),
    ("new Float64Array([1.5, -0, NaN, -Infinity])", r#"[1.5,0,"NaN","-Infinity"]"#),
    ("[new Int8Array([-1]), new Uint16Array(0), new Float32Array([1.5])]", "[[-1],[],[1.5]]"),
    ("[new BigInt64Array([-1n, 2n]), new BigUint64Array()]", r#"[["-1","2"],[]]"#),
    ("new TypeError('no', { cause: 'x' })", r#"{"name":"TypeError","message":"no","cause":"x"}"#),
    (
        "Object.assign(new Error(''), { code: 7, f() {} })",
        r#"{"name":"Error","message":"","code":7}"#,
    ),
    ("[/x/g, new WeakMap(), Object(5), Object('s')]", r#"[{},{},5,"s"]"#),
    ("Object.create(Map.prototype)", "{}"),
    ("Object.setPrototypeOf(new Map([['a', 1]]), null)", r#"{"a":1}"#),
    (
        "new (class extends Map { get(k) { throw 1 } forEach() { throw 2 } })([['a', 1]])",
        r#"{"a":1}"#,
    ),
    ("new Map([['a', 1]]).entries()", "{}"),
];

#[test]
fn a_programs_value_has_the_documented_forms() {
    for (code, expected) in FORMS {
        assert_eq!(value(code), sorted(expected), "{code}");
    }
}

#[test]
fn bytes_are_a_file_however_they_are_looked_at() {
    let forms = value(
        "const { buffer } = new Uint8Array([0, 255, 254, 7]);
         [new Uint8ClampedArray(buffer), buffer, new DataView(buffer, 1, 2), new Uint8Array(buffer, 3)]",
    );
    let forms: Vec<Value> = serde_json::from_str(&forms).unwrap();
    let data: Vec<_> = forms.iter().map(|form| form["data"].as_str().unwrap()).collect();
    assert_eq!(data, ["AP/+Bw==", "AP/+Bw==", "//4=", "Bw=="]);
    assert!(forms.iter().all(|form| form["_tag"] == "ToolFile"), "{forms:?}");
}

#[test]
fn arguments_and_emitted_items_have_the_same_forms() {
    for (code, expected) in FORMS {
        let mut guest = Guest::running(&format!(
            "emit({code}); await tools.t({code}); await tools.t(({code}))"
        ));
        guest.next();
        assert_eq!(guest.next().unwrap()["item"].to_string(), sorted(expected), "{code}");
        assert_eq!(guest.next().unwrap()["input"].to_string(), sorted(expected), "{code}");
    }
}

/// Normalizes JSON as the message reader does.
fn sorted(json: &str) -> String {
    serde_json::from_str::<Value>(json).unwrap().to_string()
}

#[test]
fn what_holds_itself_is_refused_and_what_is_shared_is_not() {
    for code in [
        "const m = new Map(); m.set('a', m); m",
        "const m = new Map(); m.set('a', { b: [m] }); [m]",
        "const m = new Map(); m.set(m, 1); m",
        "const s = new Set(); s.add([s]); ({ s })",
        "const a = new Map(), b = new Set([a]); a.set(1, b); a",
        "const o = {}; o.m = new Map([['o', o]]); o",
        "const e = new Error('x'); e.cause = e; e",
    ] {
        let (kind, message) = failure(code);
        assert_eq!(kind, "serialization", "{code}: {message}");
        assert!(message.contains("circular"), "{code}: {message}");
    }
    let shared = "const m = new Map([['a', []]]), o = { m }; new Map([['x', [m, m, o]], ['y', new Set([o])], ['z', m]])";
    let m = r#"{"a":[]}"#;
    let o = r#"{"m":{"a":[]}}"#;
    assert_eq!(value(shared), format!(r#"{{"x":[{m},{m},{o}],"y":[{o}],"z":{m}}}"#));
    let deep = "let m = 1; for (let i = 0; i < 40; i++) m = new Map([['m', [m]]]); m";
    let deep = value(deep);
    assert!(deep.starts_with(r#"{"m":[{"m":["#) && deep.contains("[1]}]}"), "{}", deep.len());
}

#[test]
fn an_object_that_says_how_it_is_written_is_written_so() {
    for (code, expected) in [
        ("Object.assign(new Map([[1, 2]]), { toJSON: () => 'mine' })", r#""mine""#),
        (
            "Map.prototype.toJSON = function (key) { return [key, this.size] }; ({ a: new Map([[1, 2]]) })",
            r#"{"a":["a",1]}"#,
        ),
        ("Uint8Array.prototype.toJSON = () => 5; [new Uint8Array(1)]", "[5]"),
        ("BigInt.prototype.toJSON = function () { return Number(this) }; [1n]", "[1]"),
        (
            "({ toJSON: () => new Map([['a', new Date(0)]]) })",
            r#"{"a":"1970-01-01T00:00:00.000Z"}"#,
        ),
        ("Date.prototype.toJSON = () => 'then'; [new Date(0)]", r#"["then"]"#),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}

#[test]
fn getters_run_once_and_what_they_throw_is_the_reason() {
    let mut guest = Guest::running(
        "let n = 0; const o = { get a() { n += 1; return new Map([['n', n]]) }, b: null, toJSON() { n += 10; return { c: this.a, d: 1n, e: NaN } } };
         await tools.t(o); emit(n); o",
    );
    guest.next();
    assert_eq!(guest.next().unwrap()["input"], json!({"c": {"n": 11}, "d": "1", "e": "NaN"}));
    guest.resolve(1, "null", 0);
    assert_eq!(
        guest.until("done"),
        ["idle 0", "emit 11 [1.1]", r#"done {"c":{"n":22},"d":"1","e":"NaN"}"#]
    );
    for code in [
        "new Map([['a', { get b() { throw new Error('no way') } }]])",
        "new Set([{ toJSON() { throw new Error('no way') } }])",
        "[new Proxy({}, { get() { throw new Error('no way') } })]",
    ] {
        let (kind, message) = failure(code);
        assert_eq!(
            (kind.as_str(), message.contains("no way")),
            ("serialization", true),
            "{message}"
        );
    }
}

#[test]
fn a_proxy_is_asked_what_json_stringify_asks_it() {
    let code = "const asked = []; const traps = new Proxy({}, { get: (_, trap) => (...args) => { asked.push(trap + ' ' + String(args[1])); return Reflect[trap](...args) } });
        const wrap = (target) => new Proxy(target, traps);
        const values = () => [wrap({ a: 1 }), wrap([1, wrap({})]), wrap(new Map([[1, 2]])), wrap(new Set([1])), wrap(new Uint8Array(2)), wrap(new Error('x'))];
        emit(values()); const ours = asked.splice(0).join(); const json = JSON.stringify(values()); [asked.join() === ours, json]";
    assert_eq!(value(code), r#"[true,"[{\"a\":1},[1,{}],{},{},{\"0\":0,\"1\":0},{}]"]"#);
}

fn next_call(guest: &mut Guest) -> Value {
    loop {
        let message = guest.next().unwrap();
        assert_ne!(message["type"], "done", "{message}");
        if message["type"] == "tool_call" {
            return message;
        }
    }
}

/// Built-ins that a guest can replace before its values are serialized.
const TAMPERINGS: &[&str] = &[
    "",
    "JSON.stringify = JSON.parse = () => 'forged';",
    "for (const T of [Map, Set, Date, Error, ArrayBuffer, DataView, Uint8Array, Object.getPrototypeOf(Uint8Array), BigInt]) for (const k of Reflect.ownKeys(T.prototype)) if (k !== 'constructor' && k !== 'name' && k !== 'message' && !(T === Date)) try { Object.defineProperty(T.prototype, k, { get() { throw new Error('touched ' + String(k)) }, configurable: true }) } catch {}",
    "for (const k of ['0', '1', 'a', '_tag', 'data', 'form', 'source', 'value', 'n', 'name', 'mimeType']) try { Object.defineProperty(k === 'value' ? Array.prototype : Object.prototype, k, { set() { throw new Error('set ' + k) }, get() { return undefined }, configurable: true }) } catch {}",
    "Uint8Array.fromBase64 = Uint8Array.prototype.toBase64 = Object.setPrototypeOf = Reflect.ownKeys = Array.isArray = () => { throw new Error('called') };",
    "Object.prototype.toJSON = undefined; Array.prototype[Symbol.iterator] = undefined; Map.prototype[Symbol.iterator] = undefined;",
    "Error.prepareStackTrace = () => { throw new Error('stack') };",
];

#[test]
fn what_a_guest_does_to_its_world_changes_no_form() {
    let values = "const values = { a: new Map([['a', 1]]), b: new Set([1n]), c: new Uint8Array([1, 2]), f: new Float32Array([1, NaN]), g: new Error('x') }; ";
    let calls = "const file = (await tools.get()).file, bytes = file.bytes(); \
        await tools.put({ values, n: [bytes[0], bytes[1]], text: file.text(), e: new ToolFile('hi', { name: 'n' }) })";
    let mut expected = None;
    for tampering in TAMPERINGS {
        let mut guest = Guest::running(&[values, tampering, calls].concat());
        next_call(&mut guest);
        guest.resolve(
            1,
            r#"{"file":{"_tag":"ToolFile","mimeType":"text/plain","data":"aGk="}}"#,
            0,
        );
        let input = next_call(&mut guest)["input"].clone();
        assert_eq!(input["text"], "hi", "{tampering}");
        assert_eq!(*expected.get_or_insert_with(|| input.clone()), input, "{tampering}");
    }
}

#[test]
fn bytes_beyond_what_fits_a_message_are_refused_in_a_sentence() {
    for code in ["new Uint8Array(14e6)", "({ a: [new ArrayBuffer(40e6)] })"] {
        let (kind, message) = failure(code);
        assert_eq!(kind, "serialization", "{message}");
        assert!(
            message.contains("bytes are more than the 12576768 that fit a message"),
            "{message}"
        );
    }
    let code = "let seen = []; for (const run of [() => emit(new Uint8Array(14e6)), () => tools.t(new ArrayBuffer(14e6)), () => new ToolFile(new Uint8Array(14e6))]) try { await run() } catch (e) { seen.push(e.message.includes('14000000 bytes are more than the')) } seen";
    assert_eq!(value(code), "[true,true,true]");
    let (kind, message) = failure("Array.from({ length: 3 }, () => new Uint8Array(5e6))");
    assert_eq!(kind, "serialization", "{message}");
    assert_eq!(value("[new Uint8Array(12e6)].length"), "1");
    let whole = done(&Run::new("new Uint8Array(12e6)"))["result"].clone();
    assert_eq!(
        (whole["byteLength"].as_u64(), whole["data"].as_str().unwrap().len()),
        (Some(12_000_000), 16_000_000)
    );
}

#[test]
fn a_file_is_made_of_bytes_or_text_and_its_members_are_its_form() {
    for (code, expected) in [
        (
            "new ToolFile(new Uint8Array([1, 2, 255]), { name: 'a.bin' })",
            r#"{"_tag":"ToolFile","name":"a.bin","mimeType":"application/octet-stream","encoding":"base64","data":"AQL/","byteLength":3}"#,
        ),
        (
            "new ToolFile('é', { mimeType: 'text/csv' })",
            r#"{"_tag":"ToolFile","mimeType":"text/csv","encoding":"base64","data":"w6k=","byteLength":2}"#,
        ),
        (
            "const f = new ToolFile(new Uint16Array([0x6968]).buffer); [f.text(), f.bytes() instanceof Uint8Array, f.byteLength, Object.keys(f), ({ ...f }).data, f instanceof ToolFile, String(f)]",
            r#"["hi",true,2,["_tag","mimeType","encoding","data","byteLength"],"aGk=",true,"[object ToolFile]"]"#,
        ),
        ("const f = new ToolFile('a'); f.bytes()[0] = 98; f.text()", r#""a""#),
        (
            "const f = new ToolFile('a'); f.data = 'Yi0_'; f.name = 'n'; [f.text(), f.bytes().length]",
            r#"["b-?",3]"#,
        ),
        ("new ToolFile('\\ufeffa').text()", r#""a""#),
        ("structuredClone(new ToolFile('a')).data", r#""YQ==""#),
        (
            "[typeof ToolFile, ToolFile.name, ToolFile.length, Object.keys(ToolFile.prototype)]",
            r#"["function","ToolFile",1,[]]"#,
        ),
    ] {
        assert_eq!(value(code), sorted(expected), "{code}");
    }
    for (code, expected) in [
        ("new ToolFile(5)", "a ToolFile is made of a text, an ArrayBuffer or a view of one"),
        ("new ToolFile()", "a ToolFile is made of a text, an ArrayBuffer or a view of one"),
        (
            "new ToolFile(new Proxy(new ArrayBuffer(1), {}))",
            "a ToolFile is made of a text, an ArrayBuffer or a view of one",
        ),
        ("new ToolFile('a', { name: 5 })", "the name of a ToolFile is a text"),
        (
            "Object.assign(new ToolFile('a'), { data: '!' }).bytes()",
            "the data of this ToolFile is not base64",
        ),
        (
            "Object.assign(new ToolFile('a'), { data: undefined }).text()",
            "this ToolFile has no data",
        ),
    ] {
        assert_eq!(failure(code).1, expected, "{code}");
    }
}

#[test]
fn files_in_a_result_have_methods_and_nothing_else_is_changed() {
    let result = json!({
        "ok": true,
        "data": {"_tag": "ToolFile", "mimeType": "image/png", "encoding": "base64", "data": "AAH/", "byteLength": 3},
        "more": [[{"_tag": "ToolFile", "mimeType": "text/plain", "data": "aGk"}], {"_tag": "ToolFile"}, {"date": "1970-01-01T00:00:00.000Z", "n": "10"}],
        "__proto__": {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    });
    let result = result.to_string();
    let code = "const r = await tools.t(), { data, more } = r, block = r['__proto__'];
        emit(r); [data instanceof ToolFile, [...data.bytes()], more[0][0].text(), more.map((v) => v instanceof ToolFile), block.text(), typeof more[2].date, JSON.stringify(r).length]";
    let mut guest = Guest::running(code);
    guest.until("idle");
    guest.resolve(1, &result, 0);
    assert_eq!(guest.next().unwrap()["item"], serde_json::from_str::<Value>(&result).unwrap());
    let expected =
        json!([true, [0, 1, 255], "hi", [false, false, false], "hi", "string", result.len()]);
    assert_eq!(guest.done()["result"], expected);
}

#[test]
fn blocks_of_mcp_that_hold_bytes_stay_as_they_are_and_have_the_methods() {
    let result = r#"{"content":[{"type":"text","text":"t"},{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"audio","data":"AQI=","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"a:b","blob":"aGk=","mimeType":"text/plain"}}]}"#;
    let mut guest = Guest::running(
        "const { content } = await tools.t(); content.forEach((block) => emit(block)); content.map((b) => (b.resource ?? b).bytes?.().length ?? null)",
    );
    guest.until("idle");
    guest.resolve(1, result, 0);
    let parsed: Value = serde_json::from_str(result).unwrap();
    for block in parsed["content"].as_array().unwrap() {
        assert_eq!(guest.next().unwrap()["item"], *block);
    }
    assert_eq!(guest.done()["result"], json!([null, 1, 2, 2]));
}

#[test]
fn a_deep_or_hostile_result_with_files_reaches_the_guest_whole() {
    let file = r#"{"_tag":"ToolFile","mimeType":"","data":"!"}"#;
    let deep = format!("{}{file}{}", "[".repeat(2_000), "]".repeat(2_000));
    let mut guest = Guest::running(
        "let v = await tools.t(), n = 0; while (Array.isArray(v)) { v = v[0]; n += 1 } let said; try { v.bytes() } catch (e) { said = e.message } [n, said]",
    );
    guest.until("idle");
    guest.resolve(1, &deep, 0);
    assert_eq!(guest.done()["result"], json!([2_000, "the data of this ToolFile is not base64"]));
}

#[test]
fn a_file_is_printed_without_its_data() {
    let shown = printed(
        "console.log(new ToolFile(new Uint8Array(3000), { name: 'a' }), [{ f: new ToolFile('hi') }])",
    );
    let expected = "ToolFile { name: 'a', mimeType: 'application/octet-stream', byteLength: 3000 } [ { f: ToolFile { mimeType: 'text/plain', byteLength: 2 } } ]";
    assert_eq!(shown, [expected]);
}

#[test]
fn version_1_keeps_its_forms() {
    let old = |code| done(&Run { prelude: 1, ..Run::new(code) });
    let forms = old(
        "[new Map([['a', 1]]), new Set([1]), new Uint8Array([1]), 1n, new Error('x'), typeof ToolFile]",
    );
    assert_eq!(forms["result"], json!([{}, {}, {"0": 1}, "1", {}, "undefined"]));
    let refused = old("let c; try { await tools.t(1n) } catch (e) { c = e.code } c");
    assert_eq!(refused["result"], "serialization");
    let mut guest = Guest::new();
    guest.execute(&Run { prelude: 1, ..Run::new("typeof (await tools.t()).bytes") });
    guest.until("idle");
    guest.resolve(1, r#"{"_tag":"ToolFile","mimeType":"","data":""}"#, 0);
    assert_eq!(guest.done()["result"], "undefined");
}

#[test]
fn a_foreign_hosts_programs_give_what_json_stringify_makes() {
    let done = hosted::done_with(
        "[new Map([['a', 1]]), new Set([1]), new Uint8Array([1]), NaN, new ToolFile('hi').data]",
        &json!({}),
    );
    assert_eq!(done["result"], json!([{}, {}, {"0": 1}, null, "aGk="]));
}
