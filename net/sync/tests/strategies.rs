//! The locking strategies on real threads.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use spandrel_sync::{
    AdaptiveMutex, Arc, Barrier, Condition, Guarded, Lock, Monitor, Mutex, NullCondition, NullMutex, RecursiveMutex,
    RwLock, Semaphore, TooManyPermits, WouldDeadlock, thread,
};

static ADAPTIVE: AdaptiveMutex<u32> = AdaptiveMutex::new(0);
static RECURSIVE: RecursiveMutex<Cell<u32>> = RecursiveMutex::new(Cell::new(0));

#[test]
fn an_adaptive_mutex_counts_what_four_threads_add() {
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..10_000).for_each(|_| *ADAPTIVE.lock() += 1));
        }
    });
    assert_eq!(*ADAPTIVE.lock(), 40_000);
}

#[test]
fn a_recursive_mutex_counts_what_four_threads_add_twice() {
    fn add() {
        let outer = RECURSIVE.lock();
        outer.set(outer.get() + 1);
        let inner = RECURSIVE.lock();
        inner.set(inner.get() + 1);
    }
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| add()));
        }
    });
    assert_eq!(RECURSIVE.lock().get(), 8_000);
}

/// A component that is generic over its locks.
struct Table<L: Lock = Mutex> {
    entries: Guarded<Vec<u32>, L>,
}

impl<L: Lock> Table<L> {
    fn new() -> Self {
        Self { entries: Guarded::default() }
    }
    fn add(&self, entry: u32) {
        self.entries.lock().push(entry);
    }
    fn sum(&self) -> u32 {
        self.entries.read().iter().sum()
    }
}

fn check_by_many<L: Lock>()
where
    L::Of<Vec<u32>>: Sync,
{
    let table = Table::<L>::new();
    thread::scope(|scope| {
        for entry in 1..=4 {
            let table = &table;
            scope.spawn(move || table.add(entry));
        }
    });
    assert_eq!(table.sum(), 10);
    let mut entries = table.entries;
    let held = entries.lock();
    assert!(entries.try_lock().is_none());
    assert_eq!(format!("{entries:?}"), "Guarded(<locked>)");
    drop(held);
    entries.get_mut().clear();
    assert_eq!(format!("{entries:?}"), "Guarded([])");
    assert!(entries.try_read().is_some());
    assert_eq!(entries.into_inner(), [0_u32; 0]);
}

#[test]
fn one_component_works_under_every_strategy() {
    check_by_many::<Mutex>();
    check_by_many::<AdaptiveMutex>();
    check_by_many::<RwLock>();
    let own = Table::<NullMutex>::new();
    own.add(10);
    assert_eq!(own.sum(), 10);
}

#[test]
fn readers_share_where_the_strategy_can_and_not_elsewhere() {
    fn shares<L: Lock>() -> bool {
        let value = Guarded::<u32, L>::new(0);
        let _first = value.read();
        value.try_read().is_some()
    }
    assert!(shares::<RwLock>() && shares::<NullMutex>());
    assert!(!shares::<Mutex>() && !shares::<AdaptiveMutex>());
}

#[test]
fn re_entering_the_null_mutex_is_found_where_it_happens() {
    let value = NullMutex::new(1);
    let held = value.lock();
    assert!(value.try_lock().is_none() && value.try_read().is_none());
    assert_eq!(format!("{value:?}"), "NullMutex(<locked>)");
    let message = catch_unwind(AssertUnwindSafe(|| drop(value.lock()))).unwrap_err();
    assert_eq!(message.downcast_ref(), Some(&"a NullMutex was locked again by the thread that holds it"));
    drop(held);
    let reading = (value.read(), value.read());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(value.lock()))).is_err());
    drop(reading);
    *value.lock() += 1;
    assert_eq!(value.into_inner(), 2);
}

#[test]
fn waits_under_the_null_strategy_fail_at_once() {
    let (value, condition) = (Guarded::<u32, NullMutex>::new(0), NullCondition::new());
    let mut guard = value.lock();
    assert_eq!(NullMutex::wait_while(&condition, &mut guard, |value| *value == 0), Err(WouldDeadlock));
    assert!(condition.wait_for(&mut guard, Duration::MAX).timed_out());
    *guard = 1;
    assert_eq!(NullMutex::wait_while(&condition, &mut guard, |value| *value == 0), Ok(()));
}

#[test]
fn a_condition_serves_an_adaptive_mutex() {
    let shared = Arc::new((AdaptiveMutex::new(false), Condition::new()));
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        *other.0.lock() = true;
        other.1.notify_all();
    });
    let mut ready = shared.0.lock();
    while !*ready {
        assert!(!shared.1.wait_for(&mut ready, Duration::from_secs(60)).timed_out());
    }
    drop(ready);
    thread.join().unwrap();
}

#[test]
fn a_timed_lock_times_out() {
    let limit = Duration::from_millis(20);
    let (adaptive, recursive) = (AdaptiveMutex::new(()), RecursiveMutex::new(RefCell::new(1)));
    let shared = RwLock::new(());
    let held = (adaptive.lock(), recursive.lock(), shared.read());
    thread::scope(|scope| {
        scope.spawn(|| {
            let start = Instant::now();
            assert!(adaptive.try_lock_for(limit).is_none());
            assert!(recursive.try_lock_for(limit).is_none() && recursive.try_lock().is_none());
            assert!(shared.try_write_for(limit).is_none());
            assert!(start.elapsed() >= 3 * limit);
            assert!(shared.try_read_for(limit).is_some(), "readers share");
        });
    });
    *recursive.try_lock().expect("the holder may lock again").borrow_mut() += 1;
    drop(held);
    assert_eq!(recursive.into_inner().into_inner(), 2);
    assert!(adaptive.try_lock_for(limit).is_some());
    let writing = shared.try_write_for(limit).expect("no reader is left");
    assert!(shared.try_read_for(limit).is_none());
    drop(writing);
}

#[test]
fn repeated_re_entry_does_not_prolong_a_timed_wait() {
    let recursive = RecursiveMutex::new(());
    let is_over = AtomicBool::new(false);
    let _held = recursive.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(recursive.try_lock_for(Duration::from_millis(20)).is_none());
            is_over.store(true, Ordering::SeqCst);
        });
        let start = Instant::now();
        while !is_over.load(Ordering::SeqCst) {
            drop(recursive.lock());
            assert!(start.elapsed() < Duration::from_secs(60), "the wait does not end");
        }
    });
}

#[test]
fn the_null_strategy_is_no_larger_than_a_ref_cell() {
    assert_eq!(size_of::<Guarded<u64, NullMutex>>(), size_of::<RefCell<u64>>());
    assert_eq!(size_of::<Guarded<u64, Mutex>>(), size_of::<Mutex<u64>>());
}

#[test]
fn a_semaphore_count_cannot_overflow() {
    let semaphore = Semaphore::new(usize::MAX - 1);
    assert_eq!(semaphore.post(2), Err(TooManyPermits { permits: 2, free: usize::MAX - 1 }));
    assert_eq!(semaphore.available(), usize::MAX - 1);
    semaphore.post(1).unwrap();
    assert!(semaphore.try_acquire().is_some());
}

#[test]
fn a_permit_moves_to_the_thread_that_works() {
    let semaphore = Arc::new(Semaphore::new(1));
    let permit = semaphore.acquire_owned();
    assert!(semaphore.acquire_owned_for(Duration::from_millis(10)).is_none());
    thread::spawn(move || drop(permit)).join().unwrap();
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn a_barrier_of_zero_or_one_never_waits() {
    assert!(Barrier::new(0).wait().is_leader() && Barrier::new(1).wait().is_leader());
    let two = Barrier::new(2);
    assert_eq!(two.wait_for(Duration::from_millis(10)), None);
    assert_eq!((two.parties(), two.waiting()), (2, 0));
}
