//! Wakes a machine by a magic packet in a broadcast: `wake-on-lan 00:16:3e:12:34:56 [INTERFACE]`.
//!
//! The packet goes over all interfaces that support broadcast, or over the one with that address, to port 9 or that of
//! the environment variable PORT.

use std::error::Error;

use spandrel::net::ipc::inet::{Addr, Broadcast, Interface};

/// Six octets of ones, and sixteen times the machine's address.
fn magic_packet(machine: &str) -> Option<Vec<u8>> {
    let octets: Option<Vec<u8>> = machine.split([':', '-']).map(|part| u8::from_str_radix(part, 16).ok()).collect();
    let octets = octets.filter(|octets| octets.len() == 6)?;
    Some([[0xff; 6].as_slice(), &octets.repeat(16)].concat())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let machine = arguments.next().ok_or("usage: wake-on-lan MACHINE [INTERFACE]")?;
    let packet = magic_packet(&machine).ok_or("the machine is six numbers like 00:16:3e:12:34:56")?;
    let endpoint = match arguments.next() {
        None => Broadcast::open(&Addr::any(0))?,
        Some(address) => Broadcast::open_on(&Addr::any(0), &Interface::with_addr(address.parse()?)?)?,
    };
    let port = std::env::var("PORT").map_or(Ok(9), |port| port.parse())?;
    let networks = endpoint.send(&packet, port)?;
    println!("sent over {networks} of {} networks", endpoint.networks().len());
    Ok(())
}
