//! The octets of one connection, for a thread that waits ([`Transport`]) and for a reactor
//! ([`ReactorTransport`]).

use std::{
    any::Any,
    fmt,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_cdr::Encoder;
use spandrel_ipc::{Handle, Pollable, Receive, Shutdown, Transfer, Transmit};

/// A connected byte stream. All methods may be called from several threads; one reads and one writes at a
/// time.
///
/// Every [`Transfer`] is one: new families implement that trait.
pub trait Transport: Send + Sync {
    /// Writes some of `octets`. Returns their number.
    fn send(&self, octets: &[u8]) -> io::Result<usize>;
    /// Writes some octets of several slices. Returns their number.
    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Reads the octets that have arrived, after a wait for the first. Returns 0 at the end of the stream.
    fn recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// Reads the octets that have arrived, without waiting; [`io::ErrorKind::WouldBlock`] if none have. Returns 0
    /// at the end of the stream.
    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize>;
    /// Limits the time that `recv` waits.
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// Limits the time that `send` waits.
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;
    /// Shuts down the sending direction.
    fn close_writer(&self);
    /// Ends both directions; a blocked `recv` returns.
    fn close(&self);
    /// As [`close`](Self::close), for a peer that may send without end ([`Transfer::abort`]): dropping the transport
    /// resets the connection if octets have arrived that were not read before.
    fn abort(&self) {
        self.close();
    }
    /// Whether messages can be exchanged: false during an initial handshake.
    fn is_established(&self) -> bool {
        true
    }
}

/// A transport that a reactor can serve, readable and writable without waiting.
///
/// [`Any`] gives access to the concrete type.
pub trait ReactorTransport: Transport + Any {
    /// Writes as many octets of several slices as possible without waiting; [`io::ErrorKind::WouldBlock`] if
    /// none.
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Writes as many octets as possible without waiting; [`io::ErrorKind::WouldBlock`] if none.
    fn try_send(&self, octets: &[u8]) -> io::Result<usize> {
        self.try_send_v(&[IoSlice::new(octets)])
    }
    /// The socket, if octets that are sent on it directly leave as by [`try_send`](Self::try_send).
    fn send_socket(&self) -> Option<Handle<'_>> {
        None
    }
    /// The time left for the handshake; `None` without a handshake, after it, or without a limit.
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

    #[inline]
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
        // After the peer's close no notice is needed.
        let _ = self.shutdown(Shutdown::Write);
    }

    fn close(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }

    fn abort(&self) {
        let _ = Transfer::abort(self);
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
    fn send_socket(&self) -> Option<Handle<'_>> {
        Transfer::send_socket(self)
    }

    fn handshake_left(&self) -> Option<Duration> {
        Transfer::handshake_left(self)
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }
}

/// Writes a whole message, in one call if the transport accepts it. `before` runs before each call.
///
/// # Errors
/// The errors of the transport and of `before`. The last octet was not accepted, so the peer cannot have
/// executed the message (design decision 9).
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
/// The errors of the transport and of `before`.
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

/// Writes all octets, in as many calls as the transport needs.
///
/// # Errors
/// The errors of the transport.
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
        // POSIX reports EAGAIN for SO_RCVTIMEO and SO_SNDTIMEO, Windows WSAETIMEDOUT. On POSIX, ETIMEDOUT
        // means that the system closed the connection after unanswered probes or unacknowledged data.
        // Spandrel's transports report a time-out as the bare kind. The kind with a reason is a failure of
        // the connection, such as an expired TLS handshake: another wait would return at once.
        io::ErrorKind::TimedOut => match error.raw_os_error() {
            Some(_) => cfg!(windows),
            None => error.get_ref().is_none(),
        },
        _ => false,
    }
}
