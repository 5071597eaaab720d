//! An unconnected endpoint always gets the sender.

use spandrel_ipc::inet::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.recv(&mut [0; 16]);
}

fn main() {
    let _ = wrong;
}
