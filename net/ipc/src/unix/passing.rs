//! Passing open handles between processes, with types: a handle sent as a stream is received as a stream.
//!
//! On a stream, and in a datagram, each message is one octet, the type's tag, with the handles beside it (`SCM_RIGHTS`,
//! unix(7)). Both sides must know when one comes: a plain `recv` in its place takes the octet, and the system
//! closes the handles. The receiver closes handles that it did not request: handles of another type, too
//! many, or a truncated set. It checks each handle itself, since the tag is only a claim of the sender.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::slice;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SocketType, recvmsg, sendmsg, sendmsg_addr, sockopt::socket_type,
};
use spandrel_sync::time::Deadline;

use super::{Addr, ConnectedDgram, Dgram, Stream};
use crate::dgram::{Encode as _, Name};
use crate::interrupted::retry_interrupted;
use crate::socket::calls::NO_SIGNAL;
use crate::{Interest, Pollable, fifo, inet, unix, wait_ready};

/// A type whose values can be passed to another process over a UNIX-domain stream or in a UNIX-domain
/// datagram.
///
/// Implemented by the endpoints of this crate and by [`File`]; programs may add types of their own.
pub trait Passable: AsFd + Sized {
    /// The tag of the type. Tags from 0 to 127 belong to Spandrel, those from 128 to 255 to programs.
    const TAG: u8;

    /// Converts a received handle, if it is of this kind.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is not; it is closed.
    fn from_received(handle: OwnedFd) -> io::Result<Self>;
}

/// The maximum number of handles passed at once. (Linux takes 253, and in flight as many as the process may
/// have open.)
pub const MAX_HANDLES: usize = 64;

/// The reason why a received message was not the requested handle. It comes inside an [`io::Error`] of the
/// kind [`InvalidData`](io::ErrorKind::InvalidData); all received handles have been closed.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PassingError {
    /// Octets came without a handle.
    #[error("there was no handle with the octet {octet:#04x}")]
    NoHandle {
        /// The octet that came alone.
        octet: u8,
    },
    /// The sender passed another type.
    #[error("a handle of the type with tag {received} came instead of {expected}")]
    WrongType {
        /// The tag of the requested type.
        expected: u8,
        /// The tag of the type that arrived.
        received: u8,
    },
    /// More handles arrived than were requested.
    #[error("{received} handles came where at most {limit} were asked for")]
    TooMany {
        /// The number of handles received.
        received: usize,
        /// The number of handles requested.
        limit: usize,
    },
    /// A datagram had handles, and not one octet.
    #[error("there were handles with a datagram that is not the tag of a type")]
    NotATag,
    /// Some handles were lost: there were too many, or this process has no descriptors left.
    #[error("some of the handles were lost on the way: too many were sent, or this process has no descriptors left")]
    Lost,
}
spandrel_error::debug_as_report!(PassingError);

impl From<PassingError> for io::Error {
    fn from(error: PassingError) -> Self {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

/// Methods of endpoints with one peer.
macro_rules! passes_to_peer {
    ($Type:ty, $end:literal) => {
        /// The methods that pass handles.
        impl $Type {
            /// Passes a handle to the peer, which then has it too; this process's own stays open.
            ///
            /// # Errors
            /// The errors of sending; on Linux also "too many references" when too many handles are in flight.
            pub fn send_handle<T: Passable>(&self, endpoint: &T) -> io::Result<()> {
                self.send_handles(slice::from_ref(endpoint))
            }

            /// Passes several handles of one type at once.
            ///
            /// # Errors
            /// [`io::ErrorKind::InvalidInput`] for none, or more than [`MAX_HANDLES`]; otherwise as
            /// [`send_handle`](Self::send_handle).
            pub fn send_handles<T: Passable>(&self, endpoints: &[T]) -> io::Result<()> {
                send(self.as_fd(), None, endpoints)
            }

            /// Receives a handle that the peer passes as a `T`; waits while none is queued.
            ///
            /// # Errors
            #[doc = $end]
            /// [`io::ErrorKind::InvalidData`] with a [`PassingError`] for anything else than one handle of this type;
            /// [`io::ErrorKind::InvalidInput`] if the handle does not match its tag; otherwise those of receiving.
            pub fn recv_handle<T: Passable>(&self) -> io::Result<T> {
                receive(self.as_fd(), 1, RecvFlags::empty())?.one()
            }

            /// Like [`recv_handle`](Self::recv_handle), but never waits.
            ///
            /// # Errors
            /// As [`recv_handle`](Self::recv_handle), and [`io::ErrorKind::WouldBlock`] when none is queued.
            pub fn try_recv_handle<T: Passable>(&self) -> io::Result<T> {
                receive(self.as_fd(), 1, RecvFlags::DONTWAIT)?.one()
            }

            /// Like [`recv_handle`](Self::recv_handle), but waits no longer than `timeout`.
            ///
            /// # Errors
            /// As [`recv_handle`](Self::recv_handle), and [`io::ErrorKind::TimedOut`] on a timeout.
            pub fn recv_handle_within<T: Passable>(&self, timeout: Duration) -> io::Result<T> {
                within(self, timeout, || self.try_recv_handle())
            }

            /// Receives the handles, at most `limit`, that the peer passes at once as `T`s; waits while none are
            /// queued.
            ///
            /// # Errors
            /// As [`recv_handle`](Self::recv_handle).
            pub fn recv_handles<T: Passable>(&self, limit: usize) -> io::Result<Vec<T>> {
                receive(self.as_fd(), limit, RecvFlags::empty())?.all()
            }
        }
    };
}

passes_to_peer!(Stream, "[`io::ErrorKind::UnexpectedEof`] at the end of the stream;");
passes_to_peer!(ConnectedDgram, "[`io::ErrorKind::ConnectionRefused`] when an earlier datagram found no receiver;");

/// Passing handles, each in a datagram of its own.
impl Dgram {
    /// Passes a handle to the endpoint at an address, which then has it too; this process's own stays open.
    ///
    /// # Errors
    /// The errors of sending; on Linux also "too many references" when too many handles are in flight.
    pub fn send_handle_to<T: Passable>(&self, endpoint: &T, peer: &Addr) -> io::Result<()> {
        self.send_handles_to(slice::from_ref(endpoint), peer)
    }

    /// Passes several handles of one type at once.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for none, or more than [`MAX_HANDLES`]; otherwise as
    /// [`send_handle_to`](Self::send_handle_to).
    pub fn send_handles_to<T: Passable>(&self, endpoints: &[T], peer: &Addr) -> io::Result<()> {
        send(self.as_fd(), Some(&peer.encode()?), endpoints)
    }

    /// Receives a handle that is passed as a `T`, with its sender; waits while none is queued. Every process that
    /// may send to this endpoint can pass handles: the sender should be checked.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] with a [`PassingError`] for anything else than one handle of this type;
    /// [`io::ErrorKind::InvalidInput`] if the handle does not match its tag; otherwise those of receiving.
    pub fn recv_handle_from<T: Passable>(&self) -> io::Result<(T, Addr)> {
        receive(self.as_fd(), 1, RecvFlags::empty())?.one_from()
    }

    /// Like [`recv_handle_from`](Self::recv_handle_from), but never waits.
    ///
    /// # Errors
    /// As [`recv_handle_from`](Self::recv_handle_from), and [`io::ErrorKind::WouldBlock`] when none is queued.
    pub fn try_recv_handle_from<T: Passable>(&self) -> io::Result<(T, Addr)> {
        receive(self.as_fd(), 1, RecvFlags::DONTWAIT)?.one_from()
    }

    /// Like [`recv_handle_from`](Self::recv_handle_from), but waits no longer than `timeout`.
    ///
    /// # Errors
    /// As [`recv_handle_from`](Self::recv_handle_from), and [`io::ErrorKind::TimedOut`] on a timeout.
    pub fn recv_handle_from_within<T: Passable>(&self, timeout: Duration) -> io::Result<(T, Addr)> {
        within(self, timeout, || self.try_recv_handle_from())
    }
}

/// Receives within a time limit; `receive` never waits.
fn within<R>(endpoint: &impl Pollable, timeout: Duration, receive: impl Fn() -> io::Result<R>) -> io::Result<R> {
    let deadline = Deadline::after(timeout);
    loop {
        match receive() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
        let left = deadline.remaining();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        wait_ready(endpoint, Interest::INPUT, left)?;
    }
}

/// Sends one octet, the tag, with the handles beside it: to the peer, or to an address.
fn send<T: Passable>(socket: BorrowedFd<'_>, to: Option<&Name>, endpoints: &[T]) -> io::Result<()> {
    if endpoints.is_empty() || endpoints.len() > MAX_HANDLES {
        let message = format!("1 to {MAX_HANDLES} handles can be passed at once, not {}", endpoints.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut handles = [socket; MAX_HANDLES];
    handles.iter_mut().zip(endpoints).for_each(|(handle, endpoint)| *handle = endpoint.as_fd());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let fits = beside.push(SendAncillaryMessage::ScmRights(&handles[..endpoints.len()]));
    assert!(fits, "there is space for MAX_HANDLES");
    let tag = [T::TAG];
    let octets = [IoSlice::new(&tag)];
    let sent = retry_interrupted(socket, Interest::OUTPUT, || match to {
        Some(to) => sendmsg_addr(socket, to, &octets, &mut beside, NO_SIGNAL),
        None => sendmsg(socket, &octets, &mut beside, NO_SIGNAL),
    });
    match sent? {
        1 => Ok(()),
        _ => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// One received message: the tag, the handles, and the sender of a datagram.
struct Received {
    tag: u8,
    handles: Vec<OwnedFd>,
    from: Option<Name>,
}

/// Receives one octet and the handles beside it; on any error all of them are closed.
fn receive(socket: BorrowedFd<'_>, limit: usize, flags: RecvFlags) -> io::Result<Received> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_HANDLES))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut tag = [0];
    let message = retry_interrupted(socket, Interest::INPUT, || {
        recvmsg(socket, &mut [IoSliceMut::new(&mut tag)], &mut beside, flags)
    })?;
    let mut handles = Vec::new();
    for part in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            handles.extend(received);
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    for handle in &handles {
        rustix::io::fcntl_setfd(handle, rustix::io::FdFlags::CLOEXEC)?;
    }
    // A datagram without octets is no end.
    if message.bytes == 0 && socket_type(socket)? == SocketType::STREAM {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(PassingError::Lost.into());
    }
    if handles.is_empty() {
        return Err(PassingError::NoHandle { octet: tag[0] }.into());
    }
    if message.flags.contains(ReturnFlags::TRUNC) || message.bytes == 0 {
        return Err(PassingError::NotATag.into());
    }
    if handles.len() > limit {
        return Err(PassingError::TooMany { received: handles.len(), limit }.into());
    }
    Ok(Received { tag: tag[0], handles, from: message.address })
}

impl Received {
    fn one<T: Passable>(mut self) -> io::Result<T> {
        self.expect::<T>()?;
        T::from_received(self.handles.pop().expect("one was requested, and none is an error"))
    }

    fn one_from<T: Passable>(mut self) -> io::Result<(T, Addr)> {
        let from = Addr::decode(self.from.take().as_ref())?;
        Ok((self.one()?, from))
    }

    fn all<T: Passable>(self) -> io::Result<Vec<T>> {
        self.expect::<T>()?;
        self.handles.into_iter().map(T::from_received).collect()
    }

    fn expect<T: Passable>(&self) -> io::Result<()> {
        if self.tag == T::TAG {
            return Ok(());
        }
        Err(PassingError::WrongType { expected: T::TAG, received: self.tag }.into())
    }
}

/// Endpoints whose `TryFrom<OwnedFd>` checks the kind of the handle.
macro_rules! passable {
    ($($Type:ty = $tag:literal),* $(,)?) => {$(
        impl Passable for $Type {
            const TAG: u8 = $tag;

            fn from_received(handle: OwnedFd) -> io::Result<Self> {
                Self::try_from(handle)
            }
        }
    )*};
}

passable! {
    inet::Stream = 1,
    inet::Acceptor = 2,
    unix::Stream = 3,
    unix::Acceptor = 4,
    // 5 is `spipe::Stream`.
    fifo::Reader = 6,
    fifo::Writer = 7,
    inet::Dgram = 8,
    inet::ConnectedDgram = 9,
    unix::Dgram = 10,
    unix::ConnectedDgram = 11,
}

impl Passable for File {
    const TAG: u8 = 0;

    fn from_received(handle: OwnedFd) -> io::Result<Self> {
        Ok(handle.into())
    }
}
