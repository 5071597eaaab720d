//! An endpoint that is open: what accepts there, and what references say of it.

use std::{fmt, io};

use spandrel_cdr::TaggedComponent;
use spandrel_ipc::{Accept, Family, Interest};
use spandrel_reactor::{Context, HandlerId, Listening, Registry};

use super::{Place, Transport};

/// What becomes of a connection that has come, and from where.
pub type Welcome = Box<dyn FnMut(Box<dyn Transport>, Place) -> io::Result<()> + Send>;

/// Has an endpoint served by a reactor.
type Attach = Box<dyn FnOnce(&Registry, Welcome) -> io::Result<HandlerId> + Send>;

/// What comes at an endpoint.
pub(crate) enum Arriving {
    Connections(Attach),
    /// Datagrams, at most so long.
    #[cfg(feature = "datagrams")]
    Datagrams(spandrel_ipc::inet::Dgram, u32),
}

/// What references say of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// Hosts and ports for IIOP profiles, in order of preference. Port 0 stands for a host that is only reached as components say, and
    /// that needs a profile for itself only where no other endpoint has that host.
    pub addresses: Vec<(String, u16)>,
    /// Components that say how else the server is reached: they are part of every profile.
    pub components: Vec<TaggedComponent>,
    /// What clients will call it: by these the ORB knows its own references.
    pub places: Vec<Place>,
}

/// An endpoint that is open. Dropped, it is closed.
pub struct Listener {
    bound: Place,
    published: Published,
    arriving: Arriving,
}

impl Listener {
    /// An acceptor of any family. `prepare` sets up each stream that it accepts, and says where that comes from.
    ///
    /// `bound` is where it listens, for messages.
    pub fn over<F: Family>(
        bound: Place,
        acceptor: F::Acceptor,
        published: Published,
        mut prepare: impl FnMut(&F::Stream, &F::Addr) -> io::Result<Place> + Send + 'static,
    ) -> Self {
        Self::new(bound, published, move |registry, mut welcome| {
            acceptor.set_nonblocking(true)?;
            let welcome = move |_: &Context<'_>, stream: F::Stream, from: F::Addr| {
                let from = prepare(&stream, &from)?;
                welcome(Box::new(stream), from)
            };
            registry.register(Listening::<F, _>::new(acceptor, welcome), Interest::INPUT)
        })
    }

    /// Something else that finds connections: `attach` registers it with the server's reactor.
    pub fn new(
        bound: Place,
        published: Published,
        attach: impl FnOnce(&Registry, Welcome) -> io::Result<HandlerId> + Send + 'static,
    ) -> Self {
        Self { bound, published, arriving: Arriving::Connections(Box::new(attach)) }
    }

    /// An endpoint where datagrams are read.
    #[cfg(feature = "datagrams")]
    pub(crate) fn of_datagrams(
        bound: Place,
        published: Published,
        socket: spandrel_ipc::inet::Dgram,
        max_octets: u32,
    ) -> Self {
        Self { bound, published, arriving: Arriving::Datagrams(socket, max_octets) }
    }

    /// Where it listens.
    #[must_use]
    pub fn bound(&self) -> &Place {
        &self.bound
    }

    /// What references say of it.
    #[must_use]
    pub fn published(&self) -> &Published {
        &self.published
    }

    /// What is to be attended to, and what references say.
    pub(crate) fn into_parts(self) -> (Arriving, Published) {
        (self.arriving, self.published)
    }
}

impl Published {
    /// Adds what is said of another endpoint.
    pub(crate) fn add(&mut self, other: Self) {
        for (host, port) in other.addresses {
            let known = self.addresses.iter_mut().find(|(known, at)| *known == host && (*at == 0 || port == 0));
            match known {
                Some((_, at)) => *at = port.max(*at),
                None => self.addresses.push((host, port)),
            }
        }
        self.components.extend(other.components);
        self.places.extend(other.places);
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("bound", &self.bound)
            .field("published", &self.published)
            .finish_non_exhaustive()
    }
}
