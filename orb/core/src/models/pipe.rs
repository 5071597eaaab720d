//! A connection without a network: two bounded pipes.

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    time::Duration,
};

use spandrel_ipc::Pollable;
use spandrel_sync::{Arc, Condition, Mutex, MutexGuard};
use spandrel_transport::{ReactorTransport, Transport};

/// One end of a connection; clones are the same end. Dropping it closes nothing.
#[derive(Clone, Debug)]
pub struct PipeEnd {
    input: Arc<FakePipe>,
    output: Arc<FakePipe>,
    limits: Arc<Mutex<Limits>>,
}

/// The time-outs of transfers.
#[derive(Debug, Default)]
struct Limits {
    recv: Option<Duration>,
    send: Option<Duration>,
}

/// One direction of the connection.
#[derive(Debug)]
struct FakePipe {
    capacity: usize,
    state: Mutex<State>,
    changed: Condition,
    bell: Mutex<Option<Arc<PipeCondition>>>,
    room_bell: Mutex<Option<Arc<PipeCondition>>>,
}

/// Wakes a fake reactor after each event that it may wait for.
#[derive(Debug, Default)]
pub struct PipeCondition {
    rings: Mutex<u64>,
    rung: Condition,
}

impl PipeCondition {
    pub fn ring(&self) {
        *self.rings.lock() += 1;
        self.rung.notify_all();
    }

    /// Waits until the function returns a value. Each change that affects it has to ring afterwards.
    pub fn await_that<T>(&self, mut is_so: impl FnMut() -> Option<T>) -> T {
        loop {
            let before = *self.rings.lock();
            if let Some(value) = is_so() {
                return value;
            }
            self.rung.wait_while(&mut self.rings.lock(), |rings| *rings == before);
        }
    }
}

#[derive(Debug, Default)]
struct State {
    octets: VecDeque<u8>,
    /// Whether the writer has closed.
    ended: bool,
    /// Whether the reader has closed.
    broken: bool,
}

/// Makes the two ends of a connection that holds so many octets in each direction.
pub fn pair(capacity: usize) -> (PipeEnd, PipeEnd) {
    let pipe = || {
        let (state, bell, room_bell) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(FakePipe { capacity, state, changed: Condition::new(), bell, room_bell })
    };
    let (there, back) = (pipe(), pipe());
    let end = |input: &Arc<FakePipe>, output: &Arc<FakePipe>| PipeEnd {
        input: Arc::clone(input),
        output: Arc::clone(output),
        limits: Arc::default(),
    };
    (end(&back, &there), end(&there, &back))
}

impl FakePipe {
    fn wait(&self, state: &mut MutexGuard<'_, State>, limit: Option<Duration>) -> io::Result<()> {
        match limit {
            None => self.changed.wait(state),
            Some(Duration::ZERO) => return Err(io::ErrorKind::WouldBlock.into()),
            Some(limit) => {
                if self.changed.wait_for(state, limit).timed_out() {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
        }
        Ok(())
    }

    fn write(&self, octets: &[u8], limit: Option<Duration>) -> io::Result<usize> {
        let mut state = self.state.lock();
        loop {
            if state.ended || state.broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let count = octets.len().min(self.capacity - state.octets.len());
            if count > 0 {
                state.octets.extend(&octets[..count]);
                drop(state);
                self.notify();
                return Ok(count);
            }
            self.wait(&mut state, limit)?;
        }
    }

    fn read(&self, room: &mut [u8], limit: Option<Duration>) -> io::Result<usize> {
        let mut state = self.state.lock();
        while state.octets.is_empty() && !state.ended && !state.broken {
            self.wait(&mut state, limit)?;
        }
        let count = room.len().min(state.octets.len());
        for (place, octet) in room.iter_mut().zip(state.octets.drain(..count)) {
            *place = octet;
        }
        drop(state);
        self.changed.notify_all();
        self.tell_of_room();
        Ok(count)
    }

    fn tell_of_room(&self) {
        let bell = self.room_bell.lock().clone();
        if let Some(bell) = bell {
            bell.ring();
        }
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.notify();
        self.tell_of_room();
    }

    fn notify(&self) {
        self.changed.notify_all();
        let bell = self.bell.lock().clone();
        if let Some(bell) = bell {
            bell.ring();
        }
    }
}

impl PipeEnd {
    /// Sets the bell that rings when more, or the end, can be read.
    pub fn set_bell(&self, bell: &Arc<PipeCondition>) {
        *self.input.bell.lock() = Some(Arc::clone(bell));
    }

    /// Sets the bell that rings when more can be written, or the reader has closed.
    pub fn set_room_bell(&self, bell: &Arc<PipeCondition>) {
        *self.output.room_bell.lock() = Some(Arc::clone(bell));
    }

    /// Whether a write would not wait.
    pub fn is_writable(&self) -> bool {
        let state = self.output.state.lock();
        state.octets.len() < self.output.capacity || state.ended || state.broken
    }

    /// Whether a read would not wait.
    pub fn is_readable(&self) -> bool {
        let state = self.input.state.lock();
        !state.octets.is_empty() || state.ended || state.broken
    }
}

impl Transport for PipeEnd {
    fn send(&self, octets: &[u8]) -> io::Result<usize> {
        let limit = self.limits.lock().send;
        self.output.write(octets, limit)
    }

    fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(parts.iter().find(|part| !part.is_empty()).map_or(&[], |part| part))
    }

    fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
        let limit = self.limits.lock().recv;
        self.input.read(room, limit)
    }

    fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
        self.input.read(room, Some(Duration::ZERO))
    }

    fn set_recv_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.limits.lock().recv = timeout;
        Ok(())
    }

    fn set_send_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.limits.lock().send = timeout;
        Ok(())
    }

    fn close_writer(&self) {
        self.output.set(|state| state.ended = true);
    }

    fn close(&self) {
        self.close_writer();
        self.input.set(|state| state.broken = true);
    }
}

impl ReactorTransport for PipeEnd {
    fn try_send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let part = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        self.output.write(part, Some(Duration::ZERO))
    }

    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }
}
