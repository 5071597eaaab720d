//! IDL into a repository, and out of it.

use std::path::{Path, PathBuf};

use spandrel::dynamic::{Descriptions, describe, describe_file};
use spandrel::services::repository::{Changes, fill, print};

use crate::support::{Served, call, lookup_id};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files() -> Vec<PathBuf> {
    let names = [
        "orb/cos/idl/CosNaming.idl",
        "examples/hello/hello.idl",
        "examples/bank/bank.idl",
        "examples/tutorial/exchange.idl",
        "examples/mapping/chapter.idl",
        "examples/mapping/values.idl",
        "examples/mapping/mapping.idl",
        "tests/interop/idl/interop.idl",
        "tests/interop/idl/values.idl",
        "tests/interop/idl/features.idl",
        "tests/conformance/idl/subject.idl",
        "tests/faults/idl/ledger.idl",
    ];
    names.into_iter().map(|name| workspace().join(name)).collect()
}

/// The repository id and type of each named type, and the declarations of each interface.
fn contents(idl: &Descriptions) -> Vec<String> {
    let mut found = Vec::new();
    for name in idl.interfaces() {
        let Ok(interface) = idl.interface(name) else { continue };
        found.push(format!("{} {name}", interface.id()));
        let operations = interface.operations().iter();
        found.extend(operations.map(|it| format!("{name}: {it} {:?}", (&it.result, &it.exceptions, &it.parameters))));
    }
    found.sort();
    found
}

#[test]
fn idl_survives_the_repository() {
    for file in files() {
        let folder = tempfile::tempdir().expect("a folder");
        let served = Served::start(folder.path());
        let idl = describe_file(&file, [file.parent().expect("a folder").to_owned()]).expect("valid IDL");
        let filled = fill(&served.root, &idl).unwrap_or_else(|error| panic!("{}: {error:?}", file.display()));
        assert!(!filled.created.is_empty() && filled.replaced.is_empty() && filled.removed.is_empty(), "{filled:?}");

        // The second time nothing is new.
        let again = fill(&served.root, &idl).expect("the same definitions");
        let untouched = Changes { unchanged: again.unchanged, ..Changes::default() };
        assert_eq!(again, untouched, "{}", file.display());
        assert!(again.unchanged > 0);

        let text = print(&served.root, None).unwrap_or_else(|error| panic!("{}: {error:?}", file.display()));
        let printed = describe(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", file.display()));
        assert_eq!(contents(&printed), contents(&idl), "{}\n{text}", file.display());
        // The printed IDL defines the same, documentation included.
        let third = fill(&served.root, &printed).expect("the same definitions");
        let untouched = Changes { unchanged: third.unchanged, ..Changes::default() };
        assert_eq!(third, untouched, "{}\n{text}", file.display());
        assert_eq!(print(&served.root, None).expect("the same definitions"), text);
        served.stop();
    }
}

#[test]
fn changed_definitions_are_replaced_and_removed_ones_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let before = "module M { struct P { long x; }; typedef sequence<P> Ps; const long MOST = 3;
        interface A { void f(in P it); void g(); attribute P p; }; };";
    let after = "module M { struct P { long x; string y; }; typedef sequence<P> Ps; const long MOST = 4;
        interface A { void f(in P it, in long more); attribute P p; }; };";
    fill(&served.root, &describe(before).expect("valid IDL")).expect("a new definition");
    let changes = fill(&served.root, &describe(after).expect("valid IDL")).expect("changed definitions");
    assert_eq!(changes.replaced, ["::M::P", "::M::MOST", "::M::A::f"]);
    assert_eq!(changes.removed, ["::M::A::g"]);
    assert!(changes.created.is_empty(), "{changes:?}");
    let printed = print(&served.root, Some("M::A")).expect("an interface");
    assert_eq!(
        printed,
        "module M {
  struct P {
    long x;
    string y;
  };
  interface A {
    attribute ::M::P p;
    void f(in ::M::P it, in long more);
  };
};
"
    );
    served.stop();
}

#[test]
fn documentation_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let idl = "/** About M: \u{e4}\u{20ac}. */\nmodule M {\n/// A point.\n/// Of two.\nstruct P {\n/// Across.\nlong x; }; };";
    fill(&served.root, &describe(idl).expect("valid IDL")).expect("definitions");
    let point = lookup_id(&served.root, "IDL:M/P:1.0").expect("the struct");
    assert_eq!(call::<String>(&point, "_get_documentation", &[]).expect("a text"), " A point.\n Of two.");
    let printed = print(&served.root, None).expect("IDL");
    assert_eq!(
        printed,
        "/// About M: \u{e4}\u{20ac}.\nmodule M {\n  /// A point.\n  /// Of two.\n  struct P {\n    /// Across.\n    long x;\n  };\n};\n"
    );
    served.stop();
}

#[test]
fn recursive_types_and_cycles_of_interfaces_survive() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let idl = "#pragma prefix \"tango.example\"
        module T { interface Later; struct Node; typedef sequence<Node> Nodes; struct Node { Nodes kids; Later owner; };
          union Tree switch (boolean) { case TRUE: sequence<Tree> kids; case FALSE: long leaf; };
          interface First { Later later(in Nodes them); }; interface Later { First first(); };
          valuetype Ring { public Ring next; }; };";
    let idl = describe(idl).expect("valid IDL");
    fill(&served.root, &idl).expect("definitions");
    let again = fill(&served.root, &idl).expect("the same");
    assert_eq!(again, Changes { unchanged: again.unchanged, ..Changes::default() });
    let text = print(&served.root, None).expect("IDL");
    let printed = describe(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for id in ["IDL:tango.example/T/Node:1.0", "IDL:tango.example/T/Tree:1.0", "IDL:tango.example/T/Ring:1.0"] {
        let of = printed.type_code(id).expect("a type");
        assert!(of.equal(&idl.type_code(id).expect("a type")), "{text}");
        let found = lookup_id(&served.root, id).expect("a definition");
        let stored: spandrel::types::TypeCode = call(&found, "_get_type", &[]).expect("a type code");
        assert!(stored.equal(&of), "{stored} {of}");
    }
    served.stop();
}

/// Enters IDL into an empty repository, in several runs if it has several files, and prints it. The printed IDL defines the
/// same.
fn printed(files: &[&str], scope: Option<&str>) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    for idl in files {
        let described = describe(idl).unwrap_or_else(|error| panic!("{error}\n{idl}"));
        fill(&served.root, &described).unwrap_or_else(|error| panic!("{error:?}\n{idl}"));
        let again = fill(&served.root, &described).expect("the same definitions");
        assert_eq!(again, Changes { unchanged: again.unchanged, ..Changes::default() }, "{idl}");
    }
    let text = print(&served.root, scope).unwrap_or_else(|error| panic!("{error:?}\n{files:?}"));
    let described = describe(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let again = fill(&served.root, &described).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    assert_eq!(again, Changes { unchanged: again.unchanged, ..Changes::default() }, "{text}");
    served.stop();
    text
}

#[test]
fn bases_may_mention_the_interfaces_and_values_that_derive_from_them() {
    for idl in [
        "interface D; interface B { D child(); }; interface D : B {};",
        "interface D; interface B { attribute D child; }; interface D : B {};",
        "interface D; interface B { struct S { D child; }; S get(); }; interface D : B { S own(); };",
        "interface D; interface B { exception E { D child; }; void f() raises (E); }; interface D : B {};",
        "interface D; interface B { typedef sequence<D> Ds; Ds f(); }; interface D : B {};",
        "interface D; typedef D Alias; interface B { union U switch (boolean) { case TRUE: Alias d; }; void f(in U u); };
         interface D : B {};",
        "abstract interface D; abstract interface B { D child(); }; abstract interface D : B {};",
        "local interface D; local interface B { D child(); }; local interface D : B {};",
        // Through several bases, which come first by name or last.
        "interface D; interface A { D a1(); }; interface B : A { D b1(); }; interface C { D c1(); }; interface D : B, C {};",
        "interface D; interface Z { D z1(); }; interface B : Z {}; interface C : Z { D c1(); }; interface D : B, C {};",
        "valuetype D; valuetype B { public D child; }; valuetype D : B { private long own; };",
        "valuetype D; valuetype B { D child(); factory make(in D from); }; valuetype D : truncatable B {};",
        "abstract valuetype D; abstract valuetype B { D child(); }; abstract valuetype D : B {};",
        "valuetype V; interface I { V child(in V it); }; valuetype V supports I { public V next; };",
        "valuetype V; valuetype Box sequence<V>; interface I { Box every(); }; valuetype V supports I { public Box all; };",
    ] {
        printed(&[idl], None);
    }
}

#[test]
fn types_stay_in_the_structs_unions_and_exceptions_that_declare_them() {
    let idl = "module M {
  /// About S.
  struct S {
    /// About T.
    struct T {
      /// About x.
      long x;
      enum Deep {
        DOWN,
        UP
      } depth;
    } parts[3];
    enum E {
      A,
      B
    } kind;
    ::M::S::T one;
    sequence<::M::S::T> many;
  };
  union U switch (enum K {
    P,
    Q
  }) {
    case ::M::U::P: struct V {
      short y;
    } first;
    default: union W switch (boolean) {
      case TRUE: long z;
    } second;
  };
  exception X {
    struct Y {
      ::M::S::E kind;
    } what;
  };
  const ::M::S::E FIRST = ::M::S::B;
  interface I {
    struct N {
      enum O {
        C,
        D
      } kind;
    };
    void f(in ::M::I::N it) raises (::M::X);
  };
};
";
    assert_eq!(printed(&[idl], None), idl);
    assert_eq!(printed(&[idl], Some("M::X::Y")), printed(&[idl], Some("M::X")));

    // Types that are no longer declared go, and an enum can become the discriminator later.
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    for idl in [
        "struct S { struct T { long x; } t1; enum E { A, B } e1; }; union U switch (enum K { P, Q }) { case P: long x; };",
        "struct S { long t1; enum E { A, B } e1[2]; }; union U switch (long) { case 0: long x; };",
        "struct S { long t1; enum E { A, B } e1[2]; }; union U switch (enum K { P, Q, R }) { case R: struct L { long x; } x; };",
    ] {
        let idl = describe(idl).expect("valid IDL");
        fill(&served.root, &idl).expect("definitions");
        let text = print(&served.root, None).expect("IDL");
        let printed = describe(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        for id in ["IDL:S:1.0", "IDL:U:1.0"] {
            let (of, expected) = (printed.type_code(id).expect("a type"), idl.type_code(id).expect("a type"));
            assert!(of.equal(&expected), "{of} {expected}");
        }
    }
    assert_eq!(lookup_id(&served.root, "IDL:S/T:1.0"), None);
    served.stop();
}

#[test]
fn files_may_open_a_module_under_different_prefixes() {
    let one = "#pragma prefix \"one.example\"\nmodule M { interface A {}; module N { struct P { long x; }; }; };";
    let other =
        "module M { interface B; interface C { B get(); }; module N { struct Q { long x; }; }; interface B {}; };";
    let third = "#pragma prefix \"third.example\"\nmodule M { module N { enum R { X }; }; };";
    let text = printed(&[one, other, third], None);
    let idl = describe(&text).expect("valid IDL");
    for id in [
        "IDL:one.example/M/N/P:1.0",
        "IDL:M/N/Q:1.0",
        "IDL:third.example/M/N/R:1.0",
        "IDL:one.example/M/A:1.0",
        "IDL:M/B:1.0",
    ] {
        assert!(idl.type_code(id).is_ok(), "{id}\n{text}");
    }
    printed(&[other, one, third], None);
}

#[test]
fn a_scope_comes_with_all_that_it_needs() {
    let idl = "#pragma prefix \"a.example\"
        module M { valuetype V; interface Far; interface Odd;
          struct S { V state; Far far; Odd odd; }; interface Asked { S get(); };
          valuetype V { public long x; public V next; };
          interface Base { void g(); }; interface Far : Base { long f(); };
          interface Odd {};
          #pragma ID Odd \"IDL:elsewhere/Odd:2.0\"
          interface Unneeded {}; };";
    let text = printed(&[idl], Some("M::Asked"));
    for needed in ["public long x;", "interface Far : ::M::Base {", "long f();", "void g();", "elsewhere/Odd:2.0"] {
        assert!(text.contains(needed), "{needed}\n{text}");
    }
    assert!(!text.contains("Unneeded"), "{text}");
    let described = describe(&text).expect("valid IDL");
    assert_eq!(described.interface("M::Far").expect("an interface").id(), "IDL:a.example/M/Far:1.0");
    // The value's state is known.
    let of = described.type_code("IDL:a.example/M/V:1.0").expect("a value");
    assert_eq!(of.member_count().expect("members"), 2);
}
