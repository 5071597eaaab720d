//! An address of one family fits no endpoint of another, in plain and in generic code.

use spandrel_ipc::Family;
use spandrel_ipc::inet::{Acceptor, Connector, Inet};

/// The address of another family.
struct PathAddr;

fn wrong(addr: &PathAddr) {
    let _ = Connector::connect(addr);
    let _ = Acceptor::open(addr);
    let _ = Inet::default().connect(addr, None);
}

fn main() {
    let _ = wrong;
}
