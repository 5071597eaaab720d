//! Plain socket calls through `libc`: the base of all comparisons.
//!
//! Each function is one system call and the check of its result, as a C program would write them; an
//! interrupted call is repeated. Only the descriptor is wrapped, and closed when dropped. Transfers and their
//! loops belong to the mechanism `c`. This is the one module of the laboratory with `unsafe`.

use std::fs::File;
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd as _;

use libc::{c_int, c_void, socklen_t};

pub(crate) mod counter;
mod epoll;
pub(crate) mod processor_time;
pub(crate) mod unix;

pub(crate) use epoll::Epoll;

/// The file descriptor of a socket, closed when dropped.
#[derive(Debug)]
pub(crate) struct Socket(c_int);

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and open; nothing uses it after this.
        unsafe { libc::close(self.0) };
    }
}

/// Opens a TCP socket for addresses like `addr`, closed in processes that are executed.
///
/// # Errors
/// The errors of `socket`.
pub(crate) fn socket(addr: &SocketAddr) -> io::Result<Socket> {
    let family = if addr.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: no memory is passed.
    let descriptor = check(unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) } as isize)?;
    Ok(Socket(descriptor as c_int))
}

/// Names a socket.
///
/// # Errors
/// The errors of `bind`.
pub(crate) fn bind(socket: &Socket, addr: &SocketAddr) -> io::Result<()> {
    with_sockaddr(addr, |pointer, len| {
        // SAFETY: `pointer` points to `len` octets of a socket address that lives until the call returns.
        check(unsafe { libc::bind(socket.0, pointer, len) } as isize)
    })?;
    Ok(())
}

/// Makes a socket accept connections.
///
/// # Errors
/// The errors of `listen`.
pub(crate) fn listen(socket: &Socket, backlog: c_int) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::listen(socket.0, backlog) } as isize)?;
    Ok(())
}

/// Accepts one connection.
///
/// # Errors
/// The errors of `accept`.
pub(crate) fn accept(listener: &Socket) -> io::Result<Socket> {
    let (no_addr, no_len) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: accept may be given null pointers; it then reports no address.
    let descriptor = restarted(|| unsafe { libc::accept(listener.0, no_addr, no_len) } as isize)?;
    Ok(Socket(descriptor as c_int))
}

/// Connects to a peer.
///
/// # Errors
/// The errors of `connect`.
pub(crate) fn connect(socket: &Socket, addr: &SocketAddr) -> io::Result<()> {
    with_sockaddr(addr, |pointer, len| {
        // SAFETY: `pointer` points to `len` octets of a socket address that lives until the call returns.
        check(unsafe { libc::connect(socket.0, pointer, len) } as isize)
    })?;
    Ok(())
}

/// The address of this end.
///
/// # Errors
/// The errors of `getsockname`, or that the family is not an internet one.
pub(crate) fn local_addr(socket: &Socket) -> io::Result<SocketAddr> {
    // SAFETY: a socket address of zeros is valid: the family that specifies nothing.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = mem::size_of::<libc::sockaddr_storage>() as socklen_t;
    // SAFETY: `storage` has room for `len` octets, and both live until the call returns.
    check(unsafe { libc::getsockname(socket.0, (&raw mut storage).cast(), &raw mut len) } as isize)?;
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: by its family this is a sockaddr_in, which is no larger than the storage.
            let addr = unsafe { *(&raw const storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(addr.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(addr.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: by its family this is a sockaddr_in6, which is no larger than the storage.
            let addr = unsafe { *(&raw const storage).cast::<libc::sockaddr_in6>() };
            let ip = Ipv6Addr::from(addr.sin6_addr.s6_addr);
            Ok(SocketAddrV6::new(ip, u16::from_be(addr.sin6_port), addr.sin6_flowinfo, addr.sin6_scope_id).into())
        }
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Sends as much of `data` as is accepted at once; a closed peer is an error, not a signal.
///
/// # Errors
/// The errors of `send`.
#[inline]
pub(crate) fn send(socket: &Socket, data: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `data`, which is borrowed until the call returns.
    restarted(|| unsafe { libc::send(socket.0, data.as_ptr().cast::<c_void>(), data.len(), libc::MSG_NOSIGNAL) })
}

/// Receives available octets, at least one; zero means that the peer has closed.
///
/// # Errors
/// The errors of `recv`.
#[inline]
pub(crate) fn recv(socket: &Socket, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `buffer`, which is borrowed exclusively until the call returns.
    restarted(|| unsafe { libc::recv(socket.0, buffer.as_mut_ptr().cast::<c_void>(), buffer.len(), 0) })
}

/// Sends octets of a file from an offset on, at most this many, without a copy in user space. Returns their number.
///
/// # Errors
/// The errors of `sendfile`.
pub(crate) fn send_file(socket: &Socket, file: &File, offset: u64, count: usize) -> io::Result<usize> {
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    restarted(|| {
        let mut at = offset;
        // SAFETY: `at` lives until the call returns; the descriptors are open.
        unsafe { libc::sendfile(socket.0, file.as_raw_fd(), &raw mut at, count) }
    })
}

/// Half-close: no more octets will be sent.
///
/// # Errors
/// The errors of `shutdown`.
pub(crate) fn close_writer(socket: &Socket) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::shutdown(socket.0, libc::SHUT_WR) } as isize)?;
    Ok(())
}

/// Ends the wait of a thread that accepts at this socket: `accept` then fails.
///
/// # Errors
/// The errors of `shutdown`.
pub(crate) fn stop_listening(listener: &Socket) -> io::Result<()> {
    // SAFETY: no memory is passed.
    check(unsafe { libc::shutdown(listener.0, libc::SHUT_RD) } as isize)?;
    Ok(())
}

/// Sends small segments at once (`TCP_NODELAY`).
///
/// # Errors
/// The errors of `setsockopt`.
pub(crate) fn set_no_delay(socket: &Socket) -> io::Result<()> {
    set_option::<c_int>(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

/// Sets the sizes of the send and receive queues, in octets. To affect the TCP window it must precede
/// `listen` or `connect`.
///
/// # Errors
/// The errors of `setsockopt`.
pub(crate) fn set_queues(socket: &Socket, octets: u32) -> io::Result<()> {
    let octets = c_int::try_from(octets).unwrap_or(c_int::MAX);
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, octets)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, octets)
}

/// Sets the time limit of `recv`; on a timeout it fails with [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// The errors of `setsockopt`.
pub(crate) fn set_recv_timeout(socket: &Socket, seconds: u32) -> io::Result<()> {
    let time = libc::timeval { tv_sec: libc::time_t::from(seconds as i32), tv_usec: 0 };
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, time)
}

/// Makes closing reset the connection at once (`SO_LINGER` of zero).
///
/// # Errors
/// The errors of `setsockopt`.
pub(crate) fn set_abortive(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, libc::linger { l_onoff: 1, l_linger: 0 })
}

fn set_option<T: Copy>(socket: &Socket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let len = mem::size_of::<T>() as socklen_t;
    // SAFETY: the option's value has `len` octets and lives until the call returns; the kernel checks that
    // this is the length of the option.
    check(unsafe { libc::setsockopt(socket.0, level, name, (&raw const value).cast(), len) } as isize)?;
    Ok(())
}

fn with_sockaddr<R>(addr: &SocketAddr, call: impl FnOnce(*const libc::sockaddr, socklen_t) -> R) -> R {
    match addr.ip() {
        IpAddr::V4(ip) => {
            // SAFETY: all octets zero is a valid sockaddr_in.
            let mut raw: libc::sockaddr_in = unsafe { mem::zeroed() };
            raw.sin_family = libc::AF_INET as libc::sa_family_t;
            raw.sin_port = addr.port().to_be();
            raw.sin_addr.s_addr = u32::from(ip).to_be();
            call((&raw const raw).cast(), mem::size_of_val(&raw) as socklen_t)
        }
        IpAddr::V6(ip) => {
            // SAFETY: all octets zero is a valid sockaddr_in6.
            let mut raw: libc::sockaddr_in6 = unsafe { mem::zeroed() };
            raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            raw.sin6_port = addr.port().to_be();
            raw.sin6_addr.s6_addr = ip.octets();
            if let SocketAddr::V6(full) = addr {
                raw.sin6_scope_id = full.scope_id();
            }
            call((&raw const raw).cast(), mem::size_of_val(&raw) as socklen_t)
        }
    }
}

#[inline]
fn restarted(mut call: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        match check(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

#[inline]
fn check(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn pair(host: &str) -> (Socket, Socket) {
        let listener = socket(&host.parse().unwrap()).unwrap();
        bind(&listener, &host.parse().unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        let addr = local_addr(&listener).unwrap();
        let client = socket(&addr).unwrap();
        connect(&client, &addr).unwrap();
        (client, accept(&listener).unwrap())
    }

    #[test]
    fn octets_pass_in_both_versions_of_ip_until_the_end_of_file() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = pair(host);
            set_no_delay(&client).unwrap();
            assert_eq!(send(&client, b"spandrel").unwrap(), 8);
            close_writer(&client).unwrap();
            let mut buffer = [0; 16];
            assert_eq!(recv(&server, &mut buffer).unwrap(), 8);
            assert_eq!(&buffer[..8], b"spandrel");
            assert_eq!(recv(&server, &mut buffer).unwrap(), 0);
        }
    }

    #[test]
    fn a_thread_that_accepts_can_be_stopped() {
        let addr = "127.0.0.1:0".parse().unwrap();
        let listener = socket(&addr).unwrap();
        bind(&listener, &addr).unwrap();
        listen(&listener, 1).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| accept(&listener));
            stop_listening(&listener).unwrap(); // before or during the wait: both end it
            assert!(waiting.join().unwrap().is_err());
        });
    }

    #[test]
    fn a_refused_port_is_an_error() {
        let addr = "127.0.0.1:0".parse().unwrap();
        let unused = socket(&addr).unwrap();
        bind(&unused, &addr).unwrap(); // bound and not listening: connections are refused
        let target = local_addr(&unused).unwrap();
        let error = connect(&socket(&addr).unwrap(), &target).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn sending_to_a_closed_peer_is_an_error_and_no_signal() {
        let (client, server) = pair("127.0.0.1:0");
        drop(server);
        let error = std::iter::repeat_with(|| send(&client, &[0; 4096]))
            .take(1000)
            .find_map(Result::err)
            .expect("the peer has closed");
        assert!(matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset), "{error}");
    }
}
