//! Child processes of tests.

use std::io::{self, Read};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{self, Child, Command, Output};
use std::thread;
use std::time::Duration;

/// A child process of a test. It is killed and reaped when this is dropped, also if the test fails.
///
/// Its pipes are closed before, so that a process ends which its child has started, and which ends with its input.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    /// Whether it leads a process group, which is killed with it.
    #[cfg(unix)]
    leads_group: bool,
}

impl ChildProcess {
    /// Starts a process that ends with this value.
    ///
    /// # Panics
    /// If the program cannot be run.
    #[must_use]
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"))
    }

    /// Starts a process whose program may be absent.
    ///
    /// # Errors
    /// If the program cannot be run.
    pub fn try_start(command: &mut Command) -> io::Result<Self> {
        Ok(Self {
            child: command.spawn()?,
            #[cfg(unix)]
            leads_group: false,
        })
    }

    /// Starts a process with a process group of its own: the processes that it starts are killed with it.
    ///
    /// # Errors
    /// If the program cannot be run.
    #[cfg(unix)]
    pub fn try_start_group(command: &mut Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt as _;
        Ok(Self { child: command.process_group(0).spawn()?, leads_group: true })
    }

    /// Waits for the end of the process, and for the end of its output, as [`Child::wait_with_output`] does.
    ///
    /// # Panics
    /// If its output cannot be read.
    #[must_use]
    pub fn wait_with_output(mut self) -> Output {
        fn all(mut stream: impl Read) -> Vec<u8> {
            let mut octets = Vec::new();
            stream.read_to_end(&mut octets).expect("the output of a child can be read");
            octets
        }

        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (stdout, stderr) = thread::scope(|scope| {
            let stderr = scope.spawn(|| stderr.map(all).unwrap_or_default());
            (stdout.map(all).unwrap_or_default(), stderr.join().expect("the output of a child can be read"))
        });
        Output { status: self.wait().expect("a child can be waited for"), stdout, stderr }
    }
}

/// Ends this process when the folder no longer exists.
///
/// For the child of a child: if a test kills the process in between, or fails, no process ends it. The temporary
/// folder of a test is removed at its end, also if it fails.
pub fn exit_without(folder: &Path) {
    let folder = folder.to_owned();
    thread::spawn(move || {
        while folder.exists() {
            thread::sleep(Duration::from_millis(100));
        }
        process::exit(1);
    });
}

impl Deref for ChildProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for ChildProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        drop((self.stdin.take(), self.stdout.take(), self.stderr.take()));
        // Both fail only for a process that has ended.
        #[cfg(unix)]
        if self.leads_group {
            _ = rustix::process::kill_process_group(
                rustix::process::Pid::from_child(&self.child),
                rustix::process::Signal::KILL,
            );
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    use rustix::process::{Pid, test_kill_process};

    use super::*;
    use crate::wait_until;

    /// A shell with these commands, and the first number that it prints: the id of a process.
    fn shell(commands: &str, start: fn(&mut Command) -> io::Result<ChildProcess>) -> (ChildProcess, Pid) {
        let mut command = Command::new("sh");
        let mut shell = start(command.args(["-c", commands]).stdin(Stdio::piped()).stdout(Stdio::piped())).unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (shell, Pid::from_raw(line.trim().parse().unwrap()).unwrap())
    }

    fn is_gone(pid: Pid) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        test_kill_process(pid).is_err() || stat.contains(") Z ")
    }

    #[test]
    fn a_child_ends_with_a_failed_test() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let test = thread::spawn(move || {
            let (_child, pid) = shell("echo $$; exec sleep 600", ChildProcess::try_start);
            sender.send(pid).unwrap();
            std::panic::resume_unwind(Box::new("the test fails"));
        });
        assert!(test.join().is_err());
        assert!(is_gone(receiver.recv().unwrap()));
    }

    #[test]
    fn the_group_of_a_child_ends_with_it() {
        let (child, grandchild) = shell("sleep 600 & echo $!; wait", ChildProcess::try_start_group);
        assert!(!is_gone(grandchild));
        drop(child);
        wait_until("the end of the grandchild", || is_gone(grandchild));
    }

    #[test]
    fn all_output_of_a_child_is_returned() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; head -c 200000 /dev/zero >&2; exit 3"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = ChildProcess::start(&mut command);
        io::Write::write_all(child.stdin.as_mut().unwrap(), b"text").unwrap();
        let output = child.wait_with_output();
        assert_eq!((output.status.code(), &*output.stdout, output.stderr.len()), (Some(3), &b"text"[..], 200_000));
    }
}
