//! A client of omniORB, with its own stubs of the interface repository (`peers/omniorb/repository.cc`).

use std::path::{Path, PathBuf};
use std::process::Command;

use spandrel::dynamic::describe;
use spandrel::services::repository::fill;

use crate::support::Served;

/// Builds the client. Without omniORB the row of the matrix is absent, unless the variable demands it.
fn client() -> Option<PathBuf> {
    let has_omniorb =
        Command::new("pkg-config").args(["--exists", "omniDynamic4"]).status().is_ok_and(|it| it.success());
    if !has_omniorb {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniORB's libraries are not installed");
        eprintln!("absent: omniORB's libraries");
        return None;
    }
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/omniorb");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("omniorb");
    let program = out.join("repository");
    let built = Command::new("make")
        .arg("-C")
        .arg(peers)
        .arg(format!("OUT={}", out.display()))
        .arg(&program)
        .output()
        .expect("make can be run");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

#[test]
fn omniorb_finds_interfaces_and_changes_definitions() {
    let Some(client) = client() else { return };
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
