//! A table that does not match its type does not compile.
#![cfg(not(windows))] // the tests run without a compiler there
#![forbid(unsafe_code)]

#[test]
fn tables_that_do_not_match_their_type_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
