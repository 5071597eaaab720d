//! The scheduling policy of a thread by the number that the kernel gives it, which no safe interface has. One of the two modules of this crate
//! with `unsafe`.

#![allow(unsafe_code)]

use std::io;

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
