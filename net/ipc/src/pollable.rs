//! What an endpoint can be waited for, and how: the part of every family that a reactor sees.

use std::fmt;
use std::io;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use spandrel_sync::time::Instant;

/// An operating system handle, lent for waiting.
#[cfg(unix)]
pub type Handle<'a> = std::os::fd::BorrowedFd<'a>;
/// An operating system handle, lent for waiting.
#[cfg(windows)]
pub type Handle<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// A set of kinds of events (the papers' event mask).
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// There are octets to receive, a connection to accept, or the end.
    pub const INPUT: Self = Self(1);
    /// Octets can be sent, or an attempt to connect has ended.
    pub const OUTPUT: Self = Self(2);
    /// Out-of-band data has come.
    pub const EXCEPTION: Self = Self(4);
    /// Everything.
    pub const ALL: Self = Self(7);

    /// Whether nothing is in it.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether everything in `other` is in it.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether something in `other` is in it.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// As a number below 8, to keep in an atomic.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// From [`bits`](Self::bits); what is not a kind of event is left out.
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

/// What [`Pollable::prepare`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// What the handle is to be waited for, so that what is wanted will be noticed.
    pub wait_for: Interest,
    /// What is so already. If there is anything, waiting would be wrong.
    pub ready: Interest,
}

/// An endpoint on which a reactor can wait.
///
/// For plain sockets the handle tells everything, and the provided methods say so. A family that decodes (TLS) or moves octets
/// past the system (shared memory) says with them what its handle does not show. Whoever waits does this:
///
/// 1. [`prepare`](Self::prepare) for what is wanted; if something is ready, do not wait;
/// 2. wait on [`handle`](Self::handle) for what `prepare` said;
/// 3. ask [`interpret`](Self::interpret) what that means.
///
/// If [`is_plain`](Self::is_plain), 1 and 3 can be left out.
pub trait Pollable {
    /// The handle to wait on.
    fn handle(&self) -> Handle<'_>;

    /// Whether input is at hand that the handle no longer shows, so that it must be drained before waiting.
    fn pending(&self) -> bool {
        false
    }

    /// Whether the handle alone tells everything.
    fn is_plain(&self) -> bool {
        true
    }

    /// Gets ready for a wait: announces to the peer, where that is needed, that we are about to wait.
    ///
    /// To be called again before each wait, after whatever was done with the endpoint in between.
    fn prepare(&self, wanted: Interest) -> Prepared {
        Prepared { wait_for: wanted, ready: Interest::NONE }
    }

    /// What it means for `wanted` that the handle showed `seen`. It may be nothing: then wait again, from `prepare` on.
    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        let _ = wanted;
        seen
    }
}

/// Waits until `endpoint` is ready for something of `wanted`, and says for what; nothing if `timeout` ran out (`None` never does).
///
/// Errors and hang-ups of the handle count as readiness for what is wanted: the next transfer will tell. Goes on after a signal
/// with the time that is left.
///
/// # Errors
/// Those of the operating system.
pub fn wait_ready<P: Pollable + ?Sized>(
    endpoint: &P,
    wanted: Interest,
    timeout: Option<Duration>,
) -> io::Result<Interest> {
    let end = timeout.map(|timeout| (timeout, Instant::now()));
    loop {
        let Prepared { wait_for, ready } = endpoint.prepare(wanted);
        if ready.intersects(wanted) {
            return Ok(ready & wanted);
        }
        let left = end.map(|(timeout, start)| timeout.saturating_sub(Instant::now().saturating_duration_since(start)));
        let seen = poll_once(endpoint.handle(), wait_for, left)?;
        let ready = endpoint.interpret(seen, wanted) & wanted;
        if !ready.is_none() {
            return Ok(ready);
        }
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(Interest::NONE);
        }
    }
}

/// Waits until one of several plain endpoints may be ready, the time ran out or a signal came.
pub(crate) fn wait_any<P: Pollable>(endpoints: &[P], wanted: Interest, timeout: Option<Duration>) -> io::Result<()> {
    let flags = to_flags(wanted);
    let mut handles: Vec<_> = endpoints.iter().map(|one| PollFd::from_borrowed_fd(one.handle(), flags)).collect();
    match poll(&mut handles, to_timespec(timeout).as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// One system call; nothing if the time ran out or a signal came.
fn poll_once(handle: Handle<'_>, wait_for: Interest, timeout: Option<Duration>) -> io::Result<Interest> {
    let mut handles = [PollFd::from_borrowed_fd(handle, to_flags(wait_for))];
    match poll(&mut handles, to_timespec(timeout).as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(Interest::NONE),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let seen = handles[0].revents();
    let failed = seen.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL);
    let mut ready = if failed { wait_for } else { Interest::NONE };
    for (flag, kind) in FLAGS {
        if seen.intersects(flag) {
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

/// For times that the system cannot count; wakes once in many years.
const LONGEST: Timespec = Timespec { tv_sec: i32::MAX as _, tv_nsec: 0 };
