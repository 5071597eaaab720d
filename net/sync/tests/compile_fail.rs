//! What a lock must not allow does not compile.

#[test]
fn misuse_does_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/right_use.rs");
    cases.compile_fail("tests/ui/null_*.rs");
    cases.compile_fail("tests/ui/guard_*.rs");
    cases.compile_fail("tests/ui/recursive_*.rs");
}
