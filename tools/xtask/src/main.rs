//! The program `xtask`, for tasks of the repository.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    xtask::main()
}
