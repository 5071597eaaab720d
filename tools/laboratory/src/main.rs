//! The executable `spandrel-lab`: the experiments of the papers by name.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    spandrel_error::output::remark("error: the experiments of the laboratory need Linux\n");
    ExitCode::FAILURE
}

#[cfg(target_os = "linux")]
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
