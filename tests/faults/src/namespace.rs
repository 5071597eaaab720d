//! Another host, as the system pretends it: a network namespace behind a cable, which can fall asleep.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// If this is set, namespaces must be had.
const EXPECTED: &str = "SPANDREL_EXPECTS_NETNS";

/// A host that is gone when dropped.
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
    /// None, and a line that says so, where none can be made: that takes root, `ip` and `nft`. `number` tells those of one process apart.
    ///
    /// # Errors
    /// If it cannot be made, but is expected.
    pub fn make(number: u8) -> Result<Option<Self>> {
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
        let (name, here, there) = (&self.name, self.here(), self.there());
        run("ip", &format!("netns add {name}"))?;
        run("ip", &format!("link add {name}a type veth peer name {name}b netns {name}"))?;
        run("ip", &format!("addr add {here}/30 dev {name}a"))?;
        run("ip", &format!("link set {name}a up"))?;
        run("ip", &format!("-n {name} addr add {there}/30 dev {name}b"))?;
        run("ip", &format!("-n {name} link set {name}b up"))?;
        run("ip", &format!("-n {name} link set lo up"))?;
        // It must be able to sleep.
        self.sleep()?;
        self.wake()
    }

    /// This host, as the other sees it.
    pub fn here(&self) -> Ipv4Addr {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        Ipv4Addr::new(10, 128 | self.number, high, (low & 0b11_1111) << 2 | 1)
    }

    /// The other.
    pub fn there(&self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.here()) + 1)
    }

    /// A command that runs there.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// No packet goes in or out any more, and nobody is told.
    pub fn sleep(&self) -> Result<()> {
        let chain =
            |hook| format!("add chain inet asleep {hook} {{ type filter hook {hook} priority 0; policy drop; }}");
        let rules = format!("add table inet asleep; {}; {}", chain("input"), chain("output"));
        let output = self.command("nft").arg(rules).output()?;
        ensure!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// It is as before.
    pub fn wake(&self) -> Result<()> {
        run("ip", &format!("netns exec {} nft delete table inet asleep", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // What was not made cannot be removed. The cable goes with its end.
        _ = run("ip", &format!("link delete {}a", self.name));
        _ = run("ip", &format!("netns delete {}", self.name));
    }
}
