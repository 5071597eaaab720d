//! Native priorities of threads, and the mutex that inherits them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use spandrel_sync::{
    Arc, Guarded, Monitor, PriorityInheritanceCondition, PriorityInheritanceMutex, WouldDeadlock, thread,
};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn an_inheriting_mutex_counts_what_four_threads_add() {
    let count = Guarded::<u32, PriorityInheritanceMutex>::new(0);
    let rounds = if cfg!(miri) { 20 } else { 10_000 };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..rounds).for_each(|_| *count.lock() += 1));
        }
    });
    assert_eq!(count.into_inner(), 4 * rounds);
}

#[test]
fn a_panic_does_not_poison_an_inheriting_mutex() {
    let mut mutex = PriorityInheritanceMutex::new(1);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        *mutex.lock() = 2;
        let _guard = mutex.lock();
        panic!("while locked");
    }));
    assert!(panicked.is_err());
    assert_eq!(mutex.try_lock().as_deref(), Some(&2));
    *mutex.get_mut() = 3;
    assert_eq!(format!("{mutex:?}"), "PriorityInheritanceMutex(3)");
    assert_eq!(mutex.into_inner(), 3);
}

/// On other systems the second lock waits for ever.
#[cfg(target_os = "linux")]
#[test]
fn a_second_lock_by_one_thread_panics_and_a_timed_one_times_out() {
    let mutex = PriorityInheritanceMutex::new(());
    let guard = mutex.lock();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(mutex.lock()))).is_err());
    assert!(mutex.try_lock().is_none());
    let (start, limit) = (Instant::now(), Duration::from_millis(20));
    assert!(mutex.try_lock_for(limit).is_none());
    assert!(start.elapsed() >= limit);
    drop(guard);
    assert!(mutex.try_lock_for(Duration::ZERO).is_some());
}

#[test]
fn a_timed_lock_of_another_threads_mutex_times_out_or_is_granted() {
    let mutex = PriorityInheritanceMutex::new(0);
    let (start, limit) = (Instant::now(), Duration::from_millis(20));
    let guard = mutex.lock();
    thread::scope(|scope| {
        let timed = scope.spawn(|| (mutex.try_lock_for(limit).is_none(), start.elapsed()));
        let (timed_out, elapsed) = timed.join().unwrap();
        assert!(timed_out && elapsed >= limit);
        let granted = scope.spawn(|| mutex.try_lock_for(LONG).is_some());
        drop(guard);
        assert!(granted.join().unwrap());
    });
}

#[test]
fn a_forgotten_guard_does_not_free_the_locked_mutex() {
    let mutex = PriorityInheritanceMutex::new(7);
    std::mem::forget(mutex.lock());
    assert_eq!(format!("{mutex:?}"), "PriorityInheritanceMutex(<locked>)");
    if !cfg!(miri) {
        drop(mutex); // the block of the locked mutex is leaked
    } else {
        std::mem::forget(mutex);
    }
}

/// A component that waits under any strategy.
fn hand_over<L: Monitor>() -> Result<u32, WouldDeadlock>
where
    L::Of<Option<u32>>: Send + Sync,
    L::Condition: Send + Sync,
{
    let slot = Arc::new((Guarded::<Option<u32>, L>::new(None), L::Condition::default()));
    let giver = Arc::clone(&slot);
    let thread = thread::spawn(move || {
        *giver.0.lock() = Some(42);
        L::notify_all(&giver.1);
    });
    let mut value = slot.0.lock();
    L::wait_while(&slot.1, &mut value, |value| value.is_none())?;
    let value = value.take();
    thread.join().unwrap();
    value.ok_or(WouldDeadlock)
}

#[test]
fn the_inheriting_strategy_is_a_monitor() {
    assert_eq!(hand_over::<PriorityInheritanceMutex>(), Ok(42));
}

#[test]
fn a_wait_on_an_inheriting_condition_ends_with_the_notification_or_the_time() {
    let (mutex, condition) = (PriorityInheritanceMutex::new(false), PriorityInheritanceCondition::new());
    let (start, limit) = (Instant::now(), Duration::from_millis(20));
    let mut ready = mutex.lock();
    while !condition.wait_for(&mut ready, limit).timed_out() {}
    assert!(start.elapsed() >= limit);
    drop(ready);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut ready = mutex.lock();
            while !*ready {
                assert!(!condition.wait_for(&mut ready, LONG).timed_out());
            }
        });
        *mutex.lock() = true;
        condition.notify_one();
        waiter.join().unwrap();
    });
}

/// The conditions of other systems find it only while a thread waits.
#[cfg(target_os = "linux")]
#[test]
fn a_condition_refuses_a_second_mutex() {
    let (first, second) = (PriorityInheritanceMutex::new(()), PriorityInheritanceMutex::new(()));
    let condition = PriorityInheritanceCondition::new();
    assert!(condition.wait_for(&mut first.lock(), Duration::ZERO).timed_out());
    let wrong = catch_unwind(AssertUnwindSafe(|| condition.wait_for(&mut second.lock(), Duration::ZERO)));
    assert!(wrong.is_err());
}

#[cfg(all(target_os = "linux", not(miri)))]
mod native {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use spandrel_sync::atomic::{AtomicBool, Ordering::SeqCst};
    use spandrel_sync::{
        Arc, Guarded, Lock, Mutex, NativeThreadId, Priority, PriorityGuard, PriorityInheritanceMutex, SpawnError,
        ThreadManager, ThreadOptions, allowed_cpus, current_priority, set_current_priority, thread,
    };

    /// Longest time for which the thread of medium priority keeps the processor.
    const BUSY: Duration = Duration::from_millis(300);

    /// The outcome for a thread of high priority that waits for a lock of one with a low priority, while one of medium
    /// priority uses their only processor: whether it got the lock before that gave up. `None` without rights.
    fn lock_is_taken_in_spite_of_a_busy_thread<L: Lock>() -> Option<bool>
    where
        L::Of<()>: Send + Sync,
    {
        let processor = [allowed_cpus().unwrap()[0]];
        let options = move |name, level| ThreadOptions::named(name).affinity(processor).priority(Priority::Fifo(level));
        let manager = ThreadManager::new();
        let lock = Arc::new(Guarded::<(), L>::new(()));
        let (was_taken, was_taken_in_time) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (locked, when_locked) = mpsc::channel();
        let (begin, when_begun) = mpsc::channel::<()>();
        let held = Arc::clone(&lock);
        let low = manager.spawn(options("low", 10), move |_| {
            let guard = held.lock();
            locked.send(()).unwrap();
            // The others have a higher priority: they begin as soon as this thread sleeps or they are woken.
            when_begun.recv().unwrap();
            drop(guard);
        });
        match low {
            Ok(_) => {}
            Err(SpawnError::NotPermitted { .. }) => return None,
            Err(other) => panic!("{other:?}"),
        }
        when_locked.recv().unwrap();
        let (contended, has_locked) = (Arc::clone(&lock), Arc::clone(&was_taken));
        let (is_free, in_time) = (Arc::clone(&was_taken), Arc::clone(&was_taken_in_time));
        let high = move |_: &_| {
            drop(contended.lock());
            has_locked.store(true, SeqCst);
        };
        // The thread of medium priority starts the others' race, so that it runs when the low one has been woken.
        let inner = Arc::new(ThreadManager::new());
        let spawner = Arc::clone(&inner);
        let medium = manager.spawn(options("medium", 20), move |_| {
            // Preempts this thread, and then waits for the lock.
            spawner.spawn(options("high", 30), high).unwrap();
            begin.send(()).unwrap(); // the low thread is ready, and has the processor only by inheritance
            let start = Instant::now();
            while !is_free.load(SeqCst) && start.elapsed() < BUSY {}
            in_time.store(is_free.load(SeqCst), SeqCst);
        });
        medium.unwrap();
        assert!(manager.wait().is_clean() && inner.wait().is_clean());
        assert!(was_taken.load(SeqCst));
        Some(was_taken_in_time.load(SeqCst))
    }

    #[test]
    fn inversion_occurs_with_the_ordinary_lock_and_not_with_the_inheriting_one() {
        let (Some(ordinary), Some(inheriting)) = (
            lock_is_taken_in_spite_of_a_busy_thread::<Mutex>(),
            lock_is_taken_in_spite_of_a_busy_thread::<PriorityInheritanceMutex>(),
        ) else {
            println!("not shown: this user may not set real-time priorities (CAP_SYS_NICE, RLIMIT_RTPRIO)");
            return;
        };
        assert!(!ordinary, "a thread of medium priority did not delay one of high priority: the test shows nothing");
        assert!(inheriting, "the holder did not inherit the priority of the waiting thread");
    }

    #[test]
    fn a_priority_is_set_read_and_restored() {
        thread::spawn(|| {
            set_current_priority(Priority::Nice(5)).unwrap();
            assert_eq!(current_priority().unwrap(), Priority::Nice(5));
            match PriorityGuard::set(Priority::Fifo(7)) {
                Ok(guard) => {
                    assert_eq!(current_priority().unwrap(), Priority::Fifo(7));
                    let inner = PriorityGuard::set(Priority::RoundRobin(9)).unwrap();
                    assert_eq!(
                        (inner.restores(), current_priority().unwrap()),
                        (Priority::Fifo(7), Priority::RoundRobin(9))
                    );
                    inner.restore().unwrap();
                    assert_eq!(current_priority().unwrap(), Priority::Fifo(7));
                    drop(guard);
                }
                Err(SpawnError::NotPermitted { .. }) => println!("not shown: real-time priorities need a right"),
                Err(other) => panic!("{other:?}"),
            }
            assert_eq!(current_priority().unwrap(), Priority::Nice(5));
            assert!(matches!(PriorityGuard::set(Priority::Fifo(100)), Err(SpawnError::Priority { .. })));
            assert_eq!(current_priority().unwrap(), Priority::Nice(5));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_thread_demotes_another_without_rights() {
        let (send, ready) = mpsc::channel();
        let (demoted, when_demoted) = mpsc::channel::<()>();
        let target = thread::spawn(move || {
            let before = current_priority().unwrap();
            let is_real_time = set_current_priority(Priority::Fifo(3)).is_ok();
            let mut priorities = Vec::new();
            loop {
                send.send(NativeThreadId::current().unwrap()).unwrap();
                if when_demoted.recv().is_err() {
                    return (before, is_real_time, priorities);
                }
                priorities.push(current_priority().unwrap());
            }
        });
        for _ in 0..2 {
            ready.recv().unwrap().demote().unwrap();
            demoted.send(()).unwrap();
        }
        drop(demoted);
        let (before, is_real_time, priorities) = target.join().unwrap();
        let least = Priority::Nice(19);
        if is_real_time {
            assert_eq!(priorities, [before, least]);
        } else {
            println!("not shown: the demotion of a real-time thread, without the right to start one");
            assert_eq!(priorities, [least; 2]);
        }
    }
}
