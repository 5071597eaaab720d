//! The scheduling policy and the processor time of a thread by the number that the kernel gives it, which no safe
//! interface has. One of the two modules of this crate with `unsafe`.

#![allow(unsafe_code)]

use std::{io, time::Duration};

/// The policy of a thread, or of the calling one for 0, and its real-time priority. The kernel is asked: the C library
/// remembers what a thread set itself, and not what another one changed.
pub(crate) fn policy_and_priority(thread: libc::pid_t) -> io::Result<(libc::c_int, libc::c_int)> {
    // SAFETY: the structure has integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the second call, which writes it. The first takes no pointer.
    let (policy, result) =
        unsafe { (libc::sched_getscheduler(thread), libc::sched_getparam(thread, &raw mut parameters)) };
    if policy == -1 || result == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok((policy & !libc::SCHED_RESET_ON_FORK, parameters.sched_priority))
}

/// Whether a thread, or the calling one for 0, has one of the real-time policies.
pub(crate) fn is_real_time(thread: libc::pid_t) -> io::Result<bool> {
    Ok(matches!(policy_and_priority(thread)?.0, libc::SCHED_FIFO | libc::SCHED_RR))
}

/// Gives a thread the policy `SCHED_OTHER`.
pub(crate) fn make_ordinary(thread: libc::pid_t) -> io::Result<()> {
    // SAFETY: the structure has integers only; some C libraries have more of them than the priority.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives during the call, which only reads it.
    match unsafe { libc::sched_setscheduler(thread, libc::SCHED_OTHER, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The processor time that a thread of this process has used; `None` if it has none of that number.
///
/// The clock has the number that `pthread_getcpuclockid(3)` would give for it: `MAKE_THREAD_CPUCLOCK` with
/// `CPUCLOCK_SCHED` of Linux's `posix-timers_types.h`.
#[cfg(target_os = "linux")]
pub(crate) fn processor_time(thread: libc::pid_t) -> Option<Duration> {
    const PER_THREAD: libc::clockid_t = 4;
    const SCHEDULER: libc::clockid_t = 2;
    let clock = (!thread << 3) | PER_THREAD | SCHEDULER;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives during the call, which writes it.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (result == 0).then(|| Duration::new(seconds, nanoseconds))
}
