//! Thread pools at their limits.

use std::ops::RangeInclusive;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crate::{
    BoxedJob, Discarded, DynamicLifespan, Job, LaneSettings, LinearMapping, NativePriority, PoolSettings, PoolThread,
    Priority, PriorityMapping, RefusalReason, RtCurrent, RtOrb, Scheduling, SchedulingClass, ThreadPool, Work,
};
use spandrel_giop::{SystemExceptionKind, minor};
use spandrel_sync::time::Instant;
use spandrel_sync::{Arc, Semaphore};
use spandrel_test_support::{TEST_TIMEOUT, alone, holds_within};
use stats_alloc::Region;

use super::ALLOCATOR;

const LONG: Duration = TEST_TIMEOUT;

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

fn lane(number: i16, static_threads: usize, dynamic_threads: usize) -> LaneSettings {
    LaneSettings { priority: priority(number), static_threads, dynamic_threads }
}

fn scheduling(class: SchedulingClass) -> Scheduling {
    Scheduling::new(class, Arc::new(LinearMapping))
}

fn pool(settings: PoolSettings) -> ThreadPool<BoxedJob> {
    ThreadPool::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap()
}

/// A request that reports its name when it ends.
fn report(number: i16, name: &'static str, ends: &Sender<(&'static str, Option<Discarded>)>) -> Work<BoxedJob> {
    let ends = ends.clone();
    Work::new(priority(number), 10, Box::new(move |discarded| ends.send((name, discarded)).unwrap()))
}

/// A request that keeps its thread until the sender is used or dropped. It has begun when this returns.
fn occupy(pool: &ThreadPool<BoxedJob>, number: i16) -> Sender<()> {
    let (end, ended) = mpsc::channel();
    let (begin, begun) = mpsc::channel();
    let job = move |discarded: Option<Discarded>| {
        assert_eq!(discarded, None);
        begin.send(()).unwrap();
        let _ = ended.recv();
    };
    pool.submit(Work::new(priority(number), 0, Box::new(job))).unwrap();
    begun.recv_timeout(LONG).unwrap();
    end
}

fn names(ends: &Receiver<(&'static str, Option<Discarded>)>, count: usize) -> Vec<&'static str> {
    (0..count).map(|_| ends.recv_timeout(LONG).unwrap().0).collect()
}

/// Waits until the statistics of a lane meet a condition.
fn until(pool: &ThreadPool<BoxedJob>, condition: &str, is_met: impl Fn(&[crate::LaneStatistics]) -> bool) {
    assert!(holds_within(LONG, || is_met(&pool.statistics())), "{condition}: {pool:?}");
}

#[test]
fn the_most_urgent_request_is_first_then_the_earliest_deadline_then_the_oldest() {
    let pool = pool(PoolSettings { buffering: Some((10, 0)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) });
    let (ends, ended) = mpsc::channel();
    let occupied = occupy(&pool, 5);
    let at = |span| Some(Instant::now().checked_add(Duration::from_secs(span)).unwrap());
    let first = |number, name, deadline| Work { deadline, ..report(number, name, &ends) };
    pool.submit(first(5, "older", None)).unwrap();
    pool.submit(first(5, "late deadline", at(2_000))).unwrap();
    pool.submit(first(5, "early deadline", at(1_000))).unwrap();
    pool.submit(first(5, "younger", None)).unwrap();
    pool.submit(first(4, "less urgent", at(500))).unwrap();
    pool.submit(first(32_767, "most urgent", None)).unwrap();
    drop(occupied);
    let order = ["most urgent", "early deadline", "late deadline", "older", "younger", "less urgent"];
    assert_eq!(names(&ended, 6), order);
}

#[test]
fn a_request_goes_to_the_most_urgent_lane_that_is_not_above_it() {
    let pool = pool(PoolSettings::with_lanes(vec![lane(1_000, 1, 0), lane(10, 1, 0)]));
    let (ends, _ended) = mpsc::channel();
    let refused = pool.submit(report(9, "below all", &ends)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::NoLane);
    assert_eq!(refused.work.priority, priority(9), "the request comes back");
    assert_eq!(refused.reason.exception().kind(), SystemExceptionKind::InvPolicy);
    let low = occupy(&pool, 999);
    let high = occupy(&pool, 32_767);
    let begun = |pool: &ThreadPool<_>| pool.statistics().iter().map(|lane| (lane.priority.get(), lane.begun)).collect();
    let counts: Vec<(i16, u64)> = begun(&pool);
    assert_eq!(counts, [(10, 1), (1_000, 1)]);
    drop((low, high));
}

#[test]
fn without_buffering_a_busy_lane_refuses_and_the_others_do_not() {
    let pool = pool(PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(100, 1, 0)]));
    let (ends, ended) = mpsc::channel();
    let low = occupy(&pool, 0);
    let refused = pool.submit(report(0, "refused", &ends)).unwrap_err();
    assert_eq!(refused.reason, RefusalReason::NoThread);
    let exception = refused.reason.exception();
    assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::Transient, minor::REQUEST_DISCARDED));
    pool.submit(report(100, "high", &ends)).unwrap();
    assert_eq!(names(&ended, 1), ["high"]);
    drop(low);
    until(&pool, "idle again", |lanes| lanes[0].idle == 1);
    pool.submit(refused.work).unwrap();
    assert_eq!(names(&ended, 1), ["refused"]);
    assert_eq!(pool.statistics()[0].refused, 1);
}

#[test]
fn buffers_are_bounded_by_requests_and_by_octets_for_each_lane() {
    let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(100, 1, 0)]);
    let pool = pool(PoolSettings { buffering: Some((3, 25)), ..lanes });
    let (ends, ended) = mpsc::channel();
    let (low, high) = (occupy(&pool, 0), occupy(&pool, 100));
    pool.submit(report(0, "a", &ends)).unwrap();
    pool.submit(report(0, "b", &ends)).unwrap();
    let reason = |work| pool.submit(work).map_err(|refused| refused.reason).unwrap_err();
    assert_eq!(reason(report(0, "octets", &ends)), RefusalReason::TooManyOctets);
    pool.submit(Work { octets: 5, ..report(0, "c", &ends) }).unwrap();
    assert_eq!(reason(Work { octets: 0, ..report(0, "requests", &ends) }), RefusalReason::TooManyRequests);
    let overflow = Work { octets: usize::MAX, ..report(100, "overflow", &ends) };
    assert_eq!(reason(overflow), RefusalReason::TooManyOctets);
    pool.submit(report(100, "high", &ends)).unwrap();
    let buffered = |at: usize| (pool.statistics()[at].buffered_requests, pool.statistics()[at].buffered_octets);
    assert_eq!((buffered(0), buffered(1)), ((3, 25), (1, 10)));
    drop(high);
    assert_eq!(names(&ended, 1), ["high"]);
    drop(low);
    assert_eq!(names(&ended, 3), ["a", "b", "c"]);
    until(&pool, "empty", |lanes| lanes.iter().all(|lane| (lane.buffered_requests, lane.buffered_octets) == (0, 0)));
}

#[test]
fn clients_with_requests_that_wait_take_turns_within_a_priority() {
    let pool = pool(PoolSettings { buffering: Some((64, 0)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) });
    let (ends, ended) = mpsc::channel();
    let of = |client, number, name| Work { client: Some(client), ..report(number, name, &ends) };
    let occupied = occupy(&pool, 9);
    for _ in 0..30 {
        pool.submit(of(1, 5, "flood")).unwrap();
    }
    for name in ["second 1", "second 2"] {
        pool.submit(of(2, 5, name)).unwrap();
    }
    pool.submit(of(1, 6, "urgent flood")).unwrap();
    until(&pool, "the thread is busy", |lanes| lanes[0].idle == 0);
    pool.submit(of(3, 5, "third")).unwrap();
    assert_eq!((pool.statistics()[0].buffered_requests, pool.statistics()[0].buffered_clients), (34, 3));
    drop(occupied);
    let order = ["urgent flood", "flood", "second 1", "third", "flood", "second 2", "flood"];
    assert_eq!(names(&ended, 7), order, "each client has its turn; a greater priority goes before");
    assert_eq!(names(&ended, 27), ["flood"; 27]);
    // One that comes later begins with the present turn, and not with those that it has missed.
    let occupied = occupy(&pool, 9);
    for client in [1, 4, 1, 4] {
        pool.submit(of(client, 5, if client == 1 { "flood" } else { "new" })).unwrap();
    }
    drop(occupied);
    assert_eq!(names(&ended, 4), ["flood", "new", "flood", "new"]);
    until(&pool, "empty", |lanes| lanes[0].buffered_clients == 0);
}

#[test]
fn with_shares_a_client_that_floods_leaves_room_for_others() {
    let settings = PoolSettings { buffering: Some((12, 1_000)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) };
    let pool = pool(PoolSettings { shares_buffers: true, ..settings });
    let (ends, ended) = mpsc::channel();
    let occupied = occupy(&pool, 9);
    let submit = |client, octets| {
        let work = Work { client: Some(client), octets, ..report(5, "any", &ends) };
        pool.submit(work).map_err(|refused| refused.reason)
    };
    let accepted = |client| (0..20).filter(|_| submit(client, 10).is_ok()).count();
    assert_eq!((accepted(1), accepted(2), accepted(3)), (6, 3, 2), "each has no more than is free");
    assert_eq!(submit(1, 10), Err(RefusalReason::TooManyOfClient));
    assert_eq!(submit(2, 0), Err(RefusalReason::TooManyOfClient));
    assert_eq!(submit(4, 10), Ok(()), "the last one");
    assert_eq!(submit(5, 10), Err(RefusalReason::TooManyRequests));
    drop(occupied);
    assert_eq!(names(&ended, 12), ["any"; 12]);
    let occupied = occupy(&pool, 9);
    assert_eq!((submit(1, 300), submit(1, 200)), (Ok(()), Ok(())));
    assert_eq!(submit(1, 100), Err(RefusalReason::TooManyOfClient), "600 octets, and 500 are free");
    assert_eq!(submit(2, 500), Ok(()), "the first request of a client needs room alone");
    drop(occupied);
    assert_eq!(names(&ended, 3), ["any"; 3]);
}

#[test]
fn threads_of_lower_lanes_are_borrowed_and_never_those_of_higher_ones() {
    let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(100, 1, 0), lane(200, 1, 0)]);
    let pool = pool(PoolSettings { allows_borrowing: true, ..lanes });
    let (ends, _ended) = mpsc::channel();
    let own = occupy(&pool, 100);
    let borrowed = occupy(&pool, 100); // of lane 0
    let statistics = pool.statistics();
    assert_eq!((statistics[1].begun, statistics[1].borrowed), (2, 1));
    assert_eq!(statistics.iter().map(|lane| lane.idle).collect::<Vec<_>>(), [0, 0, 1]);
    for number in [0, 100] {
        assert_eq!(pool.submit(report(number, "none", &ends)).unwrap_err().reason, RefusalReason::NoThread);
    }
    drop((own, borrowed));
}

#[test]
fn a_lane_starts_its_dynamic_threads_then_borrows_from_the_next_lower_lane_and_then_buffers() {
    let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 1), lane(50, 1, 0), lane(100, 1, 1)]);
    let pool = pool(PoolSettings { allows_borrowing: true, buffering: Some((1, 0)), ..lanes });
    let (ends, ended) = mpsc::channel();
    let mut occupied = Vec::new();
    // Its own threads, the static one and the dynamic one; then those of the lanes below, and no dynamic ones of these.
    for (threads, borrowed, idle) in [(1, 0, [1, 1, 0]), (2, 0, [1, 1, 0]), (2, 1, [1, 0, 0]), (2, 2, [0, 0, 0])] {
        occupied.push(occupy(&pool, 100));
        let statistics = pool.statistics();
        assert_eq!((statistics[2].threads, statistics[2].borrowed), (threads, borrowed));
        assert_eq!(statistics.iter().map(|lane| lane.idle).collect::<Vec<_>>(), idle);
    }
    pool.submit(report(100, "buffered", &ends)).unwrap();
    assert_eq!(pool.submit(report(100, "refused", &ends)).unwrap_err().reason, RefusalReason::TooManyRequests);
    // A lane whose thread is lent has its dynamic one, and its buffer.
    let own = occupy(&pool, 0);
    pool.submit(report(0, "low", &ends)).unwrap();
    assert_eq!(pool.submit(report(0, "refused", &ends)).unwrap_err().reason, RefusalReason::TooManyRequests);
    assert_eq!((pool.statistics()[0].threads, pool.statistics()[0].borrowed), (2, 0));
    // The lent thread comes back after the request that it runs, to the one that waits above.
    drop(occupied.pop());
    assert_eq!(names(&ended, 2), ["buffered", "low"]);
    drop((occupied, own));
}

#[test]
fn a_borrowed_thread_takes_the_waiting_request_of_the_higher_lane_first() {
    let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(100, 1, 0)]);
    let pool = pool(PoolSettings { allows_borrowing: true, buffering: Some((5, 0)), ..lanes });
    let (ends, ended) = mpsc::channel();
    let (high, low) = (occupy(&pool, 100), occupy(&pool, 0));
    pool.submit(report(0, "low", &ends)).unwrap();
    pool.submit(report(100, "high", &ends)).unwrap();
    drop(low);
    assert_eq!(names(&ended, 2), ["high", "low"]);
    assert_eq!(pool.statistics()[1].borrowed, 1);
    drop(high);
}

#[test]
fn dynamic_threads_are_started_when_all_are_busy_and_end_when_idle() {
    let lifespan = DynamicLifespan::Idle(Duration::from_millis(20));
    let pool = pool(PoolSettings { lifespan, ..PoolSettings::with_lanes(vec![lane(0, 1, 2)]) });
    let occupied: Vec<_> = (0..3).map(|_| occupy(&pool, 0)).collect();
    assert_eq!(pool.statistics()[0].threads, 3);
    let (ends, ended) = mpsc::channel();
    assert_eq!(pool.submit(report(0, "fourth", &ends)).unwrap_err().reason, RefusalReason::NoThread);
    drop(occupied);
    until(&pool, "one static thread is left", |lanes| (lanes[0].threads, lanes[0].idle) == (1, 1));
    let again: Vec<_> = (0..3).map(|_| occupy(&pool, 0)).collect();
    drop(again);
    until(&pool, "a thread is idle", |lanes| lanes[0].idle > 0);
    pool.submit(report(0, "fifth", &ends)).unwrap();
    assert_eq!(names(&ended, 1), ["fifth"]);
}

#[test]
fn dynamic_threads_of_a_fixed_life_span_end_after_it_and_infinite_ones_stay() {
    let settings = |lifespan| PoolSettings { lifespan, ..PoolSettings::with_lanes(vec![lane(0, 1, 1)]) };
    let fixed = pool(settings(DynamicLifespan::Fixed(Duration::from_millis(20))));
    let infinite = pool(settings(DynamicLifespan::Infinite));
    for pool in [&fixed, &infinite] {
        let both = (occupy(pool, 0), occupy(pool, 0));
        assert_eq!(pool.statistics()[0].threads, 2);
        drop(both);
    }
    until(&fixed, "the dynamic thread has ended", |lanes| lanes[0].threads == 1);
    until(&infinite, "both are idle", |lanes| (lanes[0].threads, lanes[0].idle) == (2, 2));
}

#[test]
fn a_late_request_is_not_begun() {
    let pool = pool(PoolSettings { buffering: Some((2, 0)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) });
    let (ends, ended) = mpsc::channel();
    let occupied = occupy(&pool, 0);
    let deadline = Instant::now();
    pool.submit(Work { deadline: Some(deadline), ..report(9, "late", &ends) }).unwrap();
    pool.submit(report(0, "in time", &ends)).unwrap();
    drop(occupied);
    assert_eq!(ended.recv_timeout(LONG).unwrap(), ("late", Some(Discarded::Late)));
    assert_eq!(ended.recv_timeout(LONG).unwrap(), ("in time", None));
    assert_eq!((pool.statistics()[0].late, pool.statistics()[0].begun), (1, 2));
    assert_eq!(Discarded::Late.exception().kind(), SystemExceptionKind::Timeout);
}

#[test]
fn a_destroyed_pool_discards_what_waits_and_refuses_what_comes() {
    let orb = RtOrb::<BoxedJob>::new(scheduling(SchedulingClass::Unchanged));
    let id = orb.create_threadpool_with_lanes(0, vec![lane(0, 1, 0)], false, true, 4, 0).unwrap();
    let pool = orb.threadpool(id).unwrap();
    let (ends, ended) = mpsc::channel();
    let occupied = occupy(&pool, 0);
    pool.submit(report(0, "waits", &ends)).unwrap();
    orb.destroy_threadpool(id).unwrap();
    assert_eq!(ended.recv_timeout(LONG).unwrap(), ("waits", Some(Discarded::PoolDestroyed)));
    assert_eq!(pool.submit(report(0, "comes", &ends)).unwrap_err().reason, RefusalReason::PoolDestroyed);
    drop(occupied);
    drop(pool); // waits for the thread
}

#[test]
fn a_job_that_panics_costs_no_thread() {
    let pool = pool(PoolSettings { buffering: Some((2, 0)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) });
    let (ends, ended) = mpsc::channel();
    pool.submit(Work::new(priority(1), 0, Box::new(|_| panic!("a servant")))).unwrap();
    pool.submit(report(0, "after it", &ends)).unwrap();
    assert_eq!(names(&ended, 1), ["after it"]);
}

#[test]
fn a_pool_may_be_destroyed_by_its_own_thread() {
    let pool = Arc::new(pool(PoolSettings::without_lanes(1, 0, Priority::MIN)));
    let (ends, ended) = mpsc::channel();
    let (hand_over, own) = mpsc::channel::<Arc<ThreadPool<BoxedJob>>>();
    let job = move |_: Option<Discarded>| {
        drop(own.recv().unwrap()); // the last one
        ends.send(()).unwrap();
    };
    pool.submit(Work::new(priority(0), 0, Box::new(job))).unwrap();
    hand_over.send(pool).unwrap();
    ended.recv_timeout(LONG).unwrap();
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let kind = |settings| {
        let error = ThreadPool::<BoxedJob>::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap_err();
        error.kind()
    };
    let lanes = |lanes| PoolSettings::with_lanes(lanes);
    let wrong = [
        lanes(vec![]),
        lanes(vec![lane(1, 0, 1)]),
        lanes(vec![lane(1, 1, 0), lane(1, 1, 0)]),
        PoolSettings { stack_octets: 1_024, ..lanes(vec![lane(1, 1, 0)]) },
        PoolSettings { idle_priority: Some(priority(1)), ..lanes(vec![lane(1, 1, 0)]) },
    ];
    for settings in wrong {
        assert_eq!(kind(settings), SystemExceptionKind::BadParam);
    }
    assert_eq!(kind(lanes(vec![lane(1, 1_025, 0)])), SystemExceptionKind::ImpLimit);
    assert_eq!(kind(lanes(vec![lane(1, 1, usize::MAX)])), SystemExceptionKind::ImpLimit);
    let buffered = PoolSettings { buffering: Some((65_537, 0)), ..lanes(vec![lane(1, 1, 0)]) };
    assert_eq!(kind(buffered), SystemExceptionKind::ImpLimit);
}

#[test]
fn a_request_runs_at_its_priority_for_the_current() {
    let lanes = PoolSettings::with_lanes(vec![lane(0, 1, 0)]);
    let pool = pool(lanes);
    let (send, received) = mpsc::channel();
    for number in [3, 30_000] {
        let send = send.clone();
        let job = move |_: Option<Discarded>| {
            let current = RtCurrent::new(scheduling(SchedulingClass::Unchanged));
            send.send(current.the_priority().unwrap().get()).unwrap();
        };
        until(&pool, "idle", |lanes| lanes[0].idle == 1);
        pool.submit(Work::new(priority(number), 0, Box::new(job))).unwrap();
        assert_eq!(received.recv_timeout(LONG).unwrap(), number);
    }
}

/// Both threads of the lane have one processor, and there are always requests for a thread that has ended one. A thread of
/// `SCHED_FIFO` that never waits would keep the processor from the other one, which has a request.
#[cfg(target_os = "linux")]
#[test]
fn threads_of_one_processor_and_one_native_priority_take_turns() {
    use spandrel_sync::{ThreadManager, ThreadOptions, allowed_cpus};

    const CLIENTS: usize = 4;
    const TURNS: usize = 5;

    /// One request of a client, which is followed by its next one.
    fn request(pool: &Arc<ThreadPool<BoxedJob>>, client: usize, begun: &mpsc::Sender<usize>) {
        let (again, begun) = (Arc::downgrade(pool), begun.clone());
        let job = move |discarded: Option<Discarded>| {
            let (Some(pool), None) = (again.upgrade(), discarded) else { return };
            if begun.send(client).is_ok() {
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(1) {}
                request(&pool, client, &begun);
            }
        };
        _ = pool.submit(Work { client: Some(client), ..Work::new(priority(0), 0, Box::new(job) as BoxedJob) });
    }

    let scheduling = scheduling(SchedulingClass::Fifo);
    if scheduling.class() != SchedulingClass::Fifo {
        println!("not shown: SCHED_FIFO is not permitted here, {} is used", scheduling.class());
        return;
    }
    let settings = PoolSettings { buffering: Some((CLIENTS, 0)), ..PoolSettings::with_lanes(vec![lane(0, 2, 0)]) };
    let (send, pool) = mpsc::channel();
    let options = ThreadOptions::named("creator").affinity([allowed_cpus().unwrap()[0]]);
    let manager = ThreadManager::new();
    // The threads of the pool have the processor of the one that creates it.
    manager.spawn(options, move |_| send.send(ThreadPool::new(settings, scheduling).unwrap()).unwrap()).unwrap();
    let pool = Arc::new(pool.recv_timeout(LONG).unwrap());
    let (send, begun) = mpsc::channel();
    (0..CLIENTS).for_each(|client| request(&pool, client, &send));
    let (mut turns, start) = ([0; CLIENTS], Instant::now());
    while turns.iter().any(|turns| *turns < TURNS) {
        turns[begun.recv_timeout(LONG).unwrap()] += 1;
        assert!(start.elapsed() < LONG, "turns of each client: {turns:?}");
    }
    pool.close();
    // The pool may not end in a thread of its own.
    assert!(holds_within(LONG, || Arc::strong_count(&pool) == 1), "the last request ends");
}

#[cfg(target_os = "linux")]
#[test]
fn threads_have_the_native_priority_of_their_request_and_get_their_own_back() {
    use spandrel_sync::{Priority as ThreadPriority, current_priority};

    let scheduling = scheduling(SchedulingClass::Fifo);
    if scheduling.class() != SchedulingClass::Fifo {
        println!("not shown: SCHED_FIFO is not permitted here, {} is used", scheduling.class());
        return;
    }
    let run = |pool: &ThreadPool<BoxedJob>, number| {
        let (send, received) = mpsc::channel();
        let job = move |_: Option<Discarded>| send.send(current_priority().unwrap()).unwrap();
        until(pool, "idle", |lanes| lanes.iter().any(|lane| lane.idle > 0));
        pool.submit(Work::new(priority(number), 0, Box::new(job))).unwrap();
        received.recv_timeout(LONG).unwrap()
    };
    // The linear mapping: 0 is 1, 335 is 2, 670 is 3, 32,767 is 99.
    let settings = PoolSettings::with_lanes(vec![lane(0, 1, 0), lane(670, 1, 0)]);
    let pool = ThreadPool::new(PoolSettings { allows_borrowing: true, ..settings }, scheduling.clone()).unwrap();
    assert_eq!([run(&pool, 0), run(&pool, 669), run(&pool, 32_767)], [1, 1, 3].map(ThreadPriority::Fifo), "the lane's");
    let high = occupy(&pool, 700);
    assert_eq!([run(&pool, 700), run(&pool, 0)], [3, 1].map(ThreadPriority::Fifo), "borrowed, and given back");
    drop(high);

    let pool = ThreadPool::new(PoolSettings::without_lanes(1, 0, priority(335)), scheduling).unwrap();
    assert_eq!(
        [run(&pool, 0), run(&pool, 32_767), run(&pool, 335)],
        [1, 99, 2].map(ThreadPriority::Fifo),
        "each one's"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_native_priority_that_a_request_gives_its_thread_ends_with_it() {
    use spandrel_sync::{Priority as ThreadPriority, current_priority};

    let scheduling = scheduling(SchedulingClass::Fifo);
    if scheduling.class() != SchedulingClass::Fifo {
        println!("not shown: SCHED_FIFO is not permitted here, {} is used", scheduling.class());
        return;
    }
    let pool = ThreadPool::new(PoolSettings::with_lanes(vec![lane(0, 1, 0)]), scheduling.clone()).unwrap();
    let current = RtCurrent::new(scheduling);
    let run = |raises: bool| {
        let (send, received) = mpsc::channel();
        let current = current.clone();
        let job = move |_: Option<Discarded>| {
            let before = (current_priority().unwrap(), current.the_priority().unwrap());
            if raises {
                current.set_the_priority(32_767).unwrap();
                assert_eq!(current_priority().unwrap(), ThreadPriority::Fifo(99));
            }
            send.send(before).unwrap();
        };
        until(&pool, "idle", |lanes| lanes[0].idle > 0);
        pool.submit(Work::new(priority(5), 0, Box::new(job))).unwrap();
        received.recv_timeout(LONG).unwrap()
    };
    let own = (ThreadPriority::Fifo(1), priority(5));
    assert_eq!([run(true), run(true), run(false)], [own; 3]);
}

#[test]
fn a_priority_without_a_native_one_is_refused_by_a_pool_without_lanes() {
    #[derive(Debug)]
    struct Few;

    impl PriorityMapping for Few {
        fn to_native(&self, priority: Priority, native: &RangeInclusive<NativePriority>) -> Option<NativePriority> {
            (priority.get() < 1_000).then_some(*native.start())
        }

        fn to_corba(&self, _: NativePriority, _: &RangeInclusive<NativePriority>) -> Option<Priority> {
            None
        }
    }

    let scheduling = Scheduling::new(SchedulingClass::Other, Arc::new(Few));
    if scheduling.class() == SchedulingClass::Unchanged {
        println!("not shown: threads have no native priorities here");
        return;
    }
    let pool = ThreadPool::new(PoolSettings::without_lanes(1, 0, priority(5)), scheduling.clone()).unwrap();
    let (ends, end) = mpsc::channel();
    let refused = pool.submit(report(1_000, "unmapped", &ends)).unwrap_err();
    let exception = refused.reason.exception();
    assert_eq!((refused.reason, refused.work.priority), (RefusalReason::NoNativePriority, priority(1_000)));
    assert_eq!((exception.kind(), exception.minor()), (SystemExceptionKind::DataConversion, minor::PRIORITY_MAPPING));
    pool.submit(report(999, "mapped", &ends)).unwrap();
    assert_eq!(names(&end, 1), ["mapped"]);
    let lanes = PoolSettings::with_lanes(vec![lane(999, 1, 0)]);
    let pool = ThreadPool::new(lanes, scheduling.clone()).unwrap();
    pool.submit(report(1_000, "at the lane's", &ends)).unwrap();
    assert_eq!(names(&end, 1), ["at the lane's"]);
    let unmapped = ThreadPool::<BoxedJob>::new(PoolSettings::with_lanes(vec![lane(1_000, 1, 0)]), scheduling);
    assert_eq!(unmapped.unwrap_err().kind(), SystemExceptionKind::DataConversion);
}

/// A request whose type allocates nothing.
#[derive(Clone)]
struct Tick(Arc<Semaphore>);

impl Job for Tick {
    fn run(self, _: &PoolThread<'_>) {
        self.0.post(1).unwrap();
    }

    fn discard(self, _: Discarded) {}
}

#[test]
fn the_steady_state_allocates_nothing() {
    alone(|| {
        let lanes = PoolSettings::with_lanes(vec![lane(0, 2, 0), lane(100, 1, 0)]);
        let settings = PoolSettings { allows_borrowing: true, buffering: Some((64, 0)), ..lanes };
        let pool = ThreadPool::new(settings, scheduling(SchedulingClass::Unchanged)).unwrap();
        let ended = Arc::new(Semaphore::new(0));
        let round = || {
            let deadline = Some(Instant::now().checked_add(LONG).unwrap());
            for number in 0..64 {
                let tick = Tick(Arc::clone(&ended));
                let work = Work::new(priority(number % 2 * 150), 32, tick);
                let client = Some(usize::from(number.unsigned_abs()) % 7);
                assert!(pool.submit(Work { client, deadline, ..work }).is_ok());
            }
            for _ in 0..64 {
                ended.acquire().forget();
            }
        };
        (0..50).for_each(|_| round());
        let region = Region::new(ALLOCATOR);
        (0..50).for_each(|_| round());
        let change = region.change();
        assert_eq!((change.allocations, change.reallocations), (0, 0));
    });
}
