//! What carries octets: a [`Transport`] is an `ipc` endpoint behind a small trait, so that connections need not know which family it is of;
//! a [`Protocol`] finds the [`Place`]s of a server in its references, connects to them, and listens.
//!
//! Which connection a call gets belongs to [`client`](crate::client), what becomes of one that was accepted to the server.

#[cfg(feature = "server")]
mod addressing;
#[cfg(feature = "datagrams")]
mod datagram;
#[cfg(feature = "server")]
mod endpoint;
mod iiop;
mod keep_alive;
#[cfg(feature = "server")]
mod listener;
#[cfg(all(feature = "local", unix))]
mod local;
#[cfg(feature = "server")]
mod nowhere;
mod place;
#[cfg(any(feature = "server", feature = "transport-rules"))]
mod prefix;
mod protocol;
mod protocols;
#[cfg(feature = "transport-rules")]
mod rules;

#[cfg(feature = "server")]
use std::any::Any;
use std::{
    fmt,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_cdr::Encoder;
use spandrel_giop::Fragments;
#[cfg(feature = "asynchronous")]
use spandrel_ipc::Pollable;
use spandrel_ipc::{Receive, Shutdown, Transfer, Transmit};

#[cfg(feature = "server")]
pub use addressing::{INET_OPTIONS, listen_inet};
#[cfg(all(feature = "datagrams", feature = "transport-rules"))]
pub(crate) use datagram::SCHEME as DATAGRAMS;
#[cfg(feature = "server")]
pub use endpoint::{Endpoint, EndpointError};
pub use iiop::{Iiop, connect_inet};
pub use keep_alive::KeepAlive;
#[cfg(feature = "server")]
pub(crate) use listener::Arriving;
#[cfg(feature = "server")]
pub use listener::{Listener, Published, Welcome};
#[cfg(all(feature = "local", target_os = "linux"))]
pub use local::Shm;
#[cfg(all(feature = "local", unix))]
pub use local::Uds;
#[cfg(feature = "server")]
pub(crate) use nowhere::is_nowhere;
pub(crate) use place::IIOP;
#[cfg(any(feature = "server", feature = "transport-rules"))]
pub(crate) use place::scheme_of;
pub use place::{Place, PlaceError};
pub use protocol::{OptionError, Protocol, SocketSettings, cost};
pub(crate) use protocols::Protocols;
#[cfg(feature = "transport-rules")]
pub(crate) use rules::Rules;

/// A connected byte stream. All methods may be called from several threads; one reads and one writes at a time.
///
/// Every [`Transfer`] is one. What it has to do depends on the features of this crate, so that others implement that and not this.
pub trait Transport: Send + Sync {
    /// Writes some of `octets`; the number written.
    fn send(&self, octets: &[u8]) -> io::Result<usize>;
    /// Writes some octets of several slices; the number written.
    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Writes as many octets of several slices as it takes without waiting; [`io::ErrorKind::WouldBlock`] if that is none.
    #[cfg(feature = "asynchronous")]
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Writes as many octets as it takes without waiting; [`io::ErrorKind::WouldBlock`] if that is none.
    #[cfg(feature = "server")]
    fn try_send(&self, octets: &[u8]) -> io::Result<usize> {
        self.try_send_v(&[IoSlice::new(octets)])
    }
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
    /// Whether it has come so far that messages can be exchanged: not while there is a handshake before them.
    fn is_established(&self) -> bool {
        true
    }
    /// How long the handshake may still take; `None` where there is none, none any more, or no limit.
    #[cfg(feature = "server")]
    fn handshake_left(&self) -> Option<Duration> {
        None
    }
    /// What a reactor waits on; `None` for one that no reactor can serve.
    #[cfg(feature = "asynchronous")]
    fn pollable(&self) -> Option<&dyn Pollable>;
    /// Itself, for its protocol, which knows its type.
    #[cfg(feature = "server")]
    fn as_any(&self) -> &dyn Any;
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
    #[cfg(feature = "server")]
    fn try_send(&self, octets: &[u8]) -> io::Result<usize> {
        Transmit::try_send(self, octets)
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

    fn is_established(&self) -> bool {
        Transfer::is_established(self)
    }

    #[cfg(feature = "server")]
    fn handshake_left(&self) -> Option<Duration> {
        Transfer::handshake_left(self)
    }

    #[cfg(feature = "asynchronous")]
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(self)
    }

    #[cfg(feature = "server")]
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Writes a whole message, in one call if the transport takes it; in fragments if it is longer than `limit`. `before` runs before each
/// call.
///
/// An error means that its last octet was not accepted: the peer cannot have acted on it (design decision 9).
pub(crate) fn send_message(
    transport: &dyn Transport,
    message: &Encoder<'_>,
    limit: usize,
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    if cfg!(feature = "fragments")
        && message.position() > limit
        && let Some(fragments) = Fragments::of(message, limit)
    {
        return send_all(transport, &mut fragments.slices(message), &mut before);
    }
    match message.contiguous() {
        Some(mut rest) => {
            while !rest.is_empty() {
                before()?;
                rest = &rest[accepted(transport.send(rest)?)?..];
            }
            Ok(())
        }
        None => send_all(transport, &mut message.parts(), &mut before),
    }
}

fn send_all(
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
    match error.kind() {
        io::ErrorKind::WouldBlock => true,
        // POSIX says EAGAIN for SO_RCVTIMEO and SO_SNDTIMEO, Windows says WSAETIMEDOUT. From a POSIX system ETIMEDOUT means another thing:
        // it has given the peer up, after probes or what was not acknowledged. A time-out of a transport of ours is the bare kind; with a
        // reason it is a fault of the connection, such as a TLS handshake that took too long: waiting again would return at once.
        io::ErrorKind::TimedOut => match error.raw_os_error() {
            Some(_) => cfg!(windows),
            None => error.get_ref().is_none(),
        },
        _ => false,
    }
}

/// What this host calls itself.
#[cfg(all(feature = "server", feature = "local", unix))]
pub(crate) use local::host_name;

/// What this host calls itself.
#[cfg(all(feature = "server", not(all(feature = "local", unix))))]
pub(crate) fn host_name() -> String {
    let said = ["HOSTNAME", "COMPUTERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    said.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}
