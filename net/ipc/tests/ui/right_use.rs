//! The same calls as in the other cases, on the endpoints that have them: those fail for no other reason.

use spandrel_ipc::Family;
use spandrel_ipc::inet::{Acceptor, Addr, Connector, Inet, Stream};

fn right(acceptor: &Acceptor, stream: &Stream, addr: &Addr) {
    let _ = acceptor.accept();
    let _ = stream.recv(&mut [0; 16]);
    let _ = stream.send(b"octets");
    let _ = Connector::connect(addr);
    let _ = Inet::default().connect(addr, None);
}

fn main() {
    let _ = right;
}
