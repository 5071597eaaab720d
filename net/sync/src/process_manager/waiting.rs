//! Sleeping until one of several children has ended.
//!
//! Linux gives a handle for each child that becomes readable then. Where there is none, the children are looked at
//! again and again, at intervals that grow: no thread, no signal handler and no `wait(-1)` is used, since those would
//! take children away from other parts of the program.

use std::io;
use std::time::Duration;

use crate::{Condition, Mutex};

/// The longest time after which a child without a handle is looked at again.
const LONGEST_TURN: Duration = Duration::from_millis(16);

/// The next interval at which to look: from a quarter of a millisecond, doubled each time.
pub(super) fn turn(turns: &mut u32) -> Duration {
    let turn = Duration::from_micros(250 << (*turns).min(6));
    *turns += 1;
    turn.min(LONGEST_TURN)
}

/// What a child is waited for by: its handle, if it has one.
#[cfg(target_os = "linux")]
pub(super) type Watch<'a> = Option<std::os::fd::BorrowedFd<'a>>;
/// Children have no handles here.
#[cfg(not(target_os = "linux"))]
pub(super) type Watch<'a> = std::marker::PhantomData<&'a ()>;

/// A handle on the child (`pidfd_open(2)`, Linux 5.3), if it can be had. The child must not have been reaped.
#[cfg(target_os = "linux")]
pub(super) fn open(id: u32) -> Option<std::os::fd::OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};
    pidfd_open(Pid::from_raw(id.cast_signed())?, PidfdFlags::empty()).ok()
}

/// Sleeps until one of the children has ended, `remaining` has passed, or it is time to look again.
#[cfg(target_os = "linux")]
pub(super) fn until_one_may_have_ended<'a>(
    children: impl Iterator<Item = Watch<'a>>,
    remaining: Duration,
    turns: &mut u32,
) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut all_have_handles = true;
    let mut handles: Vec<_> = children
        .filter_map(|handle| {
            all_have_handles &= handle.is_some();
            handle.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN))
        })
        .collect();
    let most = if all_have_handles { remaining } else { remaining.min(turn(turns)) };
    let most = Timespec::try_from(most).ok(); // none: longer than the kernel can say
    match poll(&mut handles, most.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()), // the caller looks again, and knows how much time is left
        Err(rustix::io::Errno::NOMEM) => {
            doze(remaining.min(turn(turns)));
            Ok(())
        }
        Err(e) => Err(e.into()),
    }
}

/// Sleeps until it is time to look again.
#[cfg(not(target_os = "linux"))]
pub(super) fn until_one_may_have_ended<'a>(
    _: impl Iterator<Item = Watch<'a>>,
    remaining: Duration,
    turns: &mut u32,
) -> io::Result<()> {
    doze(remaining.min(turn(turns)));
    Ok(())
}

fn doze(time: Duration) {
    let (nothing, never) = (Mutex::new(()), Condition::new());
    never.wait_for(&mut nothing.lock(), time);
}
