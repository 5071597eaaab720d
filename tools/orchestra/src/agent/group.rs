//! Control groups of Linux: the processor time of a server with all processes and threads that it has ever started.
//!
//! A group of version 2 needs no controller for that (`cpu.stat`), one of version 1 is of the hierarchy `cpuacct`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::idl::orchestra::CpuTime;

/// The script with which a shell enters the group that is its argument 0, and becomes the program of the others.
pub(crate) const ENTER: &str = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
/// The beginning of the names of our groups.
const PREFIX: &str = "orchestra-";
/// Attempts to end the processes of a group, and the pause between two.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(10);

/// The version of a group's hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Unified,
    Cpuacct,
}

/// A place where groups can be made.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    version: Version,
    parent: PathBuf,
}

impl Groups {
    /// The first hierarchy in which a group can be made.
    ///
    /// # Errors
    /// The reasons why none can be made.
    pub(crate) fn find() -> Result<Self, String> {
        let (mounts, own) = (read("/proc/self/mounts")?, read("/proc/self/cgroup")?);
        let mut reasons = Vec::new();
        for candidate in candidates(&mounts, &own) {
            match candidate.make().and_then(|group| group.check()) {
                Ok(()) => {
                    candidate.remove_abandoned();
                    return Ok(candidate);
                }
                Err(reason) => reasons.push(reason),
            }
        }
        Err(if reasons.is_empty() { "no hierarchy is mounted".to_owned() } else { reasons.join("; ") })
    }

    pub(crate) fn description(&self) -> &'static str {
        match self.version {
            Version::Unified => "version 2 (cpu.stat)",
            Version::Cpuacct => "version 1 (cpuacct)",
        }
    }

    /// Makes a control group for one server.
    pub(crate) fn make(&self) -> Result<Group, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("{PREFIX}{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = self.parent.join(name);
        fs::create_dir(&path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
        Ok(Group { version: self.version, path })
    }

    /// Ends the servers of agents that were killed, and removes their groups.
    fn remove_abandoned(&self) {
        let Ok(entries) = fs::read_dir(&self.parent) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(agent) = name.strip_prefix(PREFIX).and_then(|name| name.split_once('-')) else { continue };
            if agent.0.parse::<u32>().is_ok() && !Path::new("/proc").join(agent.0).exists() {
                tracing::warn!("an earlier agent has left the control group {}: ending its processes", path.display());
                drop(Group { version: self.version, path });
            }
        }
    }
}

/// The hierarchies that may have our group, version 2 first.
fn candidates(mounts: &str, own: &str) -> Vec<Groups> {
    let mut hierarchies = Vec::new();
    for version in [Version::Unified, Version::Cpuacct] {
        let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| match version {
            Version::Unified => fields.get(2) == Some(&"cgroup2"),
            Version::Cpuacct => {
                fields.get(2) == Some(&"cgroup")
                    && fields.get(3).is_some_and(|options| options.split(',').any(|option| option == "cpuacct"))
            }
        });
        let own = own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let is_ours = match version {
                Version::Unified => controllers.is_empty(),
                Version::Cpuacct => controllers.split(',').any(|controller| controller == "cpuacct"),
            };
            is_ours.then(|| path.trim_start_matches('/').to_owned())
        });
        if let (Some(mount), Some(own)) = (mount, own) {
            hierarchies.push(Groups { version, parent: Path::new(mount[1]).join(own) });
        }
    }
    hierarchies
}

/// A group, which ends with its processes when dropped.
#[derive(Debug)]
pub(crate) struct Group {
    version: Version,
    path: PathBuf,
}

impl Group {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a process can enter it, and whether it counts time.
    fn check(&self) -> Result<(), String> {
        // The right to make a group is not that to move a process there.
        let mut shell = process::Command::new("/bin/sh");
        let entered = shell.args(["-c", ENTER]).arg(&self.path).arg("true").stderr(process::Stdio::null()).status();
        match entered {
            Ok(status) if status.success() => self.time().map(drop),
            Ok(_) => Err(format!("no process can be moved to {}", self.path.display())),
            Err(error) => Err(format!("cannot run /bin/sh: {error}")),
        }
    }

    /// The processor time of all processes that are or were in the group.
    pub(crate) fn time(&self) -> Result<CpuTime, String> {
        let file = |name: &str| read(self.path.join(name));
        match self.version {
            Version::Unified => {
                let text = file("cpu.stat")?;
                let micros = |name: &str| field(&text, name).map(|micros| micros / 1e6);
                match (micros("user_usec"), micros("system_usec")) {
                    (Some(user), Some(system)) => Ok(CpuTime { user, system }),
                    _ => Err(format!("{}/cpu.stat has no times", self.path.display())),
                }
            }
            Version::Cpuacct => {
                // The sum is in nanoseconds. Its parts are in ticks, and only tell their ratio.
                let (sum, text) = (file("cpuacct.usage")?, file("cpuacct.stat")?);
                let sum = sum.trim().parse::<f64>().map_err(|error| format!("cpuacct.usage: {error}"))? / 1e9;
                let (user, system) =
                    (field(&text, "user").unwrap_or_default(), field(&text, "system").unwrap_or_default());
                let user = if user + system > 0.0 { sum * user / (user + system) } else { 0.0 };
                Ok(CpuTime { user, system: sum - user })
            }
        }
    }

    /// The processes in the group.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Kills all processes of the group, also those that are started meanwhile.
    fn kill(&self) {
        for _ in 0..ATTEMPTS {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            let numbers = processes.iter().filter_map(|process| Pid::from_raw(i32::try_from(*process).ok()?));
            numbers.for_each(|process| _ = kill_process(process, Signal::KILL));
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        // A process that has just ended may still be counted.
        for _ in 0..ATTEMPTS {
            match fs::remove_dir(&self.path) {
                Ok(()) => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        tracing::warn!("the control group {} cannot be removed", self.path.display());
    }
}

fn field(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
