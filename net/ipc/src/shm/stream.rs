//! Connections through shared memory.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::atomic::AtomicU32; // as in `segment`
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::{futex, sched_getcpu};
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use spandrel_sync::time::Deadline;

use super::adaptive_wait::AdaptiveWait;
use super::half::{Half, Host, StopReason, Wait};
use super::ring::{self, Consumer, Producer, RingMemory, Word};
use super::segment::{Direction, Layout, SharedRing, Side};
use crate::sys::shm::Memory;
use crate::unix::{self, Addr, Credentials};
use crate::{Handle, Interest, Pollable, Prepared, Receive, Transfer, TransferError, Transmit, exact};

/// A connection through shared memory.
///
/// All methods take `&self`: one thread may send while another receives; several threads that send, or
/// receive, take turns. A transfer makes a system call only to wake the peer or to sleep. Dropping it closes
/// it: the peer receives the octets sent, then the end. If the peer's process ends without closing, its last
/// octets are received and then the end, or [`io::ErrorKind::ConnectionReset`] if it had not received
/// everything sent to it; a waiting thread learns of it within a quarter of a second.
///
/// *With a reactor.* [`handle`](Pollable::handle) becomes readable when the peer rings, only after
/// [`prepare`](Pollable::prepare), and when the peer has ended. One thread at a time may go through
/// `prepare`, a wait on the handle, and [`interpret`](Pollable::interpret); the methods that wait by
/// themselves do not use the handle and may be used concurrently. A [`shutdown`](Self::shutdown) by another
/// thread of this side is visible on the handle only if it ends both directions.
#[derive(Debug)]
pub struct Stream {
    memory: Memory,
    layout: Layout,
    side: Side,
    peer_link: PeerLink,
    sender: Half<Producer>,
    receiver: Half<Consumer>,
    is_nonblocking: AtomicBool,
    send_timeout: AtomicU64,
    recv_timeout: AtomicU64,
}

/// The connection of the two processes besides memory: a socket that carries the doorbell and ends with its
/// holder.
#[derive(Debug)]
struct PeerLink {
    socket: unix::Stream,
    /// The peer's end was found closed.
    is_peer_closed: AtomicBool,
    /// The peer published an impossible position.
    is_corrupt: AtomicBool,
}

/// The octets of the doorbell that one system call takes, and the number of calls, so that a peer cannot keep
/// this side busy.
const DOORBELL_OCTETS: usize = 64;
const MAX_DOORBELL_READS: usize = 4;

impl<'a> Host for StreamHost<'a> {
    type RingMemory = SharedRing<'a>;

    fn sleep(&self, word: &AtomicU32, expected: u32, time: Duration) {
        let time = Timespec::try_from(time).expect("a slice is short");
        // Woken, changed before, interrupted, or timed out: the caller checks again.
        let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&time));
    }

    fn wake(&self, word: &AtomicU32) {
        // All sleepers: a hostile peer may sleep on our words too, and must not consume the wake-up.
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    fn ring(&self) {
        // If its queue is full, the socket is readable already.
        let _ = rustix::net::send(&self.0.peer_link.socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn is_peer_gone(&self) -> bool {
        self.0.peer_link.check_peer_closed()
    }

    fn is_peer_known_gone(&self) -> bool {
        self.0.peer_link.is_peer_closed.load(Ordering::Acquire)
    }

    fn is_peer_on_same_cpu(&self) -> bool {
        let Stream { memory, side, .. } = self.0;
        let here = sched_getcpu() as u32 + 1;
        let cpu_word = side.cpu_word(memory);
        if cpu_word.load(Ordering::Relaxed) != here {
            cpu_word.store(here, Ordering::Relaxed);
        }
        side.other().cpu_word(memory).load(Ordering::Relaxed) == here
    }
}

/// The host of a stream's halves.
struct StreamHost<'a>(&'a Stream);

impl PeerLink {
    /// Whether the peer's end is closed.
    fn check_peer_closed(&self) -> bool {
        if self.is_peer_closed.load(Ordering::Acquire) {
            return true;
        }
        let mut handles = [PollFd::new(&self.socket, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_peer_closed = matches!(retry_on_intr(|| poll(&mut handles, Some(&now))), Ok(1..));
        self.is_peer_closed.fetch_or(is_peer_closed, Ordering::AcqRel);
        is_peer_closed
    }

    /// Reads the octets of the doorbell.
    fn drain(&self) {
        let mut octets = [0; DOORBELL_OCTETS];
        for _ in 0..MAX_DOORBELL_READS {
            match retry_on_intr(|| rustix::net::recv(&self.socket, &mut octets[..], RecvFlags::DONTWAIT)) {
                Ok((DOORBELL_OCTETS, _)) => {}
                Ok((1.., _)) | Err(Errno::AGAIN) => return,
                Ok((0, _)) | Err(_) => return self.is_peer_closed.store(true, Ordering::Release),
            }
        }
    }
}

impl Stream {
    /// `socket` is connected to the process that maps the other side of `memory`.
    pub(super) fn new(socket: unix::Stream, memory: Memory, layout: Layout, side: Side, spin: Duration) -> Self {
        let peer_link = PeerLink { socket, is_peer_closed: AtomicBool::new(false), is_corrupt: AtomicBool::new(false) };
        Self {
            memory,
            layout,
            side,
            peer_link,
            sender: Half::new(AdaptiveWait::new(spin)),
            receiver: Half::new(AdaptiveWait::new(spin)),
            is_nonblocking: AtomicBool::new(false),
            send_timeout: AtomicU64::new(0),
            recv_timeout: AtomicU64::new(0),
        }
    }

    fn host(&self) -> StreamHost<'_> {
        StreamHost(self)
    }

    #[inline]
    fn outbound(&self) -> SharedRing<'_> {
        let direction = if self.side == Side::Connector { Direction::Forward } else { Direction::Backward };
        SharedRing::new(&self.memory, self.layout, direction)
    }

    #[inline]
    fn inbound(&self) -> SharedRing<'_> {
        let direction = if self.side == Side::Connector { Direction::Backward } else { Direction::Forward };
        SharedRing::new(&self.memory, self.layout, direction)
    }

    #[inline]
    fn send_as(&self, slices: &[IoSlice<'_>], wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        match self.sender.send(&self.host(), &self.outbound(), slices, wait) {
            Ok(octets) => Ok(octets),
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    #[inline]
    fn recv_as(&self, slices: &mut [IoSliceMut<'_>], wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        match self.receiver.recv(&self.host(), &self.inbound(), slices, wait) {
            Ok(octets) => Ok(octets),
            Err(StopReason::Ended) if !self.peer_link.is_corrupt.load(Ordering::Acquire) => Ok(0),
            Err(StopReason::Gone) if !self.has_unreceived() => Ok(0),
            Err(stop @ StopReason::Gone) => Err(stop.into_error()),
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// Whether some octets sent were not received by the peer.
    fn has_unreceived(&self) -> bool {
        let head = self.outbound().head().value();
        head & ring::END == 0 && ring::is_readable(self.sender.position() << ring::FLAGS, head >> ring::FLAGS)
    }

    #[cold]
    fn stopped(&self, stop: StopReason) -> io::Error {
        match stop {
            StopReason::Corrupt => {
                self.peer_link.is_corrupt.store(true, Ordering::Release);
                let _ = self.shutdown(Shutdown::Both);
                StopReason::Corrupt.into_error()
            }
            StopReason::Ended if self.peer_link.is_corrupt.load(Ordering::Acquire) => StopReason::Corrupt.into_error(),
            StopReason::Gone => StopReason::Ended.into_error(),
            stop => stop.into_error(),
        }
    }

    fn wait(&self, timeout: &AtomicU64) -> Wait {
        if self.is_nonblocking.load(Ordering::Relaxed) {
            return Wait::No;
        }
        match timeout.load(Ordering::Relaxed) {
            0 => Wait::For(None),
            nanoseconds => Wait::For(Some(Duration::from_nanos(nanoseconds))),
        }
    }

    /// The events of `wanted` that are ready.
    fn ready(&self, wanted: Interest) -> Interest {
        if self.peer_link.is_peer_closed.load(Ordering::Acquire) {
            return wanted; // the next transfer reports it
        }
        let mut ready = Interest::NONE;
        if wanted.contains(Interest::INPUT) && self.receiver.is_ready(&self.inbound()) {
            ready |= Interest::INPUT;
        }
        if wanted.contains(Interest::OUTPUT) && self.sender.is_ready(&self.outbound()) {
            ready |= Interest::OUTPUT;
        }
        ready
    }
}

/// The timeout as stored, in nanoseconds; zero is no limit.
fn encode_timeout(timeout: Option<Duration>) -> io::Result<u64> {
    match crate::socket::timeout(timeout)? {
        None => Ok(0),
        Some(timeout) => Ok(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
    }
}

fn decode_timeout(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
}

impl Receive for Stream {
    #[inline]
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], self.wait(&self.recv_timeout))
    }
    #[inline]
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_as(slices, self.wait(&self.recv_timeout))
    }
    #[inline]
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], Wait::No)
    }
    #[inline]
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.recv_as(slices, Wait::No)
    }
    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.recv_timeout.store(encode_timeout(timeout)?, Ordering::Relaxed);
        Ok(())
    }

    // These wait in memory, as `recv` does, rather than on the handle.
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.recv_as(&mut [IoSliceMut::new(buffer)], Wait::For(Some(timeout)))
    }
    fn recv_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> io::Result<usize> {
        self.recv_as(slices, Wait::For(Some(timeout)))
    }
    fn recv_n_within(&self, buffer: &mut [u8], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(timeout));
        exact::recv_n(buffer, |buffer| self.recv_as(&mut [IoSliceMut::new(buffer)], wait))
    }
    fn recv_n_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(timeout));
        exact::recv_n_v(slices, |slices| self.recv_as(slices, wait))
    }
}

impl Transmit for Stream {
    #[inline]
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], self.wait(&self.send_timeout))
    }
    #[inline]
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_as(slices, self.wait(&self.send_timeout))
    }
    #[inline]
    fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], Wait::No)
    }
    #[inline]
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send_as(slices, Wait::No)
    }
    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.send_timeout.store(encode_timeout(timeout)?, Ordering::Relaxed);
        Ok(())
    }

    fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], Wait::For(Some(timeout)))
    }
    fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> io::Result<usize> {
        self.send_as(slices, Wait::For(Some(timeout)))
    }
    fn send_n_within(&self, data: &[u8], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(timeout));
        exact::send_n(data, |data| self.send_as(&[IoSlice::new(data)], wait))
    }
    fn send_n_v_within(&self, slices: &mut [IoSlice<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(timeout));
        exact::send_n_v(slices, |slices| self.send_as(slices, wait))
    }
}

impl Transfer for Stream {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.is_nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let host = self.host();
        if matches!(how, Shutdown::Write | Shutdown::Both) {
            self.sender.shut(&host, &self.outbound());
        }
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            self.receiver.shut(&host, &self.inbound());
        }
        if how == Shutdown::Both {
            // Wakes the threads that wait on the handle. The peer may be closed already.
            let _ = self.peer_link.socket.shutdown(Shutdown::Both);
        }
        Ok(())
    }
}

crate::inherent_transfer!(Stream);

impl Pollable for Stream {
    fn handle(&self) -> Handle<'_> {
        self.peer_link.socket.handle()
    }

    fn pending(&self) -> bool {
        self.receiver.is_ready(&self.inbound())
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        let mut ready = Interest::NONE;
        if wanted.contains(Interest::INPUT) && self.receiver.announce(&self.inbound()) {
            ready |= Interest::INPUT;
        }
        if wanted.contains(Interest::OUTPUT) && self.sender.announce(&self.outbound()) {
            ready |= Interest::OUTPUT;
        }
        if self.peer_link.is_peer_closed.load(Ordering::Acquire) {
            ready = wanted;
        }
        let wait_for = if wanted.is_none() { Interest::NONE } else { Interest::INPUT };
        Prepared { wait_for, ready }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        if !seen.is_none() {
            self.peer_link.drain();
        }
        self.ready(wanted)
    }
}

/// Addresses, settings, and peer credentials.
impl Stream {
    /// The address of this side; unnamed on the connecting side.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        self.peer_link.socket.local_addr()
    }

    /// The address of the peer; unnamed if the peer connected.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when the peer has closed.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        self.peer_link.socket.remote_addr()
    }

    /// The peer's credentials when the connection was made (`SO_PEERCRED`): those of the process that
    /// connected, or that listened. The system vouches for them.
    ///
    /// # Errors
    /// Any error of the operating system.
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        self.peer_link.socket.peer_credentials()
    }

    /// The maximum number of octets in flight to the peer.
    #[must_use]
    pub fn send_queue(&self) -> usize {
        self.outbound().capacity() as usize
    }

    /// The maximum number of octets in flight from the peer.
    #[must_use]
    pub fn recv_queue(&self) -> usize {
        self.inbound().capacity() as usize
    }

    /// The timeout set with [`set_recv_timeout`](Self::set_recv_timeout).
    #[must_use]
    pub fn recv_timeout(&self) -> Option<Duration> {
        decode_timeout(self.recv_timeout.load(Ordering::Relaxed))
    }

    /// The timeout set with [`set_send_timeout`](Self::set_send_timeout).
    #[must_use]
    pub fn send_timeout(&self) -> Option<Duration> {
        decode_timeout(self.send_timeout.load(Ordering::Relaxed))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
