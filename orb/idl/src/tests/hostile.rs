//! The front end never panics and always terminates, on any text; accepted text can be walked and translated.

use std::path::Path;

use proptest::prelude::*;
use spandrel_idl::model::{DefinitionKind, Type};
use spandrel_idl::rust::{Options, Sides, generate, generate_files};
use spandrel_idl::{FrontEndOptions, MemoryFiles, Model, compile_with};

/// Compiles a text that may include itself and another, and uses the whole result.
fn compile_and_use(text: &[u8]) {
    compile_and_use_with(text, &all_options());
}

fn compile_and_use_with(text: &[u8], options: &[Options]) {
    let provider = MemoryFiles::new().with("main.idl", text).with("other.idl", "typedef long Other;\n#pragma once\n");
    match compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")) {
        Ok(model) => {
            walk(&model);
            write(&model, options);
        }
        Err(diagnostics) => {
            assert!(diagnostics.iter().next().is_some(), "a refusal without a reason");
            assert!(!diagnostics.render(true).is_empty());
        }
    }
}

/// Translates a model to Rust; the back end parses and formats its output.
fn write(model: &Model, options: &[Options]) {
    for options in options {
        let rust = generate(model, options);
        assert!(rust.starts_with("// @generated"), "{rust}");
    }
    let files = generate_files(model, &Options::default().prefix("around").expect("a name"), "stem");
    assert!(files.iter().all(|file| file.text.starts_with("// @generated")));
}

/// Options that change the output, each with others that it may conflict with.
fn all_options() -> Vec<Options> {
    let chosen = "the choice is known";
    let rich = || Options::default().asynchronous_server(true).ami(true).ties();
    vec![
        Options::default(),
        rich().marshal("interpretive").expect(chosen).prefix("one::two").expect(chosen),
        rich().marshal("adaptive").expect(chosen).pad_all(),
        Options::default()
            .asynchronous_client(false)
            .sides(Sides::Client)
            .external("other.idl", "crate::other")
            .expect(chosen),
        Options::default().sides(Sides::Server).derive(None, "::std::hash::Hash").expect(chosen),
    ]
}

fn walk(model: &Model) {
    model.warnings().to_string();
    for definition in model.definitions() {
        assert_eq!(model.lookup(&definition.scoped_name).map(|it| it.id), Some(definition.id));
        assert!(definition.repository_id.contains(':') || !model.warnings().is_empty());
        model.flattened(definition.id);
        model.is_recursive(definition.id);
        if let DefinitionKind::Typedef(typedef) = &definition.kind {
            assert!(!matches!(model.resolve(&typedef.ty), Type::Named(id) if *id == definition.id));
            model.is_fixed_size(&typedef.ty);
        }
    }
}

/// Pieces of IDL, and pieces that are not IDL.
const WORDS: &[&str] = &[
    "component",
    "home",
    "eventtype",
    "manages",
    "provides",
    "uses",
    "typeprefix",
    "typeid A",
    "import",
    "module T<typename X> {",
    "module T<long> A",
    "alias T<A> B",
    "module",
    "interface",
    "struct",
    "exception",
    "enum",
    "typedef",
    "const",
    "sequence",
    "string",
    "long",
    "short",
    "unsigned",
    "double",
    "float",
    "boolean",
    "octet",
    "char",
    "Object",
    "attribute",
    "readonly",
    "oneway",
    "void",
    "in",
    "out",
    "inout",
    "raises",
    "TRUE",
    "FALSE",
    "union",
    "switch",
    "case",
    "valuetype",
    "custom",
    "truncatable",
    "supports",
    "public",
    "private",
    "factory",
    "factory make(",
    "any",
    "native",
    "local",
    "abstract",
    "fixed",
    "A",
    "B",
    "C",
    "a",
    "b",
    "_a",
    "::",
    "A::B",
    "{",
    "}",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    ">>",
    ";",
    ";",
    ";",
    ",",
    ":",
    "=",
    "+",
    "-",
    "~",
    "<<",
    "*",
    "/",
    "1",
    "0",
    "2.5",
    "'x'",
    "\"s\"",
    "\"",
    "@key",
    "@range(min = 1, max = A)",
    "@annotation",
    "default",
    "wchar",
    "wstring",
    "ValueBase",
    "context",
    "CORBA::TypeCode",
    "1.5d",
    "L'x'",
    "L\"w\\u20ac\"",
    "|",
    "%",
    "\n#pragma ID A \"x:y\"\n",
    "\n#include <orb.idl>\n",
    "\n#if A\n",
    "\n#endif\n",
    "\n#define A B\n",
    "\n#include \"other.idl\"\n",
    "\n#pragma prefix \"p\"\n",
];

/// Files of the corpus, to be damaged.
const FILES: &[&str] = &[
    include_str!("../../tests/idl/good/components.idl"),
    include_str!("../../tests/idl/good/identities.idl"),
    include_str!("../../tests/idl/good/templates.idl"),
    include_str!("../../tests/idl/good/annotations.idl"),
    include_str!("../../tests/idl/good/bank.idl"),
    include_str!("../../tests/idl/good/corba.idl"),
    include_str!("../../tests/idl/good/constants.idl"),
    include_str!("../../tests/idl/good/decimals.idl"),
    include_str!("../../tests/idl/good/escaped.idl"),
    include_str!("../../tests/idl/good/interfaces.idl"),
    include_str!("../../tests/idl/good/recursion.idl"),
    include_str!("../../tests/idl/good/types.idl"),
    include_str!("../../tests/idl/good/unions.idl"),
    include_str!("../../tests/idl/good/values.idl"),
    include_str!("../../tests/idl/bad/preprocessor.idl"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_are_accepted_or_rejected(octets in proptest::collection::vec(any::<u8>(), 0..600)) {
        compile_and_use(&octets);
    }

    #[test]
    fn any_text_is_accepted_or_rejected(text in "\\PC{0,300}") {
        compile_and_use(text.as_bytes());
    }

    #[test]
    fn any_sequence_of_idl_words_is_accepted_or_rejected(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..120)) {
        compile_and_use(words.join(" ").as_bytes());
    }

    #[test]
    fn damaged_files_are_accepted_or_rejected(
        file in proptest::sample::select(FILES),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), 0..12usize, proptest::option::of(proptest::sample::select(WORDS))), 1..6),
    ) {
        let mut octets = file.as_bytes().to_vec();
        for (place, length, word) in damage {
            let start = place.index(octets.len() + 1);
            let end = (start + length).min(octets.len());
            octets.splice(start..end, word.unwrap_or("").bytes());
        }
        compile_and_use(&octets);
    }
}

#[test]
fn huge_names_and_types_are_errors() {
    let compile_and_use = |text: &[u8]| compile_and_use_with(text, &[Options::default()]);
    let long = "x".repeat(100_000);
    compile_and_use(format!("module {long} {{ typedef long T; }};").as_bytes());
    compile_and_use(format!("#pragma prefix \"{long}\"\ntypedef long T;").as_bytes());
    let chain: String = (1..5000).map(|n| format!("typedef sequence<T{}> T{n};\n", n - 1)).collect();
    compile_and_use(format!("typedef long T0;\n{chain}").as_bytes());
    let doubling: String = (1..200).map(|n| format!("struct S{n} {{ S{} l, r; }};\n", n - 1)).collect();
    compile_and_use(format!("struct S0 {{ long a; }};\n{doubling}").as_bytes());
    let strings: String = (1..3000).map(|n| format!("const string C{n} = C{};\n", n - 1)).collect();
    compile_and_use(format!("const string C0 = \"{long}\";\n{strings}").as_bytes());
    let uses = "S ".repeat(100_000);
    compile_and_use(format!("#define S \"{long}\"\nconst string C = {uses};").as_bytes());
    let pastes = " ## x".repeat(1000);
    compile_and_use(format!("#define f(x) x{pastes}\nf({})", "a b ".repeat(10_000)).as_bytes());
    compile_and_use(format!("#define f(x) x{pastes}\nf({long})").as_bytes());
    let quotes = "#x ".repeat(1000);
    compile_and_use(format!("#define f(x) {quotes}\nf({long})").as_bytes());
    let forwards: String = (0..3000).map(|n| format!("struct F{n}; typedef sequence<F{n}> Q{n};\n")).collect();
    let waiting: String = (1..3000).map(|n| format!("struct F{} {{ Q{n} x; Q0 y; }};\n", n - 1)).collect();
    compile_and_use(format!("{forwards}{waiting}struct F2999 {{ Q0 x; }};").as_bytes());
    let labels: String = (0..20_000).map(|n| format!("case {n}: ")).collect();
    compile_and_use(format!("union U switch (long) {{ {labels} long a; }};").as_bytes());
    let decimals = " * 1.0000000000000001d / 3d".repeat(5000);
    compile_and_use(format!("const fixed F = 1d{decimals};").as_bytes());
    compile_and_use(format!("interface I {{ @a(\"{long}\") attribute long a{}; }};", ", a".repeat(10_000)).as_bytes());
    let many = "@a(1) ".repeat(10_000);
    compile_and_use(format!("interface I {{ {many} attribute long a{}; }};", ", a".repeat(10_000)).as_bytes());
    compile_and_use(format!("const wstring W = L\"{long}\"; {}", "const wstring V = W; ".repeat(5000)).as_bytes());
    let instances: String = (1..100).map(|n| format!("alias T{n}<X> N{n};")).collect();
    let templates: String = (1..100).map(|n| format!("module T{n}<typename X> {{ {instances} }};")).collect();
    compile_and_use(format!("{templates} module T1<long> A;").as_bytes());
    compile_and_use(
        format!("module T<typename X> {{ const string A = X; }}; module T<{}> B;", "\"a\"".repeat(50_000)).as_bytes(),
    );
    let names = ", a".repeat(10_000);
    compile_and_use(format!("interface I {{ /* {long} */ attribute long a{names}; }};").as_bytes());
    let bases: String = (1..2000).map(|n| format!("interface I{n} : I{} {{}};\n", n - 1)).collect();
    compile_and_use(format!("interface I0 {{ void f(); }};\n{bases}").as_bytes());
}

/// Nested diamonds: the number of inheritance paths is quadratic, and there is one operation.
#[test]
fn nested_diamonds_are_flattened_once() {
    let mut text = String::from("interface L0 { void f(); };\n");
    for level in 1..60 {
        let below = level - 1;
        text += &format!("interface A{level} : L{below} {{}}; interface B{level} : L{below} {{}};\n");
        text += &format!("interface L{level} : A{level}, B{level} {{}};\n");
    }
    let provider = MemoryFiles::new().with("main.idl", text);
    let model = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect("good IDL");
    let top = model.lookup("L59").expect("it is there");
    assert_eq!(model.flattened(top.id).len(), 1);
    assert_eq!(top.as_interface().expect("an interface").all_bases.len(), 59 * 3);
}

/// Types with very many parts: the nesting of the output and of its parsing does not grow with their number.
#[test]
fn types_of_very_many_parts_are_written() {
    let many = |line: fn(usize) -> String| (0..400).map(line).collect::<String>();
    compile_and_use(format!("struct S {{ {} }};", many(|n| format!("long m{n};"))).as_bytes());
    compile_and_use(format!("exception X {{ {} }};", many(|n| format!("string m{n};"))).as_bytes());
    compile_and_use(format!("valuetype V {{ {} }};", many(|n| format!("public V m{n};"))).as_bytes());
    compile_and_use(format!("enum E {{ {} last }};", many(|n| format!("e{n},"))).as_bytes());
    compile_and_use(format!("union U switch (long) {{ {} long last; }};", many(|n| format!("case {n}:"))).as_bytes());
    compile_and_use(format!("union U switch (long) {{ {} }};", many(|n| format!("case {n}: long m{n};"))).as_bytes());
    compile_and_use(format!("interface I {{ {} }};", many(|n| format!("void f{n}();"))).as_bytes());
    compile_and_use(
        format!("interface I {{ void f({} in long last); }};", many(|n| format!("inout long a{n},"))).as_bytes(),
    );
    let raised: Vec<String> = (0..400).map(|n| format!("X{n}")).collect();
    let exceptions = many(|n| format!("exception X{n} {{}};"));
    compile_and_use(format!("{exceptions} interface I {{ void f() raises ({}); }};", raised.join(", ")).as_bytes());
    compile_and_use(format!("typedef long A{};", "[1]".repeat(120)).as_bytes());
    compile_and_use(format!("typedef {}long{} Q;", "sequence<".repeat(60), ">".repeat(60)).as_bytes());
    let modules: String = (0..60).map(|n| format!("module M{n} {{")).collect();
    compile_and_use(format!("{modules} struct S {{ long a; }}; {}", "};".repeat(60)).as_bytes());
}

/// Names that become equal in Rust, as many as there are.
#[test]
fn many_equal_names_are_made_distinct() {
    let spelt = |n: usize| (0..11).map(|bit| if n >> bit & 1 == 1 { "_A" } else { "A" }).collect::<String>();
    let structs: String = (0..400).map(|n| format!("struct x{} {{ long a; }};\n", spelt(n))).collect();
    compile_and_use(structs.as_bytes());
}

/// The messages for a text that exceeds a limit.
fn messages(text: &str) -> Vec<String> {
    let provider =
        MemoryFiles::new().with("main.idl", text).with("self.idl", "module M {\n#include \"self.idl\"\n};\n");
    let diagnostics = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect_err("a limit");
    diagnostics.iter().map(|it| it.message.clone()).collect()
}

/// The text after the exceeded limit is not read, so that no error can be reported there.
#[test]
fn a_limit_that_is_passed_is_the_only_error() {
    const TOO_LARGE: [&str; 1] = ["the files are too large or too many"];
    assert_eq!(messages(&";".repeat(3 << 20)), TOO_LARGE);
    assert_eq!(messages(&format!("module M {{\n{}}};", "struct S { long a; };\n".repeat(400_000))), TOO_LARGE);
    assert_eq!(messages(&format!("// {}", "x".repeat(17 << 20))), TOO_LARGE);
    let doubling: String = (1..64).map(|n| format!("#define A{n} A{} A{}\n", n - 1, n - 1)).collect();
    let text =
        format!("#define T long\n#define A0 x x\n{doubling}struct S {{ T a; A63 b; }};\nstruct S2 {{ T a; }};\n");
    assert_eq!(messages(&text), ["macros expand to too much text"]);
    assert_eq!(messages("#include \"self.idl\"\nmodule N {\n"), ["files include each other too deep"]);
    let text = "#define f(x) x\nmodule M { typedef f(\n#include \"self.idl\"\nlong) T;\n};\n";
    assert_eq!(messages(text), ["files include each other too deep"]);
    let modules: String = (0..100).map(|n| format!("module M{n} {{ ")).collect();
    assert_eq!(
        messages(&format!("{modules} struct S {{ Unknown a; }}; {}", "};".repeat(100))),
        ["this is nested too deep"]
    );
    let names: String = (0..400_000).map(|n| format!("a{n}, ")).collect();
    let text = format!("#pragma prefix \"{}\"\ntypedef long {names}T;\ntypedef Unknown U;", "x".repeat(1000));
    assert_eq!(messages(&text), ["scoped names and repository ids take too much memory"]);
}
