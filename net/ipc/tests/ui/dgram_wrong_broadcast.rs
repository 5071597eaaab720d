//! A broadcast endpoint sends to all hosts, not to one.

use spandrel_ipc::inet::{Addr, Broadcast};

fn wrong(endpoint: &Broadcast) {
    let _ = endpoint.send_to(b"octets", &Addr::loopback(9));
}

fn main() {
    let _ = wrong;
}
