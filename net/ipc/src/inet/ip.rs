//! Options of the Internet protocol that have one name here and one for each IP version in the system.

use std::io;

use socket2::Socket;

pub(super) fn is_v6(socket: &Socket) -> io::Result<bool> {
    Ok(socket.local_addr()?.is_ipv6())
}

pub(super) fn set_ttl(socket: &Socket, hops: u32) -> io::Result<()> {
    if is_v6(socket)? { socket.set_unicast_hops_v6(hops) } else { socket.set_ttl_v4(hops) }
}

pub(super) fn ttl(socket: &Socket) -> io::Result<u32> {
    if is_v6(socket)? { socket.unicast_hops_v6() } else { socket.ttl_v4() }
}

#[cfg(unix)]
pub(super) fn set_tos(socket: &Socket, class: u8) -> io::Result<()> {
    if is_v6(socket)? { socket.set_tclass_v6(class.into()) } else { socket.set_tos_v4(class.into()) }
}

#[cfg(unix)]
pub(super) fn tos(socket: &Socket) -> io::Result<u8> {
    let class = if is_v6(socket)? { socket.tclass_v6() } else { socket.tos_v4() };
    Ok(class? as u8)
}
