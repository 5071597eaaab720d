//! A big-endian machine, emulated by QEMU.

use std::process::Command;

use xtask::workspace;

/// The target of the compiler.
pub(crate) const TARGET: &str = "s390x-unknown-linux-gnu";
/// The emulator with its arguments.
pub(crate) const EMULATOR: [&str; 3] = ["qemu-s390x", "-L", "/usr/s390x-linux-gnu"];

/// Cargo for that machine.
pub(crate) fn cargo(task: &str) -> Command {
    let mut command = Command::new(workspace::cargo_program());
    command.args([task, "--target", TARGET]).current_dir(workspace::root());
    command.env_remove("RUSTC_WORKSPACE_WRAPPER"); // the crates were linted for this machine
    command.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc");
    command.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR.join(" "));
    // Faster building would cost far more at run time under emulation.
    command.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    // The byte order shows in each input; this machine tests more of them.
    command.env("PROPTEST_CASES", "16");
    command
}
