//! System calls of datagrams: many in one call, control messages, options that the safe libraries lack.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{
    Scratch, flag_option, join_source_v6, leave_source_v6, names, recv_many, recv_with_control, send_many, set_option,
};
#[cfg(windows)]
pub(crate) use windows::recv_from;

/// Room for the headers of one call; empty where a call takes one datagram.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[derive(Debug)]
pub(crate) struct Scratch;

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Scratch {
    /// An empty value: the system sends each datagram by a call of its own.
    pub(crate) fn with_capacity(_datagrams: usize) -> Self {
        Self
    }
}

/// The octets of an address as the system wrote it: the family, then the data of the family.
#[cfg(unix)]
pub(crate) fn octets(name: &rustix::net::SocketAddrAny) -> &[u8] {
    // SAFETY: the first `addr_len` octets of its storage are initialised, as `SocketAddrAny` keeps to be true, and the result borrows
    // it.
    unsafe { std::slice::from_raw_parts(name.as_ptr().cast(), name.addr_len() as usize) }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux {
    use std::io;
    use std::mem::MaybeUninit;
    use std::net::Ipv6Addr;
    use std::os::fd::{AsRawFd, BorrowedFd};
    use std::ptr;

    use rustix::net::{RecvFlags, SendFlags, SocketAddrAny};

    use crate::Interest;
    use crate::interrupted::retry_interrupted;

    /// The system's numbers of options and control messages.
    pub(crate) mod names {
        pub(crate) use libc::{
            IP_PKTINFO, IPPROTO_IP, IPPROTO_IPV6, IPV6_PKTINFO, IPV6_RECVPKTINFO, SO_DONTROUTE, SOL_SOCKET, SOL_UDP,
            UDP_GRO, UDP_SEGMENT,
        };
    }

    /// Room for the headers of one call, kept between calls so that they allocate nothing.
    #[derive(Default)]
    pub(crate) struct Scratch {
        headers: Vec<libc::mmsghdr>,
        pieces: Vec<libc::iovec>,
        names: Vec<libc::sockaddr_storage>,
    }

    // SAFETY: the pointers in it are used only within the call that wrote them (`clear` comes first in each).
    unsafe impl Send for Scratch {}
    // SAFETY: as above; nothing is reachable through a shared reference.
    unsafe impl Sync for Scratch {}

    impl Scratch {
        /// Empty, with room for that many datagrams.
        pub(crate) fn with_capacity(datagrams: usize) -> Self {
            Self {
                headers: Vec::with_capacity(datagrams),
                pieces: Vec::with_capacity(datagrams),
                names: Vec::with_capacity(datagrams),
            }
        }

        fn clear(&mut self) {
            self.headers.clear();
            self.pieces.clear();
        }

        /// Adds one datagram; `name` and `piece` are set once all are added and no vector moves any more.
        fn push(&mut self, data: *mut u8, len: usize) {
            self.pieces.push(libc::iovec { iov_base: data.cast(), iov_len: len });
            // SAFETY: a header of zeros means: no name, no pieces, no control data, no flags.
            self.headers.push(unsafe { MaybeUninit::zeroed().assume_init() });
        }

        /// Points every header at its piece.
        fn link_pieces(&mut self) {
            for (header, piece) in self.headers.iter_mut().zip(&mut self.pieces) {
                header.msg_hdr.msg_iov = piece;
                header.msg_hdr.msg_iovlen = 1;
            }
        }
    }

    impl std::fmt::Debug for Scratch {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Scratch").field("capacity", &self.headers.capacity()).finish()
        }
    }

    /// One of the datagrams received by [`recv_many`].
    #[derive(Debug)]
    pub(crate) struct Arrived {
        /// The datagram's own length, which may exceed its buffer.
        pub(crate) len: usize,
        /// The sender; `None` if it has no name.
        pub(crate) name: Option<SocketAddrAny>,
    }

    /// `recvmmsg`: fills the `buffers` from the front, one datagram each, and calls `each` for every one.
    /// Waits, if at all, for the first only.
    pub(crate) fn recv_many<'b>(
        handle: BorrowedFd<'_>,
        scratch: &mut Scratch,
        buffers: impl Iterator<Item = &'b mut [u8]>,
        flags: RecvFlags,
        mut each: impl FnMut(Arrived),
    ) -> io::Result<usize> {
        scratch.clear();
        for buffer in buffers {
            scratch.push(buffer.as_mut_ptr(), buffer.len());
        }
        scratch.link_pieces();
        // SAFETY: a `sockaddr_storage` of zeros is a name of the family AF_UNSPEC.
        scratch.names.resize(scratch.headers.len(), unsafe { MaybeUninit::zeroed().assume_init() });
        for (header, name) in scratch.headers.iter_mut().zip(&mut scratch.names) {
            name.ss_family = libc::AF_UNSPEC as libc::sa_family_t; // a sender without a name leaves it so
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        }
        let count = retry_interrupted(handle, Interest::INPUT, || {
            // SAFETY: every header points at one piece and one name, which lie in vectors that do not change during the
            // call; every piece is a buffer that we hold exclusively for 'b and that any octets may be
            // written to.
            let result = unsafe {
                libc::recvmmsg(
                    handle.as_raw_fd(),
                    scratch.headers.as_mut_ptr(),
                    scratch.headers.len() as libc::c_uint,
                    flags.bits() as libc::c_int | libc::MSG_WAITFORONE,
                    ptr::null_mut(),
                )
            };
            usize::try_from(result).map_err(|_| last_error())
        })?;
        for (header, name) in scratch.headers.iter().zip(&scratch.names).take(count) {
            let name = decode(name, header.msg_hdr.msg_namelen);
            each(Arrived { len: header.msg_len as usize, name });
        }
        Ok(count)
    }

    /// Decodes a name written by the kernel; `None` for a sender without a name.
    fn decode(name: &libc::sockaddr_storage, len: libc::socklen_t) -> Option<SocketAddrAny> {
        let len = (len as usize).min(size_of::<libc::sockaddr_storage>());
        if name.ss_family == libc::AF_UNSPEC as libc::sa_family_t || len < size_of::<libc::sa_family_t>() {
            return None;
        }
        // SAFETY: all octets of `name` are initialised, `len` lies within it and covers the family, and the kernel wrote
        // an address of that family and length there.
        Some(unsafe { SocketAddrAny::read(ptr::from_ref(name).cast(), len as _) })
    }

    /// `sendmmsg`: sends the `datagrams` from the front and returns the number sent.
    pub(crate) fn send_many<'d>(
        handle: BorrowedFd<'_>,
        scratch: &mut Scratch,
        datagrams: impl Iterator<Item = (&'d [u8], Option<&'d SocketAddrAny>)>,
        flags: SendFlags,
    ) -> io::Result<usize> {
        scratch.clear();
        for (data, name) in datagrams {
            scratch.push(data.as_ptr().cast_mut(), data.len());
            if let (Some(name), Some(header)) = (name, scratch.headers.last_mut()) {
                header.msg_hdr.msg_name = name.as_ptr().cast_mut().cast();
                header.msg_hdr.msg_namelen = name.addr_len();
            }
        }
        scratch.link_pieces();
        let count = retry_interrupted(handle, Interest::OUTPUT, || {
            // SAFETY: every header points at one piece, in a vector that does not change during the call, and perhaps at
            // a name; pieces and names are borrowed for 'd, and sending only reads them.
            let result = unsafe {
                libc::sendmmsg(
                    handle.as_raw_fd(),
                    scratch.headers.as_mut_ptr(),
                    scratch.headers.len() as libc::c_uint,
                    flags.bits() as libc::c_int,
                )
            };
            usize::try_from(result).map_err(|_| last_error())
        })?;
        Ok(count)
    }

    /// `recvmsg` with room for control messages: the datagram's own length, the filled length of `control`,
    /// the sender.
    pub(crate) fn recv_with_control(
        handle: BorrowedFd<'_>,
        buffer: &mut [u8],
        control: &mut [u8],
        at_once: bool,
    ) -> io::Result<(usize, usize, Option<SocketAddrAny>)> {
        let flags = libc::MSG_TRUNC | if at_once { libc::MSG_DONTWAIT } else { 0 };
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: a `sockaddr_storage` of zeros is a name of the family AF_UNSPEC.
        let mut name: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: a header of zeros means: no name, no pieces, no control data, no flags.
        let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
        header.msg_iov = &mut piece;
        header.msg_iovlen = 1;
        let len = retry_interrupted(handle, Interest::INPUT, || {
            header.msg_name = ptr::from_mut(&mut name).cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = control.len() as _;
            // SAFETY: the header points at one piece, one name and the control buffer, all held exclusively by this
            // function for the time of the call, with their true lengths.
            let result = unsafe { libc::recvmsg(handle.as_raw_fd(), &mut header, flags) };
            usize::try_from(result).map_err(|_| last_error())
        })?;
        #[allow(clippy::unnecessary_cast, reason = "not on every system of one type")]
        let filled = header.msg_controllen as usize;
        Ok((len, filled, decode(&name, header.msg_namelen)))
    }

    /// `setsockopt` with the octets of `value`, for options that have no name in the safe libraries. None of
    /// the options that this crate sets makes the kernel keep a pointer.
    pub(crate) fn set_option(handle: BorrowedFd<'_>, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
        // SAFETY: the kernel reads `value.len()` octets from `value` and nothing else.
        let result = unsafe {
            libc::setsockopt(handle.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as libc::socklen_t)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// `getsockopt` of an option that is a C `int`: whether it is not zero.
    pub(crate) fn flag_option(handle: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<bool> {
        let (mut value, mut len) = (0_i32, size_of::<i32>() as libc::socklen_t);
        // SAFETY: the kernel writes at most `len` octets to `value`, and the length to `len`; both outlive the call.
        let result =
            unsafe { libc::getsockopt(handle.as_raw_fd(), level, name, ptr::from_mut(&mut value).cast(), &mut len) };
        if result == 0 { Ok(value != 0) } else { Err(io::Error::last_os_error()) }
    }

    /// `MCAST_JOIN_SOURCE_GROUP` (RFC 3678, 5.1.2), for IPv6.
    pub(crate) fn join_source_v6(
        handle: BorrowedFd<'_>,
        group: Ipv6Addr,
        source: Ipv6Addr,
        interface: u32,
    ) -> io::Result<()> {
        let request = group_source_request(group, source, interface);
        set_option(handle, libc::IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP, &request)
    }

    /// Leaves a source-specific IPv6 group (`MCAST_LEAVE_SOURCE_GROUP`).
    pub(crate) fn leave_source_v6(
        handle: BorrowedFd<'_>,
        group: Ipv6Addr,
        source: Ipv6Addr,
        interface: u32,
    ) -> io::Result<()> {
        let request = group_source_request(group, source, interface);
        set_option(handle, libc::IPPROTO_IPV6, MCAST_LEAVE_SOURCE_GROUP, &request)
    }

    // From linux/in.h; the libc crate has no names for them.
    const MCAST_JOIN_SOURCE_GROUP: i32 = 46;
    const MCAST_LEAVE_SOURCE_GROUP: i32 = 47;

    /// The octets of a `struct group_source_req`: the interface's index, then two `sockaddr_storage`, aligned
    /// as a pointer is.
    fn group_source_request(group: Ipv6Addr, source: Ipv6Addr, interface: u32) -> Vec<u8> {
        let storage = size_of::<libc::sockaddr_storage>();
        let start = size_of::<usize>();
        let mut request = vec![0; start + 2 * storage];
        request[..4].copy_from_slice(&interface.to_ne_bytes());
        for (at, addr) in [(start, group), (start + storage, source)] {
            // struct sockaddr_in6: family, port, flow information, address, scope
            request[at..at + 2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            request[at + 8..at + 24].copy_from_slice(&addr.octets());
        }
        request
    }

    fn last_error() -> rustix::io::Errno {
        rustix::io::Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(rustix::io::Errno::IO)
    }
}

#[cfg(windows)]
mod windows {
    use std::io::{self, IoSliceMut};

    use socket2::{MaybeUninitSlice, SockAddr, Socket};

    /// `WSARecvFrom`: the number of octets in `slices`, whether the datagram was longer, the sender.
    pub(crate) fn recv_from(socket: &Socket, slices: &mut [IoSliceMut<'_>]) -> io::Result<(usize, bool, SockAddr)> {
        // SAFETY: both types are transparent over WSABUF, as their documentations say; the octets are initialised, and
        // `recv_from_vectored` promises that it writes no uninitialised ones.
        let slices = unsafe { &mut *(std::ptr::from_mut(slices) as *mut [MaybeUninitSlice<'_>]) };
        let (len, flags, from) = socket.recv_from_vectored(slices)?;
        Ok((len, flags.is_truncated(), from))
    }
}
