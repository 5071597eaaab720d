//! Any text as IDL: the compiler returns a model or diagnostics without a panic, and can generate Rust for each
//! model.
//!
//! NULs separate the input into files: the first is compiled, the others can be included as `1.idl`, `2.idl`
//! and so on.
use std::path::Path;

use spandrel_idl::rust::{Options, generate};
use spandrel_idl::{FrontEndOptions, MemoryFiles, compile_with};

pub fn run(input: &[u8]) {
    let mut files = MemoryFiles::new();
    for (n, text) in input.split(|octet| *octet == 0).take(8).enumerate() {
        files = files.with(format!("{n}.idl"), text);
    }
    match compile_with(&FrontEndOptions::default(), &files, Path::new("0.idl")) {
        Ok(model) => {
            let _ = model.dump();
            assert!(!generate(&model, &Options::new()).is_empty());
        }
        Err(diagnostics) => assert!(!diagnostics.to_string().is_empty()),
    }
}
