//! Timer queues allocate nothing in the steady state: after they have grown, or from the start with a
//! capacity.

use std::collections::VecDeque;
use std::time::Duration;

use spandrel_reactor::timer::{Time, TimerId, TimerOptions, TimerQueue, TimerStrategy};
use spandrel_test_support::alone;
use stats_alloc::Region;

use crate::ALLOCATOR;

const TIMERS: usize = 1_000;

/// Keeps `TIMERS` timers busy in every way for a while, starting at a second.
fn work(queue: &mut dyn TimerQueue<u64>, ids: &mut VecDeque<TimerId>, second: u64) {
    let start = Time::ZERO + Duration::from_secs(second);
    let (mut fired, mut cancelled, mut rescheduled) = (0, 0, 0);
    for step in 0..20_000_u64 {
        let now = start + Duration::from_micros(100 * step);
        fired += std::iter::from_fn(|| queue.pop_expired(now)).count();
        if ids.len() == TIMERS {
            cancelled += u32::from(queue.cancel(ids.pop_front().unwrap()).is_some());
        }
        let at = now + Duration::from_micros(step * step % 170_001);
        let interval = (step % 5 == 0).then_some(Duration::from_millis(3));
        ids.push_back(queue.schedule(at, interval, step).unwrap());
        rescheduled += u32::from(queue.reschedule(ids[ids.len() / 2], at, None));
    }
    assert!(fired > 2_000 && cancelled > 2_000 && rescheduled > 2_000, "{fired} {cancelled} {rescheduled}");
}

#[test]
fn the_steady_state_allocates_nothing() {
    alone(|| {
        for strategy in TimerStrategy::ALL {
            let mut ids = VecDeque::with_capacity(TIMERS);
            let mut queue = strategy.queue_with(&TimerOptions::new().limit(TIMERS));
            work(&mut *queue, &mut ids, 1);
            let region = Region::new(ALLOCATOR);
            work(&mut *queue, &mut ids, 100);
            assert_eq!(region.change().allocations + region.change().reallocations, 0, "{strategy}, grown");

            let mut queue = strategy.queue_with(&TimerOptions::new().limit(TIMERS).capacity(TIMERS));
            let region = Region::new(ALLOCATOR);
            for payload in 0..TIMERS as u64 {
                let interval = (payload % 3 == 0).then_some(Duration::from_secs(1000 << (payload % 20)));
                queue.schedule(Time::from_nanos(payload << 20), interval, payload).unwrap();
            }
            while queue.pop_expired(Time::MAX).is_some() {}
            assert_eq!(region.change().allocations + region.change().reallocations, 0, "{strategy}, with a capacity");
        }
    });
}
