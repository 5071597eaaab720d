//! Common parts of the tests of the command.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod bank;

use std::io::{BufRead, BufReader};
use std::process::{ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use spandrel_test_support::ChildProcess;

/// The time limit of a command; only a hang comes near it.
pub(crate) const LIMIT: Duration = Duration::from_secs(300);

/// Runs the command and waits for its end.
pub(crate) fn spandrel(args: &[&str]) -> Output {
    assert_cmd::Command::cargo_bin("spandrel").unwrap().args(args).timeout(LIMIT).output().unwrap()
}

/// Runs the command with octets as its standard input.
pub(crate) fn spandrel_with_input(args: &[&str], input: &str) -> Output {
    let mut command = assert_cmd::Command::cargo_bin("spandrel").unwrap();
    command.args(args).timeout(LIMIT).write_stdin(input).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Checks the exit code, and shows the output if it is another.
#[track_caller]
pub(crate) fn check_code(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "stdout:\n{}\nstderr:\n{}", stdout(output), stderr(output));
}

/// Checks that no line of an output has more than 100 columns.
#[track_caller]
pub(crate) fn check_width(text: &str) {
    let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
    assert!(widest.chars().count() <= 100, "{} columns: {widest}", widest.chars().count());
}

/// A running command; killed when this is dropped.
pub(crate) struct Running {
    child: ChildProcess,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = ChildProcess::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, input, lines }
    }

    /// The next line that it prints.
    pub(crate) fn line(&self) -> String {
        self.lines.recv_timeout(LIMIT).expect("the command prints a line")
    }

    /// Closes its standard input and waits for its end: the exit code, if it ends in time.
    pub(crate) fn finish(mut self) -> Option<i32> {
        self.input = None;
        // Its output ends when it does.
        while self.lines.recv_timeout(LIMIT).is_ok() {}
        self.child.wait().unwrap().code()
    }
}
