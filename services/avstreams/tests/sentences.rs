//! The table of the specification's sentences and exceptions beside these tests.

use std::path::Path;

use spandrel_test_support::check_sentences;

#[test]
fn each_sentence_and_each_exception_has_a_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    check_sentences(&package.join("tests"), &[package.join("../../orb/cos/idl/AVStreams.idl")]);
}
