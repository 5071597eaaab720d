//! The failure of a stream, in a form that can be reported repeatedly.

use std::error::Error;
use std::{fmt, io};

use rustls::Side;

/// The reason why a stream, or one direction of it, has ended.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// TLS rejected the peer's octets, or the peer sent an alert.
    Protocol { error: rustls::Error, meaning: Option<&'static str> },
    /// The underlying stream failed.
    Below { os: Option<i32>, kind: io::ErrorKind },
    /// The underlying stream ended without `close_notify`.
    Truncated,
    /// The underlying stream ended in the middle of the handshake.
    EndedEarly,
    /// The handshake timed out.
    HandshakeTimeout,
}

impl Fault {
    pub(crate) fn below(error: &io::Error) -> Self {
        Self::Below { os: error.raw_os_error(), kind: error.kind() }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Protocol { error, meaning: None } => Self::new(io::ErrorKind::InvalidData, error),
            Fault::Protocol { error, meaning: Some(meaning) } => {
                Self::new(io::ErrorKind::InvalidData, ExplainedError { meaning, error })
            }
            Fault::Below { os: Some(code), .. } => Self::from_raw_os_error(code),
            Fault::Below { os: None, kind } => kind.into(),
            Fault::Truncated => Self::new(
                io::ErrorKind::UnexpectedEof,
                "the connection ended without close_notify; octets may be missing",
            ),
            Fault::EndedEarly => {
                Self::new(io::ErrorKind::UnexpectedEof, "the connection ended in the middle of the TLS handshake")
            }
            Fault::HandshakeTimeout => Self::new(io::ErrorKind::TimedOut, "the TLS handshake timed out"),
        }
    }
}

/// The meaning of a TLS error for the side that reports it, with the remedy; `None` adds nothing to the error.
///
/// An alert ([`rustls::Error::AlertReceived`]) is the peer's reason for which it rejects this side.
pub type Explain = fn(Side, &rustls::Error) -> Option<&'static str>;

/// A TLS error with its meaning in the words of the program.
#[derive(Debug)]
struct ExplainedError {
    meaning: &'static str,
    error: rustls::Error,
}

impl fmt::Display for ExplainedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.meaning, self.error) // in one line, for logs
    }
}

impl Error for ExplainedError {}

/// The TLS error inside an error of a stream or a connection attempt, if any: for instance
/// [`rustls::Error::InvalidCertificate`] when this side does not trust the peer,
/// [`rustls::Error::AlertReceived`] when the peer rejects this side.
///
/// Such errors are of the kind [`io::ErrorKind::InvalidData`].
#[must_use]
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<ExplainedError>() {
        Some(explained) => Some(&explained.error),
        None => inner.downcast_ref(),
    }
}
