//! The preparation of programs as people and models write them.

use super::*;
use ValueConvention::{ExplicitReturn, LastExpression};
use oxc_ast::AstKind;
use oxc_ast::ast::*;
use oxc_ast_visit::{Visit, walk};
use oxc_span::GetSpan as _;
use proptest::prelude::*;

#[track_caller]
fn check(convention: ValueConvention, cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        match prepare(source, convention) {
            Ok(RunnableText(text)) => assert_eq!(text, *expected, "{source}"),
            Err(problem) => panic!("{source}: {problem}"),
        }
    }
}

#[test]
fn the_last_expression_is_returned() {
    check(
        LastExpression,
        &[
            ("", ""),
            ("  \n", "  \n"),
            ("// c", "// c"),
            (";", ";"),
            ("1 + 1", ";return (1 + 1)"),
            ("1 + 1;", ";return (1 + 1);"),
            ("1 + 1 // two", ";return (1 + 1) // two"),
            ("1 + 1; /* two */", ";return (1 + 1); /* two */"),
            ("const x = 2\nx * 3", "const x = 2;return (\nx * 3)"),
            ("const x = 2 // note\nx * 3;", "const x = 2;return ( // note\nx * 3);"),
            ("1;2", "1;;return (2)"),
            ("await x", ";return (await x)"),
            ("(async () => 7)()", ";return ((async () => 7)())"),
            ("(async () => 7)();", ";return ((async () => 7)());"),
            ("() => 1", ";return (() => 1)"),
            ("x => x", ";return (x => x)"),
            ("'use strict'", ";return ('use strict')"),
            ("'use strict'; 1", "'use strict';;return ( 1)"),
        ],
    );
}

#[test]
fn async_arrows_and_lone_functions_are_called() {
    check(
        LastExpression,
        &[
            ("async () => 7", ";return (async () => 7)()"),
            ("async () => 7;", ";return (async () => 7)();"),
            ("(async x => x)", ";return ((async x => x))()"),
            ("function run() { return 1 }", "function run() { return 1 }\n;return run();"),
            ("async function run() {} // c", "async function run() {} // c\n;return run();"),
        ],
    );
}

#[test]
fn what_is_no_expression_stays_as_it_is() {
    for source in
        ["return 5", "if (1) { 2 }", "{a: 1}", "let a;", "class A {}", "if (a) return 1; 2"]
    {
        check(LastExpression, &[(source, source)]);
    }
}

#[test]
fn explicit_programs_return_by_themselves_unless_they_are_one_function() {
    check(
        ExplicitReturn,
        &[
            ("1 + 1", "1 + 1"),
            ("return 1 + 1", "return 1 + 1"),
            ("async () => 7", ";return (async () => 7)()"),
            ("(() => 7) as any", ";return ((() => 7)      )();"),
            ("(function () { return 7 })", ";return ((function () { return 7 }))()"),
            ("async function main() {}", "async function main() {}\n;return main();"),
            ("function a() {}\nreturn a()", "function a() {}\nreturn a()"),
            ("(async () => 7)()", "(async () => 7)()"),
        ],
    );
}

#[test]
fn a_default_export_is_called_or_returned() {
    for convention in [ExplicitReturn, LastExpression] {
        check(
            convention,
            &[
                (
                    "export default async function () { return 1 }",
                    ";return (               async function () { return 1 })()",
                ),
                (
                    "export default async function main() { return 1 }",
                    "               async function main() { return 1 }\n;return main();",
                ),
                ("export default async () => 7;", ";return (               async () => 7)();"),
                ("export default 7", ";return (               7)"),
                ("const a = 1;\nexport default a", "const a = 1;;return (\n               a)"),
            ],
        );
    }
}

#[test]
fn modules_are_refused_in_words() {
    #[track_caller]
    fn refused(source: &str, words: &str, line: usize) {
        let problem = prepare(source, ExplicitReturn).unwrap_err();
        assert!(problem.message.contains(words), "{problem}");
        assert_eq!((problem.line, problem.column), (line, 1));
    }
    refused("import fs from 'fs'\nfs", "cannot import", 1);
    refused("import { a, type B } from 'a'", "cannot import", 1);
    refused("1\nexport const a = 1", "cannot export", 2);
    refused("export * from 'a'", "cannot export", 1);
    refused("export default 1; f()", "last statement", 1);
}

#[test]
fn fences_are_taken_off_and_lines_keep_their_numbers() {
    check(
        LastExpression,
        &[("```js\n1\n```", ";return (\n1)\n"), ("```\n1\n2\n```\n", "\n1;return (\n2)\n")],
    );
    check(
        ExplicitReturn,
        &[
            ("```typescript\nreturn 1\n```", "\nreturn 1\n"),
            ("Here you are:\n\n```js\nreturn 1\n```\nEnjoy!", "\n\n\nreturn 1\n"),
            ("```\nreturn 1\n```\n```\nreturn 2\n```", "\nreturn 1\n"),
            ("const a = `\n  x`\nreturn a", "const a = `\n  x`\nreturn a"),
        ],
    );
    assert!(prepare("Here you are:\n```js\n1\n```", LastExpression).is_err());
}

#[test]
fn a_fence_may_be_closed_on_the_last_line_of_the_program() {
    let bare =
        [("1 + 1", "```js\n1 + 1```"), ("`a`", "```\n`a````"), ("1\n2", "```ts\n1\n2```  \n")];
    for (text, fenced) in bare {
        let expected = prepare(&format!("\n{text}"), LastExpression).unwrap().0;
        assert_eq!(prepare(fenced, LastExpression).unwrap().0, expected, "{fenced}");
    }
    check(ExplicitReturn, &[("So:\n```js\nreturn 1```", "\n\nreturn 1")]);
    assert!(prepare("```js\n1", LastExpression).is_err(), "a fence that nothing closes");
}

#[test]
fn types_become_spaces() {
    check(
        ExplicitReturn,
        &[
            ("const x: number = 2; return x", "const x         = 2; return x"),
            ("let x!: T, y: U", "let x    , y  ;"),
            (
                "function f(this: X, a?: A, b?) {}",
                "function f(         a    , b ) {}\n;return f();",
            ),
            ("f<T>(x as any, y!, z satisfies Z)", "f   (x       , y , z            )"),
            ("try {} catch (e: unknown) {}", "try {} catch (e         ) {}"),
            ("import type { A } from 'a'\nreturn 1", ";                         \nreturn 1"),
            ("import { type A } from 'a'\nreturn 1", ";                         \nreturn 1"),
            ("declare const a: number; return a", ";                        return a"),
            ("interface A { b: 1 }\nreturn 1", ";                   \nreturn 1"),
        ],
    );
    check(
        LastExpression,
        &[("a + b!", ";return (a + b);"), ("x as T\n// c", ";return (x    );\n// c")],
    );
    check(
        LastExpression,
        &[("const x: number = 2; x * 3", "const x         = 2;;return ( x * 3)")],
    );
}

#[test]
fn class_members_lose_what_javascript_does_not_know() {
    check(
        ExplicitReturn,
        &[(
            "abstract class A<T> extends B<T> implements C, D {\n  private readonly x: number = 1\n  static override y?: T\n  declare z: 1\n  abstract w(): void\n  [key: string]: unknown\n  m?(a: T): void {}\n  n(): void\n  n() {}\n}\nreturn A",
            "         class A    extends B                    {\n  ;                x         = 1\n  static          y   ;\n  ;           \n  ;                 \n  ;                     \n  m (a   )       {}\n  ;        \n  n() {}\n}\nreturn A",
        )],
    );
}

#[test]
fn lines_that_would_join_are_kept_apart() {
    check(
        ExplicitReturn,
        &[
            ("a = b as T\n(c)", "a = b    ;\n(c)"),
            ("const a = 1\ntype T = 1\n(c)()", "const a = 1\n;         \n(c)()"),
            ("let a: T\n[b] = c", "let a  ;\n[b] = c"),
            ("class A { x: T\n['y'] = 1 }\n(b)", "class A { x  ;\n['y'] = 1 }\n(b)"),
            ("class A { a = 1\nprivate ['b'] = 2 }\n1", "class A { a = 1\n;       ['b'] = 2 }\n1"),
            ("f((a): Promise<\nT> => a)", "f((a           \n ) => a)"),
        ],
    );
}

#[test]
fn what_is_more_than_types_is_transformed() {
    let run = |source: &str| prepare(source, ExplicitReturn).unwrap().0;
    assert!(run("enum A { B = 1 }\nreturn A.B").contains("A[\"B\"] = 1"));
    assert!(run("namespace A { export const b = 1 }\nreturn A.b").contains("A.b"));
    assert!(
        run("class A { constructor(private x: number) {} }\nreturn new A(1)")
            .contains("this.x = x")
    );
    assert!(run("const f = () => <T>{ a: 1 }\nreturn f()").contains("(  { a: 1 })"));
    let last = prepare("enum A { B = 1 }\nA.B", LastExpression).unwrap().0;
    assert!(last.contains(";return (\nA.B)"), "{last}");
}

#[test]
fn only_texts_of_old_journals_have_lines_of_their_own() {
    for source in [
        "const a: number = 1\na",
        "enum A { B = 1 }\nA.B",
        "const f = () => <T>{ a: 1 }\nf()",
        "class A extends B { constructor(private x: T) { if (x) super(); else super(1) } }\n1",
    ] {
        assert!(has_users_lines(&prepare(source, LastExpression).unwrap().0), "{source}");
    }
    for old in ["/* rewritten */class A {}\n1", ";return (/* rewritten */A.b\n)"] {
        assert!(!has_users_lines(old), "{old}");
    }
}

/// The program's lines from the first that contains `needle` on, each with its original number.
fn lines_from(text: &str, needle: &str) -> Vec<(usize, String)> {
    let lines = text.lines().map(str::to_owned).enumerate();
    lines.skip_while(|(_, line)| !line.contains(needle)).collect()
}

#[test]
fn what_stands_around_enums_and_namespaces_keeps_its_line() {
    const DECLARATIONS: &[&str] = &[
        "enum A { B = 1 }",
        "const enum A {\n  // why\n  B = 'b',\n\n  C = `\n${1}`,\n}",
        "enum A { B = 'b\\nb', C = `\\n` }",
        "namespace A {\n  export const b = `${`\n\n` + `x ${1}\n`}`\n}",
        "enum A { B }\nenum A {\n  C = B + 1\n}",
        "namespace A {\n  export const b: number = 1\n  export function c(): void {\n    throw 1\n  }\n}",
        "namespace A {\n  export interface B { c: 1 }\n}",
        "namespace A.B {\n  export enum C {\n  D }\n}\nnamespace A {\n  export const e = 1\n}",
        "class A {\n  x: number = 1\n}\nnamespace A {\n  export const b = 1\n}",
        "{\n  enum A {\n    B\n  }\n  a(A.B)\n}",
        "function f() {\n  enum A {\n    B\n  }\n  return A.B as number\n}",
        "class A {\n  constructor(\n    private x: number,\n    public readonly y = 2,\n  ) {\n    f(x)\n  }\n}",
        "class A extends B {\n  constructor(protected x: T) {\n    'use strict'\n    f()\n    super(x)\n    f(x)\n  }\n}",
        "namespace A {\n  export const b = 1\n}\nimport c = A.b\nimport d = A\nf(c, d)",
        "const f = async <\n  T,\n  U = T,\n>(x: T): Promise<\n  U\n> => x as U",
        "function f() {\n  return <\n    T\n  >(x: T) => x\n}",
        "const a = f<\n  T\n>(1)\nconst b = new C<\n  T\n>()\nfunction g<\n  T\n>(x: T) {}",
        "const a = <\n  T\n>{ b: 1 }\nconst c = () => <{ d: 1 }>{ d: 1 }",
    ];
    const AFTER: &str = "const last = 1\n(function () {})\nthrow last";
    for declaration in DECLARATIONS {
        let source = format!("const first = 1\n{declaration}\n{AFTER}");
        let RunnableText(text) = prepare(&source, ExplicitReturn).unwrap();
        assert_eq!(lines_from(&text, "const last"), lines_from(&source, "const last"), "{text}");
        assert!(text.starts_with("const first = 1\n"), "{text}");
        let allocator = Allocator::default();
        let again = parse_as(&allocator, &text, SourceType::mjs());
        assert!(again.diagnostics.is_empty(), "{text}");
    }
}

#[test]
fn a_syntax_error_after_an_enum_names_the_users_line_and_column() {
    let at = |source: &str| {
        let problem = prepare(source, ExplicitReturn).unwrap_err();
        (problem.line, problem.column)
    };
    assert_eq!(at("enum A {\n  B,\n  C,\n}\n\nconst x = ;"), (6, 11));
    assert_eq!(at("enum A {\n  B,\n}\nexport default A.B\nf()"), (4, 1));
    assert_eq!(at("1\nnamespace A {\n  export let b = 1\n}"), (3, 14));
}

#[test]
fn a_syntax_error_names_the_users_line_and_column() {
    let at = |source: &str| {
        let problem = prepare(source, ExplicitReturn).unwrap_err();
        (problem.line, problem.column)
    };
    assert_eq!(at("const x = ;"), (1, 11));
    assert_eq!(at("const a = 1;\nconst é = (1;"), (2, 13));
    assert_eq!(at("```js\nlet a = 1\nlet b = )\n```"), (3, 9));
    assert_eq!(at("return '\0'"), (1, 9));
    let problem = prepare("const x = ;", ExplicitReturn).unwrap_err();
    assert_eq!(problem.to_string(), "Unexpected token (1:11)");
}

#[test]
fn text_that_would_break_out_of_a_wrapper_is_no_program() {
    for convention in [ExplicitReturn, LastExpression] {
        assert!(prepare("}); evil(); (async () => {", convention).is_err());
    }
}

#[test]
fn too_deep_and_too_long_programs_are_refused() {
    let message = |source: String| prepare(&source, LastExpression).unwrap_err().message;
    assert!(message("(".repeat(10_000)).contains("nested too deeply"));
    assert!(message(" ".repeat(CODE_BYTES_MAX + 1)).contains("at most"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(source in any::<String>()) {
        for convention in [ExplicitReturn, LastExpression] {
            let _ = prepare(&source, convention);
        }
    }

    #[test]
    fn no_heap_of_tokens_makes_it_panic(tokens in prop::collection::vec(prop::sample::select(vec![
        "a", "b", "1", "'s'", "(", ")", "{", "}", "[", "]", "<", ">", "=>", ":", "?", "!", ";", ",", "\n", " ", "=",
        "as", "T", "class", "private", "static", "abstract", "implements", "extends", "declare", "async", "function",
        "type", "interface", "enum", "namespace", "export default", "import", "export", "return", "await", "`", "${", "//", "/*",
        "*/", "```", "satisfies", "const", "let", "é", "@d", "#x", ".", "...", "this", "new", "catch", "try", "get",
    ]), 0..40)) {
        let source = tokens.join(" ");
        for convention in [ExplicitReturn, LastExpression] {
            if let Ok(RunnableText(text)) = prepare(&source, convention) {
                // Whether `await` is a name depends on its context: in this case, the engine decides.
                if tokens.contains(&"await") {
                    continue;
                }
                // The result must be plain JavaScript; otherwise, the engine would refuse it.
                let allocator = Allocator::default();
                let again = parse_as(&allocator, &text, SourceType::mjs());
                prop_assert!(!again.panicked && again.diagnostics.is_empty(), "{source:?} became {text:?}: {:?}", again.diagnostics);
            }
        }
    }

    #[test]
    fn nothing_but_types_is_gone(lines in prop::collection::vec(prop::sample::select(TYPESCRIPT.to_vec()), 1..6)) {
        let text = lines.join("\n");
        let allocator = Allocator::default();
        // Some of these lines do merge with their neighbours.
        let Ok(program) = parse(&allocator, &text) else { return Ok(()) };
        let bytes = match strip::strip(&text, &program).unwrap() {
            strip::StripOutcome::Blanked(bytes) => bytes,
            strip::StripOutcome::NeedsCode { blanked, edits } => edit::carry_out(&blanked, edits),
            strip::StripOutcome::Unchanged => return Ok(()),
        };
        let javascript = String::from_utf8(bytes).unwrap();
        let again = parse_as(&allocator, &javascript, SourceType::mjs());
        prop_assert!(again.diagnostics.is_empty(), "{}\n{}: {:?}", text, javascript, again.diagnostics);
        prop_assert_eq!(shape(&text, &program), shape(&javascript, &again.program), "{}\n{}", text, javascript);
    }
}

/// Lines without semicolons, each with a construct that could merge with its neighbours when a type is
/// removed.
const TYPESCRIPT: &[&str] = &[
    "class P0 { constructor(private x: T, y?: T) {} }",
    "class P1 extends Q { constructor(readonly x = 1) { super(x)\n f(x) } }",
    "const g0 = async <\n T\n>(x: T) => x",
    "const g1 = () => { return <\n T>(x: T) => x }",
    "const g2 = <\n T\n>{ a: 1 }",
    "for await (const x of y as T[]) f(x)",
    "let a0: T",
    "const a1 = b as T",
    "var a2 = b!",
    "a3 = <T>b",
    "(a4 as any)(c)",
    "[a5] = c as T[]",
    "`a6 ${b as T}` satisfies string",
    "/a7/.test(b!)",
    "+a8!",
    "type A9<T> = T extends (infer U)[] ? U : never",
    "interface A10 extends B<C> { (x: number): void; [k: string]: unknown }",
    "declare function a11(x: number): void",
    "function a12(this: T, x?: U, ...y: V[]): asserts x is U { return x as never }",
    "function a13(x: number): void\nfunction a13(x) {}",
    "const a14 = async <T,>(x: T, { y }: { y: U } = z): Promise<\n T> => x",
    "class A15<T> extends B<T> implements C { private x?: T\n['y']: U = 1\nstatic readonly z!: V\n*g(): W {} }",
    "abstract class A16 { abstract x: T\ndeclare y: U\nprotected abstract m(): void\nprivate async n?(): X {}\nget p(): T { return 1 }\n[k: string]: any }",
    "for (const x of y as T[]) z(x!)",
    "if (a17 as T) b as U\nelse c as V",
    "do a18 as T\nwhile (b!)",
    "try { a19() } catch (e: unknown) { e as T }",
    "new Map<string, T>(a20 as never)",
    "import type { A21 } from 'a'",
    "export type { A22 } from 'a'",
    "label: a23 as T",
    "switch (a24 as T) { case b!: c as U\ndefault: (d) }",
    "const a25 = { m<T>(this: U, x: T): T { return x }, get y(): V { return 1 }, z: (b as T) }",
    "a26?.b!.c![0]!(d)",
    "let a27!: T, a28: (x: number) => void, a29: { a: 1 } | [b: 2]",
    "a30 = b ? (c as T) : d!",
    "(x: T): U => x",
    "return a31 as T",
    "throw a32 as T",
    "enum A33 { B, C = B + 1, D = `d` }",
    "namespace A34 { export const b: T = 1\nexport type C = 1 }",
];

/// Declarations that become code: their statements are not compared, their neighbours are.
const CODED: &[&str] = &["P0", "P1", "A33", "A34"];

/// The structure of a program without its types and the code that they stand for.
fn shape<'a>(text: &'a str, program: &Program<'a>) -> Vec<String> {
    let mut shape = Shape { text, nodes: vec![] };
    shape.visit_program(program);
    shape.nodes
}

struct Shape<'a> {
    text: &'a str,
    nodes: Vec<String>,
}

impl<'a> Visit<'a> for Shape<'a> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        let name = kind.identifier_name().map_or("", |name| name.as_str());
        let node = format!("{:?} {name}", kind.ty());
        // Brackets, semicolons and the ends of chains are notation, not structure.
        let is_writing =
            ["TS", "Parenthesized", "Empty", "Chain"].iter().any(|it| node.starts_with(it));
        if !is_writing {
            self.nodes.push(node);
        }
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        let is_coded = CODED.iter().any(|name| self.text[it.span()].contains(name));
        if !is_coded && !recover::is_type_only(it) {
            walk::walk_statement(self, it);
        }
    }

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if !it.declare && it.r#type == PropertyDefinitionType::PropertyDefinition {
            walk::walk_property_definition(self, it);
        }
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if it.value.body.is_some() {
            walk::walk_method_definition(self, it);
        }
    }

    fn visit_ts_type(&mut self, _: &TSType<'a>) {}
    fn visit_ts_type_annotation(&mut self, _: &TSTypeAnnotation<'a>) {}
    fn visit_ts_type_parameter_declaration(&mut self, _: &TSTypeParameterDeclaration<'a>) {}
    fn visit_ts_type_parameter_instantiation(&mut self, _: &TSTypeParameterInstantiation<'a>) {}
    fn visit_ts_class_implements(&mut self, _: &TSClassImplements<'a>) {}
    fn visit_ts_this_parameter(&mut self, _: &TSThisParameter<'a>) {}
    fn visit_ts_index_signature(&mut self, _: &TSIndexSignature<'a>) {}
}

#[test]
fn waiting_for_each_of_a_list_needs_no_function_around_it() {
    let text = "for await (const x of [1]) f(x)\nf()";
    for convention in [ExplicitReturn, LastExpression] {
        let RunnableText(prepared) = prepare(text, convention).unwrap();
        assert!(prepared.starts_with("for await (const x of [1]) f(x)"), "{prepared}");
    }
    let typed = prepare("for await (const x of y as T[]) f(x)", ExplicitReturn).unwrap();
    assert_eq!(typed.0, "for await (const x of y       ) f(x)");
    assert!(prepare("() => { for await (const x of y) f(x) }", ExplicitReturn).is_err());
}

#[test]
fn an_object_may_be_awaited_at_the_top() {
    for text in [
        "return await { then(done) { done(1) } }",
        "const { a } = await { a: 1 }\nreturn a",
        "return (await {}).b",
    ] {
        assert_eq!(
            prepare(text, ExplicitReturn).map(|RunnableText(text)| text),
            Ok(text.to_owned())
        );
    }
    assert!(prepare("await { a: 1 }.a", LastExpression).is_ok());
    let problem = prepare("return await { then( }", ExplicitReturn).unwrap_err();
    assert_eq!((problem.line, problem.column), (1, 13), "{problem:?}");
}
