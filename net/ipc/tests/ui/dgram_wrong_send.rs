//! An unconnected endpoint must say to whom it sends.

use spandrel_ipc::inet::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.send(b"octets");
}

fn main() {
    let _ = wrong;
}
