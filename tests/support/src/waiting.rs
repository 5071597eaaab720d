//! Waiting for other threads, and other programs, that ends in a failure where they never come.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Far more than anything takes that is not stuck; a test that would hang fails instead.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Something that others do: it comes, or the test fails.
///
/// # Panics
/// If it does not come.
#[track_caller]
pub fn comes(what: &str, is_there: impl FnMut() -> bool) {
    assert!(comes_within(PATIENCE, is_there), "{what} never came");
}

/// The same where the place of the call says what is waited for.
///
/// # Panics
/// If it is never so.
#[track_caller]
pub fn eventually(is_so: impl FnMut() -> bool) {
    assert!(comes_within(PATIENCE, is_so), "it never came to be");
}

/// Whether it comes in this time. It is looked for at least once.
#[must_use]
pub fn comes_within(limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_there() {
        if begun.elapsed() >= limit {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// Runs `call` on a thread of its own; the receiver gets its result.
pub fn in_background<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(call()));
    receive
}

/// Runs `work` on a thread of its own, and gives its result.
///
/// # Panics
/// If it takes too long, or panics.
#[track_caller]
pub fn within_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    in_background(work).recv_timeout(PATIENCE).expect("the work ends in time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_late_is_waited_for() {
        let mut looks = 0;
        comes("the third look", || {
            looks += 1;
            looks == 3
        });
        assert_eq!(within_time(|| 7), 7);
    }

    #[test]
    fn what_never_comes_ends_the_wait() {
        let mut looks = 0;
        let never = || {
            looks += 1;
            false
        };
        assert!(!comes_within(Duration::ZERO, never));
        assert_eq!(looks, 1);
    }

    #[test]
    #[should_panic(expected = "the work ends in time")]
    fn work_that_panics_is_not_waited_for() {
        within_time(|| panic!("as asked"));
    }
}
