//! The output of executables to readers that are gone, and to full devices.

use std::fs::File;
use std::process::{Command, Output, Stdio};

/// Runs a command that prints something and ends. It must not panic, and not keep quiet: a closed pipe is no error, a full
/// device is one of standard output with the exit code 1.
///
/// # Panics
/// If the command does otherwise, or cannot be run.
#[track_caller]
pub fn check_output_errors(command: impl Fn() -> Command) {
    let (reader, writer) = std::io::pipe().expect("there are pipes");
    drop(reader);
    let output = run(command().stdout(writer));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), &*errors), (Some(0), ""), "a closed pipe: {:?}", command());
    // Other systems have no such device.
    let Ok(full) = File::options().write(true).open("/dev/full") else { return };
    let output = run(command().stdout(full.try_clone().expect("a descriptor")));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("cannot write to standard output: "), "a full device: {:?}: {errors}", command());
    assert_eq!(output.status.code(), Some(1), "a full device: {:?}: {errors}", command());
    let status = command().stdin(Stdio::null()).stdout(full.try_clone().expect("a descriptor")).stderr(full).status();
    assert_eq!(status.expect("the command runs").code(), Some(1), "standard error is full, too: {:?}", command());
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stderr(Stdio::piped()).output().expect("the command runs")
}
