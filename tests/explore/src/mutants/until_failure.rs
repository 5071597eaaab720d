//! The runner of test programs: one failed test suffices to catch a mutant.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// The memory that a test program may map, in KiB: a mutated loop may allocate without end.
const MEMORY_LIMIT: u32 = 8 << 20;

/// Runs a test program in limited memory, copies its output, and ends it once a test has failed.
///
/// # Errors
/// A failed test; a program that cannot be started, or fails otherwise.
pub(crate) fn run_until_failure(command: &[OsString], mut copy: impl Write) -> Result<()> {
    let program = command.first().context("expected a test program")?.display();
    let limited = format!("ulimit -v {MEMORY_LIMIT} && exec \"$0\" \"$@\"");
    let child = Command::new("sh").arg("-c").arg(limited).args(command).stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start {program}"))?;
    let output = child.stdout.take().context("the program has an output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        copy.write_all(&[&line, &b"\n"[..]].concat())?;
        if is_failure(&line) {
            child.kill()?;
            child.wait()?;
            bail!("a test has failed");
        }
    }
    let status = child.wait()?;
    ensure!(status.success(), "{program} failed ({status})");
    Ok(())
}

/// Whether a line in the output of a test program reports a failed test.
fn is_failure(line: &[u8]) -> bool {
    line.starts_with(b"test ") && line.ends_with(b" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_program_is_ended_at_its_first_failed_test() {
        let mut copy = Vec::new();
        let mut run = |script: &str| run_until_failure(&["sh", "-c", script].map(OsString::from), &mut copy);
        let error = run("echo 'test a ... ok'; echo 'test b ... FAILED'; exec sleep 60").unwrap_err();
        assert_eq!(error.to_string(), "a test has failed");
        run("echo 'test a ... ok'; echo 'the word FAILED'").unwrap();
        run("test $(ulimit -v) = 8388608").unwrap();
        assert_eq!(run("exit 3").unwrap_err().to_string(), "sh failed (exit status: 3)");
        run_until_failure(&[], &mut copy).unwrap_err();
        let expected = "test a ... ok\ntest b ... FAILED\ntest a ... ok\nthe word FAILED\n";
        assert_eq!(String::from_utf8_lossy(&copy), expected);
    }
}
