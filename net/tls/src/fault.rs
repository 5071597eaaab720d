//! Why a stream does not go on, in a form that can be told again and again.

use std::io;

/// Why a stream, or one direction of it, is at its end.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// TLS refused what the peer sent, or the peer refused us.
    Protocol(rustls::Error),
    /// The stream below failed.
    Below { os: Option<i32>, kind: io::ErrorKind },
    /// The stream below ended while TLS had not.
    Truncated,
    /// The stream below ended in the middle of the handshake.
    EndedEarly,
    /// The handshake took too long.
    Late,
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
                "the connection ended without the peer's leave (close_notify); something may be missing",
            ),
            Fault::EndedEarly => {
                Self::new(io::ErrorKind::UnexpectedEof, "the connection ended in the middle of the TLS handshake")
            }
            Fault::Late => Self::new(io::ErrorKind::TimedOut, "the TLS handshake took too long"),
        }
    }
}

/// What TLS says of an error that a stream or an attempt to connect gave, if it has to do with TLS: for instance
/// [`rustls::Error::InvalidCertificate`] when we do not trust the peer, [`rustls::Error::AlertReceived`] when it refuses us.
///
/// Such errors are of the kind [`io::ErrorKind::InvalidData`].
#[must_use]
pub fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
