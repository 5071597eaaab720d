//! An echo server for any number of clients, on one thread.

use spandrel::net::ipc::{Family, inet};
use spandrel::net::reactor::{Acceptor, Peer, Reactor, ServiceHandler};

struct Echo;

impl<F: Family> ServiceHandler<F> for Echo {
    fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> std::io::Result<()> {
        let mut buffer = [0; 4096];
        match peer.recv(&mut buffer)? {
            0 => peer.close(),
            count => peer.put(&buffer[..count])?,
        }
        Ok(())
    }
}

fn main() -> std::io::Result<()> {
    let reactor = Reactor::new()?;
    let acceptor = Acceptor::new(inet::Inet::default(), || Echo);
    println!("{}", acceptor.open(reactor.registry(), &inet::Addr::loopback(0))?.addr());
    reactor.run()
}
