//! A connected endpoint sends to its peer alone, in every family.

use spandrel_ipc::unix::{Addr, ConnectedDgram};

fn wrong(endpoint: &ConnectedDgram, to: &Addr) {
    let _ = endpoint.send_to(b"octets", to);
}

fn main() {
    let _ = wrong;
}
