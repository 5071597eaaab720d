//! `interop-ids [-IFOLDER | -DNAME[=TEXT]]... FILE.idl`: prints `scoped-name repository-id` for everything that the file declares.
//!
//! Exit code 1 if the file is refused, 3 if only because of constructs that are not supported yet; the first line of
//! standard error says which.
#![forbid(unsafe_code)]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use spandrel_idl::{Diagnostics, FrontEndOptions, Severity, compile};

fn main() -> anyhow::Result<ExitCode> {
    let mut options = FrontEndOptions::default();
    let mut files = Vec::new();
    for argument in env::args().skip(1) {
        if let Some(folder) = argument.strip_prefix("-I") {
            options.include_paths.push(folder.into());
        } else if let Some(definition) = argument.strip_prefix("-D") {
            let (name, text) = definition.split_once('=').unwrap_or((definition, "1"));
            options.defines.push((name.to_owned(), Some(text.to_owned())));
        } else {
            files.push(argument);
        }
    }
    let [file] = files.as_slice() else { bail!("usage: interop-ids [-IFOLDER | -DNAME[=TEXT]]... FILE.idl") };
    match compile(&options, Path::new(file)) {
        Ok(model) => {
            for definition in model.definitions().filter(|definition| definition.in_main_file) {
                println!("{} {}", definition.scoped_name, definition.repository_id);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(diagnostics) => Ok(refuse(&diagnostics)),
    }
}

fn refuse(diagnostics: &Diagnostics) -> ExitCode {
    let errors: Vec<&str> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| diagnostic.message.as_str())
        .collect();
    let is_known = |message: &&&str| message.contains("not supported yet") || message.contains("the rest is left out");
    let mut worse = errors.iter().filter(|message| !is_known(message));
    match worse.next() {
        Some(message) => {
            eprintln!("{message}");
            ExitCode::from(1)
        }
        None => {
            eprintln!("{}", errors.first().unwrap_or(&"no reason given"));
            ExitCode::from(3)
        }
    }
}
