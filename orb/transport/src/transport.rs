//! The octets of one connection, for a thread that waits ([`Transport`]) and for a reactor ([`ReactorTransport`]).

use std::{
    any::Any,
    fmt,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_cdr::Encoder;
use spandrel_ipc::{Pollable, Receive, Shutdown, Transfer, Transmit};

/// A connected byte stream. All methods may be called from several threads; one reads and one writes at a time.
///
/// Every [`Transfer`] is one, so that implementations for new families implement that trait.
pub trait Transport: Send + Sync {
    /// Writes some of `octets`. Returns how many.
    fn send(&self, octets: &[u8]) -> io::Result<usize>;
    /// Writes some octets of several slices. Returns how many.
    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Reads what has arrived, after waiting for the first octet. Returns 0 at the end of the stream.
    fn recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// Limits how long `recv` waits.
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// Limits how long `send` waits.
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// Tells the peer that nothing more will be written.
    fn close_writer(&self);
    /// Ends both directions; a blocked `recv` returns.
    fn close(&self);
    /// Whether messages can be exchanged: false during a handshake that comes first.
    fn is_established(&self) -> bool {
        true
    }
}

/// A transport that a reactor can serve, and that can be read and written without waiting.
///
/// Its own type can be asked for through [`Any`].
pub trait ReactorTransport: Transport + Any {
    /// Writes as many octets of several slices as possible without waiting; [`io::ErrorKind::WouldBlock`] if none.
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Writes as many octets as possible without waiting; [`io::ErrorKind::WouldBlock`] if none.
    fn try_send(&self, octets: &[u8]) -> io::Result<usize> {
        self.try_send_v(&[IoSlice::new(octets)])
    }
    /// Reads what has arrived; [`io::ErrorKind::WouldBlock`] if nothing has.
    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// How long the handshake may still take; `None` without a handshake, after it, or without a limit.
    fn handshake_left(&self) -> Option<Duration> {
        None
    }
    /// The handle that a reactor waits for; `None` for a transport that no reactor can serve.
    fn pollable(&self) -> Option<&dyn Pollable>;
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl fmt::Debug for dyn ReactorTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReactorTransport")
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
    fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        Receive::recv(self, room)
    }

    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Receive::set_recv_timeout(self, timeout)
    }

    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        Transmit::set_send_timeout(self, timeout)
    }

    fn close_writer(&self) {
        // A peer that has closed already needs no notice.
        let _ = self.shutdown(Shutdown::Write);
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }

    fn is_established(&self) -> bool {
        Transfer::is_established(self)
    }
}

impl<S: Transfer> ReactorTransport for S {
    #[inline]
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Transmit::try_send_v(self, parts)
    }

    #[inline]
    fn try_send(&self, octets: &[u8]) -> io::Result<usize> {
        Transmit::try_send(self, octets)
    }

    #[inline]
    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        Receive::try_recv(self, room)
    }

    fn handshake_left(&self) -> Option<Duration> {
        Transfer::handshake_left(self)
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }
}

/// Writes a whole message, in one call if the transport takes it. `before` runs before each call.
///
/// # Errors
/// Those of the transport and of `before`. The last octet was not accepted then: the peer cannot have acted on the message (design
/// decision 9).
pub fn send_message(
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
        None => send_slices(transport, &mut message.parts(), &mut before),
    }
}

/// Writes all octets of several slices, as [`send_message`].
///
/// # Errors
/// Those of the transport and of `before`.
pub fn send_slices(
    transport: &dyn Transport,
    mut rest: &mut [IoSlice<'_>],
    before: &mut dyn FnMut() -> io::Result<()>,
) -> io::Result<()> {
    while !rest.is_empty() {
        before()?;
        let sent = accepted(transport.send_v(rest)?)?;
        IoSlice::advance_slices(&mut rest, sent);
    }
    Ok(())
}

/// Writes all octets.
///
/// # Errors
/// Those of the transport.
pub fn send_octets(transport: &dyn Transport, octets: &[u8]) -> io::Result<()> {
    let mut rest = octets;
    while !rest.is_empty() {
        rest = &rest[accepted(transport.send(rest)?)?..];
    }
    Ok(())
}

#[inline]
fn accepted(sent: usize) -> io::Result<usize> {
    if sent == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(sent) }
}

/// Whether a transfer ended because its time-out expired.
#[must_use]
pub fn is_timeout(error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::WouldBlock => true,
        // POSIX says EAGAIN for SO_RCVTIMEO and SO_SNDTIMEO, Windows says WSAETIMEDOUT. From a POSIX system ETIMEDOUT means another thing:
        // it has given the peer up, after probes or unacknowledged data. A time-out of a transport of ours is the bare kind; with a
        // reason it is a fault of the connection, such as a TLS handshake that took too long: waiting again would return at once.
        io::ErrorKind::TimedOut => match error.raw_os_error() {
            Some(_) => cfg!(windows),
            None => error.get_ref().is_none(),
        },
        _ => false,
    }
}
