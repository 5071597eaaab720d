//! The processor time of another process, by its clock.

use std::io;
use std::time::Duration;

use libc::{clockid_t, pid_t, timespec};

use super::check;

/// The processor time that all threads of a process have used so far, ended threads included, to the
/// nanosecond.
///
/// # Errors
/// The errors of `clock_getcpuclockid`, such as that there is no such process, and of `clock_gettime`.
pub(crate) fn processor_time(process: u32) -> io::Result<Duration> {
    let process = pid_t::try_from(process).map_err(io::Error::other)?;
    let mut clock: clockid_t = 0;
    // SAFETY: `clock` is borrowed exclusively until the call returns.
    let error = unsafe { libc::clock_getcpuclockid(process, &raw mut clock) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is borrowed exclusively until the call returns.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) } as isize)?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_grows_with_what_a_process_does_and_keeps_that_of_ended_threads() {
        let of_thread = || {
            std::hint::black_box((0..10_000_000u64).fold(0, |sum, n| sum ^ std::hint::black_box(n)));
            rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime)
        };
        let before = processor_time(std::process::id()).unwrap();
        let used = std::thread::spawn(of_thread).join().unwrap();
        let used = Duration::new(used.tv_sec as u64, used.tv_nsec as u32);
        let after = processor_time(std::process::id()).unwrap();
        assert!(after >= before + used, "{before:?} + {used:?} > {after:?}");
    }

    #[test]
    fn a_process_that_does_not_exist_is_an_error() {
        // The kernel's ids are below 2²² (`PID_MAX_LIMIT`).
        assert_eq!(processor_time(1 << 22).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(processor_time(u32::MAX).is_err());
    }
}
