//! Operations that an endpoint does not support do not compile.
#![cfg(not(windows))] // where the tests are run without a compiler

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/right_use.rs");
    cases.compile_fail("tests/ui/acceptor_*.rs");
    cases.compile_fail("tests/ui/connector_*.rs");
    cases.compile_fail("tests/ui/stream_*.rs");
    cases.compile_fail("tests/ui/wrong_*.rs");
}
