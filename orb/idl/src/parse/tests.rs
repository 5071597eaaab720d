//! Properties of the parser that later phases do not show.

use std::path::Path;

use crate::source::MemoryFiles;
use crate::{FrontEndOptions, compile_with};

/// The messages about one file.
fn messages(text: &str) -> Vec<String> {
    let provider = MemoryFiles::new().with("main.idl", text);
    let result = compile_with(&FrontEndOptions::default(), &provider, Path::new("main.idl"));
    let diagnostics = match &result {
        Ok(model) => model.warnings(),
        Err(diagnostics) => diagnostics,
    };
    diagnostics.iter().map(|it| it.message.clone()).collect()
}

#[test]
fn one_mistake_gives_one_error() {
    for text in [
        "struct S { long a long b; }; typedef S T;",
        "enum E { a b }; typedef E T;",
        "const long A = 5 +; const long B = A;",
        "module M { typedef long T }; typedef M::T U;",
        "interface I { void f(long a); void g(); };",
        "interface I { void f() rises (E); void g(); };",
        "typedef sequence<long T;\ntypedef long U;",
        "module M { interface I { void f(); }; };;",
        "interfac I { void f(); };\ntypedef long T;",
        "struct S : T { long a; }; typedef S U;",
        "interface A {\n void f();\n\ninterface B { A g(); };",
        "module M { struct S { long a; };",
    ] {
        assert_eq!(messages(text).len(), 1, "{text}: {:?}", messages(text));
    }
}

#[test]
fn types_outside_the_corba_profiles_are_reported_and_skipped() {
    let cases = [
        ("bitmask B { a, b }; typedef B T;", "bitmask"),
        ("bitset B : A { bitfield<3> a; }; typedef B T;", "bitset"),
        ("struct S { map<long, string> m; }; typedef S T;", "map"),
        ("struct S { uint8 m; }; typedef S T;", "uint8"),
        ("struct S { long x; }; struct T : S { long y; }; typedef T U;", "inheritance of structs"),
    ];
    for (text, feature) in cases {
        assert_eq!(messages(text), [format!("not part of CORBA: {feature}")], "{text}");
    }
}

#[test]
fn words_reserved_in_some_versions_only_are_identifiers() {
    let text = "interface I { attribute long port; void import(in long map, in long component); };";
    assert_eq!(messages(text), [] as [&str; 0]);
    let text = "typedef short home; struct S { home getraises; };";
    assert_eq!(messages(text), [] as [&str; 0]);
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = 100_000;
    for text in [
        format!("const long A = {}1{};", "(".repeat(deep), ")".repeat(deep)),
        format!("typedef {}long{} T;", "sequence<".repeat(deep), ">".repeat(deep)),
        "module M { ".repeat(deep),
        "struct S { struct ".repeat(deep),
        "struct S { ".repeat(deep),
        format!("typedef sequence<{}", "struct S { sequence<".repeat(deep)),
    ] {
        let messages = messages(&text);
        assert!(!messages.is_empty() && messages.len() < 110);
    }
    let signs = format!("const long A = {}1;", "- ".repeat(deep));
    assert_eq!(messages(&signs), [] as [&str; 0]);
    let long = format!("const long A = 1{};", " + 1".repeat(deep));
    assert_eq!(messages(&long), [] as [&str; 0]);
}

/// The warnings about the portability of a file.
fn portability(text: &str) -> Vec<String> {
    let provider = MemoryFiles::new().with("main.idl", text).with("other.idl", "@nested struct Other { long x; };");
    let options = FrontEndOptions { portability_warnings: true, ..FrontEndOptions::default() };
    let model = compile_with(&options, &provider, Path::new("main.idl")).unwrap_or_else(|error| panic!("{error}"));
    model.warnings().iter().map(|it| it.message.clone()).collect()
}

/// Constructs that `omniidl` 4.3 refuses, each in a file.
const NOT_PORTABLE: [(&str, &str); 10] = [
    ("exception E {}; interface I { attribute long a setraises (E); };", "exceptions of attributes"),
    ("exception E {}; interface I { attribute long a getraises (E) setraises (E); };", "exceptions of attributes"),
    ("exception E {}; interface I { readonly attribute long a raises (E); };", "exceptions of attributes"),
    ("@nested struct S { @default(1) long x; };", "annotations"),
    ("module M { interface I {}; typeid I \"IDL:a:1.0\"; }; typeprefix M \"b\";", "`typeid` and `typeprefix`"),
    ("module M<typename T> { struct S { T x; }; };", "template modules"),
    ("union U switch (octet) { case 1: long x; };", "unions of an `octet` or a `wchar`"),
    ("module M { interface I {}; }; import ::M;", "imports"),
    ("struct S { int32 x; uint64 y; };", "integer types with their number of bits, such as `int32`"),
    ("union U switch (int16) { case 1: long x; };", "integer types with their number of bits, such as `int32`"),
];

#[test]
fn what_omniidl_does_not_read_is_one_warning_for_each_construct_if_wanted() {
    for (text, construct) in NOT_PORTABLE {
        let warnings = portability(text);
        assert_eq!(warnings.len(), 1, "{text}: {warnings:?}");
        let expected = format!("omniORB's IDL compiler does not read {construct}");
        assert!(warnings[0].starts_with(&expected), "{warnings:?}");
        assert_eq!(messages(text), [] as [&str; 0], "it is off by default");
    }
    assert_eq!(portability("#include \"other.idl\"\nstruct S { Other x; };"), [] as [&str; 0], "not in included files");
    let own = "typedef long int32; struct int8 { int32 uint8; };";
    assert_eq!(portability(own), [] as [&str; 0], "a file's own types of these names");
}

/// Where `omniidl` is installed, it refuses each of the constructs.
#[test]
fn omniidl_refuses_what_is_reported() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    for (number, (text, _)) in NOT_PORTABLE.into_iter().enumerate() {
        let file = folder.path().join(format!("case{number}.idl"));
        std::fs::write(&file, text).unwrap();
        let run = Command::new("omniidl").arg("-bdump").arg(&file).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match run {
            Ok(status) => assert!(!status.success(), "{text}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(error) => panic!("{error}"),
        }
    }
}
