//! What several test programs of this crate need.

pub(crate) mod places;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel_ipc::inet::{Acceptor, Addr, Connector, Stream};

/// Longer than anything in these tests takes, so that a hang becomes a failure.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Two ends of one connection over `addr`, a loopback address with port 0.
pub(crate) fn pair_over(addr: &Addr) -> (Stream, Stream) {
    let acceptor = Acceptor::open(addr).unwrap();
    pair_from(&acceptor, &Connector::new())
}

/// Two ends of one connection: the connecting one, the accepted one.
pub(crate) fn pair() -> (Stream, Stream) {
    pair_over(&Addr::loopback(0))
}

/// Two ends of one connection made with the given options.
pub(crate) fn pair_from(acceptor: &Acceptor, connector: &Connector) -> (Stream, Stream) {
    let client = connector.open(&acceptor.local_addr().unwrap()).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    for stream in [&client, &server] {
        stream.set_recv_timeout(Some(LONG)).unwrap();
    }
    (client, server)
}

/// Octets that are not alike anywhere near each other.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}

/// Runs `work` in a thread and gives its result; fails if it takes too long.
pub(crate) fn within_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    result.recv_timeout(LONG).expect("the work ends in time")
}
