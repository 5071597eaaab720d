//! A connected endpoint receives from its peer alone.

use spandrel_ipc::inet::ConnectedDgram;

fn wrong(endpoint: &ConnectedDgram) {
    let _ = endpoint.recv_from(&mut [0; 16]);
}

fn main() {
    let _ = wrong;
}
