//! The executable `spandrel-lab`: the experiments of the papers by name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // Servers with processes start this program for each of them.
    match spandrel_architectures::serve_as_process() {
        Ok(false) => spandrel_laboratory::command_line::run(),
        Ok(true) => ExitCode::SUCCESS,
        Err(error) => {
            spandrel_error::output::remark(&format!("error: cannot serve as a process: {error}\n"));
            ExitCode::FAILURE
        }
    }
}
