//! Processes of servers: starting them with their limits, finding them again after a restart of the activator, and
//! ending them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command as StdCommand, ExitStatus, Stdio};

use spandrel::net::sync::{Process, ProcessError, ProcessManager};

use crate::commands::{Command, ResourceLimits, expand};
use crate::store::ProcessId;

/// The variables of the activator's own environment that servers inherit.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "SystemRoot", "TEMP", "TMPDIR"];

/// A process of a server.
pub(crate) enum ServerProcess {
    /// A child of this process.
    Child(Process, ProcessId),
    /// A child of an earlier activator.
    Adopted(ProcessId),
}

/// The end of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Status(ExitStatus),
    /// It was not a child of this process.
    Unknown,
}

impl End {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::Status(status) if status.success())
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Unknown => f.write_str("unknown exit status"),
        }
    }
}

impl ServerProcess {
    pub(crate) fn id(&self) -> ProcessId {
        match self {
            Self::Child(_, id) | Self::Adopted(id) => *id,
        }
    }

    /// The end of the process; `None` while it runs.
    pub(crate) fn end(&self) -> Option<End> {
        match self {
            Self::Child(child, _) => match child.status() {
                Ok(status) => status.map(End::Status),
                Err(_) => Some(End::Unknown),
            },
            Self::Adopted(id) => (!is_running(*id)).then_some(End::Unknown),
        }
    }

    /// Asks the process and its group to end.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Child(child, _) => child.signal_group(spandrel::net::sync::Signal::TERM),
            #[cfg(not(unix))]
            Self::Child(child, _) => child.kill(),
            Self::Adopted(id) => signal_adopted(*id, false),
        }
    }

    /// Ends the process and its group.
    pub(crate) fn kill(&self) -> io::Result<()> {
        match self {
            Self::Child(child, _) => child.kill(),
            Self::Adopted(id) => signal_adopted(*id, true),
        }
    }
}

/// The environment that a started process is given.
pub(crate) struct Start<'s> {
    pub(crate) server: &'s str,
    pub(crate) token: &'s str,
    /// The URL of the implementation repository.
    pub(crate) repository: &'s str,
    pub(crate) data: &'s Path,
    pub(crate) log: File,
}

/// Starts the program of a command.
pub(crate) fn start(manager: &ProcessManager, command: &Command, start: Start<'_>) -> io::Result<ServerProcess> {
    let mut process = StdCommand::new(&command.program);
    for argument in &command.arguments {
        process.arg(expand(argument, start.server, start.repository).map_err(io::Error::other)?);
    }
    if command.orb_arguments {
        process.args(["-ORBUseImR", "1", "-ORBServerId", start.server, "-ORBInitRef"]);
        process.arg(format!("{}={}", spandrel::services::activation::IMPL_REPO_SERVICE, start.repository));
        if let Some(address) = command.metrics {
            process.args(["-ORBMetricsEndpoint", &address.to_string()]);
        }
    }
    process.env_clear();
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            process.env(name, value);
        }
    }
    process.envs(&command.environment).env(spandrel::services::activation::TOKEN_VARIABLE, start.token);
    process.current_dir(command.working_directory.as_deref().unwrap_or(start.data));
    process.stdin(Stdio::null()).stdout(start.log.try_clone()?).stderr(start.log);
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        if let Some(gid) = command.gid {
            process.gid(gid);
        }
        if let Some(uid) = command.uid {
            process.uid(uid);
        }
    }
    #[cfg(unix)]
    let spawned = manager.spawn_group(&mut process);
    #[cfg(not(unix))]
    let spawned = manager.spawn(&mut process);
    let child = spawned.map_err(|error| match error {
        ProcessError::Spawn { source, .. } => source,
        other => io::Error::other(other.to_string()),
    })?;
    if let Err(error) = limit(&child, &command.limits) {
        _ = child.kill();
        return Err(error);
    }
    let id = ProcessId { pid: child.id(), start_time: start_time(child.id()).unwrap_or(0) };
    Ok(ServerProcess::Child(child, id))
}

/// Sets the limits of a process that has just been started.
#[cfg(target_os = "linux")]
fn limit(child: &Process, limits: &ResourceLimits) -> io::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let pid = Pid::from_raw(child.id().cast_signed());
    let set =
        [(Resource::Cpu, limits.cpu_seconds), (Resource::As, limits.memory), (Resource::Nofile, limits.descriptors)];
    for (resource, value) in set {
        if let Some(value) = value {
            match prlimit(pid, resource, Rlimit { current: Some(value), maximum: Some(value) }) {
                Ok(_) | Err(rustix::io::Errno::SRCH) => {} // its end is found otherwise
                Err(error) => {
                    return Err(io::Error::other(format!("cannot set the limit {resource:?} to {value}: {error}")));
                }
            }
        }
    }
    Ok(())
}

/// Other systems have no such limits.
#[cfg(not(target_os = "linux"))]
fn limit(_child: &Process, _limits: &ResourceLimits) -> io::Result<()> {
    Ok(())
}

/// The start time of a process that has not ended, in clock ticks after the boot (`proc(5)`, field 22 of
/// `/proc/pid/stat`).
#[cfg(target_os = "linux")]
fn start_time(pid: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, the program's name in brackets, may contain blanks and brackets.
    let (_, after_name) = line.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn start_time(_pid: u32) -> Option<u64> {
    None
}

/// Whether the process runs, and no later one has its id. Always false where start times are not known.
pub(crate) fn is_running(id: ProcessId) -> bool {
    start_time(id.pid) == Some(id.start_time)
}

/// The process with this token in its environment, which an activator has started without recording its id.
#[cfg(target_os = "linux")]
pub(crate) fn find_by_token(token: &str) -> Option<ProcessId> {
    let entry = format!("{}={token}", spandrel::services::activation::TOKEN_VARIABLE);
    let mut processes: Vec<ProcessId> = Vec::new();
    for folder in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = folder.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let environment = std::fs::read(folder.path().join("environ")).unwrap_or_default();
        if environment.split(|octet| *octet == 0).any(|variable| variable == entry.as_bytes())
            && let Some(start_time) = start_time(pid)
        {
            processes.push(ProcessId { pid, start_time });
        }
    }
    // Its descendants may have the variable, too; they are younger.
    processes.into_iter().min_by_key(|id| (id.start_time, id.pid))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn find_by_token(_token: &str) -> Option<ProcessId> {
    None
}

/// Signals the group of a process that is no child: SIGKILL, or SIGTERM.
#[cfg(unix)]
fn signal_adopted(id: ProcessId, kills: bool) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process_group};

    if !is_running(id) {
        return Ok(());
    }
    let Some(pid) = Pid::from_raw(id.pid.cast_signed()) else { return Ok(()) };
    Ok(kill_process_group(pid, if kills { Signal::KILL } else { Signal::TERM })?)
}

#[cfg(not(unix))]
fn signal_adopted(_id: ProcessId, _kills: bool) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_id() {
        let pid = std::process::id();
        let id = ProcessId { pid, start_time: start_time(pid).unwrap() };
        assert!(is_running(id));
        assert!(!is_running(ProcessId { start_time: id.start_time + 1, ..id }));
    }

    #[test]
    fn a_process_without_a_recorded_id_is_found_by_its_token() {
        let token = format!("token-of-a-test-in-{}", std::process::id());
        let mut command = StdCommand::new("sleep");
        command.arg("600").env(spandrel::services::activation::TOKEN_VARIABLE, &token);
        let mut child = spandrel_test_support::ChildProcess::start(&mut command);
        // The kernel lets the parent go on shortly before the environment of the child can be read.
        let limit = Instant::now() + Duration::from_secs(20);
        let mut process_id = None;
        while process_id.is_none() && Instant::now() < limit {
            process_id = find_by_token(&token);
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process_id.map(|id| id.pid), Some(child.id()));
        assert_eq!(find_by_token(&token), None, "a process that has ended");
    }
}
