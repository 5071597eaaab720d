//! `cargo xtask tango`: a device of the TANGO control system, called through the command line, the proxy and the console.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::interop;
use crate::packages;

/// The time that the device server may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The device of TANGO's own test server, which needs no database for it.
const DEVICE: &str = "my/test/1";

pub(crate) fn run() -> Result<()> {
    packages::require(packages::TANGO)?;
    interop::build_ours("compiled")?;
    interop::build_tools()?;
    // The port is not assigned again soon.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let mut command = Command::new("/usr/lib/tango/TangoTest");
    command.args(["test", "-nodb", "-dlist", DEVICE, "-ORBendPoint", &format!("giop:tcp:127.0.0.1:{port}")]);
    let server = Bounded::start("TangoTest", &mut command)?;
    let deadline = Instant::now() + START_TIMEOUT;
    while server.line(deadline)?.with_context(|| format!("TangoTest ended: {}", server.stderr()))?
        != "Ready to accept request"
    {}
    let mut failed = Vec::new();
    for tool in interop::TOOLS {
        println!("-- a device of TANGO through {tool}");
        let mut client = Command::new(workspace::target().join("debug/interop-json"));
        client.args(["--device", &format!("corbaloc::127.0.0.1:{port}/{DEVICE}"), "--through", tool]);
        if workspace::run(&mut client).is_err() {
            failed.push(tool);
        }
    }
    ensure!(failed.is_empty(), "calls failed through {}", failed.join(", "));
    Ok(())
}
