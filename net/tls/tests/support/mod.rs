//! Helpers of the test programs of this crate: an authority, identities, and two ends of a connection.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;
use spandrel_ipc::{Family, inet};
use spandrel_sync::Arc;
pub(crate) use spandrel_test_support::TEST_TIMEOUT;
pub(crate) use spandrel_test_support::certificates::{Authority, Identity};
use spandrel_tls::{ClientOptions, ServerOptions, Stream, Tls, pem};

/// Long enough to be noticed, short enough to be waited for.
pub(crate) const SHORT: Duration = Duration::from_millis(30);

pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// The authority that both sides trust by default.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("the authority of the tests"))
}

pub(crate) const NAME: &str = "server.test";

pub(crate) fn name() -> ServerName<'static> {
    NAME.try_into().unwrap()
}

/// A server with an identity of the authority.
pub(crate) fn server_options() -> ServerOptions {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    server_options_of(IDENTITY.get_or_init(|| authority().issue(NAME)))
}

pub(crate) fn server_options_of(identity: &Identity) -> ServerOptions {
    let chain = pem::certificates(identity.chain.as_bytes()).unwrap();
    ServerOptions::new(provider(), chain, pem::private_key(identity.key.as_bytes()).unwrap())
}

/// A client that trusts the authority.
pub(crate) fn client_options() -> ClientOptions {
    ClientOptions::new(provider(), pem::authorities(authority().pem().as_bytes()).unwrap())
}

pub(crate) fn server_config() -> Arc<ServerConfig> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| server_options().build().unwrap()))
}

pub(crate) fn client_config() -> Arc<ClientConfig> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    Arc::clone(CONFIG.get_or_init(|| client_options().build().unwrap()))
}

/// Both sides, over `inner`.
pub(crate) fn tls<F: Family>(inner: F) -> Tls<F> {
    Tls::new(inner)
        .server(server_config())
        .client(client_config(), name())
        .handshake_timeout(TEST_TIMEOUT)
        .close_timeout(TEST_TIMEOUT)
}

pub(crate) fn tcp() -> Tls {
    tls(inet::Inet::default())
}

pub(crate) type TcpStream = Stream<inet::Stream>;

/// Two ends of one connection with a completed handshake: the connecting one, the accepted one.
pub(crate) fn pair_of<F: Family>(family: &Tls<F>, addr: &F::Addr) -> (Stream<F::Stream>, Stream<F::Stream>) {
    let acceptor = family.open(addr).unwrap();
    let addr = acceptor.local_addr().unwrap();
    thread::scope(|scope| {
        let client = scope.spawn(|| family.connect(&addr, Some(TEST_TIMEOUT)).unwrap());
        let (server, _) = acceptor.accept().unwrap();
        server.handshake_within(TEST_TIMEOUT).unwrap();
        (client.join().unwrap(), server)
    })
}

/// Two ends of one TCP connection with TLS over it.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    pair_of(&tcp(), &inet::Addr::loopback(0))
}

/// Two ends of a TCP connection without TLS.
pub(crate) fn plain_pair() -> (inet::Stream, inet::Stream) {
    let acceptor = inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap();
    let client = inet::Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
    (client, acceptor.accept().unwrap().0)
}
