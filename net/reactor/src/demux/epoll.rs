//! `epoll(7)`, the default on Linux: one system call for all that is ready, and none per event.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use spandrel_ipc::Interest;

use super::{Demultiplexer, Shown};
use crate::sys::{self, RawHandle};
use crate::{Backend, Trigger};

/// Belongs to no handler: generations begin at one.
const WAKE: u64 = 0;
/// How many handles one wait shows, whoever asks for more.
const MOST: usize = 256;

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    /// Watched for edges: each write is one, so that nobody has to read it.
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

    fn wait(&self, shown: &mut Vec<Shown>, most: usize, timeout: Option<Duration>) -> io::Result<()> {
        // One more, for the doorbell.
        let mut room = [const { MaybeUninit::uninit() }; MOST + 1];
        let millis = u32::try_from(super::whole_millis(timeout)).ok();
        let timeout = millis
            .map(|millis| Timespec { tv_sec: (millis / 1000).into(), tv_nsec: (millis % 1000 * 1_000_000).into() });
        let events = match epoll::wait(&self.epoll, &mut room[..=most.min(MOST)], timeout.as_ref()) {
            Ok((events, _rest)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let key = event.data.u64();
            if key != WAKE {
                shown.push(Shown { key, ready: ready(event.flags) });
            }
        }
        Ok(())
    }

    fn wake(&self) -> io::Result<()> {
        super::ring_eventfd(&self.doorbell)
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
        Errno::PERM => "a handle of this kind (such as that of a regular file) is always ready and cannot be waited on",
        Errno::NOSPC => "the system lets this user wait on no more handles (fs.epoll.max_user_watches)",
        _ => return error.into(),
    };
    io::Error::new(io::Error::from(error).kind(), text)
}
