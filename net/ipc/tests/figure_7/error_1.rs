//! (1) Forgetting to initialise the length that `accept` takes.

use spandrel_ipc::inet::{Acceptor, Addr};

fn wrong(acceptor: &Acceptor, mut s_addr: Addr) {
    let mut length: usize;
    let _ = acceptor.accept(&mut s_addr, &mut length);
}

fn main() {
    let _ = wrong;
}
