//! The failure of a stream, in a form that can be reported repeatedly.

use std::io;

/// The reason why a stream, or one direction of it, has ended.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// TLS rejected the peer's octets, or the peer sent an alert.
    Protocol(rustls::Error),
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
            Fault::Protocol(error) => Self::new(io::ErrorKind::InvalidData, error),
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

/// The TLS error inside an error of a stream or a connection attempt, if any: for instance
/// [`rustls::Error::InvalidCertificate`] when this side does not trust the peer,
/// [`rustls::Error::AlertReceived`] when the peer rejects this side.
///
/// Such errors are of the kind [`io::ErrorKind::InvalidData`].
#[must_use]
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
