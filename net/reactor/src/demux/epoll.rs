//! `epoll(7)`, the default on Linux: one system call for all ready handles, and none per event.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use spandrel_ipc::Interest;

use super::demultiplexer::{Demultiplexer, ReadyHandle, whole_millis};
use crate::sys::{self, RawHandle};
use crate::{Backend, Trigger};

/// The key of no handler: generations begin at one.
const WAKE: u64 = 0;
/// The maximum number of handles that one wait returns.
const MAX_EVENTS: usize = 256;

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    /// Edge-triggered: each write is one event, so that it need not be read.
    doorbell: OwnedFd,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &doorbell, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, doorbell })
    }
}

impl Demultiplexer for Epoll {
    fn backend(&self) -> Backend {
        Backend::Epoll
    }

    fn add(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let flags = flags(interest, trigger);
        sys::lend(handle, |handle| epoll::add(&self.epoll, handle, EventData::new_u64(key), flags)).map_err(explain)
    }

    fn modify(&self, handle: RawHandle, key: u64, interest: Interest, trigger: Trigger) -> io::Result<()> {
        let flags = flags(interest, trigger);
        sys::lend(handle, |handle| epoll::modify(&self.epoll, handle, EventData::new_u64(key), flags)).map_err(explain)
    }

    fn remove(&self, handle: RawHandle) -> io::Result<()> {
        Ok(sys::lend(handle, |handle| epoll::delete(&self.epoll, handle))?)
    }

    fn wait(
        &self,
        ready_handles: &mut Vec<ReadyHandle>,
        max_events: usize,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        // One more, for the doorbell.
        let mut room = [const { MaybeUninit::uninit() }; MAX_EVENTS + 1];
        let millis = u32::try_from(whole_millis(timeout)).ok();
        let timeout = millis
            .map(|millis| Timespec { tv_sec: (millis / 1000).into(), tv_nsec: (millis % 1000 * 1_000_000).into() });
        let events = match epoll::wait(&self.epoll, &mut room[..=max_events.min(MAX_EVENTS)], timeout.as_ref()) {
            Ok((events, _rest)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let key = event.data.u64();
            if key != WAKE {
                ready_handles.push(ReadyHandle { key, ready: ready(event.flags) });
            }
        }
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        crate::sys::eventfd::ring(&self.doorbell)
    }
}

fn flags(interest: Interest, trigger: Trigger) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.contains(Interest::INPUT));
    flags.set(EventFlags::OUT, interest.contains(Interest::OUTPUT));
    flags.set(EventFlags::PRI, interest.contains(Interest::EXCEPTION));
    match trigger {
        Trigger::Level => {}
        Trigger::Edge => flags |= EventFlags::ET,
        Trigger::OneShot => flags |= EventFlags::ONESHOT,
    }
    flags
}

#[inline]
fn ready(flags: EventFlags) -> Interest {
    if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
        return Interest::ALL;
    }
    let bits = flags.bits();
    let bit = |flag: EventFlags, kind: Interest| if bits & flag.bits() != 0 { kind.bits() } else { 0 };
    Interest::from_bits(
        bit(EventFlags::IN, Interest::INPUT)
            | bit(EventFlags::OUT, Interest::OUTPUT)
            | bit(EventFlags::PRI, Interest::EXCEPTION),
    )
}

fn explain(error: Errno) -> io::Error {
    let text = match error {
        Errno::PERM => "cannot wait on a handle of this kind (such as a regular file), which is always ready",
        Errno::NOSPC => "cannot wait on more handles: the user's limit is reached (sysctl fs.epoll.max_user_watches)",
        _ => return error.into(),
    };
    io::Error::new(io::Error::from(error).kind(), text)
}
