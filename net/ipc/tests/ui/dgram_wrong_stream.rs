//! Datagrams are no stream of octets: there is no transferring until a buffer is full.

use spandrel_ipc::inet::ConnectedDgram;

fn wrong(endpoint: &ConnectedDgram) {
    let _ = endpoint.recv_n(&mut [0; 16]);
}

fn main() {
    let _ = wrong;
}
