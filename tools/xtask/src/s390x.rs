//! A machine whose numbers begin with their highest octet, as QEMU emulates it.

use std::process::Command;

use crate::place;

pub(crate) const TARGET: &str = "s390x-unknown-linux-gnu";
/// What runs a program of that machine.
pub(crate) const EMULATOR: [&str; 3] = ["qemu-s390x", "-L", "/usr/s390x-linux-gnu"];

/// Cargo for that machine.
pub(crate) fn cargo(chore: &str) -> Command {
    let mut command = Command::new(place::cargo_program());
    command.args([chore, "--target", TARGET]).current_dir(place::root());
    command.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc");
    command.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR.join(" "));
    // Emulated, what is saved by building faster is lost by far when it runs.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    if std::env::var_os("PROPTEST_CASES").is_none() {
        command.env("PROPTEST_CASES", "16");
    }
    command
}
