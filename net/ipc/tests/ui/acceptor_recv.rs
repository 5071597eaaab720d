//! An acceptor carries no octets.

use spandrel_ipc::inet::Acceptor;

fn wrong(acceptor: &Acceptor) {
    let _ = acceptor.recv(&mut [0; 16]);
}

fn main() {
    let _ = wrong;
}
