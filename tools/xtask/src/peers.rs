//! Tasks that are commands of `tests/peers`: runs of our programs with those of others.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::profile::{Profile, build_as_for_tests};
use crate::workspace;

/// The tasks that are commands of `tests/peers`.
pub(crate) const COMMANDS: [&str; 16] = [
    "big-endian",
    "windows",
    "interop",
    "idl",
    "golden",
    "services",
    "etcd",
    "proxy",
    "queues",
    "functions",
    "servers",
    "orchestra",
    "orchestra-hosts",
    "orchestra-agents",
    "stacks",
    "tango",
];

/// The lines of the help about them.
pub(crate) const HELP: &str = "\
Runs with programs of others, whose `--help` builds the program of tests/peers:
  interop           our ORB against omniORB and JacORB
  big-endian        tests for s390x under QEMU
  windows           tests for Windows under Wine
  idl               our IDL compiler against omniidl
  golden            record golden GIOP messages
  services          our services against those of Java's ORBs, and under kill -9
  etcd              the naming service over a cluster of etcd
  proxy             the HTTP proxy against clients of OpenAPI
  tango             a device of the TANGO control system
  servers           the servers of paper 004, ours and others
  orchestra         the same, measured through the Orchestrator
  orchestra-hosts   the Orchestrator between network namespaces
  orchestra-agents  the cost of its agents
  stacks            our TCP against the kernel's
  queues            our message queues beside others
  functions         function calls in C++ and in Rust";

/// Builds the program of `tests/peers` as the tests are built, and runs a command of it.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    workspace::run(&mut build_as_for_tests(&["peers"]))?;
    let name = words.first().copied().unwrap_or_default();
    let mut command = Command::new(Profile::Dev.program("peers"));
    let status = command.args(words).status().context("cannot start peers")?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}
