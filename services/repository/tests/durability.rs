//! Restarts, and concurrent updates.

use spandrel::dynamic::describe;
use spandrel::services::repository::{fill, interface_by_id, print};
use spandrel::{Endpoint, Orb};
use spandrel_repository::{InterfaceRepository, Limits, RepositoryOptions};

use crate::support::{Served, call, failure, lookup_id, make};

const IDL: &str = "module Bank { exception Overdrawn { long long balance; };
    interface Account { readonly attribute string owner; long long withdraw(in long long cents) raises (Overdrawn); }; };";

#[test]
fn definitions_survive_a_restart_and_references_stay_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    fill(&served.root, &describe(IDL).expect("valid IDL")).expect("definitions");
    let text = print(&served.root, None).expect("IDL");
    let number = served.repository.definitions();
    served.stop();

    let served = Served::start(folder.path());
    assert_eq!(served.repository.definitions(), number);
    assert_eq!(print(&served.root, None).expect("IDL"), text);
    let account = interface_by_id(&served.root, "IDL:Bank/Account:1.0").expect("an interface");
    assert_eq!(
        account.find("withdraw").expect("an operation").to_string(),
        "long long withdraw(in long long cents) raises (Overdrawn)"
    );
    served.stop();
}

#[test]
fn concurrent_updates_lose_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let root = &served.root;
            scope.spawn(move || {
                for nth in 0..10 {
                    let name = format!("M{thread}x{nth}");
                    make(root, "create_module", &[&format!("IDL:{name}:1.0"), &name, &"1.0"]);
                    // All threads compete for this one.
                    _ = call::<Option<spandrel::ObjectRef>>(root, "create_module", &[&"IDL:Same:1.0", &"Same", &"1.0"]);
                }
            });
        }
    });
    assert_eq!(served.repository.definitions(), 41);
    served.stop();
}

#[test]
fn a_corrupt_store_and_a_missing_folder_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
    let file = folder.path().join(spandrel_repository::STORE_FILE);
    std::fs::write(&file, "no database").expect("a file");
    let error = InterfaceRepository::start(&orb, RepositoryOptions::new(folder.path())).expect_err("a corrupt store");
    assert!(error.to_string().contains("repository.redb"), "{error}");
    let error =
        InterfaceRepository::start(&orb, RepositoryOptions::new(folder.path().join("none"))).expect_err("no folder");
    assert!(error.to_string().contains("No such file"), "{error}");
    orb.shutdown().expect("the end");
}

#[test]
fn definitions_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut options = RepositoryOptions::new(folder.path());
    // The repository and its 22 primitive types count.
    options.limits = Limits { max_definitions: 24, max_id: 20, ..Limits::default() };
    let served = Served::with(options);
    make(&served.root, "create_module", &[&"IDL:A:1.0", &"A", &"1.0"]);
    let more = || call::<Option<spandrel::ObjectRef>>(&served.root, "create_module", &[&"IDL:B:1.0", &"B", &"1.0"]);
    assert_eq!(failure(more()), (spandrel::SystemExceptionKind::ImpLimit, 0));
    let long = call::<Option<spandrel::ObjectRef>>(
        &served.root,
        "create_module",
        &[&"IDL:aaaaaaaaaaaaaaaaaa:1.0", &"B", &"1.0"],
    );
    assert_eq!(failure(long), (spandrel::SystemExceptionKind::ImpLimit, 0));
    assert!(lookup_id(&served.root, "IDL:B:1.0").is_none());
    served.stop();
}
