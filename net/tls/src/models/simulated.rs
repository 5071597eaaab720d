//! An in-memory stream with little capacity, so that any transfer may have to wait.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::time::Duration;

use spandrel_ipc::{Handle, Interest, Pollable, Prepared, Receive, Shutdown, Transfer, Transmit};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Condition, Mutex, thread};

/// The octets in flight in one direction.
#[derive(Debug, Default)]
struct Direction {
    state: Mutex<State>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct State {
    octets: VecDeque<u8>,
    capacity: usize,
    /// The sending side has ended it.
    is_ended: bool,
    /// The receiving side has ended it.
    is_refused: bool,
}

impl State {
    fn is_readable(&self) -> bool {
        !self.octets.is_empty() || self.is_ended || self.is_refused
    }

    fn is_writable(&self) -> bool {
        self.octets.len() < self.capacity || self.is_ended || self.is_refused
    }
}

impl Direction {
    fn of(capacity: usize) -> Arc<Self> {
        let way = Self::default();
        way.state.lock().capacity = capacity;
        Arc::new(way)
    }

    /// Retries until it succeeds or times out; `None` never times out.
    fn wait<T>(&self, timeout: Option<Duration>, mut attempt: impl FnMut(&mut State) -> Option<T>) -> io::Result<T> {
        let end = timeout.map(|timeout| (Instant::now(), timeout));
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = attempt(&mut state) {
                self.changed.notify_all();
                return Ok(outcome);
            }
            match end {
                None => self.changed.wait(&mut state),
                Some((start, timeout)) => {
                    let left = timeout.saturating_sub(Instant::now().saturating_duration_since(start));
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    self.changed.wait_for(&mut state, left);
                }
            }
        }
    }

    fn recv(&self, buffer: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.wait(timeout, |state| {
            let octets = buffer.len().min(state.octets.len());
            state.octets.drain(..octets).zip(&mut *buffer).for_each(|(octet, place)| *place = octet);
            state.is_readable().then_some(octets).or((octets > 0).then_some(octets))
        })
    }

    fn send(&self, data: &[u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.wait(timeout, |state| {
            if state.is_ended || state.is_refused {
                return Some(None);
            }
            let octets = data.len().min(state.capacity - state.octets.len());
            state.octets.extend(&data[..octets]);
            (octets > 0).then_some(Some(octets))
        })?
        .ok_or(io::ErrorKind::BrokenPipe.into())
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

/// One end of the simulated connection.
#[derive(Debug)]
pub(super) struct End {
    inbound: Arc<Direction>,
    outbound: Arc<Direction>,
}

impl End {
    /// A connected pair; each direction holds that many octets.
    pub(super) fn pair(capacity: usize) -> (Self, Self) {
        let (one, other) = (Direction::of(capacity), Direction::of(capacity));
        let end = Self { inbound: Arc::clone(&one), outbound: Arc::clone(&other) };
        (end, Self { inbound: other, outbound: one })
    }
}

fn not_now(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::TimedOut { io::ErrorKind::WouldBlock.into() } else { error }
}

impl Receive for End {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inbound.recv(buffer, None)
    }
    fn recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        slices.iter_mut().find(|slice| !slice.is_empty()).map_or(Ok(0), |slice| self.recv(slice))
    }
    fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inbound.recv(buffer, Some(Duration::ZERO)).map_err(not_now)
    }
    fn try_recv_v(&self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        slices.iter_mut().find(|slice| !slice.is_empty()).map_or(Ok(0), |slice| self.try_recv(slice))
    }
    fn set_recv_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
    fn recv_within(&self, buffer: &mut [u8], timeout: Duration) -> io::Result<usize> {
        self.inbound.recv(buffer, Some(timeout))
    }
}

impl Transmit for End {
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        self.outbound.send(data, None)
    }
    fn send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        slices.iter().find(|slice| !slice.is_empty()).map_or(Ok(0), |slice| self.send(slice))
    }
    fn try_send(&self, data: &[u8]) -> io::Result<usize> {
        self.outbound.send(data, Some(Duration::ZERO)).map_err(not_now)
    }
    fn try_send_v(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        slices.iter().find(|slice| !slice.is_empty()).map_or(Ok(0), |slice| self.try_send(slice))
    }
    fn set_send_timeout(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
    fn send_within(&self, data: &[u8], timeout: Duration) -> io::Result<usize> {
        self.outbound.send(data, Some(timeout))
    }
}

impl Transfer for End {
    fn set_nonblocking(&self, _: bool) -> io::Result<()> {
        Ok(())
    }
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Read {
            self.outbound.set(|state| state.is_ended = true);
        }
        if how != Shutdown::Write {
            self.inbound.set(|state| state.is_refused = true);
        }
        Ok(())
    }
}

/// Waits by polling: the handle is always ready, and means nothing.
impl Pollable for End {
    fn handle(&self) -> Handle<'_> {
        static NULL: OnceLock<std::fs::File> = OnceLock::new();
        NULL.get_or_init(|| std::fs::File::open("/dev/null").expect("it is there")).as_fd()
    }
    fn is_plain(&self) -> bool {
        false
    }
    fn prepare(&self, wanted: Interest) -> Prepared {
        Prepared { wait_for: wanted, ready: self.interpret(Interest::NONE, wanted) }
    }
    fn interpret(&self, _: Interest, wanted: Interest) -> Interest {
        thread::yield_now();
        let mut ready = Interest::NONE;
        if self.inbound.state.lock().is_readable() {
            ready |= Interest::INPUT;
        }
        if self.outbound.state.lock().is_writable() {
            ready |= Interest::OUTPUT;
        }
        ready & wanted
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}
