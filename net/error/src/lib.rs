//! The `Debug` form of errors: the message that `Display` prints, then each cause in a line of its own.
//!
//! A `main` that returns an error prints its `Debug` form, and so does `unwrap`. A derived one shows the fields of
//! the error instead of its message. [`debug_as_report!`] implements `Debug` in the form of [`report`].
//!
//! ```
//! #[derive(thiserror::Error)]
//! #[error("cannot read {path}")]
//! struct ReadError {
//!     path: String,
//!     source: std::io::Error,
//! }
//! spandrel_error::debug_as_report!(ReadError);
//!
//! let source = std::io::Error::other("the disk is gone");
//! let error = ReadError { path: "bank.ior".into(), source };
//! assert_eq!(format!("{error:?}"), "cannot read bank.ior\ncaused by: the disk is gone");
//! ```
//!
//! [`escape`] is the form in which messages, logs and programs show texts that others wrote. [`output`] has the functions
//! by which executables print.
#![forbid(unsafe_code)]

mod escape;
pub mod output;
mod suggest;

pub use escape::{Escaped, escape, escape_lines, excerpt};
use std::{error::Error, iter::successors};
pub use suggest::closest;

/// Returns the message of an error, and a line `caused by: …` for each of its causes.
///
/// A cause without a line of its own is one whose text already stands in the report. Many messages contain their
/// cause.
#[must_use]
pub fn report(error: &dyn Error) -> String {
    report_divided(error, "\ncaused by: ")
}

fn report_divided(error: &dyn Error, divider: &str) -> String {
    let mut report = error.to_string();
    for cause in successors(error.source(), |cause| (*cause).source()) {
        let text = cause.to_string();
        if !report.contains(&text) {
            report.push_str(divider);
            report.push_str(&text);
        }
    }
    report
}

/// Returns the message of an error and its causes in one line, divided by colons, for a message that contains them.
///
/// A cause is left out if its text already stands in the line, as in [`report`].
#[must_use]
pub fn report_in_line(error: &dyn Error) -> String {
    report_divided(error, ": ")
}

/// Implements `Debug` for error types as their [`report`].
#[macro_export]
macro_rules! debug_as_report {
    ($($error:ty),+ $(,)?) => {
        $(impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&$crate::report(self))
            }
        })+
    };
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    struct Chained(&'static str, Option<Box<Chained>>);
    debug_as_report!(Chained);

    impl fmt::Display for Chained {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Chained {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as _)
        }
    }

    fn chain(texts: &[&'static str]) -> Chained {
        Chained(texts[0], (texts.len() > 1).then(|| Box::new(chain(&texts[1..]))))
    }

    #[test]
    fn each_cause_has_a_line() {
        assert_eq!(
            format!("{:?}", chain(&["no call", "no connection", "refused"])),
            "no call\ncaused by: no connection\ncaused by: refused"
        );
        assert_eq!(format!("{:#?}", chain(&["no call"])), "no call");
    }

    #[test]
    fn a_line_has_all_causes() {
        assert_eq!(report_in_line(&chain(&["no call", "no connection", "refused"])), "no call: no connection: refused");
        assert_eq!(report_in_line(&chain(&["cannot read a", "cannot read a", "no file"])), "cannot read a: no file");
    }

    #[test]
    fn a_cause_that_the_message_contains_is_not_repeated() {
        assert_eq!(report(&chain(&["no call: refused", "refused", "port 1"])), "no call: refused\ncaused by: port 1");
    }

    #[test]
    fn a_main_that_returns_a_boxed_error_prints_the_report() {
        let boxed: Box<dyn Error> = Box::new(chain(&["no call", "refused"]));
        assert_eq!(format!("Error: {boxed:?}"), "Error: no call\ncaused by: refused");
    }
}
