//! Prints `kind scoped-name repository-id` for each definition in an IDL file: to be compared with other compilers.
//!
//! `cargo run -p spandrel-idl --example dump -- [-I FOLDER]… [-D NAME]… FILE.idl`

use std::path::PathBuf;
use std::process::ExitCode;

use spandrel_idl::FrontEndOptions;

fn main() -> ExitCode {
    let mut options = FrontEndOptions::default();
    let mut file = None;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "-I" {
            options.include_paths.extend(arguments.next().map(PathBuf::from));
        } else if argument == "-D" {
            let name = arguments.next().and_then(|it| it.into_string().ok());
            options.defines.extend(name.map(|it| (it, None)));
        } else {
            file = Some(PathBuf::from(argument));
        }
    }
    let Some(file) = file else {
        eprintln!("usage: dump [-I FOLDER]... [-D NAME]... FILE.idl");
        return ExitCode::from(2);
    };
    match spandrel_idl::compile(&options, &file) {
        Ok(model) => {
            eprint!("{}", model.warnings());
            print!("{}", model.dump());
            ExitCode::SUCCESS
        }
        Err(diagnostics) => {
            eprint!("{diagnostics}");
            ExitCode::FAILURE
        }
    }
}
