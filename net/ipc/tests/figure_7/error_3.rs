//! (3) Using an address of another family than the endpoint's.

use spandrel_ipc::{Family, inet, spipe, unix};

fn wrong(port_num: u16, path: unix::Addr) {
    let s_addr = inet::Addr::any(port_num);
    let _ = unix::Acceptor::open(&s_addr);
    let _ = spipe::Acceptor::open(&path);
    let _ = inet::Connector::connect(&path);
    let _ = unix::Unix::default().connect(&s_addr, None);
}

fn main() {
    let _ = wrong;
}
