//! A client of omniORB, with stubs of its own IDL of the service (`peers/omniorb/properties.cc`).

use std::path::Path;
use std::process::Command;

use spandrel_test_support::omniorb_peer;

use crate::support::Served;

#[test]
fn omniorb_uses_sets_iterators_modes_and_constraints() {
    if !Path::new("/usr/share/idl/omniORB/COS/CosPropertyService.idl").exists() {
        assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "omniORB's IDL files are not installed");
        eprintln!("absent: omniORB's IDL files (Debian package omniorb-idl)");
        return;
    }
    let Some(client) = omniorb_peer("properties", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let served = Served::transient();
    let service = served.service.as_ref().unwrap();
    let factories = [service.factory(), service.set_def_factory()].map(ToString::to_string);
    let output = Command::new(client).args(factories).output().unwrap();
    let lines = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && lines == "ok\n", "{lines}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(service.sets(), 4);
}
