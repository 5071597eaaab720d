//! One error enum for each set of exceptions of a module, and its aliases.

use super::*;

/// The lines that begin with one of these, without indentation; not those of skeletons.
fn lines<'r>(rust: &'r str, beginnings: &[&str]) -> Vec<&'r str> {
    let lines = rust.lines().map(str::trim);
    let is_wanted = |line: &&str| beginnings.iter().any(|beginning| line.starts_with(beginning));
    lines.filter(|line| is_wanted(line) && !line.contains("Skeleton<")).collect()
}

#[track_caller]
fn check_errors(idl: &str, expected: &[&str]) {
    let rust = rust_of("test.idl", idl);
    let declarations = lines(&rust, &["pub enum", "pub type"]);
    assert_eq!(declarations, expected, "{rust}");
}

#[test]
fn operations_that_raise_the_same_set_share_an_enum() {
    check_errors(
        "module M { exception Closed {}; exception Overdrawn { long balance; };
           interface A { void f() raises (Overdrawn, Closed); void g() raises (Closed, Overdrawn); };
           interface B { attribute long x getraises (Closed) setraises (Closed, Overdrawn); }; };
         module M { interface C { void h() raises (Overdrawn, Closed); }; };",
        &[
            "pub enum ClosedOrOverdrawnError {",
            "pub type FError = super::ClosedOrOverdrawnError;",
            "pub type GError = super::ClosedOrOverdrawnError;",
            "pub enum ClosedError {",
            "pub type XError = super::ClosedError;",
            "pub type SetXError = super::ClosedOrOverdrawnError;",
            "pub type HError = super::ClosedOrOverdrawnError;",
        ],
    );
}

#[test]
fn each_module_has_its_own_enums() {
    check_errors(
        "module M { exception E {}; interface A { void f() raises (E); }; };
         module N { interface B { void f() raises (M::E); }; interface C { void g() raises (M::E); }; };",
        &[
            "pub enum EError {",
            "pub type FError = super::EError;",
            "pub enum EError {",
            "pub type FError = super::EError;",
            "pub type GError = super::EError;",
        ],
    );
}

#[test]
fn different_sets_of_the_same_names_have_different_enums() {
    check_errors(
        "module M { exception E {}; }; module N { exception E {}; };
         module O { struct EError { long x; }; interface A { void f() raises (M::E); void g() raises (N::E); }; };",
        &[
            "pub enum EError_ {",
            "pub enum EError__ {",
            "pub type FError = super::EError_;",
            "pub type GError = super::EError__;",
        ],
    );
}

#[test]
fn a_large_set_is_named_after_its_first_operation() {
    check_errors(
        "exception A {}; exception B {}; exception C {}; exception D {}; exception E {};
         interface Lookup { void query() raises (E, D, C, B, A); void again() raises (A, B, C, D, E);
                            void less() raises (D, C, B, A); };",
        &[
            "pub enum LookupQueryError {",
            "pub enum AOrBOrCOrDError {",
            "pub type QueryError = super::LookupQueryError;",
            "pub type AgainError = super::LookupQueryError;",
            "pub type LessError = super::AOrBOrCOrDError;",
        ],
    );
}

/// The Rust of `main.idl`, with an external module for each of the other files.
fn with_externals(files: &[(&str, &str)]) -> String {
    let provider = files.iter().fold(MemoryFiles::new(), |all, (name, text)| all.with(*name, *text));
    let model = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect("correct IDL");
    let others = files.iter().map(|(name, _)| *name).filter(|name| *name != "main.idl");
    let options = others.fold(Options::default(), |options, name| {
        options.external(name, &format!("crate::{}", name.trim_end_matches(".idl"))).expect("a path")
    });
    generate(&model, &options)
}

#[test]
fn each_file_has_its_own_error_enums() {
    let base = "module M { exception E {}; interface A { void f() raises (E); }; interface Z {}; };";
    // The methods of the first base are those of its own reference.
    let main = "#include \"base.idl\"\nmodule M { interface B : Z, A { void g() raises (E); }; };";
    let rust = with_externals(&[("base.idl", base), ("main.idl", main)]);
    assert_eq!(lines(&rust, &["pub enum", "pub type"]), ["pub enum EError {", "pub type GError = super::EError;"]);
    assert!(rust.contains("Result<(), crate::base::m::a::FError>") && rust.contains("E(crate::base::m::E)"), "{rust}");

    // The first interface declared is that of a file whose own compilation finds the enum elsewhere.
    let first =
        "module M { interface C; };\n#include \"base.idl\"\nmodule M { interface C { void h() raises (E); }; };";
    let main = "#include \"first.idl\"\nmodule M { interface D { void i() raises (E); }; };";
    let rust = with_externals(&[("base.idl", base), ("first.idl", first), ("main.idl", main)]);
    assert_eq!(lines(&rust, &["pub enum", "pub type"]), ["pub enum EError {", "pub type IError = super::EError;"]);
}

#[test]
fn names_of_another_file_are_those_of_its_own_compilation() {
    let base = "module M { struct PortInfo { long x; }; interface Port { struct Data { long x; }; }; };";
    let more = "module M { struct Port_Info_ { long x; }; struct Port_Info { long x; }; };";
    let check = |files: &[(&str, &str)], expected: &[&str]| {
        let rust = with_externals(files);
        for text in expected {
            assert!(rust.contains(text), "{text} is not in\n{rust}");
        }
    };
    let all = "struct All { PortInfo a; Port_info b; Port::Data c; port::Data d; }; };";
    let own = "module M { struct Port_info { long x; }; module port { struct Data { long x; }; }; };";
    let own = own.replace("module port", "module port_");
    let all = all.replace("port::Data", "port_::Data");
    let expected = [
        "pub a: crate::base::m::PortInfo,",
        "pub b: PortInfo,",
        "pub c: crate::base::m::port::Data,",
        "pub d: port::Data,",
    ];
    for main in [
        format!("{own}\n#include \"base.idl\"\nmodule M {{ {all}"),
        format!("#include \"base.idl\"\n{own}\nmodule M {{ {all}"),
    ] {
        check(&[("base.idl", base), ("main.idl", &main)], &expected);
    }
    // Names of one external file change none of another.
    let main = "#include \"more.idl\"\n#include \"base.idl\"
        module M { struct All { PortInfo a; Port_Info b; Port_Info_ c; }; };";
    let expected =
        ["pub a: crate::base::m::PortInfo,", "pub b: crate::more::m::PortInfo_,", "pub c: crate::more::m::PortInfo,"];
    check(&[("base.idl", base), ("more.idl", more), ("main.idl", main)], &expected);
}

#[test]
fn what_an_external_file_includes_is_in_its_module() {
    let options = Options::default().external("base.idl", "crate::base").expect("a path");
    let files = MemoryFiles::new()
        .with("types.idl", "struct T { long x; };")
        .with("base.idl", "#include \"types.idl\"\n#include <orb.idl>\nstruct B { T first; CORBA::StringSeq names; };")
        .with("main.idl", "#include \"base.idl\"\nstruct S { B whole; T first; CORBA::StringSeq names; };");
    let model = compile_with(&FrontEndOptions::default(), &files, Path::new("main.idl")).expect("correct IDL");
    let rust = generate(&model, &options);
    assert!(rust.contains("pub whole: crate::base::B,") && rust.contains("pub first: crate::base::T,"), "{rust}");
    assert!(!rust.contains("struct T {") && rust.contains("pub names: corba::StringSeq,"), "{rust}");
}

#[test]
fn initializers_of_values_share_the_enums_of_operations() {
    check_errors(
        "exception E {}; interface A { void f() raises (E); };
         valuetype V { public long x; void g() raises (E); factory make() raises (E); };",
        &[
            "pub enum EError {",
            "pub type FError = super::EError;",
            "pub type GError = super::EError;",
            "pub type MakeError = super::EError;",
        ],
    );
}

#[test]
fn exceptions_are_described_by_their_idl_names() {
    check(
        "module M { exception Failed { wstring reason; }; exception Over { long maxWeight; string<3> unit; };
           exception None_ {}; typedef string Text; exception Lost { Text what; }; };",
        &[
            "text Failed, \"IDL:M/Failed:1.0\", \"Failed\", reason: rt::WString as \"reason\"",
            "members Over, \"IDL:M/Over:1.0\", \"Over\", max_weight: i32 as \"maxWeight\", unit: rt::BoundedString<3> as \"unit\"",
            "\"IDL:M/None_:1.0\", \"None_\"",
            "text Lost, \"IDL:M/Lost:1.0\", \"Lost\", what: Text as \"what\" = text_tc",
        ],
    );
}

#[test]
fn an_alias_has_a_function_that_makes_its_any() {
    check(
        "module M { typedef sequence<string> Names; typedef string Name; typedef long Celsius; interface I {};
           typedef I Alias; typedef wstring Wide; local interface L {}; typedef L Hidden; };",
        &[
            "names_any(&[String])",
            "name_any(&str)",
            "celsius_any(&i32)",
            "alias_any(&Option<I>)",
            "wide_any(&rt::WString)",
        ],
    );
    assert!(!rust_of("l.idl", "local interface L {}; typedef L Hidden;").contains("hidden_any"));
}

#[test]
fn methods_of_servant_traits_have_defaults_if_wanted() {
    let idl = "exception E {}; interface A { long f(in long x, inout string y) raises (E); void set(in long x); };";
    let options = Options::default().servant_defaults().asynchronous_server(true);
    let rust = flat(&rust_with(&options, "a.idl", idl));
    for line in [
        "fn f(&self, x: i32, y: &mut String) -> Result<i32, a::FError> { let _ = x; let _ = y; \
         Err(From::from(::spandrel::generated::not_implemented(\"f\"))) }",
        "fn set(&self, x: i32) -> Result<(), ::spandrel::generated::SystemException> { let _ = x; \
         Err(::spandrel::generated::not_implemented(\"set\")) }",
        "::std::future::ready::<Result<i32, a::FError>>(Err(From::from(::spandrel::generated::not_implemented(\"f\"))))",
    ] {
        assert!(rust.contains(line), "{line} does not occur in {rust}");
    }
    assert!(!rust_of("a.idl", idl).contains("not_implemented"));
}
