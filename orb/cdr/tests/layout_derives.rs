//! A table that would not be true of its type does not compile.
#![cfg(not(windows))] // where the tests are run without a compiler
#![forbid(unsafe_code)]

#[test]
fn lies_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
