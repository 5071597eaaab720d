//! A service process of a test.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use spandrel_test_support::{ChildProcess, wait_until};

pub(crate) fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel-up"));
    command.arg("--data").arg(data).env_remove("SPANDREL_LOG").env_remove("NOTIFY_SOCKET");
    command
}

/// A running process, which is killed when dropped. Its standard error is the file `errors` beside the data folder.
pub(crate) struct Running {
    pub(crate) process: ChildProcess,
    /// The URL that it printed first.
    pub(crate) url: String,
    errors: std::path::PathBuf,
}

impl Running {
    pub(crate) fn start(data: &Path, words: &[&str]) -> Self {
        Self::with(command(data).args(words), data)
    }

    pub(crate) fn with(command: &mut Command, data: &Path) -> Self {
        let errors = data.with_extension("errors");
        command.stdout(Stdio::piped()).stderr(File::create(&errors).unwrap());
        let mut process = ChildProcess::start(command);
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready: NameService ").map(str::to_owned);
        let url = url.unwrap_or_else(|| panic!("{line}{}", std::fs::read_to_string(&errors).unwrap()));
        Self { process, url, errors }
    }

    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap()
    }

    /// Waits for this text on standard error.
    pub(crate) fn wait_for_error(&self, text: &str) {
        wait_until(text, || self.errors().contains(text));
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}
