//! A simulated remote host: a network namespace behind a veth pair, which can be suspended.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// If this variable is set, a missing network namespace is an error.
const EXPECTED: &str = "SPANDREL_EXPECTS_NETNS";

/// A host that is removed on drop.
pub struct Namespace {
    name: String,
    number: u8,
}

fn run(program: &str, arguments: &str) -> Result<()> {
    let mut command = Command::new(program);
    let output =
        command.args(arguments.split(' ')).stdin(Stdio::null()).output().with_context(|| program.to_owned())?;
    ensure!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

impl Namespace {
    /// Creates a host. Returns `None` and prints a line if that is not possible: it needs root, `ip` and
    /// `nft`. `number` must differ between the hosts of a process.
    ///
    /// # Errors
    /// If it cannot be created, but is expected.
    pub fn create(number: u8) -> Result<Option<Self>> {
        let namespace = Self { name: format!("sf{}n{number}", std::process::id()), number };
        match namespace.set_up() {
            Ok(()) => Ok(Some(namespace)),
            Err(reason) if std::env::var_os(EXPECTED).is_some() => Err(reason.context("a namespace is expected")),
            Err(reason) => {
                println!("absent: a network namespace: {reason:#}");
                Ok(None)
            }
        }
    }

    fn set_up(&self) -> Result<()> {
        let (name, local_address, remote_address) = (&self.name, self.local_address(), self.remote_address());
        run("ip", &format!("netns add {name}"))?;
        run("ip", &format!("link add {name}a type veth peer name {name}b netns {name}"))?;
        run("ip", &format!("addr add {local_address}/30 dev {name}a"))?;
        run("ip", &format!("link set {name}a up"))?;
        run("ip", &format!("-n {name} addr add {remote_address}/30 dev {name}b"))?;
        run("ip", &format!("-n {name} link set {name}b up"))?;
        run("ip", &format!("-n {name} link set lo up"))?;
        // Checks that the host can be suspended.
        self.suspend()?;
        self.resume()
    }

    /// The address of this end of the veth pair.
    pub fn local_address(&self) -> Ipv4Addr {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        Ipv4Addr::new(10, 128 | self.number, high, (low & 0b11_1111) << 2 | 1)
    }

    /// The address of the simulated host.
    pub fn remote_address(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.local_address()) + 1)
    }

    /// A command that runs on the simulated host.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Drops all packets to and from the host, without an error to either side.
    pub fn suspend(&self) -> Result<()> {
        let chain =
            |hook| format!("add chain inet suspended {hook} {{ type filter hook {hook} priority 0; policy drop; }}");
        let rules = format!("add table inet suspended; {}; {}", chain("input"), chain("output"));
        let output = self.command("nft").arg(rules).output()?;
        ensure!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// Undoes [`suspend`](Self::suspend).
    pub fn resume(&self) -> Result<()> {
        run("ip", &format!("netns exec {} nft delete table inet suspended", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Either may be missing after a failed setup. Deleting one end of the veth pair deletes both.
        _ = run("ip", &format!("link delete {}a", self.name));
        _ = run("ip", &format!("netns delete {}", self.name));
    }
}
