//! The limits of what all thread pools of an ORB reserve together.

use std::time::Duration;

use spandrel_giop::{SystemException, SystemExceptionKind};
use spandrel_orb::Orb;
use spandrel_sync::Arc;
use spandrel_test_support::alone;
use stats_alloc::Region;

use super::ALLOCATOR;
use crate::{
    BoxedJob, ExecutionTimes, LaneSettings, LinearMapping, OverrunAction, PoolSettings, Priority, ReservationLimits,
    RtOrb, Scheduling, SchedulingClass,
};

const NO_RESOURCES: SystemExceptionKind = SystemExceptionKind::NoResources;
const IMP_LIMIT: SystemExceptionKind = SystemExceptionKind::ImpLimit;

fn scheduling() -> Scheduling {
    Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping))
}

fn with_limits(threads: usize, octets: usize) -> RtOrb<BoxedJob> {
    RtOrb::with_limits(scheduling(), ReservationLimits { threads, octets })
}

/// A pool without lanes and buffering.
fn threads(static_threads: usize, dynamic_threads: usize) -> PoolSettings {
    PoolSettings::without_lanes(static_threads, dynamic_threads, Priority::MIN)
}

fn lane(number: i16, static_threads: usize) -> LaneSettings {
    LaneSettings { priority: Priority::new(number).unwrap(), static_threads, dynamic_threads: 0 }
}

fn buffering(requests: usize, octets: usize) -> PoolSettings {
    PoolSettings { buffering: Some((requests, octets)), ..threads(1, 0) }
}

#[test]
fn pools_reserve_no_more_threads_together_than_the_limit() {
    let orb = with_limits(5, 0);
    let first = orb.create(threads(1, 2)).unwrap();
    let refused = orb.create(threads(1, 2)).unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (NO_RESOURCES, 0));
    let text = "3 threads beside 3 of others exceeds the limit of 5 for all pools (-ORBMaxLaneThreads)";
    assert!(refused.to_string().contains(text), "{refused}");
    orb.create(threads(2, 0)).unwrap();
    assert_eq!(orb.create(threads(1, 0)).unwrap_err().kind(), NO_RESOURCES);
    assert_eq!(orb.default_threadpool().unwrap_err().kind(), NO_RESOURCES, "it has up to 32 threads");
    // The threads of a pool are free again once it has ended. One more watches execution times.
    orb.destroy_threadpool(first).unwrap();
    let times = ExecutionTimes::new(OverrunAction::Report).all_lanes(Duration::from_secs(60));
    let watched = |dynamic| PoolSettings { execution_times: Some(times.clone()), ..threads(1, dynamic) };
    assert_eq!(orb.create(watched(2)).unwrap_err().kind(), NO_RESOURCES);
    orb.create(watched(1)).unwrap();
}

#[test]
fn pools_reserve_no_more_memory_together_than_the_limit() {
    let orb = with_limits(100, 1 << 20);
    let first = orb.create(buffering(64, 1 << 19)).unwrap(); // 64 KiB of tables, and 512 KiB of requests
    let refused = orb.create(buffering(64, 1 << 19)).unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (NO_RESOURCES, 0));
    let text = "589824 octets beside 589824 of others exceeds the limit of 1048576 for all pools (-ORBMaxLaneMemory)";
    assert!(refused.to_string().contains(text), "{refused}");
    // Each lane has a buffer of its own.
    let lane = |number| lane(number, 1);
    let lanes = |count| {
        let lanes = PoolSettings::with_lanes((0..count).map(lane).collect());
        PoolSettings { buffering: Some((1, 99_000)), ..lanes }
    };
    assert_eq!(orb.create(lanes(5)).unwrap_err().kind(), NO_RESOURCES);
    let four = orb.create(lanes(4)).unwrap();
    orb.destroy_threadpool(four).unwrap();
    // So do stacks of a stated size.
    let stacks = |count: usize| PoolSettings { stack_octets: 1 << 18, ..threads(1, count - 1) };
    assert_eq!(orb.create(stacks(2)).unwrap_err().kind(), NO_RESOURCES);
    let one = orb.create(stacks(1)).unwrap();
    orb.destroy_threadpool(one).unwrap();
    orb.destroy_threadpool(first).unwrap();
    orb.create(stacks(4)).unwrap();
}

#[test]
fn a_program_that_creates_pools_without_end_is_refused() {
    let end = |settings: &dyn Fn() -> PoolSettings| {
        let orb = RtOrb::<BoxedJob>::new(scheduling());
        (0..).find_map(|count| orb.create(settings()).err().map(|refused| (count, refused.kind()))).unwrap()
    };
    assert_eq!(end(&|| threads(1, 0)), (256, IMP_LIMIT), "pools");
    assert_eq!(end(&|| threads(1, 1_023)), (4, NO_RESOURCES), "threads, most of them dynamic");
    assert_eq!(end(&|| buffering(1, 100 << 20)), (10, NO_RESOURCES), "octets of requests");
    assert_eq!(end(&|| buffering(65_536, 1)), (15, NO_RESOURCES), "requests");
}

#[test]
fn numbers_of_four_thousand_millions_are_refused_before_anything_is_reserved() {
    alone(|| {
        let orb = RtOrb::<BoxedJob>::new(scheduling());
        let region = Region::new(ALLOCATOR);
        let plain = |stack, fixed, dynamic, requests, octets| {
            let created = orb.create_threadpool(stack, fixed, dynamic, Priority::MIN, true, requests, octets);
            created.unwrap_err().kind()
        };
        let max = u32::MAX;
        assert_eq!(plain(max, 1, 0, 0, 0), NO_RESOURCES, "octets of stacks");
        assert_eq!(plain(0, max, 0, 0, 0), IMP_LIMIT, "static threads");
        assert_eq!(plain(0, 1, max, 0, 0), IMP_LIMIT, "dynamic threads");
        assert_eq!(plain(0, max, max, 0, 0), IMP_LIMIT, "both");
        assert_eq!(plain(0, 1, 0, max, 0), IMP_LIMIT, "requests");
        assert_eq!(plain(0, 1, 0, 0, max), NO_RESOURCES, "octets of requests");
        let lanes = |stack, requests, octets| {
            let lanes = (0..256).map(|number| lane(number, 4)).collect();
            orb.create_threadpool_with_lanes(stack, lanes, true, true, requests, octets).map_err(|error| error.kind())
        };
        assert_eq!(lanes(0, 65_536, 1), Err(NO_RESOURCES));
        assert_eq!(lanes(max, 1, 1), Err(NO_RESOURCES));
        assert_eq!(lanes(0, 1, max), Err(NO_RESOURCES));
        let octets = region.change().bytes_allocated;
        assert!(octets < 1 << 20, "{octets} octets were allocated");
        assert_eq!(format!("{orb:?}").matches("ThreadPool").count(), 0, "{orb:?}");
    });
}

#[test]
fn the_tables_of_a_lane_are_no_larger_than_the_octets_that_are_counted_for_them() {
    alone(|| {
        for requests in [1, 100, 8_000, 65_536] {
            let orb = with_limits(1, requests * 1_024 + 1);
            let region = Region::new(ALLOCATOR);
            orb.create(buffering(requests, 1)).unwrap();
            let octets = region.change().bytes_allocated;
            assert!(octets < requests * 1_024 + (64 << 10), "{octets} octets for {requests} requests");
        }
    });
}

#[test]
fn the_limits_of_an_orb_are_its_options() {
    let orb = Orb::builder().build().unwrap();
    assert_eq!(ReservationLimits::for_orb(&orb), ReservationLimits::default());
    let builder = Orb::builder().option("-ORBMaxLaneThreads", "3").unwrap();
    let orb = builder.option("-ORBMaxLaneMemory", "5000").unwrap().build().unwrap();
    let rt_orb = RtOrb::<BoxedJob>::for_orb(&orb, scheduling());
    let refused = |settings| -> SystemException { rt_orb.create(settings).unwrap_err() };
    assert!(refused(threads(4, 0)).to_string().contains("limit of 3 for all pools (-ORBMaxLaneThreads)"));
    assert!(refused(buffering(1, 4_000)).to_string().contains("limit of 5000 for all pools (-ORBMaxLaneMemory)"));
    rt_orb.create(PoolSettings { buffering: Some((1, 3_000)), ..threads(3, 0) }).unwrap();
    assert_eq!(refused(threads(1, 0)).kind(), NO_RESOURCES);
}
