//! Counts of the system calls of a process.

use std::{
    fs,
    process::{Command, Stdio},
};

use spandrel_test_support::{ChildProcess, this_program};

/// The system calls that write to a socket.
pub const SENDS: &str = "sendto,sendmsg,writev";

/// The system calls that read from a socket.
pub const RECEIVES: &str = "recvfrom,recvmsg";

/// Counts these system calls (names with commas) of a process that runs one test of this program with an environment
/// variable. Other system calls do not stop the process.
///
/// # Panics
/// If the test fails there, or without `strace`.
pub fn count(test: &str, names: &str, (variable, value): (&str, &str)) -> u32 {
    let there = Command::new("strace").arg("-V").output();
    assert!(there.is_ok_and(|output| output.status.success()), "this test needs strace: apt-get install strace");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("counts");
    let mut command = Command::new("strace");
    command.args(["-f", "--seccomp-bpf", "-c", "-U", "name,calls", "-e", &format!("trace={names}"), "-o"]).arg(&log);
    command.arg(this_program().get_program()).args(["--exact", test]);
    command.env(variable, value).stdout(Stdio::piped());
    let output = ChildProcess::start(&mut command).wait_with_output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let counts = fs::read_to_string(log).unwrap();
    // The last line is the total.
    let calls = |line: &str| line.strip_prefix("total")?.trim().parse().ok();
    counts.lines().find_map(calls).unwrap_or_else(|| panic!("{counts}"))
}
