//! Models of thread pools: each accepted request ends exactly once, whatever the order of threads.

use std::time::Duration;

use spandrel_sync::atomic::{AtomicUsize, Ordering::SeqCst};
use spandrel_sync::models::{below, check};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, thread};

use crate::{
    Discarded, DynamicLifespan, ExecutionTimes, Job, LaneSettings, LinearMapping, Overrun, OverrunAction, PoolSettings,
    PoolThread, Priority, RefusalReason, Scheduling, SchedulingClass, ThreadPool, WhenFull, Work,
};

const EXECUTIONS: usize = 4_000;

/// Counts of requests that ended.
#[derive(Default)]
struct Counts {
    run: AtomicUsize,
    late: AtomicUsize,
    destroyed: AtomicUsize,
}

struct Counted(Arc<Counts>);

impl Job for Counted {
    fn run(self, pool_thread: &PoolThread<'_>) {
        thread::yield_now();
        pool_thread.release();
        thread::yield_now();
        self.0.run.fetch_add(1, SeqCst);
    }

    fn discard(self, reason: Discarded) {
        match reason {
            Discarded::Late => &self.0.late,
            Discarded::PoolDestroyed => &self.0.destroyed,
        }
        .fetch_add(1, SeqCst);
    }
}

fn priority(number: i16) -> Priority {
    Priority::from_number(number).unwrap()
}

fn lane(number: i16, static_threads: usize, dynamic_threads: usize) -> LaneSettings {
    LaneSettings { priority: priority(number), static_threads, dynamic_threads }
}

fn pool(settings: PoolSettings) -> Arc<ThreadPool<Counted>> {
    let scheduling = Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping));
    Arc::new(ThreadPool::new(settings, scheduling).unwrap())
}

/// Submits from two threads, destroys the pool, and compares what was accepted with what ended.
fn submit_and_drop(settings: PoolSettings, submissions: usize) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let pool = pool(settings);
    let submitters: Vec<_> = (0..2)
        .map(|_| {
            let (pool, counts) = (Arc::clone(&pool), Arc::clone(&counts));
            thread::spawn(move || {
                let submit = |_: &usize| {
                    let number = if below(2) == 0 { 1 } else { 9 };
                    pool.submit(Work::new(priority(number), 8, Counted(Arc::clone(&counts)))).is_ok()
                };
                (0..submissions).filter(submit).count()
            })
        })
        .collect();
    let accepted: usize = submitters.into_iter().map(|submitter| submitter.join().unwrap()).sum();
    drop(pool);
    let ended = [&counts.run, &counts.late, &counts.destroyed].map(|count| count.load(SeqCst));
    assert_eq!(ended.iter().sum::<usize>(), accepted, "{ended:?}");
    counts
}

/// Threads wait until a lane has room, and a third one destroys the pool: no wait lasts, and each request ends once.
#[test]
fn a_thread_that_waits_for_room_gets_it_or_learns_of_the_end() {
    check(EXECUTIONS, || {
        let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 0)]);
        let pool = pool(PoolSettings { buffering: Some((1, 8)), when_full: WhenFull::StopReading, ..lanes });
        let counts = Arc::new(Counts::default());
        let submitters: Vec<_> = (0..2)
            .map(|_| {
                let (pool, counts) = (Arc::clone(&pool), Arc::clone(&counts));
                thread::spawn(move || {
                    let submit = |_: &usize| {
                        let work = Work::new(priority(1), 8, Counted(Arc::clone(&counts)));
                        let refused = pool.submit_when_room(work, |_| true).err();
                        assert!(refused.as_ref().is_none_or(|refused| refused.reason == RefusalReason::PoolDestroyed));
                        refused.is_none()
                    };
                    (0..2).filter(submit).count()
                })
            })
            .collect();
        if below(2) == 0 {
            pool.close();
        }
        let accepted: usize = submitters.into_iter().map(|submitter| submitter.join().unwrap()).sum();
        drop(pool);
        let ended = [&counts.run, &counts.late, &counts.destroyed].map(|count| count.load(SeqCst));
        assert_eq!(ended.iter().sum::<usize>(), accepted, "{ended:?}");
    });
}

#[test]
fn each_accepted_request_ends_once_with_borrowing_and_buffering() {
    check(EXECUTIONS, || {
        let settings = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(5, 1, 0)]);
        submit_and_drop(PoolSettings { allows_borrowing: true, buffering: Some((2, 64)), ..settings }, 3);
    });
}

#[test]
fn each_accepted_request_ends_once_while_dynamic_threads_come_and_go() {
    check(EXECUTIONS, || {
        let lifespan = match below(3) {
            0 => DynamicLifespan::Infinite,
            1 => DynamicLifespan::Idle(Duration::from_secs(1)),
            _ => DynamicLifespan::Fixed(Duration::from_secs(1)),
        };
        let settings = PoolSettings::with_lanes(vec![lane(0, 1, 1), lane(5, 1, 1)]);
        submit_and_drop(PoolSettings { lifespan, buffering: Some((1, 64)), ..settings }, 3);
    });
}

#[test]
fn each_request_ends_once_and_exceeds_its_time_at_most_once_while_the_pool_is_watched() {
    check(EXECUTIONS, || {
        let overruns = Arc::new(AtomicUsize::new(0));
        let noticed = Arc::clone(&overruns);
        let times = ExecutionTimes::new(OverrunAction::Demote).all_lanes(Duration::from_secs(1));
        let times = times.observer(move |_: &Overrun| _ = noticed.fetch_add(1, SeqCst));
        let settings = PoolSettings::with_lanes(vec![lane(0, 1, 1), lane(5, 1, 0)]);
        let counts = submit_and_drop(PoolSettings { execution_times: Some(times), ..settings }, 2);
        assert!(overruns.load(SeqCst) <= counts.run.load(SeqCst));
    });
}

#[test]
fn without_buffering_a_request_runs_or_is_refused() {
    check(EXECUTIONS, || {
        let settings = PoolSettings::without_lanes(1, 1, priority(3));
        let counts = submit_and_drop(settings, 2);
        assert_eq!(counts.destroyed.load(SeqCst), 0, "a request waited");
    });
}

#[test]
fn a_waiting_request_of_the_high_lane_is_run_though_the_low_one_is_full() {
    check(EXECUTIONS, || {
        let counts = Arc::new(Counts::default());
        let settings = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(5, 1, 0)]);
        let pool = pool(PoolSettings { buffering: Some((1, 64)), ..settings });
        let high = Arc::new(Counts::default());
        for _ in 0..4 {
            let _ = pool.submit(Work::new(priority(1), 8, Counted(Arc::clone(&counts))));
        }
        pool.submit(Work::new(priority(6), 8, Counted(Arc::clone(&high)))).unwrap();
        while high.run.load(SeqCst) == 0 {
            thread::yield_now();
        }
        drop(pool);
    });
}

#[test]
fn a_request_is_never_begun_after_its_deadline() {
    check(EXECUTIONS, || {
        let counts = Arc::new(Counts::default());
        let pool = pool(PoolSettings::without_lanes(1, 0, priority(3)));
        let passed = Instant::now();
        let work = Work::new(priority(1), 8, Counted(Arc::clone(&counts)));
        pool.submit(Work { deadline: Some(passed), ..work }).unwrap();
        drop(pool);
        assert_eq!((counts.run.load(SeqCst), counts.late.load(SeqCst)), (0, 1));
    });
}

#[test]
fn a_destroyed_pool_gives_requests_back() {
    check(EXECUTIONS, || {
        let counts = Arc::new(Counts::default());
        let pool = pool(PoolSettings::without_lanes(1, 0, priority(3)));
        let other = Arc::clone(&pool);
        let closer = thread::spawn(move || other.close());
        let submitted = pool.submit(Work::new(priority(1), 8, Counted(Arc::clone(&counts))));
        closer.join().unwrap();
        drop(pool);
        match submitted {
            Ok(()) => assert_eq!(counts.run.load(SeqCst), 1),
            Err(refused) => {
                assert_eq!((refused.reason, counts.run.load(SeqCst)), (RefusalReason::PoolDestroyed, 0));
            }
        }
    });
}
