//! The party to which an offer is made, by which its token is bound.

use std::net::IpAddr;

use spandrel_ipc::inet;
use spandrel_server::{current_peer_address, with_current_stream};
use spandrel_transport::{Address, is_own_host};

use crate::{channel::ChannelPeer, endpoint::Endpoint};

/// The party that may use the token of an offer and call its stream end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OfferedTo {
    /// The sender of the request that this thread runs: its address, its certificate and its user. Outside of requests
    /// as [`Anyone`](Self::Anyone).
    Caller,
    /// Any party that has the token.
    Anyone,
    /// A party at this address.
    Host(IpAddr),
}

/// The verified properties of the party.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerBinding {
    scope: Scope,
    /// Whether its requests came over TLS, so that all other connections with it have to be encrypted as well.
    pub(crate) is_secure: bool,
    certificate: Option<Vec<u8>>,
    user: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    Anywhere,
    OwnHost,
    Host(IpAddr),
}

impl PeerBinding {
    pub(crate) fn new(party: &OfferedTo) -> Self {
        match party {
            OfferedTo::Caller => Self::caller().unwrap_or_default(),
            OfferedTo::Anyone => Self::default(),
            OfferedTo::Host(ip) => Self { scope: Scope::at(ip.to_canonical()), ..Self::default() },
        }
    }

    /// The sender of the request that this thread runs; `None` outside of requests.
    pub(crate) fn caller() -> Option<Self> {
        let address = current_peer_address()?;
        let scope = ip_of(&address).map_or(Scope::OwnHost, Scope::at);
        let is_secure = address.scheme() == "ssliop";
        Some(Self { scope, is_secure, certificate: current_certificate(), user: current_user() })
    }

    /// The endpoint with the host by which the party reaches it; `None` if its connections would not be admitted.
    pub(crate) fn may_use(&self, endpoint: &Endpoint, host: Option<&str>) -> Option<Endpoint> {
        let at = |bound: &str| host.map_or_else(|| bound.to_owned(), str::to_owned);
        let is_known_by_address = !self.is_secure && self.user_is_any();
        match endpoint {
            Endpoint::Tcp(bound, port) => is_known_by_address.then(|| Endpoint::Tcp(at(bound), *port)),
            Endpoint::Tls(bound, port) => {
                (self.user_is_any() || self.certificate.is_some()).then(|| Endpoint::Tls(at(bound), *port))
            }
            Endpoint::Unix(_) | Endpoint::Shm(_) => {
                (!self.is_secure && self.scope == Scope::OwnHost).then(|| endpoint.clone())
            }
        }
    }

    /// Whether the peer of a bulk connection is this party.
    pub(crate) fn admits(&self, peer: &ChannelPeer) -> bool {
        match peer {
            ChannelPeer::Tcp(ip) => !self.is_secure && self.user_is_any() && self.scope.contains(*ip),
            ChannelPeer::Unix(user) => {
                !self.is_secure
                    && !matches!(self.scope, Scope::Host(_))
                    && self.user.is_none_or(|own| *user == Some(own))
            }
            ChannelPeer::Tls(ip, certificate) => match &self.certificate {
                Some(own) => certificate.as_ref() == Some(own),
                None => self.user_is_any() && self.scope.contains(*ip),
            },
        }
    }

    /// Whether the sender of a request is this party.
    pub(crate) fn is_caller(&self, caller: &Self) -> bool {
        match (&self.certificate, self.scope) {
            (Some(own), _) => caller.certificate.as_ref() == Some(own),
            (None, Scope::Anywhere) => true,
            (None, scope) => {
                scope == caller.scope
                    && (caller.is_secure || !self.is_secure)
                    && self.user.is_none_or(|own| caller.user == Some(own))
            }
        }
    }

    /// Whether another offer is made to the same party. A party that may be anyone is no other's.
    pub(crate) fn is_party_of(&self, other: &Self) -> bool {
        let network = |scope: Scope| match scope {
            Scope::Anywhere => None,
            Scope::OwnHost => Some(None),
            Scope::Host(ip) => Some(Some(ChargedParty::at(ip))),
        };
        match (&self.certificate, &other.certificate, self.user, other.user) {
            (Some(own), Some(certificate), ..) => own == certificate,
            (None, None, Some(own), Some(user)) => own == user,
            (None, None, None, None) => self.scope != Scope::Anywhere && network(self.scope) == network(other.scope),
            _ => false,
        }
    }

    /// Whether the party is not known by its user, which other connections than those by UNIX-domain sockets do not show.
    fn user_is_any(&self) -> bool {
        self.user.is_none()
    }
}

/// A party to which bulk connections are charged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ChargedParty {
    Certificate(Vec<u8>),
    /// A user of this machine, by UNIX-domain sockets; `None` where the system does not tell.
    User(Option<u32>),
    /// An address. Of IPv6 the first 64 bits, since one machine has all addresses that begin with them.
    Network(IpAddr),
}

impl ChargedParty {
    /// The peer of a connection.
    pub(crate) fn of_peer(peer: &ChannelPeer) -> Self {
        match peer {
            ChannelPeer::Tls(_, Some(certificate)) => Self::Certificate(certificate.clone()),
            ChannelPeer::Tls(ip, None) | ChannelPeer::Tcp(ip) => Self::at(*ip),
            ChannelPeer::Unix(user) => Self::User(*user),
        }
    }

    /// The party at an address.
    pub(crate) fn at(ip: IpAddr) -> Self {
        Self::Network(match ip.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            address => address,
        })
    }
}

impl Scope {
    fn at(ip: IpAddr) -> Self {
        if is_own_host(ip) { Self::OwnHost } else { Self::Host(ip) }
    }

    fn contains(self, ip: IpAddr) -> bool {
        self == Self::Anywhere || self == Self::at(ip)
    }
}

/// The IP address of the sender of the current request.
pub(crate) fn caller_ip() -> Option<IpAddr> {
    ip_of(&*current_peer_address()?)
}

/// The own address of the connection of the current request: the one by which its sender reaches this machine.
pub(crate) fn address_for_caller() -> Option<IpAddr> {
    let plain = with_current_stream(|stream: &inet::Stream| stream.local_addr().ok().map(|addr| addr.ip()));
    plain.flatten().or_else(secure_address).map(|ip| ip.to_canonical())
}

fn ip_of(address: &Address) -> Option<IpAddr> {
    let (host, _) = address.host_and_port()?;
    host.split('%').next()?.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn current_user() -> Option<u32> {
    let credentials = |stream: &spandrel_ipc::unix::Stream| stream.peer_credentials().ok();
    with_current_stream(credentials)?.map(|peer| peer.uid)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn current_user() -> Option<u32> {
    None
}

fn current_certificate() -> Option<Vec<u8>> {
    spandrel_ssliop::PeerIdentity::with_current_certificate(|certificate| certificate.to_vec())
}

fn secure_address() -> Option<IpAddr> {
    let local = |stream: &spandrel_ssliop::tls::Stream<inet::Stream>| stream.inner().local_addr().ok();
    with_current_stream(local)?.map(|addr| addr.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_party_is_admitted_by_its_address_its_user_or_its_certificate() {
        let far = PeerBinding::new(&OfferedTo::Host(ip("203.0.113.5")));
        assert!(far.admits(&ChannelPeer::Tcp(ip("203.0.113.5"))));
        assert!(!far.admits(&ChannelPeer::Tcp(ip("203.0.113.6"))));
        assert!(!far.admits(&ChannelPeer::Unix(Some(0))), "it is on another machine");

        let near = PeerBinding::new(&OfferedTo::Host(ip("127.0.0.1")));
        assert!(near.admits(&ChannelPeer::Tcp(ip("::1"))), "all addresses of this machine are one party");
        assert!(near.admits(&ChannelPeer::Unix(Some(7))));
        let user = PeerBinding { user: Some(7), ..near.clone() };
        assert!(user.admits(&ChannelPeer::Unix(Some(7))));
        assert!(!user.admits(&ChannelPeer::Unix(Some(8))));
        assert!(!user.admits(&ChannelPeer::Tcp(ip("127.0.0.1"))), "TCP does not show the user");

        let secure = PeerBinding { is_secure: true, ..near.clone() };
        assert!(!secure.admits(&ChannelPeer::Tcp(ip("127.0.0.1"))), "never in clear");
        assert!(!secure.admits(&ChannelPeer::Unix(Some(7))), "never in clear");
        assert!(secure.admits(&ChannelPeer::Tls(ip("127.0.0.1"), None)));
        let certified = PeerBinding { certificate: Some(vec![1]), ..secure };
        assert!(certified.admits(&ChannelPeer::Tls(ip("203.0.113.5"), Some(vec![1]))));
        assert!(!certified.admits(&ChannelPeer::Tls(ip("127.0.0.1"), Some(vec![2]))));
        assert!(!certified.admits(&ChannelPeer::Tls(ip("127.0.0.1"), None)));

        assert!(certified.is_caller(&certified));
        assert!(!certified.is_caller(&near));
        assert!(!far.is_caller(&near));
        assert!(PeerBinding::default().is_caller(&far));
        for party in [&far, &near, &user, &certified] {
            let same = [&far, &near, &user, &certified].into_iter().filter(|other| party.is_party_of(other));
            assert!(same.eq([party]), "{party:?}");
        }
        assert!(!PeerBinding::default().is_party_of(&PeerBinding::default()), "it may be anyone");
        let at = |text| PeerBinding::new(&OfferedTo::Host(ip(text)));
        assert!(at("2001:db8::1").is_party_of(&at("2001:db8::2")) && !at("203.0.113.6").is_party_of(&far));
        let clear = PeerBinding { certificate: None, ..certified.clone() };
        assert!(!clear.is_caller(&near), "its requests come over TLS");
    }

    #[test]
    fn connections_are_charged_to_a_certificate_a_user_or_a_network() {
        let charged = |peer| ChargedParty::of_peer(&peer);
        let tcp = |text| charged(ChannelPeer::Tcp(ip(text)));
        assert_eq!(tcp("2001:db8::1"), tcp("2001:db8::ffff:1"));
        assert_ne!(tcp("2001:db8::1"), tcp("2001:db8:0:1::1"));
        assert_eq!(tcp("::ffff:203.0.113.5"), tcp("203.0.113.5"));
        assert_ne!(tcp("203.0.113.5"), tcp("203.0.113.6"));
        assert_eq!(charged(ChannelPeer::Tls(ip("203.0.113.5"), None)), tcp("203.0.113.5"));
        let certified = |at, octet| charged(ChannelPeer::Tls(ip(at), Some(vec![octet])));
        assert_eq!(certified("203.0.113.5", 1), certified("203.0.113.6", 1));
        assert_ne!(certified("203.0.113.5", 1), certified("203.0.113.5", 2));
        assert_ne!(charged(ChannelPeer::Unix(Some(1))), charged(ChannelPeer::Unix(Some(2))));
    }
}
