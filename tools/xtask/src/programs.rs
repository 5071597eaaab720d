//! Tasks that are commands of other programs: `tests/peers` runs our programs with those of others, and `tests/explore`
//! has the checks that explore.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{self, build_as_for_tests};

/// The tasks that are commands of `tests/peers`.
pub(crate) const PEERS: [&str; 18] = [
    "peers",
    "big-endian",
    "windows",
    "interop",
    "idl",
    "golden",
    "services",
    "etcd",
    "jetstream",
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

/// The tasks that are commands of `tests/explore`.
pub const EXPLORING: [&str; 7] = ["hostile", "faults", "fuzz", "miri", "models", "mutants", "full"];

/// The lines of the help about them.
pub(crate) const HELP: &str = "\
Runs with programs of others, whose `--help` builds the program of tests/peers:
  peers             build the programs of others beside which ours are measured
  interop           our ORB against omniORB and JacORB
  big-endian        tests for s390x under QEMU
  windows           tests for Windows under Wine
  idl               our IDL compiler against omniidl
  golden            record golden GIOP messages
  services          our services against clients of other ORBs, and under kill -9
  etcd              the naming service over a cluster of etcd
  jetstream         the event service over a cluster of JetStream
  proxy             the HTTP proxy against clients of OpenAPI
  tango             a device of the TANGO control system
  servers           the servers of paper 004, ours and others
  orchestra         the same, measured through the Orchestrator
  orchestra-hosts   the Orchestrator between network namespaces
  orchestra-agents  the cost of its agents
  stacks            our TCP against the kernel's
  queues            our message queues beside others
  functions         function calls in C++ and in Rust

Checks that explore, whose `--help` builds the program of tests/explore:
  hostile           attacks on servers at length
  faults            ends of connections and servers at every step of calls
  fuzz              the fuzz targets
  miri              tests of code that handles octets, under Miri
  models            models of concurrent algorithms
  mutants           tests of the tests
  full              the long forms of all checks";

/// Builds the program that has this command as the tests are built, and runs it.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let name = words.first().copied().unwrap_or_default();
    let program = match name {
        _ if PEERS.contains(&name) => "peers",
        _ if EXPLORING.contains(&name) => "explore",
        _ => bail!("unknown task `{name}`: `cargo xtask --help` has the list"),
    };
    workspace::run(&mut build_as_for_tests(&[program]))?;
    let mut command = Command::new(workspace::target().join("debug").join(program));
    let status = command.args(words).status().with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{name} failed ({status})");
    Ok(())
}
