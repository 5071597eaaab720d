//! Machines that are network namespaces, and the network between them.
//!
//! ```text
//! supervisor ─┐                                              ┌─ server
//! load1 ──────┼─ bridge `near` ─ TAP `tap-near` │ relay │ TAP `tap-far` ─ bridge `far`
//! load2 ──────┘                                                      (namespace `hub`)
//! ```

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The beginning of the names of namespaces; the process ID and the machine's name follow.
const PREFIX: &str = "spandrel-hosts-";
/// The TAP devices of the relay, on the side of all machines but one, and on the side of that one.
pub(super) const TAPS: [&str; 2] = ["tap-near", "tap-far"];
/// The widest useful range of local ports.
pub(super) const WIDE: &str = "1024 65535";

/// The side of the relay on which a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Near,
    Far,
}

/// A machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    namespace: String,
    pub(super) name: &'static str,
    pub(super) address: String,
}

/// All machines and the hub between them. Dropping it ends all processes of the namespaces and removes them.
#[derive(Debug)]
pub(super) struct Network {
    machines: Vec<Machine>,
    hub: Machine,
}

impl Network {
    /// Creates these machines, with addresses from 10.78.0.1 on in their order.
    pub(super) fn create(machines: &[(&'static str, Side)]) -> Result<Self> {
        require_root()?;
        remove_abandoned()?;
        let machine = |name, number| Machine {
            namespace: format!("{PREFIX}{}-{name}", std::process::id()),
            name,
            address: format!("10.78.0.{number}"),
        };
        let all = machines.iter().zip(1u8..).map(|((name, _), number)| machine(name, number)).collect();
        let network = Self { machines: all, hub: machine("hub", 0) };
        // If a step fails, `network` removes those before.
        network.set_up(machines).context("cannot create the network namespaces")?;
        Ok(network)
    }

    fn set_up(&self, machines: &[(&'static str, Side)]) -> Result<()> {
        let hub = &self.hub.namespace;
        ip(&format!("netns add {hub}"))?;
        for (side, tap) in ["near", "far"].into_iter().zip(TAPS) {
            ip(&format!("-n {hub} link add {side} type bridge"))?;
            ip(&format!("-n {hub} tuntap add dev {tap} mode tap"))?;
            ip(&format!("-n {hub} link set {tap} master {side} up"))?;
            ip(&format!("-n {hub} link set {side} up"))?;
        }
        for (Machine { namespace, name, address }, (_, side)) in self.machines.iter().zip(machines) {
            let side = if *side == Side::Near { "near" } else { "far" };
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {hub} link add {name} type veth peer name eth0 netns {namespace}"))?;
            ip(&format!("-n {hub} link set {name} master {side} up"))?;
            ip(&format!("-n {namespace} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n {namespace} link set eth0 up"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        self.machines.iter().try_for_each(|machine| machine.set_ports(WIDE))
    }

    /// The machine with this name.
    pub(super) fn machine(&self, name: &str) -> Result<&Machine> {
        self.machines.iter().find(|machine| machine.name == name).with_context(|| format!("no machine {name}"))
    }

    /// The namespace of the bridges and of the relay.
    pub(super) fn hub(&self) -> &Machine {
        &self.hub
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for Machine { namespace, .. } in self.machines.iter().chain([&self.hub]) {
            if let Err(error) = remove(namespace) {
                eprintln!("{error:#}");
            }
        }
    }
}

impl Machine {
    /// A command that runs a program on this machine.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace)).arg("--").arg(program.as_ref());
        command
    }

    /// Sets the range of local ports.
    pub(super) fn set_ports(&self, range: &str) -> Result<()> {
        let mut command = self.command("sysctl");
        output(command.args(["-q", "-w", &format!("net.ipv4.ip_local_port_range={range}")])).map(drop)
    }

    /// The octets that the machine has sent and received, with the headers of frames.
    pub(super) fn octets(&self) -> Result<u64> {
        let text = ip(&format!("-n {} -s -j link show dev eth0", self.namespace))?;
        let links: Vec<Link> = serde_json::from_str(&text).context("`ip -j` prints something else than statistics")?;
        Ok(links.iter().map(|Link { stats64 }| stats64.rx.bytes + stats64.tx.bytes).sum())
    }
}

#[derive(Deserialize)]
struct Link {
    stats64: Statistics,
}

#[derive(Deserialize)]
struct Statistics {
    rx: Direction,
    tx: Direction,
}

#[derive(Deserialize)]
struct Direction {
    bytes: u64,
}

fn ip(arguments: &str) -> Result<String> {
    output(Command::new("ip").args(arguments.split(' ')))
}

/// The output of a command that has to succeed.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Fails without the right to create network namespaces.
pub(super) fn require_root() -> Result<()> {
    let user = output(Command::new("id").arg("-u"))?;
    ensure!(user.trim() == "0", "network namespaces need root, and the user ID is {}: use sudo -E", user.trim());
    Ok(())
}

/// Ends the processes of a namespace, and removes it with its devices.
fn remove(namespace: &str) -> Result<()> {
    if !Path::new("/run/netns").join(namespace).exists() {
        return Ok(());
    }
    for process in ip(&format!("netns pids {namespace}"))?.split_whitespace() {
        // It may have ended in the meantime.
        _ = output(Command::new("kill").args(["-KILL", process]));
    }
    ip(&format!("netns del {namespace}")).map(drop)
}

/// Removes the namespaces of runs that were killed.
fn remove_abandoned() -> Result<()> {
    let Ok(entries) = fs::read_dir("/run/netns") else { return Ok(()) }; // none was ever created
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(process) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        if !Path::new("/proc").join(process).exists() {
            remove(&name)?;
        }
    }
    Ok(())
}
