//! (5) Applying `accept` to a datagram endpoint.

use spandrel_ipc::{inet, unix};

fn wrong(s_sd: &unix::Dgram, other: &inet::Dgram) {
    let _ = s_sd.accept();
    let _ = other.accept();
}

fn main() {
    let _ = wrong;
}
