//! The option `external`: the Rust module to which the definitions of each file belong.

use super::*;

/// The Rust of a file, with modules `crate::NAME` for the files `NAME.idl` of `externals`; or the error of the option.
fn rust_with(files: &[(&str, &str)], main: &str, externals: &[&str]) -> Result<String, String> {
    let provider = files.iter().fold(MemoryFiles::new(), |all, (name, text)| {
        let guard = name.replace('.', "_").to_uppercase();
        all.with(*name, format!("#ifndef {guard}\n#define {guard}\n{text}\n#endif"))
    });
    let model = compile_with(&FrontEndOptions::default(), &provider, Path::new(main)).expect("correct IDL");
    let options = externals.iter().fold(Options::default(), |options, name| {
        options.external(format!("{name}.idl"), &format!("crate::{name}")).expect("a path")
    });
    options.check_externals(&model).map_err(|error| error.to_string())?;
    Ok(generate(&model, &options))
}

/// Text of a file that includes others.
fn including(others: &[&str], rest: &str) -> String {
    let includes: String = others.iter().map(|other| format!("#include \"{other}.idl\"\n")).collect();
    includes + rest
}

const COMMON: (&str, &str) = ("common.idl", "struct Common { long x; };");

#[test]
fn an_include_of_an_external_file_is_external_in_any_order() {
    let x = including(&["common"], "struct X { Common has; };");
    let y = including(&["x", "common"], "struct Y { Common has; };");
    for order in [["x", "common"], ["common", "x"]] {
        let main = including(&order, "struct Main { Common a; X b; };");
        let rust = rust_with(&[COMMON, ("x.idl", &x), ("main.idl", &main)], "main.idl", &["x"]).expect("one module");
        assert!(rust.contains("pub a: crate::x::Common,") && !rust.contains("pub struct Common"), "{rust}");
    }
    // `y` is compiled with the same options, so that the definitions are not in its module.
    for order in [["x", "y", "common"], ["common", "y", "x"], ["y", "common", "x"]] {
        let main = including(&order, "struct Main { Common a; Y b; };");
        let files = [COMMON, ("x.idl", &x), ("y.idl", &y), ("main.idl", &main)];
        let rust = rust_with(&files, "main.idl", &["x", "y"]).expect("one module");
        assert!(rust.contains("pub a: crate::x::Common,") && rust.contains("pub b: crate::y::Y,"), "{rust}");
        assert!(rust_with(&files, "y.idl", &["x", "y"]).expect("one module").contains("pub has: crate::x::Common,"));
    }
}

#[test]
fn an_include_of_two_external_modules_needs_one_of_its_own() {
    let x = including(&["common"], "struct X { Common has; };");
    let y = including(&["common"], "struct Y { Common has; };");
    let main = including(&["x", "y"], "struct Main { X a; Y b; };");
    let files = [COMMON, ("x.idl", &x), ("y.idl", &y), ("main.idl", &main)];
    let error = rust_with(&files, "main.idl", &["x", "y"]).expect_err("two modules");
    assert!(error.starts_with("`x.idl=crate::x` is not enough: "), "{error}");
    for text in ["`Common` of common.idl", "crate::x and in crate::y", "`external` of its own"] {
        assert!(error.contains(text), "{error}");
    }
    let rust = rust_with(&files, "main.idl", &["x", "y", "common"]).expect("one module");
    assert!(!rust.contains("pub struct Common"), "{rust}");
    // A file without definitions has no types.
    let x = including(&["common"], "struct X { LONG has; };");
    let y = including(&["common"], "struct Y { LONG has; };");
    let files = [("common.idl", "#define LONG long"), ("x.idl", &x), ("y.idl", &y), ("main.idl", &main)];
    rust_with(&files, "main.idl", &["x", "y"]).expect("only macros");
}

#[test]
fn a_common_include_of_a_circle_needs_a_module() {
    let a = including(&["common", "b"], "struct A { Common has; };");
    let b = including(&["a", "common"], "struct B { Common has; };");
    let files = [COMMON, ("a.idl", &a), ("b.idl", &b)];
    for main in ["a.idl", "b.idl"] {
        let error = rust_with(&files, main, &["a", "b"]).expect_err("two modules");
        assert!(error.contains("`Common` of common.idl") && error.contains(" in this output"), "{error}");
        rust_with(&files, main, &["a", "b", "common"]).expect("one module");
    }
    // What one of them includes is in the module of that one.
    let b = including(&["a"], "struct B { long x; };");
    let files = [COMMON, ("a.idl", &a), ("b.idl", &b)];
    assert!(rust_with(&files, "a.idl", &["a", "b"]).expect("one module").contains("pub struct Common {"));
    assert!(!rust_with(&files, "b.idl", &["a", "b"]).expect("one module").contains("pub struct Common {"));
}

#[test]
fn a_file_that_is_read_twice_belongs_to_each_includer() {
    let provider = MemoryFiles::new()
        .with("shape.idl", "struct NAME { long number; };")
        .with("x.idl", "#define NAME X\n#include \"shape.idl\"\n#undef NAME\n")
        .with(
            "main.idl",
            "#include \"x.idl\"\n#define NAME Own\n#include \"shape.idl\"\nstruct Both { X one; Own other; };",
        );
    let model = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl")).expect("correct IDL");
    let options = Options::default().external("x.idl", "crate::x").expect("a path");
    options.check_externals(&model).expect("no definition is in both");
    let rust = generate(&model, &options);
    assert!(rust.contains("pub struct Own {") && rust.contains("crate::x::X,"), "{rust}");
}

#[test]
fn an_external_file_may_not_declare_what_the_including_file_defines() {
    for (declared, defined) in [
        ("interface C; struct P { C m; };", "interface C { P get(); };"),
        ("valuetype C; struct P { C m; };", "valuetype C { public long number; };"),
        ("abstract interface C; struct P { C m; };", "abstract interface C { void call(); };"),
        ("module M { interface C; struct P { C m; }; };", "module M { interface C { P get(); }; };"),
    ] {
        let b = including(&["a"], defined);
        let main = including(&["b"], "struct Main { long x; };");
        let files = [("a.idl", declared), ("b.idl", &*b), ("main.idl", &*main)];
        let error = rust_with(&files, "b.idl", &["a"]).expect_err("two types");
        assert!(error.starts_with("`a.idl=crate::a` is not possible: a.idl declares "), "{error}");
        assert!(error.contains("C` and b.idl defines it") && error.contains("one call"), "{error}");
        rust_with(&files, "main.idl", &["a", "b"]).expect_err("two types");
        // One module for both, as for files of one call.
        rust_with(&files, "main.idl", &["b"]).expect("one type");
        rust_with(&files, "b.idl", &[]).expect("one type");
    }
    let first = [("a.idl", "interface C; struct P { C m; };"), ("b.idl", "interface C {};\n#include \"a.idl\"")];
    rust_with(&first, "b.idl", &["a"]).expect_err("two types, in any order");
}

#[test]
fn an_external_file_may_declare_what_it_includes() {
    let order = "module Shop { interface Order; };\n#include \"customers.idl\"
                 module Shop { interface Order { Customer buyer(); }; };";
    // It declares again what the other file has declared, since it may be compiled first.
    let customer = "module Shop { interface Customer; interface Order; };\n#include \"orders.idl\"
                    module Shop { interface Customer { Order last(); }; };";
    let files = [("orders.idl", order), ("customers.idl", customer)];
    for (main, other) in
        [("orders.idl", "crate::customers::shop::Customer"), ("customers.idl", "crate::orders::shop::Order")]
    {
        let rust = rust_with(&files, main, &["orders", "customers"]).expect("one type for each");
        assert!(rust.contains(other), "{rust}");
    }
    let main = "interface C;\n#include \"c.idl\"\nstruct Main { C has; };";
    let rust = rust_with(&[("c.idl", "interface C {};"), ("main.idl", main)], "main.idl", &["c"]).expect("one type");
    assert!(rust.contains("crate::c::C") && !rust.contains("pub struct C("), "{rust}");
}

#[test]
fn an_interface_uses_the_methods_and_the_dispatch_of_a_base_in_another_file() {
    let base = "interface A { void f(in long x); void e(); };";
    let files = [("base.idl", base), ("main.idl", "#include \"base.idl\"\ninterface B : A { void g(); };")];
    let rust = rust_with(&files, "main.idl", &["base"]).expect("one module");
    let words = rust.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("pub fn g(&self)") && !words.contains("fn f(&self"), "{rust}");
    assert!(words.contains("inherited_external::< crate::base::A, _, _,"), "{rust}");
    // The base is checked by the names of all its operations.
    let own = rust_with(&[("base.idl", base)], "base.idl", &[]).expect("no other module");
    let fingerprint = own.split("const FINGERPRINT: u32 = ").nth(1).and_then(|rest| rest.split(';').next());
    assert!(words.contains(&format!("_, _, {},", fingerprint.expect("a table"))), "{rust}");
    let other = rust_with(&[("base.idl", &base.replace("e()", "h()"))], "base.idl", &[]).expect("no other module");
    assert!(!other.contains(fingerprint.expect("a table")), "{other}");
}
