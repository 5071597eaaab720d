//! The credentials of the peer whose request a thread runs.

use std::{fmt, net::IpAddr};

use spandrel_server::current_peer_address;
use spandrel_ssliop::PeerIdentity;
use spandrel_sync::Arc;
use spandrel_transport::Address;

/// The credentials that this side has received from the peer of the current request (`ReceivedCredentials` of the CORBA
/// Security Service 1.8): its address, and its verified identity.
///
/// ```no_run
/// # mod spandrel { pub use spandrel_orb::*; pub use spandrel_authorization as authorization; }
/// use spandrel::authorization::ReceivedCredentials;
///
/// /// In a servant: the name to write into a journal.
/// fn requester() -> String {
///     match ReceivedCredentials::current() {
///         None => "this process".to_owned(),
///         Some(peer) => peer.identity().common_name.clone().unwrap_or_else(|| peer.address().to_string()),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct ReceivedCredentials {
    address: Arc<Address>,
    identity: Arc<Identity>,
}

impl ReceivedCredentials {
    /// The credentials of the peer whose request this thread runs, in a servant or in a future that serves.
    ///
    /// `None` outside requests and in calls from the same process that serve no request from outside. In other calls
    /// on objects of the same process it is the sender of the request from outside.
    #[must_use]
    pub fn current() -> Option<Self> {
        let address = current_peer_address()?;
        let identity = Arc::new(Identity::current(&address));
        Some(Self { address, identity })
    }

    /// The credentials of a caller that another protocol than GIOP has authenticated, such as an HTTP server in front of
    /// objects. The scheme of the address is that protocol's.
    #[must_use]
    pub fn of_caller(address: Address, identity: Identity) -> Self {
        Self::new(Arc::new(address), Arc::new(identity))
    }

    pub(crate) fn new(address: Arc<Address>, identity: Arc<Identity>) -> Self {
        Self { address, identity }
    }

    /// The address of the peer, such as `iiop://10.0.0.7:41234`. A peer by UNIX-domain socket may have an empty one.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The IP address of the peer; `None` for the transports of one machine.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        ip_of(&self.address)
    }

    /// The verified names of the peer, and of its user.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// The verified identity of a peer; all fields are empty for an anonymous one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Identity {
    /// The common name of its certificate's subject ([`PeerIdentity::common_name`]).
    pub common_name: Option<String>,
    /// The DNS names of its certificate (subject alternative names).
    pub dns_names: Vec<String>,
    /// The URIs of its certificate (subject alternative names).
    pub uri_names: Vec<String>,
    /// The common name of the authority that has issued its certificate.
    pub issuer: Option<String>,
    /// The user of its process, over a UNIX-domain socket (Linux).
    pub user_id: Option<u32>,
    /// Whether it has shown a certificate that was verified.
    pub has_certificate: bool,
    /// Its certificates, as the handshake has verified them.
    pub certificates: Option<PeerIdentity>,
    /// The name of the secret token that it has shown, to an HTTP server in front of objects.
    pub token_name: Option<String>,
}

impl Identity {
    /// Whether anything about the peer is verified.
    #[must_use]
    pub fn is_authenticated(&self) -> bool {
        self.has_certificate || self.user_id.is_some() || self.token_name.is_some()
    }

    fn current(address: &Address) -> Self {
        match address.scheme() {
            "uds" => Self { user_id: current_user(), ..Self::default() },
            _ => PeerIdentity::current().map_or_else(Self::default, |peer| Self::of(&peer)),
        }
    }

    /// The identity of the holder of a secret token with this name.
    #[must_use]
    pub fn of_token(name: impl Into<String>) -> Self {
        Self { token_name: Some(name.into()), ..Self::default() }
    }

    /// The names in a certificate that the handshake has verified.
    #[must_use]
    pub fn of(peer: &PeerIdentity) -> Self {
        Self {
            common_name: peer.common_name(),
            dns_names: peer.dns_names(),
            uri_names: peer.uri_names(),
            issuer: peer.issuer_common_name(),
            user_id: None,
            has_certificate: true,
            certificates: Some(peer.clone()),
            token_name: None,
        }
    }

    pub(crate) fn of_user(user_id: Option<u32>) -> Self {
        Self { user_id, ..Self::default() }
    }
}

impl fmt::Display for Identity {
    /// The text that names the peer to people: the common name of its certificate or one of its other names, its token, its
    /// user, or that it has shown none of these.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.common_name.as_ref().or(self.dns_names.first()).or(self.uri_names.first());
        match (name, &self.token_name, self.user_id) {
            (Some(name), ..) => write!(f, "`{name}`"),
            (None, Some(token), _) => write!(f, "the holder of the token `{token}`"),
            (None, None, Some(user)) => write!(f, "user {user}"),
            (None, None, None) if self.has_certificate => f.write_str("a caller whose certificate has no name"),
            (None, None, None) => f.write_str("a caller without a verified identity"),
        }
    }
}

/// The user of the process at the other end of the current request's UNIX-domain socket.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn current_user() -> Option<u32> {
    let credentials = |stream: &spandrel_ipc::unix::Stream| stream.peer_credentials().ok();
    spandrel_server::with_current_stream(credentials)?.map(|peer| peer.uid)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn current_user() -> Option<u32> {
    None
}

/// The IP address in an address of a host and a port. A zone of IPv6 (`fe80::1%eth0`) is ignored.
pub(crate) fn ip_of(address: &Address) -> Option<IpAddr> {
    let (host, _) = address.host_and_port()?;
    host.split('%').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ip_address_is_that_of_a_host_and_port() {
        for (scheme, address, expected) in [
            ("iiop", "10.0.0.7:41234", Some("10.0.0.7")),
            ("ssliop", "[2001:db8::1]:1", Some("2001:db8::1")),
            ("iiop", "[fe80::1%eth0]:9", Some("fe80::1")),
            ("iiop", "localhost:9", None),
            ("iiop", "10.0.0.7", None),
            ("uds", "10.0.0.7:1", None),
        ] {
            let caller = ReceivedCredentials::of_caller(Address::new(scheme, address), Identity::default());
            assert_eq!(caller.ip(), expected.map(|ip| ip.parse().unwrap()), "{address}");
            assert_eq!(caller.address().address(), address);
        }
    }

    #[test]
    fn an_identity_is_authenticated_by_a_certificate_a_user_or_a_token() {
        assert!(!Identity::default().is_authenticated());
        assert!(Identity { has_certificate: true, ..Identity::default() }.is_authenticated());
        assert!(Identity::of_user(Some(0)).is_authenticated());
        assert!(Identity::of_token("tester").is_authenticated());
        let named = Identity { common_name: Some("teller".to_owned()), ..Identity::default() };
        assert!(!named.is_authenticated(), "a name alone proves nothing");
    }

    #[test]
    fn the_identity_of_a_token_has_its_name_alone() {
        let expected = Identity { token_name: Some("tester".to_owned()), ..Identity::default() };
        assert_eq!(Identity::of_token("tester"), expected);
    }

    #[test]
    fn there_are_no_credentials_outside_of_requests() {
        assert!(ReceivedCredentials::current().is_none());
        assert_eq!(current_user(), None);
    }
}
