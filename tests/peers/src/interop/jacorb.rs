//! The Java programs: built by Maven, started as one class whose arguments choose the role.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context, Result};
use xtask::workspace;

use crate::builds;
/// Builds the programs, unless they are up to date: Maven alone takes some seconds to find that out.
pub(crate) fn build() -> Result<()> {
    let out = builds::jacorb();
    let stamp = out.join("built");
    let sources = ["peers/jacorb", "tests/interop/idl", "tools/lab/idl", "orb/cos/idl"]
        .map(|folder| workspace::root().join(folder));
    let newest = sources.iter().map(|folder| newest(folder)).collect::<Result<Vec<_>>>()?.into_iter().max();
    if fs::metadata(&stamp).and_then(|stamp| stamp.modified()).is_ok_and(|built| newest.is_none_or(|it| it < built)) {
        return Ok(());
    }
    let mut define = OsString::from("-Dout=");
    define.push(&out);
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "--file"]).arg(workspace::root().join("peers/jacorb/pom.xml"));
    workspace::run(maven.arg(define).arg("package")).context("the JacORB peers do not build")?;
    for program in ["latency-server", "latency-client", "inflight-client", "servants-server", "servants-client"] {
        let script = workspace::root().join("peers/jacorb/measured.sh");
        fs::copy(&script, out.join(program)).with_context(|| script.display().to_string())?;
    }
    fs::write(&stamp, "").with_context(|| stamp.display().to_string())
}

/// The time of the newest file in a folder.
fn newest(folder: &Path) -> Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let written =
            if entry.file_type()?.is_dir() { self::newest(&entry.path())? } else { entry.metadata()?.modified()? };
        newest = newest.max(written);
    }
    Ok(newest)
}

/// A Java VM with the programs, without the arguments that choose the role. Its settings suit programs that
/// run for seconds.
pub(crate) fn command() -> Command {
    let mut classes = builds::jacorb().join("classes").into_os_string();
    classes.push(":");
    classes.push(builds::jacorb().join("lib/*"));
    let mut command = Command::new("java");
    command.args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-classpath"]).arg(classes).arg("peer.Main");
    command
}
