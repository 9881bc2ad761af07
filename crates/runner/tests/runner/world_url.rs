//! `URL` and `URLSearchParams` follow the URL standard.

use crate::guest::value;

/// Runs a table inside one guest: each row is an input, a base (or nothing) and the expected `href`; `!` is "invalid".
#[track_caller]
fn hrefs(rows: &[(&str, &str, &str)]) {
    let inputs = serde_json::to_string(rows).unwrap();
    let code = format!(
        "{inputs}.map(([input, base]) => {{ try {{ return new URL(input, base || undefined).href }} catch (e) {{ return '!' + (e instanceof TypeError ? '' : e) }} }})"
    );
    let found: Vec<String> = serde_json::from_str(&value(&code)).unwrap();
    for ((input, base, expected), found) in rows.iter().zip(found) {
        assert_eq!(found, *expected, "{input:?} on {base:?}");
    }
}

#[test]
fn absolute_urls_are_parsed_and_normalised() {
    hrefs(&[
        ("https://example.com", "", "https://example.com/"),
        ("  https://example.com/a b \n", "", "https://example.com/a%20b"),
        ("HTTPS://EXAMPLE.com:443/../a/./b/%2e%2E/c", "", "https://example.com/a/c"),
        ("http://example.com:80", "", "http://example.com/"),
        ("http://example.com:8080", "", "http://example.com:8080/"),
        ("http://example.com:65536", "", "!"),
        ("http://example.com:x", "", "!"),
        ("http:example.com", "", "http://example.com/"),
        ("http:\\\\example.com\\a", "", "http://example.com/a"),
        ("http://////example.com/", "", "http://example.com/"),
        ("http://u:p@h/", "", "http://u:p@h/"),
        ("http://u@v:p:q@h/", "", "http://u%40v:p%3Aq@h/"),
        ("http://u:@h/", "", "http://u@h/"),
        ("http://@h/", "", "http://h/"),
        ("http://u@/x", "", "!"),
        ("http://", "", "!"),
        ("http://:80", "", "!"),
        ("https://h/?a=b c'\"<>#x y`z", "", "https://h/?a=b%20c%27%22%3C%3E#x%20y%60z"),
        ("https://h/ü?ü#ü", "", "https://h/%C3%BC?%C3%BC#%C3%BC"),
        ("https://h/{a}|b^c[d]", "", "https://h/%7Ba%7D|b%5Ec[d]"),
        ("https://h/a\tb\nc", "", "https://h/abc"),
        ("https://h/😀", "", "https://h/%F0%9F%98%80"),
        ("https://h/\u{7f}", "", "https://h/%7F"),
        ("https://h?", "", "https://h/?"),
        ("https://h#", "", "https://h/#"),
        ("foo", "", "!"),
        ("", "", "!"),
        ("//h/x", "", "!"),
        ("1http://h", "", "!"),
    ]);
}

#[test]
fn other_schemes_keep_their_shape() {
    hrefs(&[
        ("mailto:Ann@Example.com", "", "mailto:Ann@Example.com"),
        ("data:text/plain,a b#c", "", "data:text/plain,a b#c"),
        ("data:text/plain,a #c", "", "data:text/plain,a%20#c"),
        ("javascript:alert('ü')", "", "javascript:alert('%C3%BC')"),
        ("urn:isbn:1?x#y", "", "urn:isbn:1?x#y"),
        ("git+ssh://U@Host:22/Repo", "", "git+ssh://U@Host:22/Repo"),
        ("foo://", "", "foo://"),
        ("foo:///a", "", "foo:///a"),
        ("foo:/a/../b", "", "foo:/b"),
        ("foo:/..//p", "", "foo:/.//p"),
        ("foo://h h/", "", "!"),
        ("foo://ü/", "", "foo://%C3%BC/"),
        ("foo://h\\a", "", "!"),
        ("foo://[::1]:7/", "", "foo://[::1]:7/"),
        ("file:///a/b", "", "file:///a/b"),
        ("file:a", "", "file:///a"),
        ("file://localhost/a", "", "file:///a"),
        ("file://Host/a", "", "file://host/a"),
        ("file:///C|/x/../..", "", "file:///C:/"),
        ("file:c:\\x\\y", "", "file:///c:/x/y"),
        ("file:///a?b#c", "", "file:///a?b#c"),
        ("blob:https://h/id", "", "blob:https://h/id"),
    ]);
}

#[test]
fn relative_references_are_resolved() {
    let base = "http://a/b/c/d;p?q";
    // The examples of RFC 3986, section 5.4, with the results of the URL standard.
    let rows = [
        ("g:h", "g:h"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g/"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../../../g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("http:g", "http://a/b/c/g"),
        ("\\g", "http://a/g"),
        ("\\\\g\\x", "http://g/x"),
    ];
    hrefs(&rows.map(|(input, expected)| (input, base, expected)));
    hrefs(&[
        ("x", "mailto:a", "!"),
        ("#x", "mailto:a", "mailto:a#x"),
        ("", "mailto:a", "!"),
        ("x", "foo://h/a/b", "foo://h/a/x"),
        ("//g/x", "foo://h/a", "foo://g/x"),
        ("/x", "foo:/a/b", "foo:/x"),
        ("https:x", "http://a/b", "https://x/"),
        ("x", "nonsense", "!"),
        ("x", "file:///C:/a/b", "file:///C:/a/x"),
        ("/x", "file:///C:/a/b", "file:///C:/x"),
        ("D|/x", "file:///C:/a/b", "file:///D:/x"),
        ("?q", "file:///a", "file:///a?q"),
        ("//h/x", "file:///a", "file://h/x"),
        ("..", "file:///C:/", "file:///C:/"),
    ]);
}

#[test]
fn hosts_are_understood() {
    hrefs(&[
        ("http://0x7f.1/", "", "http://127.0.0.1/"),
        ("http://127.1/", "", "http://127.0.0.1/"),
        ("http://2130706433/", "", "http://127.0.0.1/"),
        ("http://0300.0250.1.1./", "", "http://192.168.1.1/"),
        ("http://0x/", "", "http://0.0.0.0/"),
        ("http://256.1.1.1/", "", "!"),
        ("http://1.2.3.4.5/", "", "!"),
        ("http://1.2.3.09/", "", "!"),
        ("http://4294967296/", "", "!"),
        ("http://a.1/", "", "!"),
        ("http://1.a/", "", "http://1.a/"),
        ("http://[::1]/", "", "http://[::1]/"),
        ("http://[2001:DB8:0:0:1:0:0:1]/", "", "http://[2001:db8::1:0:0:1]/"),
        ("http://[1:0:0:2:0:0:0:3]/", "", "http://[1:0:0:2::3]/"),
        ("http://[::ffff:1.2.3.4]/", "", "http://[::ffff:102:304]/"),
        ("http://[1:2:3:4:5:6:7::]/", "", "http://[1:2:3:4:5:6:7:0]/"),
        ("http://[::]/", "", "http://[::]/"),
        ("http://[1:2:3:4:5:6:7]/", "", "!"),
        ("http://[1:2:3:4:5:6:7:8:9]/", "", "!"),
        ("http://[::1::]/", "", "!"),
        ("http://[:1]/", "", "!"),
        ("http://[::12345]/", "", "!"),
        ("http://[::1.2.3]/", "", "!"),
        ("http://[::1.2.3.400]/", "", "!"),
        ("http://[::1", "", "!"),
        ("http://a%41b/", "", "http://aab/"),
        ("http://a b/", "", "!"),
        ("http://a%20b/", "", "!"),
        ("http://a<b/", "", "!"),
        ("http://a%zz/", "", "!"),
        ("http://bücher.example/", "", "http://xn--bcher-kva.example/"),
        ("http://BÜCHER.example/", "", "http://xn--bcher-kva.example/"),
        ("http://b%C3%BCcher.example/", "", "http://xn--bcher-kva.example/"),
        ("http://例え。テスト/", "", "http://xn--r8jz45g.xn--zckzah/"),
        ("http://faß.de/", "", "http://xn--fa-hia.de/"),
        ("http://Ｇｏ.com/", "", "http://go.com/"),
        ("http://a\u{ad}b/", "", "http://ab/"),
        ("http://☃.net/", "", "http://xn--n3h.net/"),
        ("http://😀.la/", "", "http://xn--e28h.la/"),
        ("http://xn--n3h.net/", "", "http://xn--n3h.net/"),
        ("http://xn--/", "", "!"),
        ("http://xn--a/", "", "!"),
        ("http://％４１/", "", "!"),
        ("http://\u{fffd}/", "", "!"),
        // The results of Node: letters of both directions, a mark without a letter, and a joiner in a valid place.
        ("http://\u{5d0}a.com/", "", "!"),
        ("http://\u{300}a.com/", "", "!"),
        ("http://\u{915}\u{94d}\u{200d}\u{937}.com/", "", "http://xn--11b2ezcw70k.com/"),
    ]);
}

#[test]
fn a_url_shows_its_parts() {
    assert_eq!(
        value(
            "const u = new URL('https://u:p@sub.example.com:8443/a/b?x=1&y=2#frag');
             [u.href, u.origin, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, String(u) === u.href, JSON.stringify(u) === JSON.stringify(u.href)]"
        ),
        r##"["https://u:p@sub.example.com:8443/a/b?x=1&y=2#frag","https://sub.example.com:8443","https:","u","p","sub.example.com:8443","sub.example.com","8443","/a/b","?x=1&y=2","#frag",true,true]"##
    );
    assert_eq!(
        value(
            "['https://h/?#', 'file:///a', 'blob:https://h:1/id', 'blob:foo', 'mailto:a'].map((t) => { const u = new URL(t); return [u.search, u.hash, u.origin, u.hostname, u.pathname] })"
        ),
        r#"[["","","https://h","h","/"],["","","null","","/a"],["","","https://h:1","","https://h:1/id"],["","","null","","foo"],["","","null","","a"]]"#
    );
    assert_eq!(
        value(
            "[URL.canParse('a:b'), URL.canParse('b'), URL.canParse('b', 'http://a'), URL.parse('nope'), URL.parse('b', 'http://a').href]"
        ),
        r#"[true,false,true,null,"http://a/b"]"#
    );
    assert_eq!(
        value("let e; try { new URL('no url') } catch (x) { e = [x.name, x.code, x.message] } e"),
        r#"["TypeError","ERR_INVALID_URL","Invalid URL: no url"]"#
    );
}

#[test]
fn setters_change_one_part_and_ignore_what_does_not_fit() {
    for (start, change, expected) in [
        ("http://h/", "u.protocol = 'https'", "https://h/"),
        ("http://h/", "u.protocol = 'WSS:whatever'", "wss://h/"),
        ("http://h/", "u.protocol = 'foo'", "http://h/"),
        ("foo://h/", "u.protocol = 'http'", "foo://h/"),
        ("http://h:443/", "u.protocol = 'https'", "https://h/"),
        ("http://u@h/", "u.protocol = 'file'", "http://u@h/"),
        ("http://h/", "u.username = 'a@b'; u.password = 'c:d'", "http://a%40b:c%3Ad@h/"),
        ("file:///a", "u.username = 'x'; u.port = '1'", "file:///a"),
        ("http://h:1/", "u.host = 'x:2/y'", "http://x:2/"),
        ("http://h:1/", "u.host = 'x'", "http://x:1/"),
        ("http://h:1/", "u.host = ''", "http://h:1/"),
        ("http://h:1/", "u.hostname = 'x:2'", "http://h:1/"),
        ("http://h:1/", "u.hostname = 'ü.de'", "http://xn--tda.de:1/"),
        ("foo://h/", "u.host = ''", "foo:///"),
        ("mailto:a", "u.host = 'h'; u.pathname = '/b'", "mailto:a"),
        ("http://h/", "u.port = '99x'", "http://h:99/"),
        ("http://h:9/", "u.port = 'x99'", "http://h:9/"),
        ("http://h:9/", "u.port = '80'", "http://h/"),
        ("http://h:9/", "u.port = ''", "http://h/"),
        ("http://h:9/", "u.port = '70000'", "http://h:9/"),
        ("http://h/a", "u.pathname = 'b?c#d/../e'", "http://h/e"),
        ("http://h/a", "u.pathname = 'b?c#d'", "http://h/b%3Fc%23d"),
        ("http://h/a", "u.pathname = ''", "http://h/"),
        ("foo://h/a", "u.pathname = ''", "foo://h"),
        ("http://h/", "u.search = 'a b'", "http://h/?a%20b"),
        ("http://h/?x", "u.search = ''", "http://h/"),
        ("http://h/", "u.search = '?a#b'", "http://h/?a%23b"),
        ("http://h/", "u.hash = 'a b'", "http://h/#a%20b"),
        ("http://h/#x", "u.hash = ''", "http://h/"),
        ("http://h/", "u.href = 'foo:bar'", "foo:bar"),
        ("http://h/", "try { u.href = 'bad' } catch {}", "http://h/"),
    ] {
        let found = value(&format!("const u = new URL('{start}'); {change}; u.href"));
        assert_eq!(found, format!("{expected:?}"), "{start}: {change}");
    }
}

#[test]
fn search_params_and_their_url_follow_each_other() {
    assert_eq!(
        value(
            "const u = new URL('http://h/?a=1&b=2&a=3'); const p = u.searchParams; const seen = [p === u.searchParams, p.getAll('a'), p.size];
             p.append('c', 'x y&z'); seen.push(u.search); p.delete('a'); seen.push(u.href);
             u.search = '?q=1'; seen.push([...p]); p.set('q', 'ü'); seen.push(u.href); p.delete('q'); seen.push(u.href);
             u.href = 'http://g/?n=5'; seen.push(p.get('n')); seen"
        ),
        r#"[true,["1","3"],3,"?a=1&b=2&a=3&c=x+y%26z","http://h/?b=2&c=x+y%26z",[["q","1"]],"http://h/?q=%C3%BC","http://h/","5"]"#
    );
}

#[test]
fn search_params_stand_alone_too() {
    for (code, expected) in [
        ("String(new URLSearchParams('?a=1&b=%20+&&c&=d'))", r#""a=1&b=++&c=&=d""#),
        ("String(new URLSearchParams({ a: 1, b: 'x y' }))", r#""a=1&b=x+y""#),
        ("String(new URLSearchParams([['a', 1], new Set(['b', 2])]))", r#""a=1&b=2""#),
        ("String(new URLSearchParams(new Map([['a', 1]])))", r#""a=1""#),
        ("String(new URLSearchParams(new URLSearchParams('z=1')))", r#""z=1""#),
        ("String(new URLSearchParams({ k: \"*-._~!'()ü\" }))", r#""k=*-._%7E%21%27%28%29%C3%BC""#),
        (
            "[...new URLSearchParams('a=%zz&b=%ff&c=%F0%9F%98%80')]",
            r#"[["a","%zz"],["b","�"],["c","😀"]]"#,
        ),
        (
            "const p = new URLSearchParams('b=2&a=1&b=1&ü=0'); p.sort(); String(p)",
            r#""a=1&b=2&b=1&%C3%BC=0""#,
        ),
        (
            "const p = new URLSearchParams('a=1&a=2&b=3'); p.set('a', 9); [String(p), p.has('a', '9'), p.has('a', '1'), p.get('zz')]",
            r#"["a=9&b=3",true,false,null]"#,
        ),
        ("const p = new URLSearchParams('a=1&a=2'); p.delete('a', '1'); String(p)", r#""a=2""#),
        (
            "const r = []; new URLSearchParams('a=1&b=2').forEach((v, k, p) => r.push(v, k, p.size)); r",
            r#"["1","a",2,"2","b",2]"#,
        ),
        (
            "const p = new URLSearchParams('a=1&b=2'); [[...p.keys()], [...p.values()], [...p.entries()]]",
            r#"[["a","b"],["1","2"],[["a","1"],["b","2"]]]"#,
        ),
        (
            "let e; try { new URLSearchParams([['a']]) } catch (x) { e = x.name } e",
            r#""TypeError""#,
        ),
        (
            "Object.prototype.toString.call(new URLSearchParams()) + Object.prototype.toString.call(new URL('a:b'))",
            r#""[object URLSearchParams][object URL]""#,
        ),
        ("Object.fromEntries(new URL('http://h/?a=1&b=2').searchParams)", r#"{"a":"1","b":"2"}"#),
    ] {
        assert_eq!(value(code), expected, "{code}");
    }
}
