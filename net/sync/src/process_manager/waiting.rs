//! Sleeping until one of several children has ended.
//!
//! Linux provides a handle for each child that becomes readable then. Elsewhere the children are polled, at
//! intervals that grow. No thread, no signal handler and no `wait(-1)` is used, since those would take
//! children away from other parts of the program.

use std::io;
use std::time::Duration;

use crate::{Condition, Mutex};

/// The longest interval at which a child without a handle is polled.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(16);

/// The next polling interval: from a quarter of a millisecond, doubled each time.
pub(super) fn next_poll_interval(polls: &mut u32) -> Duration {
    let interval = Duration::from_micros(250 << (*polls).min(6));
    *polls += 1;
    interval.min(MAX_POLL_INTERVAL)
}

/// The handle of a child, if it has one.
#[cfg(target_os = "linux")]
pub(super) type WaitHandle<'a> = Option<std::os::fd::BorrowedFd<'a>>;
/// Children have no handles here.
#[cfg(not(target_os = "linux"))]
pub(super) type WaitHandle<'a> = std::marker::PhantomData<&'a ()>;

/// A handle on the child (`pidfd_open(2)`, Linux 5.3), if the kernel provides it. The child must not have
/// been reaped.
#[cfg(target_os = "linux")]
pub(super) fn open(id: u32) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(id.cast_signed())?, PidfdFlags::empty()).ok()
}

/// Sleeps until one of the children has ended, `remaining` has passed, or the next poll is due.
#[cfg(target_os = "linux")]
pub(super) fn sleep_until_any_end<'a>(
    children: impl Iterator<Item = WaitHandle<'a>>,
    remaining: Duration,
    polls: &mut u32,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut all_have_handles = true;
    let mut handles: Vec<_> = children
        .filter_map(|handle| {
            all_have_handles &= handle.is_some();
            handle.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN))
        })
        .collect();
    let timeout = if all_have_handles { remaining } else { remaining.min(next_poll_interval(polls)) };
    let timeout = Timespec::try_from(timeout).ok(); // none: longer than the kernel can represent
    match poll(&mut handles, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()), // the caller checks again with the time left
        Err(rustix::io::Errno::NOMEM) => {
            sleep_for(remaining.min(next_poll_interval(polls)));
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

/// Sleeps until the next poll is due.
#[cfg(not(target_os = "linux"))]
pub(super) fn sleep_until_any_end<'a>(
    _: impl Iterator<Item = WaitHandle<'a>>,
    remaining: Duration,
    polls: &mut u32,
) -> io::Result<()> {
    sleep_for(remaining.min(next_poll_interval(polls)));
    Ok(())
}

fn sleep_for(time: Duration) {
    let (mutex, condition) = (Mutex::new(()), Condition::new());
    condition.wait_for(&mut mutex.lock(), time);
}
