//! Events and abort signals.

use crate::guest::{Guest, failure, value};

#[track_caller]
fn all(rows: &[(&str, &str)]) {
    for (code, expected) in rows {
        assert_eq!(value(code), *expected, "{code}");
    }
}

#[test]
fn listeners_hear_events_in_their_order() {
    all(&[
        (
            "const t = new EventTarget(), r = []; const f = (e) => r.push('f' + e.type); t.addEventListener('a', f); t.addEventListener('a', f); t.addEventListener('a', { handleEvent(e) { r.push(this !== t && e.target === t) } }); t.addEventListener('a', () => r.push('once'), { once: true });
             t.dispatchEvent(new Event('a')); t.removeEventListener('a', f); t.dispatchEvent(new Event('a')); t.dispatchEvent(new Event('b')); r",
            r#"["fa",true,"once",true]"#,
        ),
        (
            "const t = new EventTarget(), r = []; t.addEventListener('a', (e) => { r.push(1); e.stopImmediatePropagation() }); t.addEventListener('a', () => r.push(2)); t.dispatchEvent(new Event('a')); r",
            "[1]",
        ),
        (
            "const t = new EventTarget(), r = []; const late = () => r.push('late'), gone = () => r.push('gone'); t.addEventListener('a', () => { t.addEventListener('a', late); t.removeEventListener('a', gone) }); t.addEventListener('a', gone); t.dispatchEvent(new Event('a')); t.dispatchEvent(new Event('a')); r",
            r#"["late"]"#,
        ),
        (
            "const t = new EventTarget(); t.addEventListener('a', (e) => e.preventDefault()); [t.dispatchEvent(new Event('a')), t.dispatchEvent(new Event('a', { cancelable: true }))]",
            "[true,false]",
        ),
        (
            "const t = new EventTarget(); let seen; t.addEventListener('a', function (e) { seen = [this === t, e.currentTarget === t, e.eventPhase, e.detail, e.composedPath().length] }); const e = new CustomEvent('a', { detail: { x: 1 } }); t.dispatchEvent(e); [...seen, e.currentTarget, e.target === t, e.timeStamp, e instanceof Event]",
            r#"[true,true,2,{"x":1},1,null,true,0,true]"#,
        ),
        (
            "const c = new AbortController(), t = new EventTarget(); let n = 0; t.addEventListener('a', () => n++, { signal: c.signal }); t.dispatchEvent(new Event('a')); c.abort(); t.dispatchEvent(new Event('a')); n",
            "1",
        ),
        ("class Bus extends EventTarget { say(x) { this.dispatchEvent(new CustomEvent('say', { detail: x })) } } const b = new Bus(); let got; b.addEventListener('say', (e) => { got = e.detail }); b.say(7); got", "7"),
        (
            "const e = []; for (const x of [() => new Event(), () => new EventTarget().dispatchEvent({ type: 'a' }), () => new EventTarget().addEventListener('a', 5), () => EventTarget.prototype.dispatchEvent.call({}, new Event('a'))]) try { x() } catch (x) { e.push(x.name) } e",
            r#"["TypeError","TypeError","TypeError","TypeError"]"#,
        ),
        (
            "const t = new EventTarget(); let e; t.addEventListener('a', (ev) => { try { t.dispatchEvent(ev) } catch (x) { e = x.name } }); t.dispatchEvent(new Event('a')); e",
            r#""InvalidStateError""#,
        ),
    ]);
}

#[test]
fn an_error_in_a_listener_fails_the_program() {
    let code = "const t = new EventTarget(); t.addEventListener('a', () => { throw new Error('in a listener') }); t.dispatchEvent(new Event('a')); await null; 1";
    assert_eq!(failure(code), ("runtime".to_owned(), "in a listener".to_owned()));
}

#[test]
fn aborting_happens_once_and_has_a_reason() {
    all(&[
        (
            "const c = new AbortController(), r = []; c.signal.onabort = (e) => r.push('on' + e.type); c.signal.addEventListener('abort', () => r.push(c.signal.aborted)); c.abort(); c.abort('again'); [r, c.signal.reason.name, c.signal.reason.code, c.signal.reason instanceof DOMException]",
            r#"[["onabort",true],"AbortError",20,true]"#,
        ),
        (
            "const c = new AbortController(); c.signal.throwIfAborted(); c.abort('why'); let e; try { c.signal.throwIfAborted() } catch (x) { e = x } [e, c.signal.reason]",
            r#"["why","why"]"#,
        ),
        (
            "const s = AbortSignal.abort(); [s.aborted, s.reason.name, AbortSignal.abort(5).reason]",
            r#"[true,"AbortError",5]"#,
        ),
        (
            "const a = new AbortController(), b = new AbortController(); const any = AbortSignal.any([a.signal, b.signal]); const nested = AbortSignal.any(new Set([any])); let n = 0; any.addEventListener('abort', () => n++); b.abort('b'); a.abort('a'); [any.aborted, any.reason, nested.reason, n, AbortSignal.any([]).aborted, AbortSignal.any([b.signal]).aborted]",
            r#"[true,"b","b",1,false,true]"#,
        ),
        (
            "const e = []; for (const x of [() => new AbortSignal(), () => AbortSignal.any([{}]), () => AbortSignal.any(5), () => Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted').get.call({})]) try { x() } catch (x) { e.push(x.name) } e",
            r#"["TypeError","TypeError","TypeError","TypeError"]"#,
        ),
        (
            "[new AbortController().signal instanceof EventTarget, Object.prototype.toString.call(new AbortController().signal)]",
            r#"[true,"[object AbortSignal]"]"#,
        ),
    ]);
}

#[test]
fn a_timeout_signal_is_a_timer_of_the_hosts() {
    let mut guest = Guest::running(
        "const s = AbortSignal.timeout(250); await new Promise((r) => s.addEventListener('abort', r)); [s.reason.name, performance.now()]",
    );
    assert_eq!(guest.until("idle"), ["started", "timer 1 in 250", "idle 0"]);
    guest.fire(1, 251);
    assert_eq!(guest.until("done"), ["done [\"TimeoutError\",251]"]);
}

#[test]
fn dom_exceptions_are_errors_with_names_and_codes() {
    all(&[
        (
            "const e = new DOMException('m', 'NotFoundError'); [e.name, e.message, e.code, e instanceof Error, String(e), typeof e.stack, DOMException.ABORT_ERR]",
            r#"["NotFoundError","m",8,true,"NotFoundError: m","string",20]"#,
        ),
        ("const e = new DOMException(); [e.name, e.message, e.code]", r#"["Error","",0]"#),
    ]);
    assert_eq!(
        failure("throw new DOMException('gone', 'AbortError')"),
        ("runtime".to_owned(), "gone".to_owned())
    );
}
