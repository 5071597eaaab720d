//! (2) Forgetting to zero all octets of the address.

use spandrel_ipc::inet::{Acceptor, Addr};

fn without_a_value(port_num: u16) {
    let mut s_addr: Addr;
    s_addr.with_port(port_num);
    let _ = Acceptor::open(&s_addr);
}

fn without_a_host(port_num: u16) {
    let s_addr = Addr { port: port_num };
    let _ = Acceptor::open(&s_addr);
}

fn main() {
    let _ = (without_a_value, without_a_host);
}
