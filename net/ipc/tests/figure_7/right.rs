//! The echo server of figure 7 without its errors, as figure 18 has it.

use spandrel_ipc::inet::{Acceptor, Addr};

fn echo_server(port_num: u16) -> std::io::Result<()> {
    let acceptor = Acceptor::open(&Addr::any(port_num))?;
    let mut buf = [0; 8192];
    loop {
        let (stream, _from) = acceptor.accept()?;
        loop {
            let n = stream.recv(&mut buf)?;
            if n == 0 {
                break;
            }
            stream.send_n(&buf[..n])?;
        }
    }
}
