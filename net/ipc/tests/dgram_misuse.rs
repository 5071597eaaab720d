//! Operations that a datagram endpoint does not support do not compile.

#![cfg(not(windows))]

#[test]
fn misuse_of_datagrams_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/dgram_right_use.rs");
    cases.compile_fail("tests/ui/dgram_wrong_*.rs");
}
