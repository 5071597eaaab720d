//! A naming service in this process, and agents in processes of their own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use spandrel::{Endpoint, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_orchestra::idl::orchestra::{Harness, WorkTeam};
use spandrel_orchestra::names::{self, Names};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, check_output_errors, holds_within};

use crate::server;

/// The executable under test.
pub(crate) fn orchestra() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-orchestra"));
    command.env_remove("SPANDREL_LOG").env_remove("NOTIFY_SOCKET");
    command
}

/// A naming service, and a folder for files.
pub(crate) struct Site {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) orb: Orb,
    pub(crate) naming: String,
    pub(crate) service: NamingService,
}

impl Site {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let service = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
        let port = orb.listen().unwrap()[0].1;
        let naming = format!("corbaloc::127.0.0.1:{port}/NameService");
        Self { folder, orb, naming, service }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        // Readable by its owner alone, as a private key has to be.
        let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path
    }

    /// A program of these commands of the shell.
    pub(crate) fn program(&self, name: &str, commands: &str) -> PathBuf {
        server::executable(&self.path(name), &format!("#!/bin/sh\n{commands}\n"))
    }

    /// The configuration of an agent with the command `test`; `more` stands at its beginning.
    pub(crate) fn config(&self, host: &str, more: &str) -> PathBuf {
        let program = server::program(self.folder.path());
        let text = format!(
            "{more}\n[commands.test]\nprogram = '{}'\narchitectures = [\"steady\", \"pool\", \"fails\", \"dies\"]\n\
             version = [\"--version\"]\nmax_workers = 16\n",
            program.display()
        );
        self.write(&format!("{host}.toml"), &text)
    }

    /// An agent without TLS.
    pub(crate) fn agent(&self, host: &str) -> Agent {
        let config = self.config(host, "max_workers = 100");
        Agent::start(self, host, orchestra().args(["agent", "--insecure", "--commands"]).arg(config))
    }

    pub(crate) fn harness(&self, host: &str) -> Harness {
        let names = Names::at(&self.orb, &self.naming).unwrap();
        Harness::narrow(&names.resolve(&names::harness(host)).unwrap()).unwrap()
    }

    pub(crate) fn team(&self, host: &str) -> WorkTeam {
        let names = Names::at(&self.orb, &self.naming).unwrap();
        WorkTeam::narrow(&names.resolve(&names::work_team(host)).unwrap()).unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        _ = self.orb.shutdown();
    }
}

/// A running agent, which is killed when dropped.
pub(crate) struct Agent {
    process: ChildProcess,
    errors: PathBuf,
}

impl Agent {
    pub(crate) fn start(site: &Site, host: &str, command: &mut Command) -> Self {
        let errors = site.path(&format!("{host}.errors"));
        command.args(["--host", host, "--naming", &site.naming]);
        command.stdout(Stdio::piped()).stderr(File::create(&errors).unwrap());
        let mut process = ChildProcess::start(command);
        let lines: Vec<String> =
            BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok).take(2).collect();
        let expected = [
            format!("ready: /orchestrator/servers/{host}/Harness"),
            format!("ready: /orchestrator/clients/{host}/WorkTeam"),
        ];
        assert_eq!(lines, expected, "{}", fs::read_to_string(&errors).unwrap());
        Self { process, errors }
    }

    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it as `kill` of the shell does, and returns its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        let process = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

/// Its servers end with it, unless a test has killed it.
impl Drop for Agent {
    fn drop(&mut self) {
        let process = rustix::process::Pid::from_child(&self.process);
        if let Ok(None) = self.process.try_wait()
            && rustix::process::kill_process(process, rustix::process::Signal::TERM).is_ok()
        {
            _ = holds_within(TEST_TIMEOUT, || !matches!(self.process.try_wait(), Ok(None)));
        }
    }
}

/// Whether an interruption of a supervisor takes less time than the wait of one of its calls, five seconds. A busy
/// machine may delay some of the attempts.
pub(crate) fn is_sooner_than_a_wait(interruption: impl Fn() -> Duration) -> bool {
    (0..3).any(|_| interruption() < Duration::from_secs(4))
}

/// Runs a command to its end.
pub(crate) fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// The text of both streams, for messages of tests.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The records of this kind in a file of results.
pub(crate) fn records(file: &Path, kind: &str) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    lines.filter(|record| record["record"] == kind).collect()
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for words in [&["--help"][..], &["run", "--help"], &["--version"]] {
        check_output_errors(|| {
            let mut command = orchestra();
            command.args(words);
            command
        });
    }
}
