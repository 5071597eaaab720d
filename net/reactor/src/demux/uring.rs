//! `io_uring(7)`: poll requests in a ring shared with the kernel.
//!
//! An edge request is submitted once (multishot). A level request completes once and is submitted again
//! before the next wait, together with that wait: so a level costs no extra system call, and unread input is
//! reported again. (A multishot request reports changes only.)
//!
//! A request keeps its file open, and ends with the thread that submitted it. So cancellations are submitted
//! at once, and a request that ended unexpectedly is submitted again.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI};
use rustix::event::{EventfdFlags, eventfd};
use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

use super::demultiplexer::{Demultiplexer, ReadyHandle};
use crate::sys::RawHandle;
use crate::sys::uring::{Completion, Ring};
use crate::{Backend, Trigger};

/// Tokens that belong to no request for a handle: other tokens have the handle in the low half and the number
/// of a request, from one on, in the high half.
const WAKE: u64 = 0;
const REMOVED: u64 = 1;

#[derive(Debug)]
pub(crate) struct Uring {
    ring: Ring,
    doorbell: OwnedFd,
    watched: Mutex<WatchedHandles>,
}

#[derive(Debug, Default)]
struct WatchedHandles {
    entries: HashMap<RawHandle, Entry>,
    /// Tokens of requests to be submitted again, as far as their handles are still watched.
    resubmit: Vec<u64>,
    request: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: u64,
    interest: Interest,
    trigger: Trigger,
    token: u64,
    /// Its one shot has fired.
    is_spent: bool,
}

impl Uring {
    pub(crate) fn new() -> io::Result<Self> {
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let this = Self { ring: Ring::new()?, doorbell, watched: Mutex::default() };
        this.watch_doorbell()?;
        this.ring.submit()?;
        Ok(this)
    }

    /// Edge-triggered: each write is one event.
    fn watch_doorbell(&self) -> io::Result<()> {
        self.ring.add(self.doorbell.as_raw_fd(), bits(POLLIN), WAKE, true)
    }

    fn queue_request(&self, handle: RawHandle, entry: &Entry) -> io::Result<()> {
        let flags = [(Interest::INPUT, POLLIN), (Interest::OUTPUT, POLLOUT), (Interest::EXCEPTION, POLLPRI)];
        let wanted_flags = flags.iter().filter(|(kind, _)| entry.interest.contains(*kind)).map(|(_, flag)| bits(*flag));
        self.ring.add(handle, wanted_flags.fold(0, |all, flag| all | flag), entry.token, entry.trigger == Trigger::Edge)
    }

    /// Queues the completed requests again whose handles are still watched.
    fn requeue_completed(&self) -> io::Result<()> {
        let mut watched = self.watched.lock();
        let WatchedHandles { entries, resubmit, .. } = &mut *watched;
        for token in resubmit.drain(..) {
            let handle = handle_of(token);
            if let Some(entry) = entries.get(&handle).filter(|entry| entry.token == token) {
                self.queue_request(handle, entry)?;
            }
        }
        Ok(())
    }

    /// The event of a completion, if its handle is still watched.
    fn interpret(&self, completion: Completion) -> Option<ReadyHandle> {
        if completion.token == WAKE {
            if !completion.goes_on
                && let Err(error) = self.watch_doorbell()
            {
                tracing::error!(%error, "a reactor can no longer be woken");
            }
            return None;
        }
        let mut watched = self.watched.lock();
        let WatchedHandles { entries, resubmit, .. } = &mut *watched;
        let entry = entries.get_mut(&handle_of(completion.token)).filter(|entry| entry.token == completion.token)?;
        if !completion.goes_on {
            match entry.trigger {
                Trigger::OneShot if completion.result != -libc::ECANCELED => entry.is_spent = true,
                _ => resubmit.push(entry.token),
            }
        }
        let key = entry.key;
        if completion.result == -libc::ECANCELED {
            return None;
        }
        Some(ReadyHandle { key, ready: ready(completion.result) })
    }
}

impl WatchedHandles {
    fn next_token(&mut self, handle: RawHandle) -> u64 {
        self.request = self.request.checked_add(1).unwrap_or(1);
        u64::from(self.request) << 32 | u64::from(handle.cast_unsigned())
    }
}

impl Demultiplexer for Uring {
    fn backend(&self) -> Backend {
        Backend::IoUring
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let mut watched = self.watched.lock();
        if watched.entries.contains_key(&handle) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let token = watched.next_token(handle);
        let entry = Entry { key, interest, trigger, token, is_spent: false };
        watched.entries.insert(handle, entry);
        self.queue_request(handle, &entry)?;
        self.ring.submit()
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let mut watched = self.watched.lock();
        let token = watched.next_token(handle);
        let entry = watched.entries.get_mut(&handle).ok_or(io::ErrorKind::NotFound)?;
        if !entry.is_spent {
            self.ring.remove(entry.token, REMOVED)?;
        }
        *entry = Entry { key, interest, trigger, token, is_spent: false };
        self.queue_request(handle, entry)?;
        self.ring.submit()
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        let mut watched = self.watched.lock();
        let entry = watched.entries.remove(&handle).ok_or(io::ErrorKind::NotFound)?;
        if entry.is_spent {
            return Ok(());
        }
        self.ring.remove(entry.token, REMOVED)?;
        self.ring.submit()
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        self.requeue_completed()?;
        self.ring.wait(timeout)?;
        self.ring.take(max_events, |completion| {
            if completion.token != REMOVED {
                ready_handles.extend(self.interpret(completion));
            }
        });
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        crate::sys::eventfd::ring(&self.doorbell)
    }
}

fn handle_of(token: u64) -> RawHandle {
    // The low half is the handle.
    (token as u32).cast_signed()
}

fn bits(flag: i16) -> u32 {
    u32::from(flag.cast_unsigned())
}

fn ready(result: i32) -> Interest {
    let Ok(seen) = i16::try_from(result) else { return Interest::ALL };
    if seen < 0 || seen & (POLLERR | POLLHUP | POLLNVAL) != 0 {
        return Interest::ALL;
    }
    let flags = [(POLLIN, Interest::INPUT), (POLLOUT, Interest::OUTPUT), (POLLPRI, Interest::EXCEPTION)];
    flags.iter().filter(|(flag, _)| seen & flag != 0).fold(Interest::NONE, |all, (_, kind)| all | *kind)
}
