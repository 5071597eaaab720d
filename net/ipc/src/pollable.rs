//! Readiness of endpoints: the part of every family that a reactor uses.

use std::fmt;
use std::io;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use spandrel_sync::time::Deadline;

/// An operating system handle, borrowed for waiting.
#[cfg(unix)]
pub type Handle<'a> = std::os::fd::BorrowedFd<'a>;
/// An operating system handle, borrowed for waiting.
#[cfg(windows)]
pub type Handle<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// A set of kinds of events (the papers' event mask).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Interest in no event.
    pub const NONE: Self = Self(0);
    /// There are octets to receive, a connection to accept, or the end of the stream.
    pub const INPUT: Self = Self(1);
    /// Octets can be sent, or an attempt to connect has ended.
    pub const OUTPUT: Self = Self(2);
    /// Out-of-band data has arrived.
    pub const EXCEPTION: Self = Self(4);
    /// Interest in input, output and out-of-band data.
    pub const ALL: Self = Self(7);

    /// Whether it is empty.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether it contains all of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it has an event in common with `other`.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set as a number below 8, for an atomic.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The inverse of [`bits`](Self::bits); unknown bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }
}

impl BitOr for Interest {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl BitAnd for Interest {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl Sub for Interest {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(Self::INPUT, "INPUT"), (Self::OUTPUT, "OUTPUT"), (Self::EXCEPTION, "EXCEPTION")];
        let held: Vec<_> = names.iter().filter(|(one, _)| self.contains(*one)).map(|(_, name)| *name).collect();
        f.write_str(if held.is_empty() { "NONE" } else { "" })?;
        f.write_str(&held.join(" | "))
    }
}

/// The result of [`Pollable::prepare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The events of the handle to wait for in order to notice the wanted ones.
    pub wait_for: Interest,
    /// The events that are ready already. If there are any, do not wait.
    pub ready: Interest,
}

/// An endpoint on which a reactor can wait.
///
/// For plain sockets the handle shows everything, as the provided methods report. A family that decodes (TLS)
/// or bypasses the system (shared memory) reports with them the state that its handle does not show. A wait
/// consists of three steps:
///
/// 1. [`prepare`](Self::prepare) for the wanted events; if some are ready, do not wait;
/// 2. wait on [`handle`](Self::handle) for the events that `prepare` returned;
/// 3. call [`interpret`](Self::interpret) on the result.
///
/// If [`is_plain`](Self::is_plain), steps 1 and 3 can be omitted.
pub trait Pollable {
    /// The handle to wait on.
    fn handle(&self) -> Handle<'_>;

    /// Whether input is buffered that the handle no longer shows, so that it must be drained before waiting.
    fn pending(&self) -> bool {
        false
    }

    /// Whether the handle alone shows all events.
    fn is_plain(&self) -> bool {
        true
    }

    /// Prepares for a wait: tells the peer, where needed, that this side is about to wait.
    ///
    /// To be called again before each wait, since any use of the endpoint in between invalidates it.
    fn prepare(&self, wanted: Interest) -> Prepared {
        Prepared { wait_for: wanted, ready: Interest::NONE }
    }

    /// The meaning of the events `seen` on the handle for `wanted`. If it is empty, wait again, starting with
    /// `prepare`.
    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        let _ = wanted;
        seen
    }
}

/// Waits until `endpoint` is ready for some of `wanted`, and returns the ready events; none on a timeout
/// (`None` never times out).
///
/// Errors and hang-ups of the handle count as readiness for the wanted events: the next transfer reports
/// them. Continues after a signal with the time left.
///
/// # Errors
/// Any error of the operating system.
pub fn wait_ready<P: Pollable + ?Sized>(
    endpoint: &P,
    wanted: Interest,
    timeout: Option<Duration>,
) -> io::Result<Interest> {
    let deadline = Deadline::after(timeout);
    loop {
        let Prepared { wait_for, ready } = endpoint.prepare(wanted);
        if ready.intersects(wanted) {
            return Ok(ready & wanted);
        }
        let left = deadline.remaining();
        let events = poll_once(endpoint.handle(), wait_for, left)?;
        let ready = endpoint.interpret(events, wanted) & wanted;
        if !ready.is_none() {
            return Ok(ready);
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Interest::NONE);
        }
    }
}

/// Waits until one of several plain endpoints may be ready, a timeout or a signal.
pub(crate) fn wait_any<P: Pollable>(endpoints: &[P], wanted: Interest, timeout: Option<Duration>) -> io::Result<()> {
    let flags = to_flags(wanted);
    let mut handles: Vec<_> = endpoints.iter().map(|one| PollFd::from_borrowed_fd(one.handle(), flags)).collect();
    match poll(&mut handles, to_timespec(timeout).as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One system call; empty after a timeout or a signal.
fn poll_once(handle: Handle<'_>, wait_for: Interest, timeout: Option<Duration>) -> io::Result<Interest> {
    let mut handles = [PollFd::from_borrowed_fd(handle, to_flags(wait_for))];
    match poll(&mut handles, to_timespec(timeout).as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Interest::NONE),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let events = handles[0].revents();
    let failed = events.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
    let mut ready = if failed { wait_for } else { Interest::NONE };
    for (flag, kind) in FLAGS {
        if events.intersects(flag) {
            ready |= kind;
        }
    }
    Ok(ready)
}

fn to_flags(interest: Interest) -> PollFlags {
    FLAGS.iter().filter(|(_, kind)| interest.contains(*kind)).fold(PollFlags::empty(), |flags, (flag, _)| flags | *flag)
}

fn to_timespec(timeout: Option<Duration>) -> Option<Timespec> {
    timeout.map(|timeout| Timespec::try_from(timeout).unwrap_or(LONGEST))
}

const FLAGS: [(PollFlags, Interest); 3] =
    [(PollFlags::IN, Interest::INPUT), (PollFlags::OUT, Interest::OUTPUT), (PollFlags::PRI, Interest::EXCEPTION)];

/// For times beyond the range of the system; wakes once in many years.
const LONGEST: Timespec = Timespec { tv_sec: i32::MAX as _, tv_nsec: 0 };
