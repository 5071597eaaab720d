//! Waiting for other threads and programs, bounded by a timeout that fails the test.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of each wait in a test: far longer than any step takes on a loaded machine, unless it hangs.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

/// The time for which a wait checks its condition without a pause.
const SPIN_TIME: Duration = Duration::from_millis(5);

/// The pause between two checks of a condition after [`SPIN_TIME`].
const POLL_PAUSE: Duration = Duration::from_millis(1);

/// Waits until `is_there` returns true; `what` names the awaited event.
///
/// # Panics
/// If the event does not come within [`TEST_TIMEOUT`].
#[track_caller]
pub fn wait_until(what: &str, is_there: impl FnMut() -> bool) {
    assert!(holds_within(TEST_TIMEOUT, is_there), "timed out waiting for {what}");
}

/// Waits until the condition holds, like [`wait_until`], where the line of the call explains the condition.
///
/// # Panics
/// If the condition does not hold within [`TEST_TIMEOUT`].
#[track_caller]
pub fn eventually(is_so: impl FnMut() -> bool) {
    assert!(holds_within(TEST_TIMEOUT, is_so), "timed out waiting for the condition");
}

/// Waits until the condition holds; whether it did within `limit`. It is checked at least once.
#[must_use]
pub fn holds_within(limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_there() {
        let elapsed = begun.elapsed();
        if elapsed >= limit {
            return false;
        }
        // A test that polls without a pause takes processor time from the threads and programs that it waits for.
        if elapsed < SPIN_TIME {
            thread::yield_now();
        } else {
            thread::sleep(POLL_PAUSE);
        }
    }
    true
}

/// Runs `call` on its own thread; the receiver gets the result.
pub fn in_background<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(call()));
    receive
}

/// Runs `work` on its own thread and returns its result.
///
/// # Panics
/// If the work exceeds [`TEST_TIMEOUT`], or panics.
#[track_caller]
pub fn within_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    in_background(work).recv_timeout(TEST_TIMEOUT).expect("the work ends within the timeout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_becomes_true_later_ends_the_wait() {
        let mut checks = 0;
        wait_until("the third look", || {
            checks += 1;
            checks == 3
        });
        assert_eq!(within_time(|| 7), 7);
    }

    #[test]
    fn a_condition_that_stays_false_times_out_after_one_check() {
        let mut checks = 0;
        let never = || {
            checks += 1;
            false
        };
        assert!(!holds_within(Duration::ZERO, never));
        assert_eq!(checks, 1);
    }

    #[test]
    #[should_panic(expected = "the work ends within the timeout")]
    fn within_time_panics_when_the_work_panics() {
        within_time(|| panic!("intended"));
    }
}
