//! A batch without receivers does not go through an unconnected endpoint.

use spandrel_ipc::dgram::Batch;
use spandrel_ipc::inet::Dgram;

fn wrong(endpoint: &Dgram) {
    let mut batch = Batch::new(4, 64);
    let _ = batch.push(b"octets");
    let _ = endpoint.send_batch(&mut batch);
}

fn main() {
    let _ = wrong;
}
