//! Operations that a datagram endpoint does not support do not compile.

#![cfg(not(windows))]

use spandrel_ipc::dgram::Batch;
use spandrel_ipc::inet::{Addr, Broadcast, ConnectedDgram, Dgram, Multicast};

/// The same calls as in the programs, on the endpoints that support them.
#[expect(dead_code, reason = "it is compiled, not called")]
fn correct_use(unconnected: &Dgram, connected: &ConnectedDgram, groups: &Multicast, all: &Broadcast) {
    let to = Addr::loopback(9);
    let _ = unconnected.send_to(b"octets", &to);
    let _ = unconnected.recv_from(&mut [0; 16]);
    let _ = connected.send(b"octets");
    let _ = connected.recv(&mut [0; 16]);
    let _ = groups.join([239, 1, 2, 3].into(), None);
    let _ = all.send(b"octets", 9);
    let mut batch = Batch::new(4, 64);
    let _ = batch.push_to(b"octets", &to);
    let _ = unconnected.send_batch(&mut batch);
}

#[test]
fn misuse_of_datagrams_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/dgram_wrong_*.rs");
}
