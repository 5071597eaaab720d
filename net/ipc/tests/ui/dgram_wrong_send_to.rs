//! A connected endpoint sends to its peer alone.

use spandrel_ipc::inet::{Addr, ConnectedDgram};

fn wrong(endpoint: &ConnectedDgram) {
    let _ = endpoint.send_to(b"octets", &Addr::loopback(9));
}

fn main() {
    let _ = wrong;
}
