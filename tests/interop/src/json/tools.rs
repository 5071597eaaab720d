//! Spandrel's executables beside the running one, and requests by HTTP.

use std::env;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use spandrel_test_support::{http_exchange, http_request};

/// An executable in the folder of this one.
pub(super) fn executable(name: &str) -> Result<Command> {
    let this = env::current_exe()?;
    let path = this.parent().unwrap_or(Path::new(".")).join(name);
    ensure!(path.exists(), "{} is absent: cargo build --package {name}", path.display());
    Ok(Command::new(path))
}

/// The output of a command that ends. Its failure is an error only if it prints nothing.
pub(super) fn output(command: &mut Command, input: &str) -> Result<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("it has no input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let text = String::from_utf8(output.stdout)?;
    ensure!(!text.is_empty() || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// A running server, which is ended when it is dropped.
pub(super) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().context("it has no output")?;
        Ok(Self { child, lines: BufReader::new(output).lines() })
    }

    /// The URL behind `ready: NAME`, in the order in which they are printed.
    pub(super) fn url(&mut self, name: &str) -> Result<String> {
        for line in self.lines.by_ref() {
            let line = line?;
            if let Some((found, url)) = line.strip_prefix("ready: ").and_then(|rest| rest.split_once(' '))
                && found == name
            {
                return Ok(url.to_owned());
            }
        }
        anyhow::bail!("the server of {name} ended")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Sends a POST with a token; the answer's status and body.
pub(super) fn post(host: &str, path: &str, token: &str, body: &str) -> Result<(u16, String)> {
    let fields = format!("Host: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    let response = http_exchange(host, &http_request(&format!("POST {path}"), &fields, body))?;
    Ok((response.status, response.body))
}
