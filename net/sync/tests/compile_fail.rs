//! Misuse of locks does not compile. The test calls Cargo, which is not available where Windows programs run
//! under Wine.

#![cfg(not(windows))]

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/right_use.rs");
    cases.compile_fail("tests/ui/null_*.rs");
    cases.compile_fail("tests/ui/guard_*.rs");
    cases.compile_fail("tests/ui/recursive_*.rs");
}
