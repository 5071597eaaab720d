//! Live packets of a network interface, through a packet socket (Linux). The system delivers its packets
//! without the link header.

use std::{
    collections::HashSet,
    io::{self, Read},
    net::IpAddr,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, bail};
use socket2::{Domain, Protocol, Socket, Type};
use spandrel::net::error::output;

use super::packet::{Link, Packets, Segment};

/// `ETH_P_ALL`, in network byte order.
const ALL: i32 = 0x0003_u16.to_be() as i32;
/// More than any packet has, also after coalescing by the system.
const ROOM: usize = 256 << 10;

/// Passes on each segment from or to an address of this interface, or of all, until `take` fails.
///
/// # Errors
/// If there is no such interface, or no permission to capture on it; those of `take`.
pub(super) fn run(
    name: &str,
    take: &mut dyn FnMut(Duration, &Segment<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let addresses = addresses(name)?;
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(Protocol::from(ALL)));
    let mut socket =
        socket.context("cannot open a packet socket (that needs CAP_NET_RAW; --listen needs no privileges)")?;
    output::remark(&format!("watching {name}\n"));
    let (mut room, mut packets) = (vec![0; ROOM], Packets::default());
    loop {
        let count = match socket.read(&mut room) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // One of several interfaces went down.
            Err(error) if error.kind() == io::ErrorKind::NetworkDown => continue,
            Err(error) => return Err(error).context("no further packet can be read"),
        };
        let Some(segment) = packets.segment(Link::Raw, &room[..count], false) else { continue };
        let is_of = |address: IpAddr| addresses.as_ref().is_none_or(|known| known.contains(&address));
        if is_of(segment.from.ip()) || is_of(segment.to.ip()) {
            let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            take(time, &segment)?;
        }
    }
}

/// The addresses of an interface; none for all.
fn addresses(name: &str) -> anyhow::Result<Option<HashSet<IpAddr>>> {
    if name == "any" {
        return Ok(None);
    }
    let interfaces = if_addrs::get_if_addrs().context("cannot list the network interfaces")?;
    let addresses: HashSet<IpAddr> =
        interfaces.iter().filter(|interface| interface.name == name).map(if_addrs::Interface::ip).collect();
    if addresses.is_empty() {
        let names: HashSet<&str> = interfaces.iter().map(|interface| &*interface.name).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_unstable();
        bail!("there is no interface `{name}` with an address: there are {}, and any", names.join(", "));
    }
    Ok(Some(addresses))
}
