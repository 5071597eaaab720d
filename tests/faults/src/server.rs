//! The server's process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use spandrel_test_support::ChildProcess;

use crate::TIMEOUT;

/// A server in its own process.
pub struct Server {
    process: ChildProcess,
    /// The stringified reference of its object.
    pub reference: String,
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub journal: PathBuf,
    pub gate: SocketAddr,
    /// Whether servants reply from other threads.
    pub asynchronous: bool,
    /// The options of its ORB.
    pub options: Vec<String>,
}

/// The path of one of this crate's programs: the folder of this program or, for tests, its parent folder.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2);
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let found = folders.map(|folder| folder.join(&file)).find(|program| program.is_file());
    found.with_context(|| format!("{name} is not built: `cargo build -p spandrel-faults`"))
}

impl Server {
    pub fn start(configuration: &Configuration) -> Result<Self> {
        Self::start_with(Command::new(program("faults-server")?), configuration)
    }

    /// Starts the server with a command that receives the arguments.
    pub fn start_with(mut command: Command, configuration: &Configuration) -> Result<Self> {
        let kind = if configuration.asynchronous { "asynchronous" } else { "synchronous" };
        command.arg(&configuration.journal).arg(configuration.gate.to_string()).arg(kind).args(&configuration.options);
        let mut process = ChildProcess::try_start(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let mut reference = String::new();
        BufReader::new(process.stdout.take().context("the stream is piped")?).read_line(&mut reference)?;
        ensure!(!reference.is_empty(), "the server does not listen");
        Ok(Self { process, reference: reference.trim().to_owned() })
    }

    /// Kills the process with SIGKILL, and waits for its exit.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Shuts the server down in an orderly way, and waits for its exit.
    pub fn finish(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "the server exited with {status}");
                return Ok(());
            }
            ensure!(start.elapsed() < TIMEOUT, "the server does not exit");
            std::thread::yield_now();
        }
    }

    /// The number of its open descriptors after its last client has left, for a server without clients so far: the first
    /// connection starts the monitor of long upcalls, which keeps an epoll instance and its notification.
    pub fn descriptors_without_clients(&self) -> Option<usize> {
        const UPCALL_MONITOR: usize = 2;
        Some(self.descriptors()? + UPCALL_MONITOR)
    }

    /// The number of its open descriptors; `None` if the system does not report it.
    pub fn descriptors(&self) -> Option<usize> {
        Some(Path::new("/proc").join(self.process.id().to_string()).join("fd").read_dir().ok()?.count())
    }
}
