//! The JSON form of the model is stable: tools outside of this workspace depend on it.

use std::path::Path;

use serde_json::Value;
use spandrel_idl::{FrontEndOptions, MemoryFiles, compile, compile_with, json};

#[track_caller]
fn document(file: &str) -> String {
    let model = compile(&FrontEndOptions::default(), Path::new(file));
    json::to_string(&model.unwrap_or_else(|diagnostics| panic!("{diagnostics}")))
}

#[test]
fn the_json_form_is_stable() {
    insta::assert_snapshot!("json_shape", document("tests/idl/json/shape.idl"));
}

#[test]
fn every_definition_of_the_model_is_there_once() {
    let files = MemoryFiles::new().with(
        "main.idl",
        "module M { interface I { struct S { enum E { p, q } one; }; void f(); }; };\nconst long c = 1;\nmodule M { typedef I J; };",
    );
    let model = compile_with(&FrontEndOptions::default(), &files, Path::new("main.idl"));
    let model = model.unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let document: Value = serde_json::from_str(&json::to_string(&model)).expect("JSON");
    assert_eq!(document["format"], json::FORMAT);
    let mut written_names = Vec::new();
    let mut open: Vec<&Value> = document["definitions"].as_array().expect("definitions").iter().collect();
    while let Some(node) = open.pop() {
        written_names.push(node["scoped_name"].as_str().expect("a name").to_owned());
        open.extend(node["contents"].as_array().into_iter().flatten());
    }
    written_names.sort();
    let mut model_names: Vec<String> = model.definitions().map(|it| it.scoped_name.clone()).collect();
    model_names.sort();
    assert_eq!(written_names, model_names);
}
