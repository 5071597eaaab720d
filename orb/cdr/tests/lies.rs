//! A table that would not be true of its type does not compile.
#![forbid(unsafe_code)]

#[test]
fn lies_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
