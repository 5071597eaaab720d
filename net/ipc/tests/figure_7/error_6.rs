//! (6) Omitting parentheses around an assignment in a condition.

use spandrel_ipc::inet::{Acceptor, Stream};

fn accept(s_sd: &Acceptor) {
    let n_sd;
    if n_sd = s_sd.accept() == -1 {}
}

fn read(n_sd: &Stream, buf: &mut [u8]) {
    let mut n;
    while n = n_sd.recv(buf) > 0 {}
}

fn main() {
    let _ = (accept, read);
}
