//! What carries octets: an `ipc` endpoint behind a small trait, so that connections need not know which family it is of.

use std::{
    fmt,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_cdr::Encoder;
#[cfg(feature = "asynchronous")]
use spandrel_ipc::Pollable;
use spandrel_ipc::{Receive, Shutdown, Transfer, Transmit};

/// A connected byte stream. All methods may be called from several threads; one reads and one writes at a time.
pub(crate) trait Transport: Send + Sync {
    /// Writes some of `octets`; the number written.
    fn send(&self, octets: &[u8]) -> io::Result<usize>;
    /// Writes some octets of several slices; the number written.
    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Writes as many octets of several slices as it takes without waiting; [`io::ErrorKind::WouldBlock`] if that is none.
    #[cfg(feature = "asynchronous")]
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Reads what is there, waiting for the first octet; 0 at the end.
    fn recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// Reads what is there; [`io::ErrorKind::WouldBlock`] if that is nothing.
    #[cfg(feature = "asynchronous")]
    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// How long `recv` may wait.
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// How long `send` may wait.
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// Tells the peer that nothing more will be written.
    fn close_writer(&self);
    /// Ends both directions; a blocked `recv` returns.
    fn close(&self);
    /// What a reactor waits on; `None` for one that no reactor can serve.
    #[cfg(feature = "asynchronous")]
    fn pollable(&self) -> Option<&dyn Pollable>;
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

/// The streams of every family.
impl<S: Transfer> Transport for S {
    #[inline]
    fn send(&self, octets: &[u8]) -> io::Result<usize> {
        Transmit::send(self, octets)
    }

    #[inline]
    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Transmit::send_v(self, parts)
    }

    #[inline]
    #[cfg(feature = "asynchronous")]
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Transmit::try_send_v(self, parts)
    }

    #[inline]
    fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        Receive::recv(self, room)
    }

    #[inline]
    #[cfg(feature = "asynchronous")]
    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        Receive::try_recv(self, room)
    }

    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Receive::set_recv_timeout(self, timeout)
    }

    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Transmit::set_send_timeout(self, timeout)
    }

    fn close_writer(&self) {
        // A peer that is gone already needs no telling.
        let _ = self.shutdown(Shutdown::Write);
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }

    #[cfg(feature = "asynchronous")]
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }
}

/// Writes a whole message, in one call if the transport takes it. `before` runs before each call.
///
/// An error means that its last octet was not accepted: the peer cannot have acted on it (design decision 9).
pub(crate) fn send_message(
    transport: &dyn Transport,
    message: &Encoder<'_>,
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    match message.contiguous() {
        Some(mut rest) => {
            while !rest.is_empty() {
                before()?;
                rest = &rest[accepted(transport.send(rest)?)?..];
            }
            Ok(())
        }
        None => {
            let mut parts = message.parts();
            let mut rest = &mut parts[..];
            while !rest.is_empty() {
                before()?;
                let sent = accepted(transport.send_v(rest)?)?;
                IoSlice::advance_slices(&mut rest, sent);
            }
            Ok(())
        }
    }
}

/// Writes all octets.
#[cfg(feature = "server")]
pub(crate) fn send_octets(transport: &dyn Transport, octets: &[u8]) -> io::Result<()> {
    let mut rest = octets;
    while !rest.is_empty() {
        rest = &rest[accepted(transport.send(rest)?)?..];
    }
    Ok(())
}

fn accepted(sent: usize) -> io::Result<usize> {
    if sent == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(sent) }
}

/// True if a transfer ended because its time-out did.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    // POSIX says EAGAIN for SO_RCVTIMEO and SO_SNDTIMEO, Windows says WSAETIMEDOUT.
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
