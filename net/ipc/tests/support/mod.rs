//! Helpers of several test programs of this crate.

pub(crate) mod test_families;

use spandrel_ipc::inet::{Acceptor, Addr, Connector, Stream};
use spandrel_test_support::TEST_TIMEOUT;

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
        stream.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    }
    (client, server)
}
