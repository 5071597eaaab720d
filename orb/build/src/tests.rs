//! Build scripts as seen by Cargo: input files, output files and lines.

use std::time::{Duration, SystemTime};

use super::*;

const GOOD: &str = "module M { struct S { long x; }; };";

/// A package with these files, and a folder for output.
struct Package {
    folder: tempfile::TempDir,
}

impl Package {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("out")).expect("an output folder");
        let package = Self { folder };
        for (name, text) in files {
            fs::write(package.path(name), text).expect("a source file");
        }
        package
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles files of the package; returns the output for Cargo, or the error's text.
    fn compile(&self, builder: Builder, files: &[&str]) -> Result<String, String> {
        let mut told = Vec::new();
        let files: Vec<PathBuf> = files.iter().map(|name| self.path(name)).collect();
        let result = builder.out_dir(self.path("out")).compile_telling(&files, &mut told);
        result.map_err(|error| error.to_string())?;
        Ok(String::from_utf8(told).expect("text"))
    }

    fn output(&self, name: &str) -> String {
        fs::read_to_string(self.path("out").join(name)).expect("an output file")
    }
}

#[test]
fn each_file_becomes_rust_under_its_own_name() {
    let package = Package::new(&[("a.idl", GOOD), ("b.v2.idl", "const long X = 1;")]);
    package.compile(configure(), &["a.idl", "b.v2.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("pub struct S"));
    assert!(package.output("b.v2.rs").contains("pub const X: i32 = 1;"));
}

#[test]
fn cargo_watches_every_file_that_was_read() {
    let package = Package::new(&[
        ("a.idl", "#include \"b.idl\"\nstruct A { B b; };"),
        ("b.idl", "#include <orb.idl>\nstruct B { long x; };"),
    ]);
    let told = package.compile(configure(), &["a.idl"]).expect("correct IDL");
    for name in ["a.idl", "b.idl"] {
        let line = format!("cargo:rerun-if-changed={}\n", package.path(name).display());
        assert_eq!(told.matches(&line).count(), 1, "{told}");
    }
    assert_eq!(told.matches("rerun-if-changed").count(), 2, "a built-in file cannot change: {told}");
    assert!(package.output("a.rs").contains("pub struct B"), "included definitions are part of the output");
}

#[test]
fn folders_and_macros_reach_the_preprocessor() {
    let package = Package::new(&[(
        "a.idl",
        "#include <deep.idl>\n#if SIZE == 3\n#ifdef ON\nconst long A = SIZE + DEEP;\n#endif\n#endif",
    )]);
    fs::create_dir(package.path("inc")).expect("a folder");
    fs::write(package.path("inc/deep.idl"), "const long DEEP = 4;").expect("a file");
    let builder = configure().include(package.path("inc")).define("SIZE=3").define("ON");
    package.compile(builder, &["a.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("pub const A: i32 = 7;"));
}

#[test]
fn the_runtime_can_be_another() {
    let package = Package::new(&[("a.idl", GOOD)]);
    package.compile(configure().runtime("crate::rt"), &["a.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("use crate::rt as rt;"));
    let error = package.compile(configure().runtime("1 + 1"), &["a.idl"]).expect_err("no path");
    assert!(error.contains("1 + 1"), "{error}");
}

#[test]
fn incorrect_idl_is_shown_with_its_line() {
    let package = Package::new(&[("a.idl", "struct A {\n  Missing m;\n};\n")]);
    let error = package.compile(configure(), &["a.idl"]).expect_err("an unknown type");
    assert!(error.contains("Missing m;") && error.contains("a.idl:2"), "{error}");
    assert!(!package.path("out/a.rs").exists());
}

#[test]
fn a_missing_file_is_named_and_watched() {
    let package = Package::new(&[]);
    let mut told = Vec::new();
    let file = package.path("absent.idl");
    let builder = configure().out_dir(package.path("out"));
    let error = builder.compile_telling(&[&file], &mut told).expect_err("no such file");
    assert!(error.to_string().contains("absent.idl"), "{error}");
    assert!(String::from_utf8_lossy(&told).contains("rerun-if-changed"));
    assert_eq!(format!("{error:?}").trim(), error.to_string().trim(), "`main` prints the readable text");
}

#[test]
fn two_files_of_the_same_name_are_rejected() {
    let package = Package::new(&[("a.idl", GOOD)]);
    fs::create_dir(package.path("sub")).expect("a folder");
    fs::write(package.path("sub/a.idl"), GOOD).expect("a file");
    let error = package.compile(configure(), &["a.idl", "sub/a.idl"]).expect_err("one output for two");
    let (first, second) = (package.path("a.idl"), package.path("sub/a.idl"));
    let files = format!("{} and {} have the same output", first.display(), second.display());
    assert!(error.starts_with(&files), "{error}");
    assert!(error.contains("a.rs") && error.contains("`out_dir`") && error.contains("rename"), "{error}");
    let error = package.compile(configure(), &["a.idl", "a.idl"]).expect_err("twice");
    assert_eq!(error, format!("{} is given twice", first.display()));
    // The remedy in the text.
    fs::create_dir(package.path("out/sub")).expect("a folder");
    package.compile(configure(), &["a.idl"]).expect("correct IDL");
    let other = configure().out_dir(package.path("out/sub"));
    other.compile_telling(&[second], &mut io::sink()).expect("correct IDL");
    assert!(package.output("sub/a.rs").contains("pub struct S") && package.output("a.rs").contains("pub struct S"));
}

#[cfg(unix)]
#[test]
fn a_file_with_two_names_is_given_twice() {
    let package = Package::new(&[("a.idl", GOOD)]);
    std::os::unix::fs::symlink("a.idl", package.path("link.idl")).expect("a symbolic link");
    fs::hard_link(package.path("a.idl"), package.path("hard.idl")).expect("a hard link");
    for other in ["link.idl", "hard.idl", "out/../a.idl"] {
        let error = package.compile(configure(), &["a.idl", other]).expect_err("twice");
        let (first, second) = (package.path("a.idl"), package.path(other));
        assert_eq!(error, format!("{} and {} are one file: give it once", first.display(), second.display()));
    }
    assert!(!package.path("out/a.rs").exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_is_included_by_another_path_is_the_same_file() {
    let package = Package::new(&[
        ("types.idl", "module T { struct S { long x; }; };"),
        ("a.idl", "#include \"out/../types.idl\"\nmodule A { struct X { T::S s; }; };"),
        ("b.idl", "#include \"link.idl\"\nmodule B { struct Y { T::S s; }; };"),
        (
            "c.idl",
            "#include \"link.idl\"\n#include \"once.idl\"\n#include \"out/../once.idl\"\nmodule C { struct Z { T::S s; }; };",
        ),
        ("once.idl", "#pragma once\nstruct Once { long x; };"),
    ]);
    std::os::unix::fs::symlink("types.idl", package.path("link.idl")).expect("a symbolic link");
    for order in [["types.idl", "a.idl", "b.idl", "c.idl"], ["c.idl", "b.idl", "a.idl", "types.idl"]] {
        let lines = package.compile(configure(), &order).expect("correct IDL");
        assert!(!lines.contains("cargo:warning"), "{lines}");
        assert!(package.output("types.rs").contains("pub struct S"));
        for other in ["a.rs", "b.rs", "c.rs"] {
            assert!(!package.output(other).contains("pub struct S"), "{other}");
        }
    }
}

#[test]
fn an_unchanged_output_is_not_rewritten() {
    let package = Package::new(&[("a.idl", GOOD)]);
    package.compile(configure(), &["a.idl"]).expect("correct IDL");
    let target = fs::File::options().write(true).open(package.path("out/a.rs")).expect("the output");
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    target.set_modified(long_ago).expect("a time");
    package.compile(configure(), &["a.idl"]).expect("nothing to write");
    assert_eq!(target.metadata().and_then(|data| data.modified()).expect("a time"), long_ago);
}

#[test]
fn outside_a_build_script_the_output_folder_must_be_set() {
    // Cargo sets OUT_DIR for tests of packages with a build script; this one has none.
    let package = Package::new(&[("a.idl", GOOD)]);
    let error = configure().compile_telling(&[package.path("a.idl")], &mut io::sink()).expect_err("no OUT_DIR");
    assert!(error.to_string().contains("OUT_DIR"), "{error}");
}

#[test]
fn every_setting_reaches_the_output() {
    let interfaces = "#include \"shared.idl\"\nmodule M { module Inner { enum E { a, b }; };
        interface L : Shared::Base { void to_left(); }; interface R { void to_right(); };
        interface Both : L, R { Shared::Place where(); }; };";
    let shared = "module Shared { struct Place { long x; }; interface Base { void lay(); }; };";
    let package = Package::new(&[("a.idl", interfaces), ("shared.idl", shared)]);
    let text = |builder: Builder| {
        package.compile(builder, &["a.idl"]).expect("correct IDL");
        package.output("a.rs")
    };
    let client = text(configure().sides(Sides::Client));
    assert!(client.contains("pub fn r#where(&self)") && !client.contains("BothServant"));
    let server = text(configure().sides(Sides::Server));
    assert!(
        !server.contains("pub fn r#where(&self)")
            && server.contains("BothServant")
            && server.contains("pub struct Both(")
    );
    let derived = text(configure().derive("Shared::Place", "::serde::Serialize").derive_all("::extra::Trace"));
    assert!(derived.contains("#[derive(::serde::Serialize, ::extra::Trace)]\n    pub struct Place"));
    assert!(derived.contains("#[derive(::extra::Trace)]\n        #[repr(u32)]"));
    let external = text(configure().external("shared.idl", "::shared_types::idl"));
    assert!(external.contains("::shared_types::idl::shared::Place") && !external.contains("pub mod shared"));
    let wrapped = text(configure().prefix("control::generated"));
    assert!(wrapped.contains("pub mod control {\n    pub mod generated {\n"));
    let direct = text(configure().collocation(Collocation::Direct));
    assert!(direct.contains("Facet<dyn BothServant> for BothSkeleton<S>"), "{direct}");
    let tied = text(configure().ties());
    assert!(tied.contains("pub struct BothTie<S0, S1, S> {"));
    let error = package.compile(configure().prefix("1st").runtime("2nd"), &["a.idl"]).expect_err("no names");
    assert_eq!(error, "`1st` is not names of modules, such as `control::generated`");
}

#[test]
fn each_module_may_have_a_file() {
    let package =
        Package::new(&[("a.idl", "struct Top { long x; }; module M { module Inner { struct S { Top t; }; }; };")]);
    package.compile(configure().per_module().prefix("all"), &["a.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("#[path = \"a/all.rs\"]\npub mod all;"));
    assert!(package.output("a/all.rs").contains("#[path = \"all/m.rs\"]\npub mod m;"));
    assert!(package.output("a/all/m.rs").contains("#[path = \"m/inner.rs\"]\npub mod inner;"));
    assert!(package.output("a/all/m/inner.rs").contains("pub t: super::super::Top"));
}

#[test]
fn only_regular_files_of_bounded_size_are_read() {
    let package = Package::new(&[
        ("device.idl", "#include \"/dev/zero\"\n"),
        ("folder.idl", "#include \"out\"\n"),
        ("pipe.idl", "#include \"pipe\"\n"),
        ("large.idl", "#include \"large.inc\"\n"),
    ]);
    let large = fs::File::create(package.path("large.inc")).expect("a file");
    large.set_len(50_000_000).expect("a size");
    let refused = |file: &str| package.compile(configure(), &[file]).expect_err("no source file");
    for error in [refused("folder.idl"), refused("out")] {
        assert!(error.contains("/out: not a regular file"), "{error}");
    }
    for error in [refused("large.idl"), refused("large.inc")] {
        assert!(error.contains("large.inc: larger than 16 MiB"), "{error}");
    }
    if cfg!(unix) {
        let made = std::process::Command::new("mkfifo").arg(package.path("pipe")).status().expect("mkfifo runs");
        assert!(made.success());
        for error in [refused("pipe.idl"), refused("pipe")] {
            assert!(error.contains("/pipe: not a regular file"), "{error}");
        }
        let error = refused("device.idl");
        assert!(
            error.contains("cannot read /dev/zero: not a regular file") && error.contains("device.idl:1"),
            "{error}"
        );
    }
}

/// The lines of an output that define structs and modules, without indentation.
fn defined(output: &str) -> Vec<&str> {
    let lines = output.lines().map(str::trim);
    lines.filter(|line| line.starts_with("pub struct ") || line.starts_with("pub mod ")).collect()
}

#[test]
fn files_compiled_together_share_definitions() {
    let package = Package::new(&[
        ("types.idl", "module T { struct Place { long x; }; };"), // without a guard
        ("common.idl", "#ifndef C\n#define C\n#define BOUND 7\nstruct Common { string<BOUND> s; };\n#endif"),
        ("b.idl", "#include \"types.idl\"\n#include \"common.idl\"\nmodule B { struct X { T::Place p; Common c; }; };"),
        (
            "d.idl",
            "#include \"common.idl\"\n#include \"types.idl\"\nmodule D { struct Y { string<BOUND> t; Common c; }; };
                   module T { struct More { Place p; }; };",
        ),
    ]);
    let told = package.compile(configure(), &["b.idl", "types.idl", "d.idl"]).expect("correct IDL");
    assert!(!told.contains("cargo:warning"), "{told}");
    assert_eq!(defined(&package.output("b.rs")), ["pub struct Common {", "pub mod b {", "pub struct X {"]);
    // The module is in the output of the first file that opens it.
    assert_eq!(defined(&package.output("types.rs")), ["pub mod t {", "pub struct Place {", "pub struct More {"]);
    assert_eq!(defined(&package.output("d.rs")), ["pub mod d {", "pub struct Y {"]);
    assert!(package.output("b.rs").contains("pub p: super::t::Place,"));
    assert!(package.output("d.rs").contains("pub t: rt::BoundedString<7>,"), "macros of a shared file are in force");
    assert!(package.output("d.rs").starts_with("// @generated by spandrel "), "{}", package.output("d.rs"));
    assert!(package.output("d.rs").lines().next().expect("a line").contains("from d.idl"));
}

#[test]
fn the_built_in_file_is_generated_once() {
    let with_orb =
        |module: &str| format!("#include <orb.idl>\nmodule {module} {{ struct S {{ CORBA::StringSeq names; }}; }};");
    let package = Package::new(&[("a.idl", &with_orb("A")), ("b.idl", &with_orb("B"))]);
    package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("pub mod corba {"));
    assert!(!package.output("b.rs").contains("pub mod corba {"));
    assert!(package.output("b.rs").contains("pub names: super::corba::StringSeq,"));
    package.compile(configure(), &["b.idl"]).expect("correct IDL");
    assert!(package.output("b.rs").contains("pub mod corba {"), "a file alone is self-contained");
}

#[test]
fn shared_modules_may_have_files() {
    let package = Package::new(&[
        ("a.idl", "module M { struct A { long x; }; };"),
        ("b.idl", "#include \"a.idl\"\nmodule N { struct B { M::A a; }; };"),
    ]);
    package.compile(configure().per_module(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(package.output("a/m.rs").contains("pub struct A {"));
    assert!(package.output("b/n.rs").contains("pub a: super::m::A,"));
    assert!(!package.output("b.rs").contains("mod m;"));
}

#[test]
fn macros_of_one_file_do_not_reach_another() {
    let package = Package::new(&[
        ("a.idl", "#include \"c.idl\"\n#define LIMIT 1\nconst long A = LIMIT;"),
        ("b.idl", "#include \"c.idl\"\n#ifndef LIMIT\n#define LIMIT 2\n#endif\nconst long B = LIMIT;"),
        ("c.idl", "#pragma once\nstruct C { long x; };"),
    ]);
    package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("pub struct C"));
    assert!(package.output("b.rs").contains("pub const B: i32 = 2;") && !package.output("b.rs").contains("struct C"));
}

#[test]
fn a_file_with_several_meanings_is_not_shared() {
    let package = Package::new(&[
        ("a.idl", "#define NAME A\n#include \"c.idl\""),
        ("b.idl", "#define NAME B\n#include \"c.idl\""),
        ("c.idl", "struct NAME { long x; };"),
    ]);
    let told = package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    let exists = format!("`A` ({}:1) exists for {}", package.path("c.idl").display(), package.path("a.idl").display());
    assert!(told.contains("cargo:warning=the files of this call have definitions in common"), "{told}");
    assert!(told.contains(&exists) || told.contains("`B` ("), "{told}");
    assert!(package.output("a.rs").contains("pub struct A") && package.output("b.rs").contains("pub struct B"));
    // Members that differ are found, too.
    let package = Package::new(&[
        ("a.idl", "#include \"c.idl\""),
        ("b.idl", "#define LONG\n#include \"c.idl\""),
        ("c.idl", "struct C { long x;\n#ifdef LONG\nlong y;\n#endif\n};"),
    ]);
    let told = package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(told.contains(": `C` (") && told.contains("c.idl:1) has `long y;` for "), "{told}");
    assert!(told.lines().any(|line| line.ends_with("a.idl") && line.contains(" and `}` for ")), "{told}");
    assert!(!package.output("a.rs").contains("pub y: i32") && package.output("b.rs").contains("pub y: i32"));
}

#[test]
fn files_without_a_common_name_are_independent() {
    let package = Package::new(&[("a.idl", GOOD), ("b.idl", "module N { struct S { long x; }; };")]);
    package.compile(configure(), &["a.idl", "b.idl"]).expect("each is correct");
    let both = [package.output("a.rs"), package.output("b.rs")];
    for (file, together) in [("a.idl", &both[0]), ("b.idl", &both[1])] {
        package.compile(configure(), &[file]).expect("correct IDL");
        assert_eq!(package.output(&file.replace("idl", "rs")), *together);
    }
}

#[test]
fn files_that_open_the_same_module_generate_it_once() {
    let package = Package::new(&[
        ("a.idl", "module M { struct A { long x; }; module Inner { struct I { long x; }; }; };"),
        (
            "b.idl",
            "module M { struct B { long y; }; module Inner { struct J { long x; }; }; }; struct Top { long x; };",
        ),
        ("c.idl", "module Other { struct C { long x; }; };"),
    ]);
    let told = package.compile(configure(), &["a.idl", "b.idl", "c.idl"]).expect("correct IDL");
    assert!(!told.contains("cargo:warning"), "{told}");
    let m = ["pub mod m {", "pub struct A {", "pub mod inner {", "pub struct I {", "pub struct J {", "pub struct B {"];
    assert_eq!(defined(&package.output("a.rs")), m);
    assert_eq!(defined(&package.output("b.rs")), ["pub struct Top {"]);
    assert_eq!(defined(&package.output("c.rs")), ["pub mod other {", "pub struct C {"]);
    // The module of an option is one, too.
    let prefixed = configure().prefix("all");
    package.compile(prefixed, &["a.idl", "c.idl"]).expect("correct IDL");
    let both = package.output("a.rs") + &package.output("c.rs");
    assert_eq!(both.matches("pub mod all {").count(), 1, "{both}");
    assert!(both.contains("pub struct C {"), "{both}");
}

#[test]
fn names_that_are_equal_only_in_rust_differ_between_files() {
    let package = Package::new(&[
        ("a.idl", "struct Port_info { long x; }; interface Old_port { void f(); };"),
        ("b.idl", "struct PortInfo { long y; }; interface OldPort { void g(); };"),
    ]);
    let told = package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(!told.contains("cargo:warning"), "{told}");
    let (a, b) = (package.output("a.rs"), package.output("b.rs"));
    for text in ["pub struct PortInfo {", "pub struct OldPort(", "pub trait OldPortServant:"] {
        assert!(!(a.contains(text) && b.contains(text)), "{text} is in both");
        assert!(a.contains(text) || b.contains(text), "{text}");
    }
}

#[test]
fn two_definitions_of_one_name_are_a_warning() {
    let warning = disagreement(&[("a.idl", GOOD), ("b.idl", GOOD)]);
    assert!(warning.contains("b.idl:1:19: `S` is") && warning.contains("a module of its own"), "{warning}");
    let cases = "module M { struct A { long x; }; };";
    let warning = disagreement(&[("a.idl", cases), ("b.idl", &cases.replace("M", "m").replace("A", "B"))]);
    assert!(warning.contains("differ"), "{warning}");
}

#[test]
fn files_in_modules_of_their_own_do_not_keep_others_apart() {
    let package = Package::new(&[
        ("x.idl", "#ifndef X_H\n#define X_H\nmodule M { struct X { long n; }; };\n#endif"),
        ("a.idl", "#include \"x.idl\"\nmodule M { struct A { X has; }; };"),
        ("b.idl", "#include \"x.idl\"\nmodule M { struct B { X has; }; };"),
    ]);
    for order in [["x.idl", "a.idl", "b.idl"], ["a.idl", "x.idl", "b.idl"]] {
        let each = configure().external("x.idl", "crate::x");
        let told = package.compile(each, &order).expect("correct IDL");
        assert!(!told.contains("cargo:warning"), "{told}");
        assert_eq!(defined(&package.output("x.rs")), ["pub mod m {", "pub struct X {"]);
        assert_eq!(defined(&package.output("a.rs")), ["pub mod m {", "pub struct A {", "pub struct B {"]);
        assert_eq!(defined(&package.output("b.rs")), [""; 0]);
        assert!(package.output("a.rs").contains("pub has: crate::x::m::X,"));
    }
}

/// The warning of files that have no common meaning.
fn disagreement(files: &[(&str, &str)]) -> String {
    let package = Package::new(files);
    let told = package.compile(configure(), &["a.idl", "b.idl"]).expect("each is correct");
    let line = told.lines().find(|line| line.starts_with("cargo:warning=the files of this call")).unwrap_or_default();
    line.replace(&*package.folder.path().to_string_lossy(), "").replace('/', "")
}

#[test]
fn a_warning_says_what_differs() {
    let with = |common: &'static str| {
        [("a.idl", "#include \"c.idl\""), ("b.idl", "#define B\n#include \"c.idl\""), ("c.idl", common)]
    };
    for (common, difference) in [
        (
            "\n#ifdef B\ntypedef short T;\n#else\ntypedef long T;\n#endif",
            "`T` (c.idl:3) has `typedef T IDL:T:1.0 short` for b.idl and `typedef T IDL:T:1.0 long` for a.idl",
        ),
        (
            "#ifdef B\n#pragma prefix \"b\"\n#endif\nstruct S { long x; };",
            "`S` (c.idl:4) has `struct S IDL:bS:1.0 {` for b.idl and `struct S IDL:S:1.0 {` for a.idl",
        ),
        (
            "interface I {\n#ifdef B\nvoid f();\n#endif\nvoid g(); };",
            "`I` (c.idl:1) has `operation f` for b.idl and `operation g` for a.idl",
        ),
        (
            "struct S { long x; };\n#ifdef B\nstruct T { S s; };\n#endif",
            "`T` (c.idl:3) exists for b.idl and not for a.idl",
        ),
    ] {
        let warning = disagreement(&with(common));
        assert!(warning.ends_with(difference), "{warning}");
    }
    // What is wrong only in the common specification is named as the error that it is.
    let twice = "#include \"c.idl\"\nstruct Twice { long x; };";
    let warning = disagreement(&[("a.idl", twice), ("b.idl", twice), ("c.idl", "struct S { long x; };")]);
    assert!(warning.contains("b.idl:2:8: `Twice` is"), "{warning}");
}

#[test]
fn a_module_may_be_opened_under_several_prefixes() {
    let package = Package::new(&[
        ("port.idl", "#ifndef P\n#define P\nmodule CF { interface Port {}; };\n#endif"),
        ("a.idl", "#include \"port.idl\"\nmodule CF { interface A : Port {}; };"),
        ("b.idl", "#pragma prefix \"omg.org\"\n#include \"port.idl\"\nmodule CF { interface B : Port {}; };"),
    ]);
    for order in [["a.idl", "b.idl", "port.idl"], ["b.idl", "a.idl", "port.idl"], ["port.idl", "b.idl", "a.idl"]] {
        let told = package.compile(configure(), &order).expect("correct IDL");
        assert!(!told.contains("cargo:warning"), "{told}");
        let all: String = order.iter().map(|file| package.output(&file.replace(".idl", ".rs"))).collect();
        for (interface, id) in [("Port", "IDL:CF/Port:1.0"), ("A", "IDL:CF/A:1.0"), ("B", "IDL:omg.org/CF/B:1.0")] {
            assert_eq!(all.matches(&format!("pub struct {interface}(")).count(), 1, "{interface}");
            assert!(all.contains(id), "{id}");
        }
    }
}

#[test]
fn a_definition_takes_the_place_of_forward_declarations() {
    // With a common include, and without one.
    for include in ["", "#include \"a.idl\"\n"] {
        let b = format!("{include}interface I {{ void f(); }}; valuetype V {{ public long x; }};");
        let package = Package::new(&[
            ("a.idl", "interface I; valuetype V; struct A { I i; V v; };"),
            ("b.idl", &b),
            ("c.idl", "interface I; struct C { I i; };"),
        ]);
        for order in [["a.idl", "b.idl", "c.idl"], ["c.idl", "b.idl", "a.idl"]] {
            let told = package.compile(configure(), &order).expect("correct IDL");
            assert!(!told.contains("definitions in common"), "{told}");
            assert!(!package.output("a.rs").contains("pub struct I("), "{include}");
            assert!(!package.output("c.rs").contains("pub struct I("), "{include}");
            assert!(package.output("b.rs").contains("pub struct I("), "{include}");
        }
    }
    let forward = "interface I; struct NAME { I i; };";
    let package = Package::new(&[("a.idl", &forward.replace("NAME", "A")), ("b.idl", &forward.replace("NAME", "B"))]);
    package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(package.output("a.rs").contains("pub struct I(") && !package.output("b.rs").contains("pub struct I("));
}

#[test]
fn a_declaration_is_reported_as_undefined_only_if_no_file_defines_it() {
    let package = Package::new(&[
        ("a.idl", "module M { interface I; valuetype V; interface Nowhere; struct A { I i; V v; Nowhere n; }; };"),
        ("b.idl", "module M { interface I { void f(); }; };"),
        ("c.idl", "#include \"a.idl\"\nmodule M { valuetype V { public long x; }; };"),
        ("broken.idl", "struct S { Missing m; };"),
    ]);
    let reported = |files: &[&str]| -> Vec<String> {
        let told = package.compile(configure(), files).expect("correct IDL");
        let lines = told.lines().filter(|line| line.contains("is declared and never defined"));
        lines.map(|line| line.split('`').nth(1).expect("a name").to_owned()).collect()
    };
    assert_eq!(reported(&["a.idl"]), ["M::I", "M::V", "M::Nowhere"]);
    assert_eq!(reported(&["a.idl", "b.idl"]), ["M::V", "M::Nowhere"]);
    // The file that includes it reports it once more.
    assert_eq!(reported(&["c.idl", "b.idl", "a.idl"]), ["M::Nowhere"; 2]);
    let mut told = Vec::new();
    let files = ["a.idl", "broken.idl"].map(|name| package.path(name));
    configure().out_dir(package.path("out")).compile_telling(&files, &mut told).expect_err("a missing type");
    assert!(String::from_utf8_lossy(&told).contains("M::V` is declared and never defined"), "warnings before an error");
}

#[test]
fn files_may_include_each_other_in_a_circle() {
    let package = Package::new(&[
        (
            "a.idl",
            "#ifndef A\n#define A\nmodule M { interface Order; };\n#include \"b.idl\"
             module M { interface Order { Customer buyer(); }; };\n#endif",
        ),
        (
            "b.idl",
            "#ifndef B\n#define B\nmodule M { interface Customer; };\n#include \"a.idl\"
             module M { interface Customer { Order last(); }; };\n#endif",
        ),
    ]);
    let told = package.compile(configure(), &["a.idl", "b.idl"]).expect("correct IDL");
    assert!(!told.contains("cargo:warning"), "{told}");
    let all = package.output("a.rs") + &package.output("b.rs");
    for interface in ["pub struct Order(", "pub struct Customer("] {
        assert_eq!(all.matches(interface).count(), 1, "{interface}");
    }
}

#[test]
fn includes_of_external_files_are_those_of_the_whole_call() {
    let package = Package::new(&[
        ("common.idl", "#ifndef COMMON\n#define COMMON\nstruct Common { long x; };\n#endif"),
        ("x.idl", "#include \"common.idl\"\nstruct X { Common has; };"),
        ("y.idl", "#include \"common.idl\"\nstruct Y { Common has; };"),
        ("a.idl", "#include \"common.idl\"\nstruct A { Common has; };"),
        ("b.idl", "#include \"x.idl\"\nstruct B { Common has; };"),
        ("c.idl", "#include \"y.idl\"\nstruct C { Common has; };"),
    ]);
    let x = configure().external("x.idl", "crate::x");
    for order in [["a.idl", "b.idl"], ["b.idl", "a.idl"]] {
        package.compile(x.clone(), &order).expect("one type");
        for output in ["a.rs", "b.rs"] {
            assert!(package.output(output).contains("pub has: crate::x::Common,"), "{output}");
        }
    }
    let both = x.external("y.idl", "crate::y");
    let error = package.compile(both.clone(), &["b.idl", "c.idl"]).expect_err("two types");
    assert!(error.contains(" is not enough: `Common` of ") && error.contains("`external` of its own"), "{error}");
    package.compile(both.external("common.idl", "crate::common"), &["b.idl", "c.idl"]).expect("one type");
}

#[test]
fn files_of_one_external_module_share_definitions() {
    let package = Package::new(&[
        ("node.idl", "#ifndef N\n#define N\nmodule M { interface Container; struct Node { Container of; }; };\n#endif"),
        ("component.idl", "#include \"node.idl\"\nmodule M { interface Container { Node first(); }; };"),
        ("main.idl", "#include \"component.idl\"\nmodule M { struct Main { Node node; Container of; }; };"),
    ]);
    let apart = configure().external("node.idl", "crate::node").external("component.idl", "crate::component");
    let error = package.compile(apart, &["node.idl", "component.idl"]).expect_err("two types");
    assert!(error.contains("node.idl declares `M::Container` and "), "{error}");
    let one = configure().external("node.idl", "crate::one").external("component.idl", "crate::one");
    let told = package.compile(one, &["component.idl", "main.idl", "node.idl"]).expect("one type");
    assert!(!told.contains("never defined"), "{told}");
    let outputs = ["component.rs", "main.rs", "node.rs"].map(|name| package.output(name));
    assert_eq!(outputs.concat().matches("pub struct Container(").count(), 1);
    assert!(outputs[1].contains("pub node: crate::one::m::Node,"), "{}", outputs[1]);
    assert!(outputs[1].contains("pub of: Option<crate::one::m::Container>,"), "{}", outputs[1]);
}

#[test]
fn an_external_name_is_that_of_one_file() {
    let package = Package::new(&[
        ("a.idl", "#include \"one/types.idl\"\n#include \"two/types.idl\"\nstruct S { One one; Two two; };"),
        ("again.idl", "#include \"one/types.idl\"\n#include \"one/../one/types.idl\"\nstruct S { One one; };"),
    ]);
    for (folder, name) in [("one", "One"), ("two", "Two")] {
        fs::create_dir(package.path(folder)).expect("a folder");
        let text = format!("#ifndef {name}_\n#define {name}_\nstruct {name} {{ long x; }};\n#endif");
        fs::write(package.path(folder).join("types.idl"), text).expect("a file");
    }
    let error = package.compile(configure().external("types.idl", "crate::types"), &["a.idl"]).expect_err("two files");
    assert!(error.starts_with("`types.idl=crate::types` is not the name of one file: it names "), "{error}");
    assert!(error.contains("one/types.idl and ") && error.contains("two/types.idl"), "{error}");
    let each = configure().external("one/types.idl", "crate::one").external("types.idl", "crate::types");
    package.compile(each, &["a.idl"]).expect("one file each");
    let rust = package.output("a.rs");
    assert!(rust.contains("pub one: crate::one::One,") && rust.contains("pub two: crate::types::Two,"), "{rust}");
    package.compile(configure().external("types.idl", "crate::types"), &["again.idl"]).expect("one file");
    assert!(package.output("again.rs").contains("pub one: crate::types::One,"));
}

#[test]
fn idl_that_omniidl_does_not_read_is_a_warning_unless_that_is_switched_off() {
    let idl = "exception E {}; interface I { attribute long a setraises (E); };";
    let package = Package::new(&[("a.idl", idl)]);
    let warnings = package.compile(configure(), &["a.idl"]).expect("correct IDL");
    assert!(warnings.contains("cargo:warning=") && warnings.contains("setraises"), "{warnings}");
    let warnings = package.compile(configure().portability_warnings(false), &["a.idl"]).expect("correct IDL");
    assert!(!warnings.contains("cargo:warning="), "{warnings}");
}
