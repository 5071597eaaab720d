//! `select` for a few handles, and the mechanism of the `polling` crate once there are more.
//!
//! A wait by `select` of Windows leaves nothing behind. The requests of a completion port stay pending while events are
//! dispatched: the system then interrupts the dispatching thread for each event that occurs. A completion port serves
//! many handles, which `select` does not.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

use super::demultiplexer::{Demultiplexer, ReadyHandle};
use super::portable::Portable;
use super::scan::Scanner;
use super::select::Select;
use crate::sys::{RawHandle, scan};
use crate::{Backend, Trigger};

/// The most handles of `select`, beside the doorbell.
const MOST: usize = scan::SET_SIZE - 1;

/// A demultiplexer that uses `select` up to [`MOST`] handles, and a completion port from the next one on, for good.
#[derive(Debug)]
pub(crate) struct SelectThenPort {
    select: Scanner<Select>,
    /// Set once, with all handles of `select`.
    port: OnceLock<Portable>,
    /// Held while handles are changed. A wait needs no lock: it ends when the handles move.
    changing: Mutex<()>,
}

impl SelectThenPort {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { select: Scanner::new(Select)?, port: OnceLock::new(), changing: Mutex::new(()) })
    }

    fn current(&self) -> &dyn Demultiplexer {
        self.port.get().map_or(&self.select, |port| port)
    }

    /// Moves all handles to a completion port.
    fn move_to_port(&self) -> io::Result<()> {
        let port = Portable::new()?;
        self.select.each(|handle, key, interest, trigger| port.add(handle, key, interest, trigger))?;
        port.wake()?; // in place of a call for `select` that has not ended a wait yet
        let _ = self.port.set(port);
        self.select.clear()
    }
}

impl Demultiplexer for SelectThenPort {
    fn backend(&self) -> Backend {
        Backend::Select
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let _guard = self.changing.lock();
        if self.port.get().is_none() && self.select.len() >= MOST {
            self.move_to_port()?;
        }
        self.current().add(handle, key, interest, trigger)
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let _guard = self.changing.lock();
        self.current().modify(handle, key, interest, trigger)
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        let _guard = self.changing.lock();
        self.current().remove(handle)
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        self.current().wait(ready_handles, max_events, timeout)
    }

    fn wake(&self) -> io::Result<()> {
        let _guard = self.changing.lock();
        self.current().wake()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::windows::io::AsRawSocket;
    use std::thread;

    use super::*;

    /// Waits for one handle, and returns its key.
    fn wait(demux: &SelectThenPort) -> u64 {
        let mut ready_handles = Vec::new();
        while ready_handles.is_empty() {
            demux.wait(&mut ready_handles, 8, Some(Duration::from_secs(20))).unwrap();
        }
        assert_eq!(ready_handles.len(), 1);
        ready_handles[0].key
    }

    #[test]
    fn handles_are_waited_for_before_and_after_there_are_many() {
        let sockets: Vec<_> = (0..MOST + 10).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let handle = |i: usize| sockets[i].as_raw_socket();
        let make_ready = |i: usize| sockets[0].send_to(b"!", sockets[i].local_addr().unwrap()).unwrap();
        let demux = SelectThenPort::new().unwrap();
        let add = |i: usize| demux.add(handle(i), i as u64, Interest::INPUT, Trigger::Level).unwrap();
        (0..MOST).for_each(add);
        make_ready(7);
        assert_eq!(wait(&demux), 7);
        assert!(demux.port.get().is_none());
        sockets[7].recv(&mut [0]).unwrap();

        // The pending wait goes on with all handles.
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&demux));
            (MOST..sockets.len()).for_each(add);
            assert!(demux.port.get().is_some());
            make_ready(9);
            assert_eq!(waiting.join().unwrap(), 9);
        });
        demux.remove(handle(9)).unwrap();
        make_ready(MOST + 3);
        assert_eq!(wait(&demux), (MOST + 3) as u64);
        assert_eq!(
            demux.add(handle(0), 0, Interest::INPUT, Trigger::Level).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn a_spent_shot_stays_spent_when_the_handles_move() {
        let sockets: Vec<_> = (0..MOST + 1).map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
        let demux = SelectThenPort::new().unwrap();
        let add =
            |i: usize| demux.add(sockets[i].as_raw_socket(), i as u64, Interest::INPUT, Trigger::OneShot).unwrap();
        (0..MOST).for_each(add);
        sockets[0].send_to(b"!", sockets[1].local_addr().unwrap()).unwrap();
        assert_eq!(wait(&demux), 1);
        add(MOST);
        sockets[0].send_to(b"!", sockets[2].local_addr().unwrap()).unwrap();
        assert_eq!(wait(&demux), 2);
        demux.modify(sockets[1].as_raw_socket(), 1, Interest::INPUT, Trigger::OneShot).unwrap();
        assert_eq!(wait(&demux), 1);
    }
}
