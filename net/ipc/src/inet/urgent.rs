//! Urgent data of TCP (out-of-band data, RFC 6093): one octet that can be received before those sent earlier.
//!
//! RFC 6093 advises new protocols against it; it is here for existing ones, such as Telnet and FTP.

use std::io;

use rustix::net::{RecvFlags, SendFlags};

use super::Stream;

/// The methods for urgent (out-of-band) data.
impl Stream {
    /// Sends `octet` with the urgent mark behind it (`MSG_OOB`). The peer keeps one at a time: if it has not
    /// received the last urgent octet, that one becomes an ordinary octet, or is lost.
    ///
    /// # Errors
    /// The errors of sending.
    pub fn send_urgent(&self, octet: u8) -> io::Result<()> {
        #[cfg(unix)]
        let flags = SendFlags::OOB | crate::socket::calls::NO_SIGNAL;
        #[cfg(windows)]
        let flags = SendFlags::OOB;
        let socket = self.nonblocking_socket()?;
        match rustix::io::retry_on_intr(|| rustix::net::send(socket, &[octet], flags))? {
            1 => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Receives the urgent octet, if there is one; never waits. A reactor reports it as
    /// [`EXCEPTION`](crate::Interest::EXCEPTION).
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when there is none, it was received already, or it is received inline
    /// ([`set_urgent_inline`](Self::set_urgent_inline)); others of receiving.
    pub fn recv_urgent(&self) -> io::Result<u8> {
        let (socket, mut octet) = (self.nonblocking_socket()?, [0]);
        match rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut octet, RecvFlags::OOB)) {
            Ok((_, 0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(octet[0]),
            Err(rustix::io::Errno::INVAL) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the next octet is the one after the urgent mark (`sockatmark`). A receive call never goes past
    /// the mark. To skip the octets before the mark, receive until this is true.
    ///
    /// # Errors
    /// Any error of the operating system.
    #[cfg(unix)]
    pub fn at_mark(&self) -> io::Result<bool> {
        crate::sys::socket::at_mark(self)
    }
}
