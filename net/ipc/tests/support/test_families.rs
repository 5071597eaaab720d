//! Every family of streams, each with fresh addresses, so that one suite runs over all of them.

use std::thread;

#[cfg(target_os = "linux")]
use spandrel_ipc::shm;
use spandrel_ipc::{Accept, Family, inet};
#[cfg(unix)]
use spandrel_ipc::{spipe, unix};

use super::TEST_TIMEOUT;

/// A family under test.
pub(crate) trait TestFamily: 'static {
    /// The family under test.
    type Family: Family;

    /// Used in messages, and by programs that run themselves again.
    const NAME: &'static str;

    fn family() -> Self::Family;

    /// An address at which an acceptor can be opened that then returns its own address.
    fn fresh() -> Fresh<AddrOf<Self>>;

    /// Whether this machine supports it.
    fn is_available() -> bool {
        true
    }
}

pub(crate) type AddrOf<P> = <<P as TestFamily>::Family as Family>::Addr;
pub(crate) type AcceptorOf<P> = <<P as TestFamily>::Family as Family>::Acceptor;
pub(crate) type StreamOf<P> = <<P as TestFamily>::Family as Family>::Stream;

/// An address, and the resources that must live as long as it is used.
pub(crate) struct Fresh<A> {
    pub(crate) addr: A,
    _folder: Option<tempfile::TempDir>,
}

/// An acceptor at a fresh address, and that address.
pub(crate) fn listening<P: TestFamily>() -> (AcceptorOf<P>, Fresh<AddrOf<P>>) {
    let mut fresh = P::fresh();
    let acceptor = P::family().open(&fresh.addr).unwrap();
    fresh.addr = acceptor.local_addr().unwrap();
    (acceptor, fresh)
}

/// Two ends of one connection: the connecting one, the accepted one.
pub(crate) fn connected<P: TestFamily>() -> (StreamOf<P>, StreamOf<P>) {
    let (acceptor, fresh) = listening::<P>();
    join::<P>(&acceptor, &fresh.addr)
}

/// One more connection. In some families there is none before it is accepted, so both sides must act at once.
pub(crate) fn join<P: TestFamily>(acceptor: &AcceptorOf<P>, addr: &AddrOf<P>) -> (StreamOf<P>, StreamOf<P>) {
    thread::scope(|scope| {
        let client = scope.spawn(|| P::family().connect(addr, Some(TEST_TIMEOUT)).unwrap());
        let (server, _) = acceptor.accept().unwrap();
        (client.join().unwrap(), server)
    })
}

pub(crate) struct InetV4;
impl TestFamily for InetV4 {
    type Family = inet::Inet;
    const NAME: &'static str = "inet_v4";
    fn family() -> inet::Inet {
        inet::Inet::default()
    }
    fn fresh() -> Fresh<inet::Addr> {
        Fresh { addr: inet::Addr::loopback(0), _folder: None }
    }
}

pub(crate) struct InetV6;
impl TestFamily for InetV6 {
    type Family = inet::Inet;
    const NAME: &'static str = "inet_v6";
    fn family() -> inet::Inet {
        inet::Inet::default()
    }
    fn fresh() -> Fresh<inet::Addr> {
        Fresh { addr: inet::Addr::loopback_v6(0), _folder: None }
    }
    fn is_available() -> bool {
        std::net::UdpSocket::bind("[::1]:0").is_ok()
    }
}

#[cfg(unix)]
pub(crate) struct UnixPath;
#[cfg(unix)]
impl TestFamily for UnixPath {
    type Family = unix::Unix;
    const NAME: &'static str = "unix_path";
    fn family() -> unix::Unix {
        unix::Unix::default()
    }
    fn fresh() -> Fresh<unix::Addr> {
        let folder = tempfile::tempdir().unwrap();
        Fresh { addr: unix::Addr::path(folder.path().join("socket")).unwrap(), _folder: Some(folder) }
    }
}

#[cfg(target_os = "linux")]
pub(crate) struct UnixAbstract;
#[cfg(target_os = "linux")]
impl TestFamily for UnixAbstract {
    type Family = unix::Unix;
    const NAME: &'static str = "unix_abstract";
    fn family() -> unix::Unix {
        unix::Unix::default()
    }
    fn fresh() -> Fresh<unix::Addr> {
        Fresh { addr: unix::Addr::unnamed(), _folder: None }
    }
}

#[cfg(unix)]
pub(crate) struct Pipe;
#[cfg(unix)]
impl TestFamily for Pipe {
    type Family = spipe::Spipe;
    const NAME: &'static str = "spipe";
    fn family() -> spipe::Spipe {
        spipe::Spipe::default()
    }
    fn fresh() -> Fresh<spipe::Addr> {
        let folder = tempfile::tempdir().unwrap();
        Fresh { addr: spipe::Addr::path(folder.path().join("pipes")).unwrap(), _folder: Some(folder) }
    }
}

#[cfg(target_os = "linux")]
pub(crate) struct Memory;
#[cfg(target_os = "linux")]
impl TestFamily for Memory {
    type Family = shm::Shm;
    const NAME: &'static str = "shm";
    fn family() -> shm::Shm {
        shm::Shm::default()
    }
    fn fresh() -> Fresh<shm::Addr> {
        Fresh { addr: shm::Addr::unnamed(), _folder: None }
    }
}

/// Calls the macro `$cases` once for each family under test.
#[macro_export]
macro_rules! for_every_place {
    ($cases:ident) => {
        $cases!(inet_v4, InetV4);
        $cases!(inet_v6, InetV6);
        #[cfg(unix)]
        $cases!(unix_path, UnixPath);
        #[cfg(target_os = "linux")]
        $cases!(unix_abstract, UnixAbstract);
        #[cfg(unix)]
        $cases!(spipe, Pipe);
        #[cfg(target_os = "linux")]
        $cases!(shm, Memory);
    };
}
