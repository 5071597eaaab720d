//! Every family of streams, each with fresh addresses, so that the contracts of the patterns are tested over
//! all of them.

use std::sync::OnceLock;

use spandrel_ipc::inet::{self, Inet};
use spandrel_ipc::{Family, Receive};
#[cfg(target_os = "linux")]
use spandrel_ipc::{shm, unix};
use spandrel_test_support::TEST_TIMEOUT;
use spandrel_test_support::certificates::{Authority, Identity};
use spandrel_tls::{ClientOptions, ServerOptions, Tls, pem};

/// A family under test.
pub trait TestFamily: 'static {
    type Family: Family;

    fn family() -> Self::Family;

    /// An address at which an acceptor can be opened that then returns its own address, and resources that
    /// must live as long as it is used.
    fn fresh() -> (AddrOf<Self>, Option<tempfile::TempDir>);
}

pub type AddrOf<P> = <<P as TestFamily>::Family as Family>::Addr;
pub type StreamOf<P> = <<P as TestFamily>::Family as Family>::Stream;

/// Connects; no transfer of the stream waits for longer than a test may take.
#[track_caller]
pub fn client_of<P: TestFamily>(addr: &AddrOf<P>) -> StreamOf<P> {
    let stream = P::family().connect(addr, Some(TEST_TIMEOUT)).unwrap();
    stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

pub struct OverInet;
impl TestFamily for OverInet {
    type Family = Inet;
    fn family() -> Inet {
        Inet::default()
    }
    fn fresh() -> (inet::Addr, Option<tempfile::TempDir>) {
        (inet::Addr::loopback(0), None)
    }
}

#[cfg(target_os = "linux")]
pub struct OverUnix;
#[cfg(target_os = "linux")]
impl TestFamily for OverUnix {
    type Family = unix::Unix;
    fn family() -> unix::Unix {
        unix::Unix::default()
    }
    fn fresh() -> (unix::Addr, Option<tempfile::TempDir>) {
        (unix::Addr::unnamed(), None)
    }
}

#[cfg(unix)]
pub struct OverSpipe;
#[cfg(unix)]
impl TestFamily for OverSpipe {
    type Family = spandrel_ipc::spipe::Spipe;
    fn family() -> Self::Family {
        spandrel_ipc::spipe::Spipe::default()
    }
    fn fresh() -> (AddrOf<Self>, Option<tempfile::TempDir>) {
        let folder = tempfile::tempdir().unwrap();
        (spandrel_ipc::spipe::Addr::path(folder.path().join("pipes")).unwrap(), Some(folder))
    }
}

#[cfg(target_os = "linux")]
pub struct OverShm;
#[cfg(target_os = "linux")]
impl TestFamily for OverShm {
    type Family = shm::Shm;
    fn family() -> shm::Shm {
        shm::Shm::default()
    }
    fn fresh() -> (shm::Addr, Option<tempfile::TempDir>) {
        (shm::Addr::unnamed(), None)
    }
}

/// Decodes, and makes its connections in several steps.
pub struct OverTls;
impl TestFamily for OverTls {
    type Family = Tls<Inet>;
    fn family() -> Tls<Inet> {
        static FAMILY: OnceLock<Tls<Inet>> = OnceLock::new();
        FAMILY.get_or_init(tls).clone()
    }
    fn fresh() -> (inet::Addr, Option<tempfile::TempDir>) {
        (inet::Addr::loopback(0), None)
    }
}

/// Both sides: a server with a certificate of an authority, and clients that trust it.
fn tls() -> Tls<Inet> {
    const NAME: &str = "server.test";
    let provider = spandrel_sync::Arc::new(rustls::crypto::ring::default_provider());
    let authority = Authority::new("the authority of the tests");
    let Identity { chain, key } = authority.issue(NAME);
    let (chain, key) = (pem::certificates(chain.as_bytes()).unwrap(), pem::private_key(key.as_bytes()).unwrap());
    let server = ServerOptions::new(spandrel_sync::Arc::clone(&provider), chain, key).build().unwrap();
    let client = ClientOptions::new(provider, pem::authorities(authority.pem().as_bytes()).unwrap()).build().unwrap();
    Tls::new(Inet::default()).server(server).client(client, NAME.try_into().unwrap())
}

/// Calls the macro `$cases` once for each family under test.
#[macro_export]
macro_rules! for_every_place {
    ($cases:ident) => {
        $cases!(inet, OverInet);
        #[cfg(target_os = "linux")]
        $cases!(unix, OverUnix);
        #[cfg(unix)]
        $cases!(spipe, OverSpipe);
        #[cfg(target_os = "linux")]
        $cases!(shm, OverShm);
        $cases!(tls, OverTls);
    };
}
