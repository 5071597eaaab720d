//! Output of executables: `println!` and `eprintln!` panic if their reader is gone or their device is full.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::escape_lines;

/// Whether a write to standard output has found no reader.
static HAS_NO_READER: AtomicBool = AtomicBool::new(false);

/// Whether the reader of standard output is gone, as [`print()`] has found out: a command that prints without an end may end.
#[must_use]
pub fn has_no_reader() -> bool {
    HAS_NO_READER.load(Ordering::Relaxed)
}

/// Prints lines or JSON to standard output, [escaped](escape_lines), and flushes it. A closed reader, such as `head`, is no
/// error.
///
/// # Errors
/// Standard output that cannot be written, such as a file on a full device. The text names standard output and the reason.
pub fn print(text: &str) -> io::Result<()> {
    write_to(io::stdout().lock(), escape_lines(text).as_bytes())
}

/// Prints a remark or an error to standard error, [escaped](escape_lines). If it cannot be written, there is no other place
/// to tell it.
pub fn remark(text: &str) {
    _ = io::stderr().write_all(escape_lines(text).as_bytes());
}

fn write_to(mut output: impl io::Write, octets: &[u8]) -> io::Result<()> {
    unless_closed(output.write_all(octets).and_then(|()| output.flush()))
}

fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            HAS_NO_READER.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Parses the command line. Prints help, the version and errors of usage, and then ends the process: see [`end_with`].
///
/// A request of a shell for completions, with the environment variable `COMPLETE` and the words of a command line behind
/// `--`, is answered instead. `spandrel` passes on those for its executables.
#[cfg(feature = "clap")]
#[must_use]
pub fn parse<A: clap::Parser>() -> A {
    // The variable alone does not keep a service from starting.
    if std::env::args_os().nth(1).is_some_and(|word| word == "--") {
        clap_complete::CompleteEnv::with_factory(A::command).complete();
    }
    A::try_parse().unwrap_or_else(|error| end_with(&error))
}

/// Prints help, the version or an error of usage, as the parser of the command line returns them, and ends
/// the process: with 0 after help and version, with 2 after an error of usage, with 1 if standard output
/// cannot be written.
///
/// An error of a number says what was expected, in place of the text of Rust's parser.
#[cfg(feature = "clap")]
pub fn end_with(error: &clap::Error) -> ! {
    if let Some(text) = number_error(error) {
        remark(&text);
        std::process::exit(error.exit_code())
    }
    let printed = unless_closed(error.print().and_then(|()| io::stdout().flush()));
    if let (Err(reason), false) = (printed, error.use_stderr()) {
        remark(&format!("error: {reason}\n"));
        std::process::exit(1)
    }
    std::process::exit(error.exit_code())
}

/// The text of an error that is one of Rust's parsers of numbers.
#[cfg(feature = "clap")]
fn number_error(error: &clap::Error) -> Option<String> {
    use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

    let source = std::error::Error::source(error)?;
    let reason = match source.downcast_ref().map(ParseIntError::kind) {
        Some(IntErrorKind::PosOverflow) => "the number is too large",
        Some(IntErrorKind::NegOverflow) => "the number is too small",
        Some(_) => "expected a whole number",
        None => source.is::<ParseFloatError>().then_some("expected a number")?,
    };
    Some(error.render().to_string().replace(&source.to_string(), reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl io::Write for Failing {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_reader_is_no_error_and_a_full_device_is() {
        assert!(write_to(Failing(io::ErrorKind::BrokenPipe), b"text").is_ok());
        let error = write_to(Failing(io::ErrorKind::StorageFull), b"text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write to standard output: "), "{error}");
    }

    #[test]
    #[cfg(feature = "clap")]
    fn errors_of_numbers_say_what_is_expected() {
        use clap::{Arg, Command, value_parser};

        let command = Command::new("x")
            .arg(Arg::new("n").long("n").value_parser(value_parser!(u64)))
            .arg(Arg::new("r").long("r").value_parser(value_parser!(u16).range(1..)))
            .arg(Arg::new("f").long("f").value_parser(value_parser!(f64)));
        for (words, expected) in [
            (["x", "--n", "x"], "'x' for '--n <n>': expected a whole number"),
            (["x", "--n", "99999999999999999999"], "'--n <n>': the number is too large"),
            (["x", "--n", ""], "'' for '--n <n>': expected a whole number"),
            (["x", "--r", "x"], "'x' for '--r <r>': expected a whole number"),
            (["x", "--r", "0"], "0 is not in 1..=65535"),
            (["x", "--f", "x"], "'x' for '--f <f>': expected a number"),
        ] {
            let error = command.clone().try_get_matches_from(words).unwrap_err();
            let text = number_error(&error).unwrap_or_else(|| error.to_string());
            assert!(text.contains(expected), "{words:?}: {text}");
        }
    }
}
