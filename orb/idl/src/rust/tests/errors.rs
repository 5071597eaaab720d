//! One error enum for each set of exceptions of a module, and its aliases.

use super::*;

/// The lines that begin with one of these, without indentation.
fn lines<'r>(rust: &'r str, beginnings: &[&str]) -> Vec<&'r str> {
    let lines = rust.lines().map(str::trim);
    lines.filter(|line| beginnings.iter().any(|beginning| line.starts_with(beginning))).collect()
}

#[track_caller]
fn check_errors(idl: &str, expected: &[&str]) {
    let rust = rust_of("test.idl", idl);
    let found = lines(&rust, &["pub enum", "pub type"]);
    assert_eq!(found, expected, "{rust}");
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

#[test]
fn the_set_of_an_external_interface_is_external() {
    let files = MemoryFiles::new()
        .with("a.idl", "module M { exception E {}; interface A { void f() raises (E); }; };")
        .with("b.idl", "#include \"a.idl\"\nmodule M { interface B { void g() raises (E); }; };");
    let model = compile_with(&FrontEndOptions::default(), &files, Path::new("b.idl")).expect("correct IDL");
    let rust = generate(&model, &Options::default().external("a.idl", "crate::a").expect("a path"));
    assert_eq!(lines(&rust, &["pub enum", "pub type"]), ["pub type GError = crate::a::m::EError;"], "{rust}");
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
            "rt::describe_exception_text(f, \"Failed\", &self.reason)",
            "rt::describe_exception(f, \"Over\", &[(\"maxWeight\", &self.max_weight), (\"unit\", &self.unit)])",
            "f.write_str(\"None_\")",
            "rt::describe_exception_text(f, \"Lost\", &self.what)",
        ],
    );
}

#[test]
fn the_debug_form_of_an_error_is_its_display_form() {
    check(
        "exception E { long x; }; interface A { void f() raises (E); };",
        &[
            "#[derive(Clone, PartialEq)] pub enum EError",
            "impl ::std::fmt::Debug for EError",
            "EError::E(exception) => ::std::fmt::Display::fmt(exception, f)",
            "EError::System(exception) => ::std::fmt::Debug::fmt(exception, f)",
            "EError::System(exception) => ::std::error::Error::source(exception)",
        ],
    );
}

#[test]
fn an_alias_has_a_function_that_makes_its_any() {
    check(
        "module M { typedef sequence<string> Names; typedef string Name; typedef long Celsius; interface I {};
           typedef I Alias; typedef wstring Wide; local interface L {}; typedef L Hidden; };",
        &[
            "pub fn names_any(value: &[String]) -> Result<rt::Any, rt::CdrError> { rt::Any::with_type(names_tc(), value) }",
            "pub fn name_any(value: &str) -> Result<rt::Any, rt::CdrError>",
            "pub fn celsius_any(value: &i32) -> Result<rt::Any, rt::CdrError>",
            "pub fn alias_any(value: &Option<I>) -> Result<rt::Any, rt::CdrError>",
            "pub fn wide_any(value: &rt::WString) -> Result<rt::Any, rt::CdrError>",
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
