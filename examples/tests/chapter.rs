//! Runs the code of docs/mapping.md, and compares the page with it.

#[path = "chapter/anything.rs"]
mod anything;
#[path = "chapter/interfaces.rs"]
mod interfaces;
#[path = "chapter/locals.rs"]
mod locals;
#[path = "chapter/types.rs"]
mod types;

mod idl {
    spandrel::include_idl!("chapter");
}

const PAGE: &str = "docs/mapping.md";

#[test]
fn the_mapping_page_shows_compiled_idl() {
    crate::shown::check(PAGE, "idl", &["mapping/chapter.idl", "asynchronous/weather.idl", "mapping/values.idl"], 16);
}

#[test]
fn the_mapping_page_shows_tested_rust() {
    let sources = ["types", "anything", "interfaces", "locals"].map(|name| format!("tests/chapter/{name}.rs"));
    let sources = sources.each_ref().map(String::as_str);
    crate::shown::check(
        PAGE,
        "rust",
        &[&sources[..], &["asynchronous/main.rs", "tokio/main.rs", "tests/values.rs"]].concat(),
        26,
    );
}
