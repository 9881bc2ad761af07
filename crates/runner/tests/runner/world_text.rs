//! Encoding and decoding of text, bytes and digests.

use crate::guest::{failure, value};

#[track_caller]
fn all(rows: &[(&str, &str)]) {
    for (code, expected) in rows {
        assert_eq!(value(code), *expected, "{code}");
    }
}

#[test]
fn texts_become_utf_8() {
    all(&[
        ("[...new TextEncoder().encode('aü€😀')]", "[97,195,188,226,130,172,240,159,152,128]"),
        ("[...new TextEncoder().encode('\\ud800x')]", "[239,191,189,120]"),
        ("[new TextEncoder().encode().length, new TextEncoder().encoding]", "[0,\"utf-8\"]"),
        ("new TextEncoder().encode('a') instanceof Uint8Array", "true"),
        (
            "const b = new Uint8Array(6); const r = new TextEncoder().encodeInto('aü😀', b); [r, [...b]]",
            "[{\"read\":2,\"written\":3},[97,195,188,0,0,0]]",
        ),
        ("new TextEncoder().encodeInto('😀', new Uint8Array(4))", "{\"read\":2,\"written\":4}"),
        (
            "const e = []; for (const x of [() => new TextEncoder().encodeInto('a', []), () => TextEncoder(), () => TextEncoder.prototype.encode.call({}, 'a')]) try { x() } catch (x) { e.push(x.name) } e",
            "[\"TypeError\",\"TypeError\",\"TypeError\"]",
        ),
    ]);
}

#[test]
fn utf_8_becomes_text() {
    all(&[
        (
            "new TextDecoder().decode(new Uint8Array([97, 195, 188, 226, 130, 172, 240, 159, 152, 128]))",
            "\"aü€😀\"",
        ),
        ("new TextDecoder().decode()", "\"\""),
        // One replacement character for each maximal part of a truncated sequence.
        (
            "new TextDecoder().decode(new Uint8Array([0xf0, 0x9f, 0x98, 97, 0xff, 0xc0, 0xaf, 0xed, 0xa0, 0x80]))",
            "\"�a������\"",
        ),
        ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 97]))", "\"a\""),
        (
            "new TextDecoder('utf-8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 97])).length",
            "2",
        ),
        ("new TextDecoder().decode(new Uint8Array([1, 97, 98, 2]).subarray(1, 3))", "\"ab\""),
        (
            "new TextDecoder().decode(new DataView(new Uint8Array([97, 98, 99]).buffer, 1, 1))",
            "\"b\"",
        ),
        ("new TextDecoder().decode(new Uint16Array([0x6261]))", "\"ab\""),
        ("new TextDecoder().decode(new Uint8Array([97]).buffer)", "\"a\""),
        (
            "const d = new TextDecoder(' UTF8 ', { fatal: 1 }); [d.encoding, d.fatal, d.ignoreBOM]",
            "[\"utf-8\",true,false]",
        ),
        (
            "const e = []; for (const x of [() => new TextDecoder('latin1'), () => new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])), () => new TextDecoder().decode('a')]) try { x() } catch (x) { e.push(x.name) } e",
            "[\"RangeError\",\"TypeError\",\"TypeError\"]",
        ),
        ("new TextDecoder().decode(new TextEncoder().encode('x'.repeat(3e6))).length", "3000000"),
    ]);
}

#[test]
fn a_stream_is_decoded_however_it_is_cut() {
    all(&[
        (
            "const bytes = new TextEncoder().encode('\\ufeffaü€😀z'); const all = [];
             for (const n of [1, 2, 3, 5]) { const d = new TextDecoder('utf-8', { fatal: true }); let t = ''; for (let i = 0; i < bytes.length; i += n) t += d.decode(bytes.subarray(i, i + n), { stream: true }); all.push(t + d.decode()) } [...new Set(all)]",
            "[\"aü€😀z\"]",
        ),
        (
            "const d = new TextDecoder(); [d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }), d.decode(new Uint8Array([97]), { stream: true }), d.decode(new Uint8Array([0xf0]), { stream: true }), d.decode(), d.decode(new Uint8Array([98]))]",
            "[\"\",\"�a\",\"\",\"�\",\"b\"]",
        ),
        // Bytes that cannot begin a character are replaced immediately.
        ("new TextDecoder().decode(new Uint8Array([0xe0, 0x80]), { stream: true }).length", "2"),
        // The decoder copies the bytes that it buffers.
        (
            "const d = new TextDecoder(), b = new Uint8Array([0xc3]); d.decode(b, { stream: true }); b[0] = 97; d.decode(new Uint8Array([0xbc]))",
            "\"ü\"",
        ),
    ]);
}

#[test]
fn base64_goes_both_ways() {
    all(&[
        (
            "[btoa(''), btoa('a'), btoa('ab'), btoa('abc'), btoa('\\u00ff\\u0000')]",
            "[\"\",\"YQ==\",\"YWI=\",\"YWJj\",\"/wA=\"]",
        ),
        (
            "[atob('YQ=='), atob(' Y W\\nJj '), atob('YWI'), atob('')]",
            "[\"a\",\"abc\",\"ab\",\"\"]",
        ),
        (
            "const e = []; for (const t of ['Y', 'YQ=', 'Y$==', 'YQ==YQ==', '=', 'ü']) try { atob(t); e.push(t) } catch (x) { e.push(x.name, x instanceof DOMException) } e.every((x) => x === 'InvalidCharacterError' || x === true)",
            "true",
        ),
        (
            "let e; try { btoa('€') } catch (x) { e = [x.name, x.code] } e",
            "[\"InvalidCharacterError\",5]",
        ),
    ]);
}

#[test]
fn digests_are_the_standards_own() {
    let hex = "const hex = async (n, d) => Array.from(new Uint8Array(await crypto.subtle.digest(n, d)), (b) => b.toString(16).padStart(2, '0')).join(''); const abc = new TextEncoder().encode('abc');";
    for (name, expected) in [
        ("'SHA-1'", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        ("'sha-256'", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            "{ name: 'SHA-384' }",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
        ),
        (
            "'SHA-512'",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
        ),
    ] {
        assert_eq!(
            value(&format!("{hex} await hex({name}, abc)")),
            format!("{expected:?}"),
            "{name}"
        );
    }
    assert_eq!(
        value(&format!(
            "{hex} [await hex('SHA-256', new ArrayBuffer(0)) === await hex('SHA-256', new Uint8Array(9).subarray(4, 4)), await hex('SHA-1', new DataView(abc.buffer)) === await hex('SHA-1', abc)]"
        )),
        "[true,true]"
    );
    assert_eq!(
        value(
            "const e = []; for (const a of [['MD5', new Uint8Array()], ['SHA-1', 'text'], [null, new Uint8Array()]]) await crypto.subtle.digest(...a).catch((x) => e.push(x.name)); e"
        ),
        "[\"NotSupportedError\",\"TypeError\",\"TypeError\"]"
    );
}

#[test]
fn random_values_fill_arrays_of_integers_only() {
    all(&[
        (
            "const a = new Uint32Array(4); crypto.getRandomValues(a) === a && a.some((x) => x > 0)",
            "true",
        ),
        (
            "const e = []; for (const x of [new Uint8Array(65537), new Float32Array(1), new DataView(new ArrayBuffer(1)), [], null]) try { crypto.getRandomValues(x) } catch (x) { e.push(x.name) } e",
            "[\"QuotaExceededError\",\"TypeError\",\"TypeError\",\"TypeError\",\"TypeError\"]",
        ),
        ("Object.prototype.toString.call(crypto)", "\"[object Crypto]\""),
    ]);
}

#[test]
fn what_is_not_there_says_so() {
    assert_eq!(
        failure("fetch('https://example.com')"),
        (
            "runtime".to_owned(),
            "fetch is disabled: everything outside is reached through tools.*".to_owned()
        )
    );
    all(&[(
        "['navigator', 'require', 'process', 'Buffer', 'XMLHttpRequest', 'WebSocket', 'setImmediate', 'window', 'self', 'global', 'importScripts', 'Worker'].filter((n) => n in globalThis)",
        "[]",
    )]);
}
