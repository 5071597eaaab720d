//! Only a multicast endpoint joins groups.

use spandrel_ipc::inet::Dgram;

fn wrong(endpoint: &Dgram) {
    let _ = endpoint.join([239, 1, 2, 3].into(), None);
}

fn main() {
    let _ = wrong;
}
