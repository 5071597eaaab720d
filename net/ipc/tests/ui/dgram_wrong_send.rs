//! An unconnected endpoint must name the receiver.

use spandrel_ipc::inet::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.send(b"octets");
}

fn main() {
    let _ = wrong;
}
