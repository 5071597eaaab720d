//! The server's process, and its successors.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::LONG;

/// A server in a process of its own.
pub struct Server {
    process: Child,
    /// Its object.
    pub reference: String,
}

/// How servers are started.
#[derive(Clone, Debug)]
pub struct Arrangement {
    pub journal: PathBuf,
    pub gate: SocketAddr,
    /// Servants answer from other threads.
    pub asynchronous: bool,
    /// Options of its ORB.
    pub options: Vec<String>,
}

/// One of this crate's programs: beside this one, or one folder above, where tests lie.
pub fn program(name: &str) -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folders = here.ancestors().skip(1).take(2);
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let found = folders.map(|folder| folder.join(&file)).find(|program| program.is_file());
    found.with_context(|| format!("{name} is not built: `cargo build -p spandrel-faults`"))
}

impl Server {
    pub fn start(arrangement: &Arrangement) -> Result<Self> {
        Self::start_by(Command::new(program("faults-server")?), arrangement)
    }

    /// The same, by a command that goes on with these arguments.
    pub fn start_by(mut command: Command, arrangement: &Arrangement) -> Result<Self> {
        let kind = if arrangement.asynchronous { "asynchronous" } else { "synchronous" };
        command.arg(&arrangement.journal).arg(arrangement.gate.to_string()).arg(kind).args(&arrangement.options);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut reference = String::new();
        BufReader::new(process.stdout.take().context("it is piped")?).read_line(&mut reference)?;
        ensure!(!reference.is_empty(), "the server has not begun to listen");
        Ok(Self { process, reference: reference.trim().to_owned() })
    }

    /// As `kill -9` does; it is gone on return.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Lets it finish what it does, and end.
    pub fn finish(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        let begun = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "the server ended with {status}");
                return Ok(());
            }
            ensure!(begun.elapsed() < LONG, "the server does not end");
            std::thread::yield_now();
        }
    }

    /// The descriptors that it has open as soon as its last client has left, if it has had none yet: the monitor of long upcalls starts
    /// with the first connection, and keeps an epoll instance and its notification.
    pub fn descriptors_without_clients(&self) -> Option<usize> {
        const UPCALL_MONITOR: usize = 2;
        Some(self.descriptors()? + UPCALL_MONITOR)
    }

    /// How many descriptors it has open; none if this system does not tell.
    pub fn descriptors(&self) -> Option<usize> {
        Some(Path::new("/proc").join(self.process.id().to_string()).join("fd").read_dir().ok()?.count())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for one that has ended.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
