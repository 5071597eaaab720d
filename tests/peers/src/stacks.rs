//! `cargo xtask stacks`: our TCP against the kernel's over a TAP device, in a network namespace of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::packages;

/// The time for each program.
const LIMIT: Duration = Duration::from_secs(180);

/// Sets up the device, and runs `spandrel-stacks tap` there. The namespace ends with its last process.
const SCRIPT: &str = "\
set -e
ip link set lo up
ip tuntap add dev tap0 mode tap
ip link set tap0 address 02:00:00:00:77:01
ip addr add 10.77.0.1/24 dev tap0
ip link set tap0 up
ip neigh replace 10.77.0.2 lladdr 02:00:00:00:77:02 dev tap0 nud permanent
exec \"$1\" tap tap0 --captures \"$2\"
";

/// The frames that show a fault of a sender. Wireshark verifies checksums on request only.
const FAULTS: &str = "_ws.malformed || tcp.checksum.status == \"Bad\" || ip.checksum.status == \"Bad\"";

/// Exchanges data in both directions, opened from either side, with and without losses; then `tshark` has to find no fault in
/// the frames of either side.
pub(crate) fn run() -> Result<()> {
    packages::require(packages::CAPTURING)?;
    workspace::cargo(&["build", "--release", "-p", "spandrel-stacks"])?;
    let captures = workspace::target().join("stacks");
    if captures.exists() {
        fs::remove_dir_all(&captures)?;
    }
    fs::create_dir_all(&captures)?;
    let program = workspace::target().join("release/spandrel-stacks");
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", SCRIPT, "sh"]).arg(&program).arg(&captures);
    lines_of("spandrel-stacks in a network namespace", &mut command)?.iter().for_each(|line| println!("{line}"));

    let mut files: Vec<PathBuf> = fs::read_dir(&captures)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    ensure!(files.len() == 4, "{} captures instead of 4 in {}", files.len(), captures.display());
    for file in &files {
        let segments = frames(file, "tcp")?;
        ensure!(segments.len() > 100, "tshark finds {} segments in {}", segments.len(), file.display());
        let faults = frames(file, FAULTS)?;
        ensure!(faults.is_empty(), "tshark finds faults in the frames {} of {}", faults.join(", "), file.display());
        println!("tshark: {} segments, none with a fault: {}", segments.len(), file.display());
    }
    // The filter finds a fault: an octet of the last frame is another one.
    let damaged = captures.join("damaged.pcap");
    let mut octets = fs::read(&files[0])?;
    *octets.last_mut().context("the capture is empty")? ^= 1;
    fs::write(&damaged, octets)?;
    ensure!(frames(&damaged, FAULTS)?.len() == 1, "tshark does not find the damaged frame of {}", damaged.display());
    Ok(())
}

/// The numbers of the frames that a filter finds.
fn frames(capture: &Path, filter: &str) -> Result<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    command.args(["-Y", filter, "-T", "fields", "-e", "frame.number"]);
    lines_of("tshark", &mut command)
}

/// The output of a program that has to succeed.
fn lines_of(name: &str, command: &mut Command) -> Result<Vec<String>> {
    let mut child = Bounded::start(name, command)?;
    let (deadline, mut lines) = (Instant::now() + LIMIT, Vec::new());
    while let Some(line) = child.line(deadline)? {
        lines.push(line);
    }
    let status = child.finish(LIMIT)?;
    if !status.success() {
        bail!("{name}: {status}\n{}\n{}", lines.join("\n"), child.stderr());
    }
    Ok(lines)
}
