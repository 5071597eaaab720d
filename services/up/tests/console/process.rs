//! A service process with a console, and a plain HTTP client.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use spandrel_test_support::{ChildProcess, HttpResponse, http_exchange, http_request};

use crate::executable::ANY_PORT;
use crate::running::command;

/// A running process, which is killed when dropped.
pub(super) struct WithConsole {
    process: ChildProcess,
    /// The URL of the root context.
    pub(super) naming: String,
    /// The URL of the console with the token.
    pub(super) login: String,
    /// The console's address as `HOST:PORT`.
    pub(super) address: String,
    pub(super) token: String,
}

impl WithConsole {
    pub(super) fn start(data: &Path, words: &[&str]) -> Self {
        Self::at("127.0.0.1:0", data, words)
    }

    pub(super) fn at(address: &str, data: &Path, words: &[&str]) -> Self {
        let mut command = command(data);
        command.args(ANY_PORT).args(["--console", address]).args(words);
        let mut process = ChildProcess::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let (mut naming, mut login) = (String::new(), String::new());
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(url) = line.strip_prefix("ready: NameService ") {
                naming = url.to_owned();
            }
            if let Some(url) = line.strip_prefix("ready: Console ") {
                login = url.to_owned();
                break;
            }
        }
        let address = login.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("no console: {login}")).to_owned();
        let token = login.split_once("#token=").map(|(_, token)| token.to_owned()).unwrap_or_default();
        Self { process, naming, login, address, token }
    }

    /// Ends the process at once.
    pub(super) fn kill(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }

    /// Sends a request with these header lines; returns the response.
    pub(super) fn send(&self, request: &str, headers: &[String], body: &str) -> HttpResponse {
        let fields: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        http_exchange(&self.address, &http_request(request, &fields, body)).unwrap()
    }

    pub(super) fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    /// Sends a request of the page.
    pub(super) fn api(&self, request: &str, body: &str) -> (u16, Value) {
        let headers = [self.host(), format!("Authorization: Bearer {}", self.token)];
        let response = self.send(request, &headers, body);
        (response.status, response.json())
    }
}

/// A folder for the data, with its files.
pub(super) fn data() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    (folder, data)
}
