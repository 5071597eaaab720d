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
        "spandrel/idl/CosNaming.idl",
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
