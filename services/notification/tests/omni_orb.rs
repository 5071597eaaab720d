//! A client of omniORB (`peers/omniorb/notifications.cc`) with our service.

use std::path::Path;
use std::process::Command;

use spandrel_test_support::omniorb_peer;

use crate::support::Served;

#[test]
fn a_client_of_omniorb_uses_channels_filters_and_properties() {
    let Some(client) = omniorb_peer("notification/client", Path::new(env!("CARGO_TARGET_TMPDIR"))) else { return };
    let served = Served::new();
    let (host, port) = served.orb.listen().unwrap()[0].clone();
    let output = Command::new(client).arg(format!("{host}:{port}")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(served.service().channels(), 0, "it has destroyed its channel");
}
