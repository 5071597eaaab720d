//! The bulk connection over any of its transports.

use std::{fmt, fs::File, io, net::IpAddr, ops::Range, time::Duration};

#[cfg(target_os = "linux")]
use spandrel_ipc::shm;
#[cfg(unix)]
use spandrel_ipc::unix;
use spandrel_ipc::{Interest, Transfer, inet, wait_ready};

/// The route of the octets of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// A TCP connection of its own, in clear.
    Tcp,
    /// A TLS connection with the certificates of the ORB.
    Tls,
    /// A connection by UNIX-domain sockets.
    Unix,
    /// Memory that both processes have mapped.
    SharedMemory,
    /// An open file that was passed over a connection by UNIX-domain sockets.
    PassedFile,
    /// Calls over the GIOP connection.
    Calls,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Unix => "UNIX-domain socket",
            Self::SharedMemory => "shared memory",
            Self::PassedFile => "passed file",
            Self::Calls => "calls",
        })
    }
}

/// A stream in non-blocking mode.
#[derive(Debug)]
pub(crate) enum Channel {
    Tcp(inet::Stream),
    #[cfg(unix)]
    Unix(unix::Stream),
    #[cfg(target_os = "linux")]
    Shm(Box<shm::Stream>),
    Tls(Box<spandrel_ssliop::tls::Stream<inet::Stream>>),
}

/// The verified properties of the peer of a bulk connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChannelPeer {
    Tcp(IpAddr),
    /// A process of this machine, by a UNIX-domain socket or shared memory.
    #[cfg_attr(not(unix), allow(dead_code, reason = "there are no such sockets"))]
    Unix(Option<u32>),
    Tls(IpAddr, Option<Vec<u8>>),
}

impl Channel {
    /// Makes the stream non-blocking, as transfers need it for their time limits. Short messages are sent at once: on a
    /// connection with several transfers they would wait for the acknowledgement of the one before them.
    pub(crate) fn prepared(self) -> io::Result<Self> {
        self.stream().set_nonblocking(true)?;
        match &self {
            Self::Tcp(stream) => stream.set_no_delay(true)?,
            Self::Tls(stream) => stream.inner().set_no_delay(true)?,
            #[cfg(unix)]
            Self::Unix(_) => {}
            #[cfg(target_os = "linux")]
            Self::Shm(_) => {}
        }
        Ok(self)
    }

    /// Whether the system holds back the last octets of what was sent until more comes, where it can.
    pub(crate) fn hold_back(&self, on: bool) {
        #[cfg(target_os = "linux")]
        if let Self::Tcp(stream) = self {
            _ = stream.set_cork(on); // it only makes packets larger
        }
        #[cfg(not(target_os = "linux"))]
        let _ = on;
    }

    pub(crate) fn stream(&self) -> &dyn Transfer {
        match self {
            Self::Tcp(stream) => stream,
            #[cfg(unix)]
            Self::Unix(stream) => stream,
            #[cfg(target_os = "linux")]
            Self::Shm(stream) => &**stream,
            Self::Tls(stream) => &**stream,
        }
    }

    pub(crate) fn route(&self) -> Route {
        match self {
            Self::Tcp(_) => Route::Tcp,
            #[cfg(unix)]
            Self::Unix(_) => Route::Unix,
            #[cfg(target_os = "linux")]
            Self::Shm(_) => Route::SharedMemory,
            Self::Tls(_) => Route::Tls,
        }
    }

    /// The peer; over TLS after the handshake.
    pub(crate) fn peer(&self) -> io::Result<ChannelPeer> {
        Ok(match self {
            Self::Tcp(stream) => ChannelPeer::Tcp(stream.remote_addr()?.ip().to_canonical()),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Self::Unix(stream) => ChannelPeer::Unix(Some(stream.peer_credentials()?.uid)),
            #[cfg(target_os = "linux")]
            Self::Shm(stream) => ChannelPeer::Unix(Some(stream.peer_credentials()?.uid)),
            #[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
            Self::Unix(_) => ChannelPeer::Unix(None),
            Self::Tls(stream) => {
                let certificate = stream.with_peer_certificates(|chain| chain.first().map(|it| it.to_vec()));
                ChannelPeer::Tls(stream.inner().remote_addr()?.ip().to_canonical(), certificate.flatten())
            }
        })
    }

    /// Whether the kernel can send files on it.
    pub(crate) fn sends_files(&self) -> bool {
        match self {
            Self::Tcp(_) => true,
            #[cfg(unix)]
            Self::Unix(_) => true,
            #[cfg(target_os = "linux")]
            Self::Shm(_) => false,
            Self::Tls(_) => false,
        }
    }

    /// Sends some octets of the range by the kernel, and returns their number.
    pub(crate) fn try_send_file(&self, file: &File, range: Range<u64>) -> io::Result<u64> {
        let all = range.end - range.start;
        let result = match self {
            Self::Tcp(stream) => stream.send_file(file, range),
            #[cfg(unix)]
            Self::Unix(stream) => stream.send_file(file, range),
            #[cfg(target_os = "linux")]
            Self::Shm(_) => return Err(io::ErrorKind::Unsupported.into()),
            Self::Tls(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        match result {
            Ok(()) => Ok(all),
            Err(error) if error.transferred > 0 => Ok(error.transferred as u64),
            Err(error) => Err(error.cause),
        }
    }

    pub(crate) fn wait(&self, interest: Interest, limit: Duration) -> io::Result<Interest> {
        wait_ready(self.stream(), interest, Some(limit))
    }
}
