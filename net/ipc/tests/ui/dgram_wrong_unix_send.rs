//! An unconnected endpoint must say to whom it sends, in every family.

use spandrel_ipc::unix::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.send(b"octets");
}

fn main() {
    let _ = wrong;
}
