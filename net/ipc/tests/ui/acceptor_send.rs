//! An acceptor carries no octets.

use spandrel_ipc::inet::Acceptor;

fn wrong(acceptor: &Acceptor) {
    let _ = acceptor.send(b"octets");
}

fn main() {
    let _ = wrong;
}
