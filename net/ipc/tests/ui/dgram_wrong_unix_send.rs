//! An unconnected endpoint must name the receiver, in every family.

use spandrel_ipc::unix::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.send(b"octets");
}

fn main() {
    let _ = wrong;
}
