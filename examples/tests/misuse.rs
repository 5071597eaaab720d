//! Misuse of the server side does not compile, and the compiler names the remedy. The test calls Cargo, which is
//! not available where Windows programs run under Wine.
#![cfg(not(windows))]

#[test]
fn a_servant_without_its_skeleton_cannot_be_activated() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
