//! Child processes that outlive neither their deadline nor their parent.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A child with its standard input kept open and its output read; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Bounded {
    name: String,
    child: Child,
    lines: Receiver<String>,
    stderr_lines: Receiver<String>,
}

impl Bounded {
    /// Starts the command.
    pub(crate) fn start(name: &str, command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {name} ({command:?})"))?;
        let lines = forward(child.stdout.take().expect("it is piped"));
        let stderr_lines = forward(child.stderr.take().expect("it is piped"));
        Ok(Self { name: name.to_owned(), child, lines, stderr_lines })
    }

    /// Writes a line to its standard input.
    pub(crate) fn send(&mut self, line: &str) -> Result<()> {
        let input = self.child.stdin.as_mut().expect("it is open until `finish`");
        writeln!(input, "{line}").with_context(|| format!("{} takes no input", self.name))
    }

    /// The next line of output, which must come before `deadline`; `None` at the end of the output.
    pub(crate) fn line(&self, deadline: Instant) -> Result<Option<String>> {
        self.next(&self.lines, deadline)
    }

    fn next(&self, lines: &Receiver<String>, deadline: Instant) -> Result<Option<String>> {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("{} took too long and was killed", self.name),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line on standard error, which must come before `deadline`; `None` at its end.
    pub(crate) fn stderr_line(&self, deadline: Instant) -> Result<Option<String>> {
        self.next(&self.stderr_lines, deadline)
    }

    /// All lines so far on standard error.
    pub(crate) fn stderr(&self) -> String {
        // A child that has just ended may have left its last lines in the pipe.
        let mut all = String::new();
        while let Ok(line) = self.stderr_lines.recv_timeout(Duration::from_millis(100)) {
            all += &line;
            all.push('\n');
        }
        all
    }

    /// Closes its standard input.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Closes its standard input and waits for its exit.
    pub(crate) fn finish(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.close_stdin();
        let deadline = Instant::now() + limit;
        while self.line(deadline)?.is_some() {}
        // The end of its output means that it is about to exit, or has exited.
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(2));
        }
        bail!("{} did not exit", self.name)
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        // Both fail only for a child that has exited and been waited for.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Reads lines in a thread of its own, which ends with the stream.
fn forward(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut octets = Vec::new();
        while reader.read_until(b'\n', &mut octets).is_ok_and(|n| n > 0) {
            let line = String::from_utf8_lossy(octets.trim_ascii_end()).into_owned();
            if sender.send(line).is_err() {
                return;
            }
            octets.clear();
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_and_the_exit_status_is_returned() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two; echo no >&2; exit 3"]);
        let mut child = Bounded::start("sh", &mut command).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        assert_eq!(child.line(deadline).unwrap().as_deref(), Some("one"));
        assert_eq!(child.line(deadline).unwrap().as_deref(), Some("two"));
        assert_eq!(child.line(deadline).unwrap(), None);
        assert_eq!(child.stderr(), "no\n");
        assert_eq!(child.finish(Duration::from_secs(10)).unwrap().code(), Some(3));
    }

    #[test]
    fn a_hanging_child_is_killed_at_its_deadline() {
        // Without a shell, whose child would remain.
        let child = Bounded::start("sleep", Command::new("sleep").arg("1000")).unwrap();
        let error = child.line(Instant::now() + Duration::from_millis(20)).unwrap_err();
        assert!(error.to_string().contains("took too long"), "{error}");
    }
}
