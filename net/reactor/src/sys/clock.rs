//! The system's monotonic clock in nanoseconds.

/// `CLOCK_MONOTONIC`, which is the clock of `Instant` on Linux: a reactor with timers reads it before each wait, and a
/// difference of two `Instant`s takes a hundred instructions.
pub(crate) fn monotonic_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a place for one `timespec`.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    debug_assert_eq!(result, 0, "the clock exists, and the place is valid");
    // Neither is negative; 64 bits have room for 584 years.
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "their types depend on the platform")]
    let (seconds, nanos) = (time.tv_sec as u64, time.tv_nsec as u64);
    seconds * 1_000_000_000 + nanos
}
