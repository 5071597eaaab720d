//! The executable behind `spandrel bench stacks`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    spandrel_stacks::command_line::run()
}
