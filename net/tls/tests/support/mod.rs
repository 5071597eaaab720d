//! What the test programs of this crate need: an authority, identities, and two ends of a connection.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::ServerName;
use spandrel_ipc::{Family, inet};
use spandrel_sync::Arc;
use spandrel_tls::{ClientOptions, ServerOptions, Stream, Tls, pem};

/// Longer than anything in these tests takes, so that a hang becomes a failure.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// Long enough to be noticed, short enough to be waited for.
pub(crate) const SHORT: Duration = Duration::from_millis(30);

/// Octets that are not alike anywhere near each other.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(rustls::crypto::ring::default_provider())))
}

/// Who vouches for others.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key, as PEM.
pub(crate) struct Identity {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Vouches for `name`.
    pub(crate) fn issue(&self, name: &str) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.serial_number = Some(serial(name));
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { chain: certificate.pem(), key: key.serialize_pem() }
    }

    /// Vouches for what it issued for `name` no longer.
    pub(crate) fn revoke(&self, name: &str) -> String {
        let revoked = RevokedCertParams {
            serial_number: serial(name),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.0).unwrap().pem().unwrap()
    }
}

/// The same for the same name.
fn serial(name: &str) -> SerialNumber {
    SerialNumber::from_slice(name.as_bytes())
}

/// The authority that both sides trust, unless a test is about that.
pub(crate) fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("the authority of the tests"))
}

pub(crate) const NAME: &str = "server.test";

pub(crate) fn name() -> ServerName<'static> {
    NAME.try_into().unwrap()
}

/// A server that has shown its identity to the authority.
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
    Tls::new(inner).server(server_config()).client(client_config(), name()).handshake_timeout(LONG).close_timeout(LONG)
}

pub(crate) fn tcp() -> Tls {
    tls(inet::Inet::default())
}

pub(crate) type TcpStream = Stream<inet::Stream>;

/// Two ends of one connection, which has had its handshake: the connecting one, the accepted one.
pub(crate) fn pair_of<F: Family>(family: &Tls<F>, addr: &F::Addr) -> (Stream<F::Stream>, Stream<F::Stream>) {
    let acceptor = family.open(addr).unwrap();
    let addr = acceptor.local_addr().unwrap();
    thread::scope(|scope| {
        let client = scope.spawn(|| family.connect(&addr, Some(LONG)).unwrap());
        let (server, _) = acceptor.accept().unwrap();
        server.handshake_within(LONG).unwrap();
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

/// Waits for `fact`, which another thread brings about.
#[track_caller]
pub(crate) fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !fact() {
        assert!(start.elapsed() < LONG, "{what} does not happen");
        thread::sleep(Duration::from_millis(1));
    }
}
