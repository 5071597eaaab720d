//! The table of the specification's sentences and exceptions beside these tests.

use std::path::Path;

use spandrel_test_support::check_sentences;

#[test]
fn each_sentence_and_each_exception_has_a_test() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let idl = ["CosEvent", "EventFactory", "EventMonitor"];
    let files = idl.map(|name| package.join(format!("../../orb/cos/idl/{name}.idl")));
    check_sentences(&package.join("tests"), &files);
}
