//! Plain calls for sockets of the UNIX domain, under abstract names (unix(7)): they leave no files behind.

use std::io;
use std::mem;

use libc::{c_int, socklen_t};

use super::{Socket, check};

/// The offset of a name in an address: after the family, and after the zero octet of an abstract name.
const NAME_AT: usize = mem::offset_of!(libc::sockaddr_un, sun_path) + 1;

/// Opens a stream socket, closed in processes that are executed.
///
/// # Errors
/// The errors of `socket`.
pub(crate) fn socket() -> io::Result<Socket> {
    // SAFETY: no memory is passed.
    let descriptor = check(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) } as isize)?;
    Ok(Socket(descriptor as c_int))
}

/// Binds the socket to a free abstract name chosen by the system, and returns it.
///
/// # Errors
/// The errors of `bind` and `getsockname`.
pub(crate) fn bind_free_name(socket: &Socket) -> io::Result<String> {
    let mut addr = empty();
    let only_family = mem::size_of_val(&addr.sun_family) as socklen_t;
    // SAFETY: `addr` has more than that many octets and lives until the call returns.
    check(unsafe { libc::bind(socket.0, (&raw const addr).cast(), only_family) } as isize)?;
    let mut len = mem::size_of_val(&addr) as socklen_t;
    // SAFETY: `addr` has room for `len` octets, and both live until the call returns.
    check(unsafe { libc::getsockname(socket.0, (&raw mut addr).cast(), &raw mut len) } as isize)?;
    let name = addr.sun_path.get(1..(len as usize).saturating_sub(NAME_AT) + 1).unwrap_or_default();
    Ok(name.iter().map(|octet| char::from(*octet as u8)).collect()) // five hexadecimal digits
}

/// Connects to a peer with an abstract name.
///
/// # Errors
/// The errors of `connect`; [`io::ErrorKind::InvalidInput`] for a name that is too long.
pub(crate) fn connect(socket: &Socket, name: &str) -> io::Result<()> {
    let mut addr = empty();
    let room = addr.sun_path.get_mut(1..=name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    for (slot, octet) in room.iter_mut().zip(name.bytes()) {
        *slot = octet as libc::c_char;
    }
    let len = (NAME_AT + name.len()) as socklen_t;
    // SAFETY: `addr` has at least `len` octets, as was just checked, and lives until the call returns.
    check(unsafe { libc::connect(socket.0, (&raw const addr).cast(), len) } as isize)?;
    Ok(())
}

fn empty() -> libc::sockaddr_un {
    // SAFETY: all octets zero is a valid sockaddr_un.
    let mut addr: libc::sockaddr_un = unsafe { mem::zeroed() };
    addr.sun_family = libc::AF_UNIX as libc::sa_family_t;
    addr
}

#[cfg(test)]
mod tests {
    use super::super::{accept, listen, recv, send};
    use super::*;

    #[test]
    fn octets_pass_through_a_named_socket() {
        let listener = socket().unwrap();
        let name = bind_free_name(&listener).unwrap();
        assert!(!name.is_empty() && name.bytes().all(|octet| octet.is_ascii_hexdigit()), "{name:?}");
        listen(&listener, 1).unwrap();
        let client = socket().unwrap();
        connect(&client, &name).unwrap();
        let server = accept(&listener).unwrap();
        send(&client, b"spandrel").unwrap();
        let mut buffer = [0; 16];
        assert_eq!(recv(&server, &mut buffer).unwrap(), 8);
        drop(client);
        assert_eq!(recv(&server, &mut buffer).unwrap(), 0);
    }

    #[test]
    fn an_unbound_name_is_refused() {
        let error = connect(&socket().unwrap(), "unbound").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let error = connect(&socket().unwrap(), &"n".repeat(108)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
