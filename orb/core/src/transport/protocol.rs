//! Ways to carry GIOP, as plug-ins: the pluggable protocols of the TAO papers.

use std::{fmt, io, time::Duration};

use spandrel_giop::IiopProfile;
use spandrel_sync::Arc;

#[cfg(feature = "server")]
use super::Endpoint;
#[cfg(feature = "server")]
use super::Listener;
use super::{KeepAlive, Place, PlaceError, Transport};

/// One way to carry GIOP.
///
/// A protocol finds in a reference where it can reach the server, connects there, and listens. The ORB asks all that it
/// [has](crate::OrbBuilder::protocol), tries the cheapest of the places first, and goes on to the next where it cannot connect. A
/// protocol over streams of `spandrel_ipc` needs little more than names: every [`Transfer`](spandrel_ipc::Transfer) is a
/// [`Transport`], and `Listener::over` accepts for every [`Family`](spandrel_ipc::Family).
pub trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// What its endpoints and places begin with, such as `iiop`.
    fn scheme(&self) -> &'static str;

    /// Reads an address as people write it, without the scheme.
    ///
    /// # Errors
    /// [`PlaceError`] for text that is none.
    fn parse_place(&self, text: &str) -> Result<Place, PlaceError>;

    /// Where this protocol can reach the server that the profile speaks of, in the profile's order of preference; none if it cannot.
    ///
    /// The profile comes from a peer: what is malformed is left out.
    fn places(&self, profile: &IiopProfile) -> Vec<Place>;

    /// Connects, within `timeout` if there is one.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::TimedOut`] when the time ran out.
    fn connect(
        &self,
        place: &Place,
        timeout: Option<Duration>,
        settings: &SocketSettings,
    ) -> io::Result<Arc<dyn Transport>>;

    /// What a call costs there, compared with other places of the same server: see [`cost`]. Where it is the same the reference's order counts.
    fn cost(&self, place: &Place) -> u32 {
        let _ = place;
        cost::NETWORK
    }

    /// Whether a server is not to be reached by another protocol: what it offers there is left out of consideration. `is_offered`: it
    /// can be reached by this one.
    fn excludes(&self, scheme: &str, is_offered: bool) -> bool {
        let _ = (scheme, is_offered);
        false
    }

    /// Takes an option of a command line that the ORB itself does not know, such as `-ORBSSLKey`; false if it is none of this protocol's.
    ///
    /// # Errors
    /// Why the value is of no use.
    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        let _ = (option, value);
        Ok(false)
    }

    /// Opens an endpoint.
    ///
    /// # Errors
    /// Those of the system, saying which option to change; [`io::ErrorKind::Unsupported`] for a protocol that only connects.
    #[cfg(feature = "server")]
    fn listen(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        let _ = settings;
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("{} cannot listen at {endpoint}", self.scheme())))
    }
}

/// Why a protocol cannot make use of an option's value.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct OptionError(String);

impl OptionError {
    /// It is none of the values that there are.
    #[must_use]
    pub fn expected(what: &str) -> Self {
        Self(format!("expected {what}"))
    }

    /// Another reason, in words.
    pub fn because(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// What calls cost over different kinds of transports, for [`Protocol::cost`]: numbers between these are free.
pub mod cost {
    /// Memory that both processes have.
    pub const SHARED_MEMORY: u32 = 10;
    /// Sockets inside of one host.
    pub const SAME_HOST: u32 = 20;
    /// Sockets between hosts.
    pub const NETWORK: u32 = 100;
}

/// How sockets are made, whatever the protocol.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SocketSettings {
    /// The size of the queue for what is sent, in octets; the system's unless set.
    pub send_queue: Option<usize>,
    /// The same for what is received.
    pub recv_queue: Option<usize>,
    /// How a TCP peer is noticed that has vanished.
    pub keep_alive: KeepAlive,
}
