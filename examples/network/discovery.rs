//! Finds services on the network by multicast: `discovery answer NAME TEXT` answers the questions of `discovery find NAME`,
//! which prints each answer that comes within a second. The text may be an object's reference.
//!
//! A last argument is the address of the interface to use, such as 127.0.0.1, instead of that of the routing table.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use spandrel::net::ipc::inet::{Addr, Interface, Multicast};

/// A group for use inside of one organisation (RFC 2365, 6.2).
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 192, 83, 80));
const PORT: u16 = 8380;
/// The words before a name.
const QUESTION: &str = "where is ";
/// The time in which answers are awaited.
const WAIT: Duration = Duration::from_secs(1);
const MAX_TEXT: usize = 8 << 10;

type Done = Result<(), Box<dyn Error>>;

/// An endpoint at this port, which sends over the interface.
fn open(port: u16, interface: Option<&Interface>) -> std::io::Result<Multicast> {
    let endpoint = Multicast::open(&Addr::any(port))?;
    if interface.is_some() {
        endpoint.set_interface(interface)?;
    }
    Ok(endpoint)
}

fn answer(name: &str, text: &str, interface: Option<&Interface>) -> Done {
    let endpoint = open(PORT, interface)?;
    endpoint.join(GROUP, interface)?;
    eprintln!("answering for {name}");
    let mut octets = [0; MAX_TEXT];
    loop {
        let (received, from) = endpoint.recv_from(&mut octets)?;
        let asked = str::from_utf8(&octets[..received.len()]).ok().and_then(|text| text.strip_prefix(QUESTION));
        if asked == Some(name) {
            endpoint.send_to(text.as_bytes(), &from)?;
        }
    }
}

fn find(name: &str, interface: Option<&Interface>) -> Done {
    let endpoint = open(0, interface)?;
    endpoint.send_to(format!("{QUESTION}{name}").as_bytes(), &SocketAddr::new(GROUP, PORT).into())?;
    let (end, mut octets, mut count) = (Instant::now() + WAIT, [0; MAX_TEXT], 0);
    while let Ok((received, from)) =
        endpoint.recv_from_within(&mut octets, end.saturating_duration_since(Instant::now()))
    {
        println!("{}: {}", from.host(), String::from_utf8_lossy(&octets[..received.len()]));
        count += 1;
    }
    if count == 0 { Err(format!("nobody answers for {name}").into()) } else { Ok(()) }
}

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let interface =
        |address: &str| -> Result<Interface, Box<dyn Error>> { Ok(Interface::with_addr(address.parse()?)?) };
    match arguments[..] {
        ["answer", name, text] => answer(name, text, None),
        ["answer", name, text, address] => answer(name, text, Some(&interface(address)?)),
        ["find", name] => find(name, None),
        ["find", name, address] => find(name, Some(&interface(address)?)),
        _ => Err("usage: discovery answer NAME TEXT [INTERFACE] | discovery find NAME [INTERFACE]".into()),
    }
}
