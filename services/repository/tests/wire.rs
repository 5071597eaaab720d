//! The interfaces and operations of each kind of definition, as clients of any ORB find them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use spandrel::authorization::PathCheck;
use spandrel::dynamic::{Descriptions, describe};
use spandrel::services::repository::{corba::PrimitiveKind, fill};
use spandrel::{CompletionStatus, ObjectRef, SystemException, SystemExceptionKind as Kind, minor};
use spandrel_repository::RepositoryOptions;

use crate::support::{Served, call, failure, lookup_id, make, send};

const IDL: &str = "
module K {
  const long a_constant = 7;
  struct AStruct { long x; };
  exception AnException { long x; };
  union AUnion switch (long) { case 1: long x; };
  enum AnEnum { red, green };
  typedef long AnAlias;
  native ANative;
  valuetype ABox string;
  interface AnInterface { readonly attribute long an_attribute; void an_operation(in long x); };
  abstract interface AnAbstract { };
  local interface ALocal { };
  valuetype AValue { public long a_member; };
};";

/// An object of each kind, by the name of the kind.
fn definitions(served: &Served) -> Vec<(String, ObjectRef)> {
    let root = &served.root;
    fill(root, &describe(IDL).expect("valid IDL")).expect("a repository with definitions");
    let named = [
        "K",
        "K/a_constant",
        "K/AStruct",
        "K/AnException",
        "K/AUnion",
        "K/AnEnum",
        "K/AnAlias",
        "K/ANative",
        "K/ABox",
        "K/AnInterface",
        "K/AnInterface/an_attribute",
        "K/AnInterface/an_operation",
        "K/AnAbstract",
        "K/ALocal",
        "K/AValue",
        "K/AValue/a_member",
    ];
    let named = named.map(|name| (name.to_owned(), lookup_id(root, &format!("IDL:{name}:1.0")).expect(name)));
    let long = make(root, "get_primitive", &[&PrimitiveKind::PkLong]);
    let element = Some(long.clone());
    let others = [
        ("repository", root.clone()),
        ("string", make(root, "create_string", &[&4_u32])),
        ("wstring", make(root, "create_wstring", &[&4_u32])),
        ("fixed", make(root, "create_fixed", &[&4_u16, &2_i16])),
        ("sequence", make(root, "create_sequence", &[&4_u32, &element])),
        ("array", make(root, "create_array", &[&4_u32, &element])),
        ("primitive", long),
    ];
    named.into_iter().chain(others.map(|(name, object)| (name.to_owned(), object))).collect()
}

/// The IDL of the repository's own objects.
fn own_idl() -> Descriptions {
    describe(include_str!("../idl/InterfaceRepository.idl")).expect("valid IDL")
}

/// The repository ids of all interfaces, and the names of all operations. Each attribute has a setter here.
fn interfaces_and_operations(idl: &Descriptions) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut ids, mut names) = (BTreeSet::new(), BTreeSet::new());
    for interface in idl.interfaces().filter_map(|name| idl.interface(name).ok()) {
        ids.insert(interface.id().to_owned());
        names.extend(interface.operations().iter().map(|it| it.name.clone()));
        names.extend(interface.attributes().iter().map(|it| format!("_set_{}", it.name)));
    }
    (ids, names)
}

/// The length of the reply to a request without arguments.
fn reply_length(object: &ObjectRef, operation: &str) -> Result<usize, SystemException> {
    object.invoke(operation, |_| Ok(()), |input| Ok(input.rest().len()))
}

/// The interfaces of an object, and the outcomes of requests without arguments.
fn behaviour(object: &ObjectRef, ids: &BTreeSet<String>, names: &BTreeSet<String>) -> String {
    let mut text = String::new();
    writeln!(text, "  type {}", object.type_id()).expect("text");
    writeln!(text, "  _repository_id {}", call::<String>(object, "_repository_id", &[]).expect("an id")).expect("text");
    let supported = ids.iter().filter(|id| object.is_a(id).expect("an answer"));
    for id in supported {
        writeln!(text, "  is a {id}").expect("text");
    }
    let mut outcomes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in names {
        let (outcome, word) = match reply_length(object, name) {
            Ok(length) => ("a reply of octets".to_owned(), format!("{name} {length}")),
            // All others are unknown.
            Err(error) if (error.kind(), error.minor()) == (Kind::BadOperation, minor::UNKNOWN_OPERATION) => continue,
            Err(error) => (format!("{:?} {}", error.kind(), error.minor() & 0xfff), name.clone()),
        };
        outcomes.entry(outcome).or_default().push(word);
    }
    for (outcome, words) in outcomes {
        writeln!(text, "  {outcome}:").expect("text");
        words.chunks(6).for_each(|words| writeln!(text, "    {}", words.join(", ")).expect("text"));
    }
    text
}

/// Rewrites the file if `UPDATE_GOLDEN` is set.
#[test]
fn each_kind_has_the_interfaces_and_operations_of_the_standard() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let (ids, mut names) = interfaces_and_operations(&own_idl());
    names.remove("destroy"); // would end the object
    let every = ["_component", "_domain_managers", "_get_component", "_interface", "_non_existent", "_not_existent"];
    names.extend(every.into_iter().chain(["no_such", "_get_no_such"]).map(str::to_owned));
    let mut text = String::new();
    for (name, object) in definitions(&served) {
        writeln!(text, "{name}").expect("text");
        text.push_str(&behaviour(&object, &ids, &names));
    }
    served.stop();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&file).expect("the file is committed");
    let difference = expected.lines().zip(text.lines()).find(|(expected, found)| expected != found);
    assert_eq!(difference, None, "set UPDATE_GOLDEN");
    assert_eq!(expected.len(), text.len(), "set UPDATE_GOLDEN");
}

#[test]
fn permission_comes_before_the_arguments_and_existence_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path_check = PathCheck::new(|_, path| match path {
        Some("Denied") => Err(SystemException::no_permission(5, CompletionStatus::No)),
        _ => Ok(()),
    });
    let options = RepositoryOptions { path_check: Some(path_check), ..RepositoryOptions::new(folder.path()) };
    let served = Served::with(options);
    let module = |name: &str| make(&served.root, "create_module", &[&format!("IDL:{name}:1.0"), &name, &"1.0"]);
    let (denied, permitted, destroyed) = (module("Denied"), module("Permitted"), module("Destroyed"));
    send(&destroyed, "destroy", &[]).expect("nothing uses it");
    // Requests without arguments: those of `create_module` cannot be read.
    let outcome = |object: &ObjectRef, operation| failure(reply_length(object, operation));
    for operation in ["_get_name", "create_module", "no_such", "_set_def_kind"] {
        assert_eq!(outcome(&denied, operation), (Kind::NoPermission, 5), "{operation}");
        assert_eq!(outcome(&destroyed, operation), (Kind::ObjectNotExist, 0), "{operation}");
    }
    assert_eq!(outcome(&permitted, "no_such"), (Kind::BadOperation, minor::UNKNOWN_OPERATION));
    assert_eq!(outcome(&permitted, "create_module").0, Kind::Marshal);
    // The target of a move is checked, too.
    let moved = send(&permitted, "move", &[&Some(denied.clone()), &"Moved", &"1.0"]);
    assert_eq!(failure(moved), (Kind::NoPermission, 5));

    for (object, id) in [(&denied, "ModuleDef"), (&permitted, "ModuleDef"), (&destroyed, "IRObject")] {
        let id = format!("IDL:omg.org/CORBA/{id}:1.0");
        assert_eq!(call::<String>(object, "_repository_id", &[]).expect("an id"), id);
        assert_eq!(failure(call::<Option<ObjectRef>>(object, "_interface", &[])).0, Kind::IntfRepos);
        assert!(object.is_a("IDL:omg.org/CORBA/Object:1.0").expect("an answer"));
    }
    assert!(!destroyed.is_a("IDL:omg.org/CORBA/Contained:1.0").expect("an answer"));
    assert!(destroyed.non_existent().expect("an answer") && !denied.non_existent().expect("an answer"));
    served.stop();
}
