//! Operations that an endpoint does not support do not compile.
#![cfg(not(windows))] // where the tests are run without a compiler

use spandrel_ipc::Family;
use spandrel_ipc::inet::{Acceptor, Addr, Connector, Inet, Stream};

/// The same calls as in the programs, on the endpoints that have them: those fail for no other reason.
#[expect(dead_code, reason = "it is compiled, not called")]
fn correct_use(acceptor: &Acceptor, stream: &Stream, addr: &Addr) {
    let _ = acceptor.accept();
    let _ = stream.recv(&mut [0; 16]);
    let _ = stream.send(b"octets");
    let _ = Connector::connect(addr);
    let _ = Inet::default().connect(addr, None);
}

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/acceptor_*.rs");
    cases.compile_fail("tests/ui/connector_*.rs");
    cases.compile_fail("tests/ui/stream_*.rs");
    cases.compile_fail("tests/ui/wrong_*.rs");
}
