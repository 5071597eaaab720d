//! What a lock must not allow does not compile. Checked by calling Cargo, which is not there where Windows programs are run
//! by Wine.

#![cfg(not(windows))]

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/right_use.rs");
    cases.compile_fail("tests/ui/null_*.rs");
    cases.compile_fail("tests/ui/guard_*.rs");
    cases.compile_fail("tests/ui/recursive_*.rs");
}
