//! The protocols of an ORB: those for calls, the order of their addresses, and those for listening.

use std::{fmt, io, time::Duration};

use spandrel_giop::{IiopProfile, datagram::DatagramAddress};
use spandrel_sync::Arc;

use crate::{
    address::{Address, IIOP},
    datagram::DIOP,
    endpoint::Endpoint,
    listener::Listener,
    protocol::{OptionError, Protocol, ServerProtocol, SocketSettings, cost},
    rules::AddressSelection,
    transport::{ReactorTransport, Transport},
};

/// A [`Protocol`] without its type. `T` is the part of a connection that its user needs: `dyn Transport` or
/// `dyn ReactorTransport`.
pub trait DynProtocol<T: ?Sized>: fmt::Debug + Send + Sync {
    /// See [`Protocol::scheme`].
    fn scheme(&self) -> &'static str;
    /// See [`Protocol::addresses`].
    fn addresses(&self, profile: &IiopProfile) -> Vec<Address>;
    /// See [`Protocol::connect`].
    ///
    /// # Errors
    /// The errors of [`Protocol::connect`].
    fn connect(&self, address: &Address, timeout: Option<Duration>, settings: &SocketSettings) -> io::Result<Arc<T>>;
    /// See [`Protocol::cost`].
    fn cost(&self, address: &Address) -> u32;
    /// See [`Protocol::excludes`].
    fn excludes(&self, scheme: &str, is_offered: bool) -> bool;
    /// See [`Protocol::option`].
    ///
    /// # Errors
    /// The errors of [`Protocol::option`].
    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError>;
    /// The names of its options, as [`Protocol::option_names`] returns them.
    fn option_names(&self) -> &'static [&'static str];
}

/// A trait object that any stream of type `S` can become.
pub trait FromStream<S> {
    /// Wraps a protocol's stream as the trait object that the ORB holds.
    fn from_stream(stream: S) -> Arc<Self>;
}

impl<S: ReactorTransport> FromStream<S> for dyn Transport {
    fn from_stream(stream: S) -> Arc<Self> {
        Arc::new(stream)
    }
}

impl<S: ReactorTransport> FromStream<S> for dyn ReactorTransport {
    fn from_stream(stream: S) -> Arc<Self> {
        Arc::new(stream)
    }
}

impl<P: Protocol, T: FromStream<P::Stream> + ?Sized> DynProtocol<T> for P {
    fn scheme(&self) -> &'static str {
        Protocol::scheme(self)
    }

    fn addresses(&self, profile: &IiopProfile) -> Vec<Address> {
        Protocol::addresses(self, profile)
    }

    fn connect(&self, address: &Address, timeout: Option<Duration>, settings: &SocketSettings) -> io::Result<Arc<T>> {
        Protocol::connect(self, address, timeout, settings).map(T::from_stream)
    }

    fn cost(&self, address: &Address) -> u32 {
        Protocol::cost(self, address)
    }

    fn excludes(&self, scheme: &str, is_offered: bool) -> bool {
        Protocol::excludes(self, scheme, is_offered)
    }

    fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        Protocol::option(self, option, value)
    }

    fn option_names(&self) -> &'static [&'static str] {
        Protocol::option_names(self)
    }
}

/// The protocols with which an ORB calls, in order of preference among equal costs.
#[derive(Debug)]
pub struct Protocols<T: ?Sized> {
    all: Vec<Arc<dyn DynProtocol<T>>>,
    /// The permitted addresses; all without a selection.
    selection: Option<Arc<dyn AddressSelection>>,
}

impl<T: ?Sized> Default for Protocols<T> {
    fn default() -> Self {
        Self { all: Vec::new(), selection: None }
    }
}

impl<T: ?Sized> Clone for Protocols<T> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), selection: self.selection.clone() }
    }
}

/// An address that a reference offers, and the protocol that connects to it.
pub type OfferedAddress<'p, T> = (Address, &'p Arc<dyn DynProtocol<T>>);

impl<T: ?Sized> Protocols<T> {
    /// Adds a protocol, in place of one with the same scheme.
    pub fn register(&mut self, protocol: Arc<dyn DynProtocol<T>>) {
        match self.all.iter_mut().find(|known| known.scheme() == protocol.scheme()) {
            Some(known) => *known = protocol,
            None => self.all.push(protocol),
        }
    }

    /// Restricts the addresses to a selection, in its order.
    pub fn select(&mut self, selection: Arc<dyn AddressSelection>) {
        self.selection = Some(selection);
    }

    /// The rank of an address among those of the same server, the lowest first; `None` if it is not
    /// permitted. `cost` comes from its protocol.
    #[must_use]
    pub fn rank(&self, address: &Address, cost: u32) -> Option<u64> {
        match &self.selection {
            None => Some(u64::from(cost)),
            Some(selection) => selection.rank(address, cost),
        }
    }

    /// Whether the order of protocols is the user's, and not that of their costs.
    #[must_use]
    pub fn has_preferences(&self) -> bool {
        self.selection.as_ref().is_some_and(|selection| selection.has_preferences())
    }

    /// Offers an option to each protocol until one accepts it. Returns false if none does.
    ///
    /// # Errors
    /// The errors of the protocol that accepts it.
    pub fn option(&self, option: &str, value: &str) -> Result<bool, OptionError> {
        for protocol in &self.all {
            if protocol.option(option, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The names of the options of all protocols; several protocols may have one of the same name.
    pub fn option_names(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().flat_map(|protocol| protocol.option_names()).copied()
    }

    /// The addresses by which the server of a profile can be reached.
    #[must_use]
    pub fn addresses<'p>(&'p self, profile: &IiopProfile) -> Vec<OfferedAddress<'p, T>> {
        let mut offered = Vec::new();
        for protocol in &self.all {
            for address in protocol.addresses(profile) {
                offered.push((address, protocol));
            }
        }
        for protocol in &self.all {
            let is_offered = offered.iter().any(|(address, _)| address.scheme() == protocol.scheme());
            offered.retain(|(address, _)| !protocol.excludes(address.scheme(), is_offered));
        }
        offered
    }

    /// The address for requests by datagram to the server of a profile. Datagrams are unencrypted, so they
    /// are used only if plain IIOP is permitted.
    #[must_use]
    pub fn datagrams(&self, profile: &IiopProfile) -> Option<DatagramAddress> {
        let address = profile.components.iter().find_map(DatagramAddress::decode)?;
        let excludes =
            |protocol: &Arc<dyn DynProtocol<T>>| protocol.excludes(IIOP, !protocol.addresses(profile).is_empty());
        if self.all.iter().any(excludes) {
            return None;
        }
        self.rank(&Address::at_port(DIOP, &address.host, address.port), cost::NETWORK).map(|_| address)
    }
}

/// The protocols by which the endpoints of an ORB are opened.
#[derive(Clone, Debug, Default)]
pub struct ServerProtocols {
    all: Vec<Arc<dyn ServerProtocol>>,
    selection: Option<Arc<dyn AddressSelection>>,
}

impl ServerProtocols {
    /// Adds a protocol, in place of one with the same scheme.
    pub fn register(&mut self, protocol: Arc<dyn ServerProtocol>) {
        match self.all.iter_mut().find(|known| known.scheme() == protocol.scheme()) {
            Some(known) => *known = protocol,
            None => self.all.push(protocol),
        }
    }

    /// Adds all protocols of another set, in place of those with the same schemes, and takes its selection.
    pub fn extend(&mut self, other: Self) {
        other.all.into_iter().for_each(|protocol| self.register(protocol));
        self.selection = other.selection;
    }

    /// Restricts the protocols to those that a selection uses.
    pub fn select(&mut self, selection: Arc<dyn AddressSelection>) {
        self.selection = Some(selection);
    }

    fn usable(&self) -> impl Iterator<Item = &Arc<dyn ServerProtocol>> {
        let is_used = |scheme| self.selection.as_ref().is_none_or(|selection| selection.uses(scheme));
        self.all.iter().filter(move |protocol| is_used(protocol.scheme()))
    }

    /// Listens at an endpoint, by the protocol that its scheme names.
    ///
    /// # Errors
    /// The errors of [`ServerProtocol::listen`]; [`io::ErrorKind::InvalidInput`] for an unknown protocol.
    pub fn open(&self, endpoint: &Endpoint, settings: &SocketSettings) -> io::Result<Listener> {
        match self.usable().find(|protocol| protocol.scheme() == endpoint.scheme()) {
            Some(protocol) => protocol.listen(endpoint, settings),
            None => {
                let schemes: Vec<_> = self.usable().map(|protocol| protocol.scheme()).collect();
                let (scheme, known) = (endpoint.scheme(), schemes.join(", "));
                let is_present = self.all.iter().any(|protocol| protocol.scheme() == scheme);
                let remedy = if is_present { "" } else { " (`OrbBuilder::protocol` adds others, such as `Ssliop`)" };
                Err(endpoint.invalid(format_args!("unknown protocol `{scheme}`: expected {known}{remedy}")))
            }
        }
    }
}
