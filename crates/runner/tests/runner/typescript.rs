//! TypeScript with a run-time meaning: enums, namespaces and aliases of their members.
//!
//! Except in the last table, the expected values are those that TypeScript's own compiler produces.

use crate::guest::{Run, done, failure, value};
use serde_json::{Value, json};

#[track_caller]
fn check(cases: &[(&str, &str)]) {
    for (code, expected) in cases {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(done(&Run::new(code))["result"], expected, "{code}");
    }
}

#[test]
fn enums_have_numbers_texts_and_names_of_numbers() {
    check(&[
        ("enum A { B, C, D }\n[A, A[1]]", r#"[{"0":"B","1":"C","2":"D","B":0,"C":1,"D":2},"C"]"#),
        (
            "enum A { B = 5, C, D = -3, E, F = 1.5, G, }\nA",
            r#"{"5":"B","6":"C","B":5,"C":6,"D":-3,"-3":"D","E":-2,"-2":"E","F":1.5,"1.5":"F","G":2.5,"2.5":"G"}"#,
        ),
        (
            "enum A { B = 'b', C = `c`, D = 'x' + 1, E = `${1}e` }\nA",
            r#"{"B":"b","C":"c","D":"x1","E":"1e"}"#,
        ),
        (
            "enum A { B = 1, C = 'c', D = 3, E }\nA",
            r#"{"1":"B","3":"D","4":"E","B":1,"C":"c","D":3,"E":4}"#,
        ),
        (
            "const enum A {\n  // why\n  B = 0x10, /* c */ C // last\n  , D\n}\nA",
            r#"{"16":"B","17":"C","18":"D","B":16,"C":17,"D":18}"#,
        ),
        (
            "enum A { 'b c' = 1, ['d'] = 2, [`e`] = 3, 'é' = 4, \"q'\\n\" = 5, f\\u0061 }\nA",
            r#"{"1":"b c","2":"d","3":"e","4":"é","5":"q'\n","6":"fa","b c":1,"d":2,"e":3,"é":4,"q'\n":5,"fa":6}"#,
        ),
        ("enum A {}\nA", "{}"),
        (
            "enum A { B = 1e3, C, D = 2 ** 31, E, F = 1 << 4, G }\nA",
            r#"{"16":"F","17":"G","1000":"B","1001":"C","2147483648":"D","2147483649":"E","B":1000,"C":1001,"D":2147483648,"E":2147483649,"F":16,"G":17}"#,
        ),
        (
            "enum A { B = (1), C, D = <any>7, E = 8 as number }\nA",
            r#"{"1":"B","2":"C","7":"D","8":"E","B":1,"C":2,"D":7,"E":8}"#,
        ),
        (
            "enum A { B = 1 / 0, C = 0 / 0, D = -B }\n[A.B === Infinity, Number.isNaN(A.C), A.D === -Infinity, A[Infinity as any]]",
            r#"[true,true,true,"B"]"#,
        ),
        (
            "enum A { B = 'x'.length, C = Math.max(3, 4), D = [1, 2].length + 1 }\nA",
            r#"{"1":"B","3":"D","4":"C","B":1,"C":4,"D":3}"#,
        ),
        (
            "const size = 4, word = 'w'\nenum A { B = size, C = word + 'x', D }\n[A.B, A.C, A[4]]",
            r#"[4,"wx","B"]"#,
        ),
        (
            "enum A { B = 1 } enum O { P = A.B, Q = A['B'] + 1 }\nO",
            r#"{"1":"P","2":"Q","P":1,"Q":2}"#,
        ),
        ("enum A { B = 'b' } enum O { P = A.B }\nO", r#"{"P":"b"}"#),
        (
            "enum A { constructor = 1, toString = 2 }\n[A.constructor, A.toString, A[1], A[2]]",
            r#"[1,2,"constructor","toString"]"#,
        ),
    ]);
}

#[test]
fn members_of_enums_know_those_before_them_by_name() {
    check(&[
        (
            "enum A { B = 1, C = B + 1, D = B | C, E = ~D, F }\nA",
            r#"{"1":"B","2":"C","3":"D","B":1,"C":2,"D":3,"E":-4,"-4":"E","F":-3,"-3":"F"}"#,
        ),
        (
            "enum A { B = 'b', C = B, D = B + C, E = `${B}!` }\nA",
            r#"{"B":"b","C":"b","D":"bb","E":"b!"}"#,
        ),
        ("enum A { B = 2, C = A.B * 2, D = A['B'] }\nA", r#"{"2":"D","4":"C","B":2,"C":4,"D":2}"#),
        (
            "enum A { Read = 1 << 0, Write = 1 << 1, Both = Read | Write, None = 0 }\nA",
            r#"{"0":"None","1":"Read","2":"Write","3":"Both","Read":1,"Write":2,"Both":3,"None":0}"#,
        ),
        (
            "enum A { B = 1 }\nenum A { C = B + 1, D }\nA",
            r#"{"1":"B","2":"C","3":"D","B":1,"C":2,"D":3}"#,
        ),
        ("enum A { A = 1, B = A + 1 }\nA", r#"{"1":"A","2":"B","A":1,"B":2}"#),
        (
            "enum A { B = 3, C = (() => B)(), D = ((B: number) => B)(9), E = (() => { const C = 7; return B + C })() }\nA",
            r#"{"3":"C","9":"D","10":"E","B":3,"C":3,"D":9,"E":10}"#,
        ),
        (
            "enum A { B = 3, C = (class B { static x = 5 }).x, D = B, E = ({ B: 6 }).B, F = { m(B: number) { return B } }.m(11) }\nA",
            r#"{"3":"D","5":"C","6":"E","11":"F","B":3,"C":5,"D":3,"E":6,"F":11}"#,
        ),
        (
            "enum A { B = 3, C = (() => { try { throw 5 } catch (B) { return B } })(), D = (() => { for (const B of [6]) return B })() as number }\nA",
            r#"{"3":"B","5":"C","6":"D","B":3,"C":5,"D":6}"#,
        ),
        ("const B = 50\nenum A { B = 1, C = B }\n[A.C, B]", "[1,50]"),
        (
            "enum A { B = 1, C = ((x = B) => { B: for (;;) break B; return x })() }\nA",
            r#"{"1":"C","B":1,"C":1}"#,
        ),
    ]);
}

#[test]
fn enums_live_where_they_are_declared() {
    check(&[
        ("function f() { enum A { B = 1 } return A }\nf()", r#"{"1":"B","B":1}"#),
        (
            "let seen\n{ enum A { B = 1 } enum A { C = B + 1 } seen = A }\n[seen, typeof (globalThis as any).A]",
            r#"[{"1":"B","2":"C","B":1,"C":2},"undefined"]"#,
        ),
        (
            "const all: any[] = []\nfor (const n of [1, 2]) { enum A { B = n } all.push(A) }\nall",
            r#"[{"1":"B","B":1},{"2":"B","B":2}]"#,
        ),
        ("const f = () => { enum A { B } return A[0] }\nf()", r#""B""#),
        (
            "switch (1 as number) { case 1: enum A { B = 3 } globalThis.out = A.B }\nglobalThis.out",
            "3",
        ),
        (
            "class K { static x = 0; static { enum A { B = 4 } K.x = A.B } m() { enum A { C = 5 } return A.C } }\n[K.x, new K().m()]",
            "[4,5]",
        ),
        (
            "declare enum A { B }\ndeclare const enum C { D }\n[typeof A, typeof C]",
            r#"["undefined","undefined"]"#,
        ),
        ("const a = [1]\nenum A { B }\n[a.length, A.B]", "[1,0]"),
        (
            "namespace N { export enum A { B = 1 } enum C { D = 2 } export const d = C.D }\n[N, typeof (N as any).C]",
            r#"[{"A":{"1":"B","B":1},"d":2},"undefined"]"#,
        ),
        (
            "namespace N { export enum A { B = 1 } export enum A { C = B + 1 } export const sum = A.B + A.C }\nN",
            r#"{"A":{"1":"B","2":"C","B":1,"C":2},"sum":3}"#,
        ),
        (
            "namespace N { export enum A { B = 1 } }\nnamespace N { export enum A { C = B + 1 } export const b = A.B }\nN",
            r#"{"A":{"1":"B","2":"C","B":1,"C":2},"b":1}"#,
        ),
    ]);
}

#[test]
fn namespaces_hold_what_they_export() {
    check(&[
        (
            "namespace A { export const b = 1, c = A.b + b; const d = 4; export function e() { return d + c } export class F { g = b } }\n[A.b, A.c, A.e(), new A.F().g, Object.keys(A)]",
            r#"[1,2,6,1,["b","c","e","F"]]"#,
        ),
        (
            "namespace A { export const { b, c: [d, ...e], f = 9 } = { b: 1, c: [2, 3, 4] } as any }\nA",
            r#"{"b":1,"d":2,"e":[3,4],"f":9}"#,
        ),
        (
            "namespace A.B.C { export const d = 1 }\nnamespace A.B { export const e = C.d + 1 }\nA",
            r#"{"B":{"C":{"d":1},"e":2}}"#,
        ),
        (
            "namespace A { export namespace B { export const c = 1 } namespace D { export const e = 2 } export const f = B.c + D.e }\n[A, Object.keys(A)]",
            r#"[{"B":{"c":1},"f":3},["B","f"]]"#,
        ),
        ("module A { export const b = 1 }\nA", r#"{"b":1}"#),
        (
            "namespace A { export async function b() { return 1 } export function* c() { yield 2 } export abstract class D { abstract e(): void } }\n[Object.keys(A), [...A.c()]]",
            r#"[["b","c","D"],[2]]"#,
        ),
        (
            "namespace A { export function f(x: number): number\nexport function f(x: any) { return x }\nexport const g = f(3) }\n[Object.keys(A), A.g]",
            r#"[["f","g"],3]"#,
        ),
        (
            "namespace A { let n = 0; export function next() { return ++n } }\n[A.next(), A.next(), Object.keys(A)]",
            r#"[1,2,["next"]]"#,
        ),
        (
            "namespace A { export class A { b = 1 } export const c = new A().b }\n[A.c, new A.A().b]",
            "[1,1]",
        ),
        (
            "namespace A { export namespace A { export const b = 1 } export const c = A.b }\nA",
            r#"{"A":{"b":1},"c":1}"#,
        ),
        (
            "namespace A { export function f(A: number) { return A + g() } function g() { return 1 } }\nA.f(2)",
            "3",
        ),
        (
            "namespace A { export class B { constructor(private x: number, public readonly y = x + 1) {} sum() { return this.x + this.y } } }\nnew A.B(1).sum()",
            "3",
        ),
        (
            "namespace A {\n  'use strict'\n  export const b: number = <any>{ c: 1 }.c as number\n}\nA",
            r#"{"b":1}"#,
        ),
        (
            "namespace A { export const b = 1; { const b = 2 } export const c = ((b: number) => b)(3) + b }\nA",
            r#"{"b":1,"c":4}"#,
        ),
    ]);
}

#[test]
fn namespaces_merge() {
    check(&[
        (
            "namespace A { export const x = 1 }\nnamespace A { export const y = x + 1; export const z = { x, w: [x] } }\nA",
            r#"{"x":1,"y":2,"z":{"x":1,"w":[1]}}"#,
        ),
        (
            "namespace A { export const x = 1 }\nnamespace A { const x = 5; export const y = x }\nA",
            r#"{"x":1,"y":5}"#,
        ),
        (
            "namespace A { export const x = 1 }\nnamespace A { export const f = (x: number) => x; export const g = () => { { let x = 7; f(x) } return x } }\n[A.f(4), A.g()]",
            "[4,1]",
        ),
        ("namespace A { const x = 1 }\nconst x = 6\nnamespace A { export const y = x }\nA.y", "6"),
        (
            "namespace A { export function f() { return later() } }\nnamespace A { export function later() { return 8 } }\nA.f()",
            "8",
        ),
        (
            "namespace A { export const x = 1; export namespace B { export const y = 2 } }\nnamespace A.B { export const z = x + y }\nA",
            r#"{"x":1,"B":{"y":2,"z":3}}"#,
        ),
        (
            "namespace A { export class K { v = 3 } }\nnamespace A { export class L extends K { w = new K().v } }\nnew A.L()",
            r#"{"v":3,"w":3}"#,
        ),
        (
            "namespace A { export enum E { F = 2 } }\nnamespace A { export const g = E.F, h = E[2], i = typeof E, j = typeof nothing }\ndeclare const nothing: any\n[A.g, A.h, A.i, A.j]",
            r#"[2,"F","object","undefined"]"#,
        ),
        ("function f() { return 1 }\nnamespace f { export const x = 2 }\n[f(), f.x]", "[1,2]"),
        (
            "class K { a = 1 }\nnamespace K { export const x = 2; export const y = new K().a }\n[new K().a, K.x, K.y]",
            "[1,2,1]",
        ),
        (
            "enum A { B = 1 }\nnamespace A { export function name(a: A) { return A[a] } }\n[A.B, A.name(A.B)]",
            r#"[1,"B"]"#,
        ),
        (
            "namespace N { export function f() { return 1 } export namespace f { export const x = 2 } export class K {} export namespace K { export const y = 3 } }\n[N.f(), N.f.x, N.K.y]",
            "[1,2,3]",
        ),
        (
            "namespace A { export const o = { x: 0 } }\nnamespace A { o.x = 5; ({ x: o.x } = { x: 6 }); export const p = `${o.x}` + [o].length }\nA",
            r#"{"o":{"x":6},"p":"61"}"#,
        ),
        (
            "namespace A { export const x = 1 }\nnamespace A { export const f = function x() { return typeof x }, g = class x { static n = x.name }.n, h = x }\n[A.f(), A.g, A.h]",
            r#"["function","x",1]"#,
        ),
    ]);
}

#[test]
fn what_is_only_types_is_nothing() {
    check(&[
        (
            "namespace A { export interface B { c: 1 } type D = 1; export namespace E { export type F = 2 } }\ntypeof A",
            r#""undefined""#,
        ),
        ("namespace A {}\ntypeof A", r#""undefined""#),
        (
            "declare namespace A { const b: number; namespace C { function d(): void } }\ntypeof A",
            r#""undefined""#,
        ),
        (
            "namespace A { export declare const b: number; declare function c(): void; export type D = 1; export const e = 1 }\nA",
            r#"{"e":1}"#,
        ),
        (
            "namespace A { export interface I {} }\nnamespace A { export const x = 1; export const y: I = { x } }\nA",
            r#"{"x":1,"y":{"x":1}}"#,
        ),
        ("declare global { interface W { x: 1 } }\ndeclare module 'm' { const x: 1 }\n1", "1"),
    ]);
}

#[test]
fn names_are_imported_from_namespaces() {
    check(&[
        (
            "namespace A { export const b = 1; export namespace C { export const d = 2 } }\nimport b = A.b\nimport C = A.C\nimport d = A.C.d\n[b, C.d, d]",
            "[1,2,2]",
        ),
        (
            "namespace A { export const b = 1 }\nnamespace B { import x = A.b; export import y = A.b; export const z = x + y }\nB",
            r#"{"y":1,"z":2}"#,
        ),
        (
            "namespace A { export namespace B { export const c = 1 } }\nnamespace A { import d = B.c; export const e = d }\nA.e",
            "1",
        ),
        (
            "namespace A { export namespace T { export interface I {} } export const u = 1 }\nimport I = A.T.I\nimport T = A.T\nA",
            r#"{"u":1}"#,
        ),
    ]);
}

/// A name that is declared again does not refer to the member. In the first two cases, TypeScript's own compiler emits
/// names that do not exist.
#[test]
fn shadowed_names_are_not_taken_for_members() {
    check(&[
        (
            "enum A { B = 3, C = (function () { if (1) { var B = 8 } return B })(), D = [{ B }].length, E = (({ B: x }) => x)({ B }) }\nA",
            r#"{"1":"D","3":"E","8":"C","B":3,"C":8,"D":1,"E":3}"#,
        ),
        (
            "enum A { B = 3, C = ((A: number) => A + B)(1), D = A.B }\nA",
            r#"{"3":"D","4":"C","B":3,"C":4,"D":3}"#,
        ),
        (
            "namespace A { export const x = { v: 1 } }\nnamespace A { let y; ({ x: y } = { x: 2 }); export const f = ({ x }: any) => x, g = (z = x) => z.v; export const h = [f({ x: 3 }), g(), y] }\nA.h",
            "[3,1,2]",
        ),
        (
            "namespace A { export const x = 1 }\nnamespace A { export const A_1 = 5; export class A { x = x } export const y = [new A().x, A_1] }\n(A as any).y",
            "[1,5]",
        ),
    ]);
}

#[test]
fn properties_that_are_parameters_are_set_once_super_was_called() {
    const BASE: &str = "class B { constructor(public of = 0) {} }\n";
    for (body, expected) in [
        ("{ super(x) }", json!({"of": 1, "x": 1})),
        ("{ f()\nsuper(x) }", json!({"of": 1, "x": 1})),
        ("{ if (x) super(2)\nelse super(3) }", json!({"of": 2, "x": 1})),
        ("{ const that = super(4); that.y = that.x }", json!({"of": 4, "x": 1, "y": 1})),
        ("{ f()\nsuper(5).y = 6 }", json!({"of": 5, "x": 1, "y": 6})),
        ("{ const make = () => super(7); make() }", json!({"of": 7, "x": 1})),
        ("{ 'use strict'; try { super(8) } finally { f() } }", json!({"of": 8, "x": 1})),
    ] {
        let code = format!(
            "{BASE}const f = () => 0\nclass A extends B {{ y?: any; constructor(private x: number) {body} }}\nnew A(1)"
        );
        let mut found = done(&Run::new(&code))["result"].clone();
        if found["y"].is_null() {
            found.as_object_mut().unwrap().remove("y");
        }
        assert_eq!(found, expected, "{code}");
    }
}

#[test]
fn what_has_no_code_is_refused_with_its_place() {
    for (code, message) in [
        (
            "1\nnamespace A {\n  export let b = 1\n}",
            "a namespace cannot export a variable that may change: use `const`, or a function that gives its value (3:14)",
        ),
        (
            "namespace A { export const { b } = c; export var d }",
            "a namespace cannot export a variable that may change: use `const`, or a function that gives its value (1:50)",
        ),
        (
            "class A { constructor(private { b }: any) {} }",
            "A parameter property may not be declared using a binding pattern. (1:23)",
        ),
        ("1\nenum A { B = await f() }", "an enum cannot wait: move `await` before it (2:14)"),
        (
            "namespace A { export const b = await f() }",
            "`await` is only allowed within async functions and at the top levels of modules (1:32)",
        ),
        ("function* f() { enum A { B = yield } }", "an enum cannot yield (1:30)"),
        ("namespace A { if (1) return 1\nf() }", "a namespace cannot return (1:22)"),
    ] {
        assert_eq!(failure(code).1, message, "{code}");
    }
}

#[test]
fn errors_inside_enums_and_namespaces_name_the_users_lines() {
    let stack = |code: &str| done(&Run::new(code))["error"]["stack"].as_str().unwrap().to_owned();
    let of_enum = stack("enum A {\n  B,\n  C = (() => {\n    null.x\n  })(),\n}");
    assert!(of_enum.starts_with("    at <anonymous> (program.js:4:5)\n"), "{of_enum}");
    let of_namespace = stack("namespace A\n.B {\n  export const c = 1\n\n  null.x\n}");
    assert!(of_namespace.starts_with("    at <anonymous> (program.js:5:"), "{of_namespace}");
}

#[test]
fn long_enums_are_fine_and_deep_namespaces_are_refused() {
    let members: Vec<String> = (1..10_000).map(|n| format!("M{n} = M{} + 1", n - 1)).collect();
    let code = format!("enum A {{ M0, {} }}\n[A.M9999, A[5000]]", members.join(", "));
    assert_eq!(value(&code), r#"[9999,"M5000"]"#);
    let deep = format!("{}1{}", "namespace A { ".repeat(1_000), "}".repeat(1_000));
    let (_, message) = failure(&deep);
    assert!(message.starts_with("namespaces are nested too deeply"), "{message}");
}
