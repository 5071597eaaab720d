//! The ways to carry GIOP that an ORB has: which of them a reference can be reached by, and in what order they are tried.

#[cfg(feature = "server")]
use std::io;

use spandrel_giop::IiopProfile;
#[cfg(feature = "datagrams")]
use spandrel_giop::datagram::DatagramAddress;
use spandrel_sync::Arc;

#[cfg(feature = "transport-rules")]
use super::Rules;
#[cfg(all(feature = "local", target_os = "linux"))]
use super::Shm;
#[cfg(all(feature = "local", unix))]
use super::Uds;
#[cfg(feature = "datagrams")]
use super::datagram::Datagrams;
#[cfg(feature = "server")]
use super::nowhere::Nowhere;
#[cfg(feature = "server")]
use super::{Endpoint, Listener, SocketSettings};
use super::{Iiop, OptionError, Place, Protocol};

/// The protocols that an ORB has, in order of preference where nothing else decides.
#[derive(Clone, Debug)]
pub(crate) struct Protocols {
    all: Vec<Arc<dyn Protocol>>,
    /// Those that are used, by their schemes, the preferred one first; all if nothing is said.
    #[cfg(feature = "transport-rules")]
    pub(crate) used: Option<Vec<String>>,
    /// Which places are called.
    #[cfg(feature = "transport-rules")]
    pub(crate) rules: Rules,
}

impl Default for Protocols {
    fn default() -> Self {
        Self {
            all: vec![
                Arc::new(Iiop),
                #[cfg(feature = "server")]
                Arc::new(Nowhere),
                #[cfg(feature = "datagrams")]
                Arc::new(Datagrams),
                #[cfg(all(feature = "local", unix))]
                Arc::new(Uds),
                #[cfg(all(feature = "local", target_os = "linux"))]
                Arc::new(Shm),
            ],
            #[cfg(feature = "transport-rules")]
            used: None,
            #[cfg(feature = "transport-rules")]
            rules: Rules::default(),
        }
    }
}

/// A place that a reference offers, and how to get there.
pub(crate) type Offered<'p> = (Place, &'p Arc<dyn Protocol>);

impl Protocols {
    /// Adds one, in place of that with the same scheme.
    pub(crate) fn register(&mut self, protocol: Arc<dyn Protocol>) {
        match self.all.iter_mut().find(|known| known.scheme() == protocol.scheme()) {
            Some(known) => *known = protocol,
            None => self.all.push(protocol),
        }
    }

    /// The one with this scheme.
    #[cfg(feature = "server")]
    pub(crate) fn find(&self, scheme: &str) -> Option<&Arc<dyn Protocol>> {
        #[cfg(feature = "transport-rules")]
        if self.used.as_ref().is_some_and(|used| !used.iter().any(|used| used == scheme)) {
            return None;
        }
        self.all.iter().find(|protocol| protocol.scheme() == scheme)
    }

    /// How much a place is liked, compared with others of the same server, the less the more; nothing if it is not to be used.
    pub(crate) fn rank(&self, place: &Place, protocol: &dyn Protocol) -> Option<u64> {
        let cost = u64::from(protocol.cost(place));
        #[cfg(feature = "transport-rules")]
        let cost = match &self.used {
            None => u64::from(self.rules.rank(place)?) << 32 | cost,
            Some(used) => {
                let preference = used.iter().position(|scheme| scheme == place.scheme())?;
                u64::from(self.rules.rank(place)?) << 32 | preference as u64
            }
        };
        Some(cost)
    }

    /// Has the first that knows it take an option; false if none does.
    pub(crate) fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        for protocol in &self.all {
            if protocol.option(option, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the server of a profile can be reached.
    pub(crate) fn places<'p>(&'p self, profile: &IiopProfile) -> Vec<Offered<'p>> {
        let offered =
            |protocol: &'p Arc<dyn Protocol>| protocol.places(profile).into_iter().map(move |place| (place, protocol));
        let mut offered: Vec<_> = self.all.iter().flat_map(offered).collect();
        for protocol in &self.all {
            let is_offered = offered.iter().any(|(place, _)| place.scheme() == protocol.scheme());
            offered.retain(|(place, _)| !protocol.excludes(place.scheme(), is_offered));
        }
        offered
    }

    /// Where requests to the server of a profile may go by datagram. Anybody on the way can read one, so that it goes only where plain
    /// IIOP might.
    #[cfg(feature = "datagrams")]
    pub(crate) fn datagrams(&self, profile: &IiopProfile) -> Option<DatagramAddress> {
        let address = profile.components.iter().find_map(DatagramAddress::decode)?;
        let excludes =
            |protocol: &Arc<dyn Protocol>| protocol.excludes(Iiop.scheme(), !protocol.places(profile).is_empty());
        if self.all.iter().any(excludes) {
            return None;
        }
        let place = Place::at_port(Datagrams.scheme(), &address.host, address.port);
        self.rank(&place, &Datagrams).map(|_| address)
    }

    #[cfg(feature = "server")]
    pub(crate) fn schemes(&self) -> Vec<&'static str> {
        let schemes = self.all.iter().map(|protocol| protocol.scheme());
        schemes.filter(|scheme| self.find(scheme).is_some()).collect()
    }

    /// Opens it by its protocol.
    #[cfg(feature = "server")]
    pub(crate) fn open(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        match self.find(endpoint.scheme()) {
            Some(protocol) => protocol.listen(endpoint, settings),
            None => Err(endpoint.invalid(format_args!(
                "there is no protocol `{}` here, but {}",
                endpoint.scheme(),
                self.schemes().join(", ")
            ))),
        }
    }
}
