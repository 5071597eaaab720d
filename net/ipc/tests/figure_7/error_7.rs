//! (7) Reading from a passive endpoint, which should only be used to accept connections.

use spandrel_ipc::{inet, spipe, unix};

fn wrong(s_sd: &inet::Acceptor, other: &unix::Acceptor, third: &spipe::Acceptor, buf: &mut [u8]) {
    let _ = s_sd.recv(buf);
    let _ = other.recv_n(buf);
    let _ = third.try_recv(buf);
}

fn main() {
    let _ = wrong;
}
