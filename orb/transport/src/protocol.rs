//! Pluggable protocols: carriers of GIOP, named after those of the TAO papers.
//!
//! A [`Protocol`] is the client's side and a [`ServerProtocol`] the server's. A type may be both.

use std::{any::Any, fmt, io, time::Duration};

use spandrel_giop::IiopProfile;
use spandrel_ipc::inet;
#[cfg(unix)]
use spandrel_ipc::unix;
use spandrel_sync::Arc;

use crate::socket_tuning::SocketTuning;
use crate::{
    address::Address, endpoint::Endpoint, keep_alive::KeepAlive, listener::Listener, transport::ReactorTransport,
};

/// The client's side of a carrier of GIOP.
///
/// The ORB asks all [registered](crate::Protocols) protocols for the addresses of a server, tries the
/// cheapest address first, and continues with the next one if it cannot connect. A protocol over streams of
/// `spandrel_ipc` needs little more than names, since every [`Transfer`](spandrel_ipc::Transfer) is a
/// [`Transport`](crate::Transport).
pub trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// The stream of one connection over this protocol.
    type Stream: ReactorTransport;

    /// The scheme of its addresses and endpoints, such as `iiop`.
    fn scheme(&self) -> &'static str;

    /// The addresses by which this protocol reaches the server of a profile, in the profile's order of
    /// preference; empty if it cannot.
    ///
    /// The profile comes from a peer: malformed parts are ignored.
    fn addresses(&self, profile: &IiopProfile) -> Vec<Address>;

    /// Connects, within `timeout` if given.
    ///
    /// # Errors
    /// The errors of the system; [`io::ErrorKind::TimedOut`] when the time ran out.
    fn connect(
        &self,
        address: &Address,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Self::Stream>;

    /// The cost of calls to an address, relative to other addresses of the same server: see [`cost`]. Among
    /// equal costs the reference's order decides.
    fn cost(&self, address: &Address) -> u32 {
        let _ = address;
        cost::NETWORK
    }

    /// Whether addresses of another protocol for the same server are ignored. `is_offered`: the server can be
    /// reached by this protocol.
    fn excludes(&self, scheme: &str, is_offered: bool) -> bool {
        let _ = (scheme, is_offered);
        false
    }

    /// Accepts a command-line option that the ORB itself does not know, such as `-ORBSSLKey`. Returns false
    /// for an option of another protocol.
    ///
    /// # Errors
    /// The reason for which the value is invalid.
    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        let _ = (option, value);
        Ok(false)
    }

    /// The names of its options, for suggestions where one is misspelt.
    fn option_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// The server's side of this protocol, for a type with both: an ORB that listens registers it too.
    ///
    /// It is called only where servers are registered, so that a program without them links no
    /// [`ServerProtocol`].
    fn server(protocol: &Arc<Self>) -> Option<Arc<dyn ServerProtocol>>
    where
        Self: Sized,
    {
        let _ = protocol;
        None
    }
}

/// The server's side of a carrier of GIOP.
///
/// [`Listener::over`] accepts for every [`Family`](spandrel_ipc::Family).
pub trait ServerProtocol: fmt::Debug + Send + Sync + 'static {
    /// The scheme of its endpoints, such as `iiop`.
    fn scheme(&self) -> &'static str;

    /// Opens an endpoint.
    ///
    /// # Errors
    /// The errors of the system, naming the option to change.
    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener>;
}

/// The reason for which a protocol rejects the value of an option.
#[derive(Clone, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(String);
spandrel_error::debug_as_report!(OptionError);

impl OptionError {
    /// The error of a value that is none of the expected ones; `what` describes them.
    #[must_use]
    pub fn expected(what: &str) -> Self {
        Self(format!("expected {what}"))
    }

    /// The error of a value that cannot be used for this reason.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// The costs of calls over different kinds of transports, for [`Protocol::cost`]: numbers between these are
/// available to other protocols.
pub mod cost {
    /// Memory that both processes share.
    pub const SHARED_MEMORY: u32 = 10;
    /// Sockets within one host.
    pub const SAME_HOST: u32 = 20;
    /// Sockets between hosts; the default of a protocol.
    pub const NETWORK: u32 = 100;
}

/// The options of the sockets of an ORB, where its protocols have them.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SocketSettings {
    /// The size of the queue for sending, in octets; the system's unless set.
    pub send_queue: Option<usize>,
    /// The size of the queue for receiving, in octets; the system's unless set.
    pub recv_queue: Option<usize>,
    /// TCP keep-alive: the detection of unreachable peers.
    pub keep_alive: KeepAlive,
    /// Options of TCP sockets that few programs set.
    pub tuning: Option<SocketTuning>,
}

impl SocketSettings {
    /// Configures the socket of an accepted connection anew: of TCP, or a UNIX-domain socket. Others stay as they are.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn apply(&self, transport: &dyn ReactorTransport) -> io::Result<()> {
        let any: &dyn Any = transport;
        if let Some(stream) = any.downcast_ref::<inet::Stream>() {
            self.send_queue.map_or(Ok(()), |octets| stream.set_send_queue(octets))?;
            self.recv_queue.map_or(Ok(()), |octets| stream.set_recv_queue(octets))?;
            self.keep_alive.apply(stream)?;
            stream.set_no_delay(true)?;
            self.tuning.map_or(Ok(()), |tuning| tuning.apply(stream))?;
        }
        #[cfg(unix)]
        if let Some(stream) = any.downcast_ref::<unix::Stream>() {
            self.send_queue.map_or(Ok(()), |octets| stream.set_send_queue(octets))?;
            self.recv_queue.map_or(Ok(()), |octets| stream.set_recv_queue(octets))?;
        }
        Ok(())
    }
}
