//! The programs of `peers/servers`, and ours: their builds, and running servers.

use std::cell::OnceCell;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use xtask::workspace;

use crate::bounded::Bounded;
use crate::builds::{self, Profile};
use crate::packages;
use crate::windows::{self, wine::Wine};

/// The time for a start, of which a Java machine and Wine need most.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// The time in which a server has to end.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// A program that offers the service in several architectures.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) needs: &'static [&'static str],
    pub(super) build: Build,
    /// The executable, below the folder of its builds.
    pub(super) file: &'static str,
    pub(super) platform: Platform,
    /// Whether a connection may carry several requests, one after the other.
    pub(super) serves_many_requests: bool,
    /// Whether `--until-stdin-closes` exists.
    pub(super) ends_with_stdin: bool,
    /// The mechanism that waits (`--backend`), for further rows of another program's architectures.
    pub(super) backend: Option<&'static str>,
    /// The names that `--list` prints, in its order; with a back end, those that are measured with it.
    pub(super) architectures: &'static [&'static str],
}

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Build {
    /// By `make`, in its folder of `peers/servers`.
    Make,
    /// By Cargo, for its platform: the package.
    Cargo(&'static str),
}

/// The system that a program is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    Posix,
    /// It runs under Wine, and has no SIGTERM.
    Windows,
}

/// The folder of builds, and the instance of Wine, which starts when it is first needed.
#[derive(Debug)]
pub(super) struct Environment {
    folder: PathBuf,
    profile: Profile,
    wine: OnceCell<Wine>,
}

impl Environment {
    pub(super) fn new(folder: PathBuf, profile: Profile) -> Self {
        Self { folder, profile, wine: OnceCell::new() }
    }

    fn wine(&self) -> Result<&Wine> {
        if self.wine.get().is_none() {
            let wine = Wine::start(&windows_folder()?)?;
            self.wine.set(wine).expect("it is empty");
        }
        Ok(self.wine.get().expect("it is set"))
    }
}

/// The folder of the instance of Wine, and of its copies.
pub(super) fn windows_folder() -> Result<PathBuf> {
    let folder = std::path::absolute(workspace::target().join("windows"))?;
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

impl Program {
    /// Checks that the tools of its build and its run are available, and installs them where that is
    /// permitted.
    pub(super) fn require(&self) -> Result<()> {
        packages::require(self.needs)
    }

    /// Builds it, if its sources are newer.
    pub(super) fn build(&self, environment: &Environment) -> Result<()> {
        if let Build::Cargo(package) = self.build {
            if !self.is_for_windows() {
                return environment.profile.build(&[(package, self.file)]);
            }
            builds::require_target(windows::TARGET)?;
            let program = self.file.trim_end_matches(".exe");
            let mut build = Command::new(workspace::cargo_program());
            build.args(["build", "--quiet", "--package", package, "--bin", program, "--target", windows::TARGET]);
            build.args(environment.profile.cargo_arguments()).current_dir(workspace::root());
            // As the tests for Windows are built, which have no wrapper of the compiler.
            return workspace::run(build.env_remove("RUSTC_WORKSPACE_WRAPPER"));
        }
        let mut make = Command::new("make");
        make.args(["--silent", "-C", &format!("peers/servers/{}", self.name)]);
        make.arg(format!("OUT={}", environment.folder.display())).current_dir(workspace::root());
        workspace::run(&mut make)
    }

    /// The options after the architecture that it always has.
    pub(super) fn options(&self) -> impl Iterator<Item = &'static str> {
        self.backend.into_iter().flat_map(|backend| ["--backend", backend])
    }

    /// Whether its architectures are ours.
    pub(super) fn is_ours(&self) -> bool {
        matches!(self.build, Build::Cargo(_))
    }

    /// Whether it runs under Wine.
    pub(super) fn is_for_windows(&self) -> bool {
        self.platform == Platform::Windows
    }

    /// A command that runs it.
    pub(super) fn command(&self, environment: &Environment) -> Result<Command> {
        let built = std::path::absolute(workspace::target())?;
        let folder = match (self.build, self.platform) {
            (Build::Make, _) => environment.folder.clone(),
            (Build::Cargo(_), Platform::Posix) => built.join(environment.profile.folder()),
            (Build::Cargo(_), Platform::Windows) => built.join(windows::TARGET).join(environment.profile.folder()),
        };
        let file = folder.join(self.file);
        Ok(match self.platform {
            Platform::Posix => Command::new(file),
            Platform::Windows => {
                let mut command = environment.wine()?.program(&file);
                if self.is_ours() {
                    // Rust's standard library needs a library that older releases of Wine lack.
                    command.env("WINEPATH", windows::build_shim(&windows_folder()?)?);
                }
                command
            }
        })
    }

    /// Runs it to its end; returns the exit status and the lines of standard output and standard error.
    pub(super) fn output(
        &self,
        environment: &Environment,
        words: &[&str],
    ) -> Result<(ExitStatus, Vec<String>, String)> {
        let mut child = Bounded::start(self.name, self.command(environment)?.args(words))?;
        let deadline = Instant::now() + START_TIMEOUT;
        let mut lines = Vec::new();
        while let Some(line) = child.line(deadline)? {
            lines.push(line);
        }
        Ok((child.finish(END_TIMEOUT)?, lines, child.stderr()))
    }

    /// Starts a server on a free port of the loopback interface.
    pub(super) fn start(&self, architecture: &str, options: &[&str], environment: &Environment) -> Result<Server> {
        let mut command = self.command(environment)?;
        command.arg(architecture).args(self.options()).args(options);
        let process = Bounded::start(&format!("{} {architecture}", self.name), &mut command)?;
        let line = process.line(Instant::now() + START_TIMEOUT)?;
        let line = line.with_context(|| format!("it ended without a line: {}", process.stderr().trim_end()))?;
        let address: Option<SocketAddr> = line.strip_prefix("listening ").and_then(|address| address.parse().ok());
        let address = address.with_context(|| format!("not `listening ADDRESS:PORT`: {line}"))?;
        ensure!(address.ip() == Ipv4Addr::LOCALHOST && address.port() != 0, "it listens on {address}");
        Ok(Server { address, process, platform: self.platform })
    }
}

/// A running server; dropping it ends its process.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    process: Bounded,
    platform: Platform,
}

impl Server {
    /// Ends it by SIGTERM, or on Windows by the end of its standard input. It must exit with status 0 without
    /// another line of output, and its children must be gone.
    pub(super) fn end(self) -> Result<()> {
        if self.platform == Platform::Windows {
            return self.end_by_stdin();
        }
        let descendants = descendants(self.process.id());
        workspace::run(Command::new("kill").arg("-TERM").arg(self.process.id().to_string()))?;
        self.conclude("after SIGTERM")?;
        for process in descendants {
            ensure!(!Path::new(&format!("/proc/{process}")).exists(), "its child {process} has not ended");
        }
        Ok(())
    }

    /// Ends it by the end of its standard input, for which it needs the option `--until-stdin-closes`.
    pub(super) fn end_by_stdin(mut self) -> Result<()> {
        self.process.close_stdin();
        self.conclude("after the end of its standard input")
    }

    fn conclude(mut self, occasion: &str) -> Result<()> {
        let deadline = Instant::now() + END_TIMEOUT;
        // The output also has an end only after all children have ended.
        if let Some(line) = self.process.line(deadline).with_context(|| format!("no end {occasion}"))? {
            bail!("another line of output: {line}");
        }
        let status = self.process.finish(END_TIMEOUT).with_context(|| format!("no end {occasion}"))?;
        ensure!(status.success(), "{status} {occasion}: {}", self.process.stderr().trim_end());
        let errors = self.process.stderr();
        ensure!(errors.is_empty(), "it printed errors: {}", errors.trim_end());
        Ok(())
    }

    /// Waits until none of its children is a zombie.
    pub(super) fn await_reaped_children(&self) -> Result<()> {
        let deadline = Instant::now() + END_TIMEOUT;
        while let Some(zombie) = descendants(self.process.id()).into_iter().find(|process| is_zombie(*process)) {
            ensure!(Instant::now() < deadline, "child {zombie} is a zombie");
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// The processes below this one; empty where `/proc` does not list children.
fn descendants(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let below: Vec<u32> = children.iter().flat_map(|child| descendants(*child)).collect();
    [children, below].concat()
}

fn is_zombie(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_that_has_ended_is_a_zombie_until_its_parent_waits() {
        let mut child = Command::new("true").spawn().unwrap();
        let own = std::process::id();
        // The thread that has started it is another one than the process's first.
        let stat = format!("/proc/{}/stat", child.id());
        while !is_zombie(child.id()) {
            assert!(Path::new(&stat).exists());
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(!is_zombie(child.id()) && !is_zombie(own));
    }

    #[cfg(unix)] // the server is a script
    #[test]
    fn a_server_with_another_first_line_is_an_error() {
        use super::super::table::PROGRAMS;

        let folder = tempfile::tempdir().unwrap();
        let program = PROGRAMS.iter().find(|program| program.build == Build::Make).unwrap();
        let file = folder.path().join(program.file);
        fs::write(&file, "#!/bin/sh\necho \"$1\"\n").unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&file, executable).unwrap();
        let environment = Environment::new(folder.path().to_owned(), Profile::Dev);
        let start = |word: &str| program.start(word, &[], &environment);
        assert_eq!(start("listening 127.0.0.1:80").unwrap().address.port(), 80);
        for line in ["listening 127.0.0.1:0", "listening 10.0.0.1:80", "listening", "ready"] {
            assert!(start(line).is_err(), "{line}");
        }
    }
}
