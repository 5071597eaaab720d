//! Carrying octets both ways, through memory.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::sync::atomic::AtomicU32; // as in `segment`
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::{futex, sched_getcpu};
use spandrel_sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::half::{Half, Host, Stop, Wait};
use super::patience::Patience;
use super::ring::{self, Consumer, Ground, Producer, Word};
use super::segment::{Direction, Layout, SharedRing, Side};
use crate::deadline::Deadline;
use crate::sys::shm::Memory;
use crate::unix::{self, Addr, Credentials};
use crate::{Handle, Interest, Pollable, Prepared, Receive, Transfer, TransferError, Transmit, exact};

/// A connection through shared memory.
///
/// All methods take `&self`: one thread may send while another receives; several threads that send, or receive, take turns.
/// A transfer makes a system call only if the peer has to be woken, or if this side has to sleep. Dropping it closes it: the peer
/// receives what was sent, then the end. If the peer's process ends without closing, its last octets are received and then the end, or
/// [`io::ErrorKind::ConnectionReset`] if it had not received all that was sent to it; who waits learns of it within a quarter of a second.
///
/// *With a reactor.* [`handle`](Pollable::handle) becomes readable when the peer rings, which it does only after
/// [`prepare`](Pollable::prepare), and when it is gone. One party at a time may go through `prepare`, a wait on the handle, and
/// [`interpret`](Pollable::interpret); the methods that wait by themselves do not use the handle and may be used beside it. Of a
/// [`shutdown`](Self::shutdown) by another thread of this side the handle tells only if it ends both directions.
#[derive(Debug)]
pub struct Stream {
    memory: Memory,
    layout: Layout,
    side: Side,
    line: Line,
    sender: Half<Producer>,
    receiver: Half<Consumer>,
    is_nonblocking: AtomicBool,
    send_timeout: AtomicU64,
    recv_timeout: AtomicU64,
}

/// What joins the two processes besides memory: a socket that carries the doorbell and ends with its holder.
#[derive(Debug)]
struct Line {
    socket: unix::Stream,
    /// The peer's end was seen to be closed.
    is_gone: AtomicBool,
    /// The peer published what cannot be.
    is_corrupt: AtomicBool,
}

/// How many octets of the doorbell are taken by one system call, and by how many calls, so that nobody is kept busy with it.
const RINGS: usize = 64;
const DRAINS: usize = 4;

impl<'a> Host for Link<'a> {
    type Ground = SharedRing<'a>;

    fn sleep(&self, word: &AtomicU32, expected: u32, time: Duration) {
        let time = Timespec::try_from(time).expect("a slice is short");
        // Woken, changed before, interrupted, or out of time: the caller looks.
        let _ = futex::wait(word, futex::Flags::empty(), expected, Some(&time));
    }

    fn wake(&self, word: &AtomicU32) {
        // All: a hostile peer may sleep on our words too, and must not take our call away.
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }

    fn ring(&self) {
        // If its queue is full, it is readable already.
        let _ = rustix::net::send(&self.0.line.socket, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn is_peer_gone(&self) -> bool {
        self.0.line.look()
    }

    fn is_peer_known_gone(&self) -> bool {
        self.0.line.is_gone.load(Ordering::Acquire)
    }

    fn is_peer_near(&self) -> bool {
        let Stream { memory, side, .. } = self.0;
        let here = sched_getcpu() as u32 + 1;
        let place = side.place(memory);
        if place.load(Ordering::Relaxed) != here {
            place.store(here, Ordering::Relaxed);
        }
        side.other().place(memory).load(Ordering::Relaxed) == here
    }
}

/// The host of a stream's halves.
struct Link<'a>(&'a Stream);

impl Line {
    /// Whether the peer's end is closed.
    fn look(&self) -> bool {
        if self.is_gone.load(Ordering::Acquire) {
            return true;
        }
        let mut handles = [PollFd::new(&self.socket, PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let is_gone = matches!(retry_on_intr(|| poll(&mut handles, Some(&now))), Ok(1..));
        self.is_gone.fetch_or(is_gone, Ordering::AcqRel);
        is_gone
    }

    /// Takes the octets of the doorbell.
    fn drain(&self) {
        let mut octets = [0; RINGS];
        for _ in 0..DRAINS {
            match retry_on_intr(|| rustix::net::recv(&self.socket, &mut octets[..], RecvFlags::DONTWAIT)) {
                Ok((RINGS, _)) => {}
                Ok((1.., _)) | Err(Errno::AGAIN) => return,
                Ok((0, _)) | Err(_) => return self.is_gone.store(true, Ordering::Release),
            }
        }
    }
}

impl Stream {
    /// `socket` leads to who maps the other side of `memory`.
    pub(super) fn new(socket: unix::Stream, memory: Memory, layout: Layout, side: Side, watch: Duration) -> Self {
        let line = Line { socket, is_gone: AtomicBool::new(false), is_corrupt: AtomicBool::new(false) };
        Self {
            memory,
            layout,
            side,
            line,
            sender: Half::new(Patience::new(watch)),
            receiver: Half::new(Patience::new(watch)),
            is_nonblocking: AtomicBool::new(false),
            send_timeout: AtomicU64::new(0),
            recv_timeout: AtomicU64::new(0),
        }
    }

    fn link(&self) -> Link<'_> {
        Link(self)
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
        match self.sender.send(&self.link(), &self.outbound(), slices, wait) {
            Ok(octets) => Ok(octets),
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    #[inline]
    fn recv_as(&self, slices: &mut [IoSliceMut<'_>], wait: Wait) -> io::Result<usize> {
        if slices.iter().all(|slice| slice.is_empty()) {
            return Ok(0);
        }
        match self.receiver.recv(&self.link(), &self.inbound(), slices, wait) {
            Ok(octets) => Ok(octets),
            Err(Stop::Ended) if !self.line.is_corrupt.load(Ordering::Acquire) => Ok(0),
            Err(Stop::Gone) if !self.has_unreceived() => Ok(0),
            Err(stop @ Stop::Gone) => Err(stop.into_error()),
            Err(stop) => Err(self.stopped(stop)),
        }
    }

    /// Whether something that was sent was not received by the peer.
    fn has_unreceived(&self) -> bool {
        let head = self.outbound().head().value();
        head & ring::END == 0 && ring::is_readable(self.sender.position() << ring::FLAGS, head >> ring::FLAGS)
    }

    #[cold]
    fn stopped(&self, stop: Stop) -> io::Error {
        match stop {
            Stop::Corrupt => {
                self.line.is_corrupt.store(true, Ordering::Release);
                let _ = self.shutdown(Shutdown::Both);
                Stop::Corrupt.into_error()
            }
            Stop::Ended if self.line.is_corrupt.load(Ordering::Acquire) => Stop::Corrupt.into_error(),
            Stop::Gone => Stop::Ended.into_error(),
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

    /// What of `wanted` is ready.
    fn ready(&self, wanted: Interest) -> Interest {
        if self.line.is_gone.load(Ordering::Acquire) {
            return wanted; // the next transfer will tell
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

/// The time in nanoseconds as it is kept; zero is for ever.
fn kept(timeout: Option<Duration>) -> io::Result<u64> {
    match crate::socket::timeout(timeout)? {
        None => Ok(0),
        Some(timeout) => Ok(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)),
    }
}

fn told(nanoseconds: u64) -> Option<Duration> {
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
        self.recv_timeout.store(kept(timeout)?, Ordering::Relaxed);
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
        let wait = Wait::Until(Deadline::after(Some(timeout)));
        exact::recv_n(buffer, |buffer| self.recv_as(&mut [IoSliceMut::new(buffer)], wait))
    }
    fn recv_n_v_within(&self, slices: &mut [IoSliceMut<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(Some(timeout)));
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
        self.send_timeout.store(kept(timeout)?, Ordering::Relaxed);
        Ok(())
    }

    fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        self.send_as(&[IoSlice::new(data)], Wait::For(Some(timeout)))
    }
    fn send_v_within(&self, slices: &[IoSlice<'_>], timeout: Duration) -> io::Result<usize> {
        self.send_as(slices, Wait::For(Some(timeout)))
    }
    fn send_n_within(&self, data: &[u8], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(Some(timeout)));
        exact::send_n(data, |data| self.send_as(&[IoSlice::new(data)], wait))
    }
    fn send_n_v_within(&self, slices: &mut [IoSlice<'_>], timeout: Duration) -> Result<(), TransferError> {
        let wait = Wait::Until(Deadline::after(Some(timeout)));
        exact::send_n_v(slices, |slices| self.send_as(slices, wait))
    }
}

impl Transfer for Stream {
    fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        self.is_nonblocking.store(on, Ordering::Relaxed);
        Ok(())
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let link = self.link();
        if matches!(how, Shutdown::Write | Shutdown::Both) {
            self.sender.shut(&link, &self.outbound());
        }
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            self.receiver.shut(&link, &self.inbound());
        }
        if how == Shutdown::Both {
            // Wakes whoever waits on the handle. The peer may be gone already.
            let _ = self.line.socket.shutdown(Shutdown::Both);
        }
        Ok(())
    }
}

crate::inherent_transfer!(Stream);

impl Pollable for Stream {
    fn handle(&self) -> Handle<'_> {
        self.line.socket.handle()
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
        if self.line.is_gone.load(Ordering::Acquire) {
            ready = wanted;
        }
        let wait_for = if wanted.is_none() { Interest::NONE } else { Interest::INPUT };
        Prepared { wait_for, ready }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        if !seen.is_none() {
            self.line.drain();
        }
        self.ready(wanted)
    }
}

/// Addresses, settings, and who the peer is.
impl Stream {
    /// The address of this side; without a name on the side that connected.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn local_addr(&self) -> io::Result<Addr> {
        self.line.socket.local_addr()
    }

    /// The address of the peer; without a name if that connected.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] when there is no peer any more.
    pub fn remote_addr(&self) -> io::Result<Addr> {
        self.line.socket.remote_addr()
    }

    /// Who the peer was when the connection was made (`SO_PEERCRED`): the process that connected, or that listened. The system
    /// vouches for it.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn peer_credentials(&self) -> io::Result<Credentials> {
        self.line.socket.peer_credentials()
    }

    /// How many octets may be on their way to the peer.
    #[must_use]
    pub fn send_queue(&self) -> usize {
        self.outbound().capacity() as usize
    }

    /// How many octets may be on their way from the peer.
    #[must_use]
    pub fn recv_queue(&self) -> usize {
        self.inbound().capacity() as usize
    }

    /// The time set with [`set_recv_timeout`](Self::set_recv_timeout).
    #[must_use]
    pub fn recv_timeout(&self) -> Option<Duration> {
        told(self.recv_timeout.load(Ordering::Relaxed))
    }

    /// The time set with [`set_send_timeout`](Self::set_send_timeout).
    #[must_use]
    pub fn send_timeout(&self) -> Option<Duration> {
        told(self.send_timeout.load(Ordering::Relaxed))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
