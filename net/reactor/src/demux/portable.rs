//! The `polling` crate: on Windows over I/O completion ports, on macOS and the BSDs over kqueue, and on Linux
//! for testing.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;

use polling::{Event, Events, PollMode, Poller};
use spandrel_ipc::Interest;
use spandrel_sync::Mutex;

#[cfg(unix)]
use super::backend::no_edges;
use super::demultiplexer::{Demultiplexer, ReadyHandle};
use crate::sys::{self, RawHandle};
use crate::{Backend, Trigger};

/// The maximum number of handles that one wait returns.
const MAX_EVENTS: usize = 256;

pub(crate) struct Portable {
    poller: Poller,
    /// The keys by handle: the poller's own keys may be too small for ours.
    keys: Mutex<HashMap<usize, u64>>,
    events: Mutex<Events>,
}

impl Portable {
    /// # Errors
    /// `Unsupported` where the system lacks level triggers.
    pub(crate) fn new() -> io::Result<Self> {
        let poller = Poller::new()?;
        if !poller.supports_level() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this system does not support level-triggered events",
            ));
        }
        let max_events = NonZeroUsize::new(MAX_EVENTS).unwrap_or(NonZeroUsize::MIN);
        Ok(Self { poller, keys: Mutex::default(), events: Mutex::new(Events::with_capacity(max_events)) })
    }
}

impl fmt::Debug for Portable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Portable").finish_non_exhaustive()
    }
}

impl Demultiplexer for Portable {
    fn backend(&self) -> Backend {
        Backend::Polling
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let mode = self.mode(trigger)?;
        let poller_key = poller_key(handle)?;
        let mut keys = self.keys.lock();
        if keys.contains_key(&poller_key) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        sys::add_to_poller(&self.poller, handle, event(poller_key, interest), mode)?;
        keys.insert(poller_key, key);
        Ok(())
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let mode = self.mode(trigger)?;
        let poller_key = poller_key(handle)?;
        sys::lend(handle, |handle| self.poller.modify_with_mode(handle, event(poller_key, interest), mode))?;
        self.keys.lock().insert(poller_key, key);
        Ok(())
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        self.keys.lock().remove(&poller_key(handle)?);
        sys::lend(handle, |handle| self.poller.delete(handle))
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        let mut events = self.events.lock();
        events.clear();
        match self.poller.wait(&mut events, timeout) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        let keys = self.keys.lock();
        // One-shot and edge events are not repeated, so all of them are passed on, even if they are more than
        // requested.
        let _ = max_events;
        for event in events.iter() {
            if let Some(key) = keys.get(&event.key) {
                ready_handles.push(ReadyHandle { key: *key, ready: ready(&event) });
            }
        }
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        self.poller.notify()
    }
}

impl Portable {
    fn mode(&self, trigger: Trigger) -> io::Result<PollMode> {
        match trigger {
            Trigger::Level => Ok(PollMode::Level),
            Trigger::OneShot => Ok(PollMode::Oneshot),
            #[cfg(unix)]
            Trigger::Edge if self.poller.supports_edge() => Ok(PollMode::Edge),
            #[cfg(unix)]
            Trigger::Edge => Err(no_edges(Backend::Polling)),
        }
    }
}

fn poller_key(handle: RawHandle) -> io::Result<usize> {
    usize::try_from(handle).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn event(poller_key: usize, interest: Interest) -> Event {
    let mut event = Event::new(poller_key, interest.contains(Interest::INPUT), interest.contains(Interest::OUTPUT));
    event.set_priority(interest.contains(Interest::EXCEPTION));
    event
}

fn ready(event: &Event) -> Interest {
    if event.is_interrupt() || event.is_err() == Some(true) {
        return Interest::ALL;
    }
    let kinds = [
        (event.readable, Interest::INPUT),
        (event.writable, Interest::OUTPUT),
        (event.is_priority(), Interest::EXCEPTION),
    ];
    kinds.iter().filter(|(is_so, _)| *is_so).fold(Interest::NONE, |all, (_, kind)| all | *kind)
}
