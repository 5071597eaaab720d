//! A client of omniORB, with its own stubs of the interface repository (`peers/omniorb/repository.cc`).

use std::path::Path;
use std::process::Command;

use spandrel::dynamic::describe;
use spandrel::services::repository::fill;
use spandrel_test_support::omniorb_peer;

use crate::support::Served;

#[test]
fn omniorb_finds_interfaces_and_changes_definitions() {
    let Some(client) = omniorb_peer("repository", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    // The repository describes its own interface, which `_get_interface` finds.
    let idl = "#include <orb.idl>\nmodule Own { interface Uses { CORBA::Repository repository(); }; };";
    fill(&served.root, &describe(idl).expect("valid IDL")).expect("definitions");
    let url = served.repository.reference().to_string();
    let done = Command::new(client).args([&url, &url]).output().expect("the client can be run");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(said.starts_with("IDL:omg.org/CORBA/Repository:1.0 with ") && said.ends_with("ok\n"), "{said}");
    served.stop();
}
