//! The thread manager on real threads: behaviour that the model checker cannot show.

use std::panic::panic_any;
use std::time::{Duration, Instant};

use spandrel_sync::{Arc, Barrier, Mutex, Priority, Semaphore, SpawnError, ThreadManager, ThreadOptions, thread};

/// Time limit for events that must happen.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds that other threads bring about.
#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TEST_TIMEOUT, "timed out waiting for {what}");
        thread::yield_now();
    }
}

#[test]
fn panics_are_reported_with_thread_group_and_message() {
    let manager = ThreadManager::new();
    let group = manager.group("pool");
    group.spawn("text", |_| panic!("plain text")).unwrap();
    group.spawn("fine", |_| ()).unwrap();
    group.spawn("formatted", |context| panic!("from {}", context.name())).unwrap();
    group.spawn("other", |_| panic_any(7)).unwrap();
    manager.spawn("elsewhere", |_| panic!("not in this group")).unwrap();
    let joined = group.wait();
    let messages: Vec<_> = joined.panics.iter().map(ToString::to_string).collect();
    let expected = [
        "thread `text` of group `pool` panicked: plain text",
        "thread `formatted` of group `pool` panicked: from formatted",
        "thread `other` of group `pool` panicked: a panic whose payload is not text",
    ];
    assert_eq!(messages, expected);
    assert!(!joined.is_clean());
    assert!(group.wait().is_clean(), "reported once");
    assert_eq!(manager.wait().panics.len(), 1);
}

#[test]
fn threads_have_names_groups_and_numbers() {
    let manager = ThreadManager::new();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    let body = move |context: &spandrel_sync::ThreadContext| {
        let system = thread::current().name().map(str::to_owned);
        seen.lock().push((context.index(), context.name().to_owned(), context.group().to_owned(), system));
    };
    manager.group("stage").spawn_n(2, "worker", body).unwrap();
    assert!(manager.wait().is_clean());
    names.lock().sort();
    let expected = |index: usize| {
        let name = format!("worker-{index}");
        (index, name.clone(), "stage".to_owned(), Some(name))
    };
    assert_eq!(*names.lock(), [expected(0), expected(1)]);
    assert!(matches!(manager.spawn("a\0b", |_| ()), Err(SpawnError::Name)));
}

#[test]
fn threads_spawned_at_once_run_at_once() {
    let manager = ThreadManager::new();
    let barrier = Arc::new(Barrier::new(8));
    let inside = Arc::clone(&barrier);
    let group = manager.group("eight");
    group
        .spawn_n(8, ThreadOptions::named("one").stack_octets(64 * 1024), move |_| {
            inside.wait();
        })
        .unwrap();
    assert!(group.wait_for(TEST_TIMEOUT).expect("all are there, so all pass").is_clean());
    assert_eq!(barrier.waiting(), 0);
}

#[test]
fn a_manager_without_waits_does_not_fill_up() {
    let manager = ThreadManager::with_limit(2);
    for _ in 0..200 {
        let group = manager.spawn("short", |_| panic!("each of them")).unwrap();
        until("the end of a thread", || group.running() == 0);
    }
    let joined = manager.wait();
    assert_eq!((joined.panics.len(), joined.forgotten_panics), (64, 200 - 64));
}

#[test]
fn only_living_threads_count_towards_the_limit() {
    let manager = ThreadManager::with_limit(1);
    let gate = Arc::new(Semaphore::new(0));
    let inside = Arc::clone(&gate);
    let first = manager.spawn("first", move |_| inside.acquire().forget()).unwrap();
    let refused = manager.spawn("second", |_| ()).unwrap_err();
    assert_eq!(refused.to_string(), "the thread manager has reached its limit of 1 threads");
    let running = first.wait_for(Duration::from_millis(10)).unwrap_err();
    assert_eq!(running.to_string(), "still running: first");
    gate.post(1).unwrap();
    assert!(first.wait().is_clean());
    manager.spawn("third", |_| ()).unwrap();
}

#[test]
fn a_pause_lasts_its_time_or_until_cancelled() {
    let manager = ThreadManager::new();
    let first_is_over = Arc::new(Semaphore::new(0));
    let inside = Arc::clone(&first_is_over);
    let group = manager
        .spawn("pausing", move |context| {
            let (start, short) = (Instant::now(), Duration::from_millis(20));
            assert!(context.pause(short).is_ok());
            assert!(start.elapsed() >= short);
            inside.post(1).unwrap();
            assert!(context.pause(Duration::MAX).is_err());
        })
        .unwrap();
    assert!(first_is_over.acquire_for(TEST_TIMEOUT).is_some());
    group.cancel();
    assert!(group.wait_for(TEST_TIMEOUT).expect("ended long before its time").is_clean());
}

#[test]
fn threads_of_a_detached_manager_go_on() {
    let gate = Arc::new((Semaphore::new(0), Semaphore::new(0)));
    let inside = Arc::clone(&gate);
    let manager = ThreadManager::new();
    let group = manager
        .spawn("left", move |context| {
            inside.0.acquire().forget();
            assert!(!context.is_cancelled());
            inside.1.post(1).unwrap();
        })
        .unwrap();
    manager.detach();
    gate.0.post(1).unwrap();
    assert!(gate.1.acquire_for(TEST_TIMEOUT).is_some());
    assert!(group.wait().is_clean());
}

#[test]
fn an_unprivileged_priority_is_set() {
    let manager = ThreadManager::new();
    let group = manager.spawn(ThreadOptions::named("low").priority(Priority::Lowest), |_| ()).unwrap();
    assert!(group.wait().is_clean());
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use rustix::process::getpriority_process;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use spandrel_sync::atomic::{AtomicBool, Ordering};
    use spandrel_sync::{ProcessorShortage, WorkingThread, allowed_cpus};

    /// Runs a body in a managed thread and returns its result.
    fn in_thread<T: Send + 'static>(
        options: ThreadOptions,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, SpawnError> {
        let (manager, result) = (ThreadManager::new(), Arc::new(Mutex::new(None)));
        let place = Arc::clone(&result);
        let group = manager.spawn(options, move |_| *place.lock() = Some(body()))?;
        assert!(group.wait().is_clean());
        Ok(result.lock().take().expect("the body has run"))
    }

    /// A field of the calling thread's line in /proc (proc(5)), counted from one.
    fn own_stat(field: usize) -> i64 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = &line[line.rfind(')').unwrap() + 2..];
        after_name.split(' ').nth(field - 3).unwrap().parse().unwrap()
    }

    const POLICY: usize = 41;
    const REAL_TIME_PRIORITY: usize = 40;

    fn may_be_favoured() -> bool {
        capabilities(None).unwrap().effective.contains(CapabilitySet::SYS_NICE)
    }

    #[test]
    fn a_thread_has_its_affinity() {
        let all = allowed_cpus().unwrap();
        let last = *all.last().expect("some processor runs this");
        let kept = in_thread(ThreadOptions::named("kept").affinity([last]), || allowed_cpus().unwrap()).unwrap();
        assert_eq!(kept, [last]);
        assert_eq!(allowed_cpus().unwrap(), all, "the spawner is not");
    }

    #[test]
    fn a_thread_lacks_a_processor_until_it_has_computed() {
        let processor = [allowed_cpus().unwrap()[0]];
        let manager = ThreadManager::new();
        let computing = Arc::new((WorkingThread::none(), AtomicBool::new(false)));
        let (named, ends) = (Arc::clone(&computing), Arc::clone(&computing));
        let _group = manager.spawn(ThreadOptions::named("computes").affinity(processor), move |_| {
            named.0.record_current();
            while !named.1.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
        });
        // On the same processor: what this thread finds between two of its waits happened without the other one.
        in_thread(ThreadOptions::named("looks").affinity(processor), move || {
            let mut shortage = ProcessorShortage::default();
            until("two looks without a time slice between them", || {
                shortage = ProcessorShortage::default();
                let was_runnable = shortage.delays(&computing.0);
                was_runnable && shortage.delays(&computing.0)
            });
            until("the thread to compute", || !shortage.delays(&computing.0));
            assert!(!shortage.delays(&computing.0), "that is final");
            assert!(ProcessorShortage::default().delays(&computing.0), "it can run");
        })
        .unwrap();
        ends.1.store(true, Ordering::SeqCst);
        assert!(manager.wait().is_clean());
    }

    #[test]
    fn a_thread_that_waits_or_has_ended_lacks_no_processor() {
        assert!(!ProcessorShortage::default().delays(&WorkingThread::none()));
        let (thread, end) = (Arc::new(WorkingThread::none()), Arc::new(Semaphore::new(0)));
        let manager = ThreadManager::new();
        let (named, awaited) = (Arc::clone(&thread), Arc::clone(&end));
        let _group = manager.spawn("waits", move |_| {
            named.record_current();
            awaited.acquire().forget();
        });
        until("the thread to come to its wait", || end.waiting() == 1);
        until("the thread to wait", || !ProcessorShortage::default().delays(&thread));
        end.post(1).unwrap();
        assert!(manager.wait().is_clean());
        assert!(!ProcessorShortage::default().delays(&thread), "it has ended");
    }

    #[test]
    fn nonexistent_processors_are_refused() {
        let none = in_thread(ThreadOptions::named("nowhere").affinity([]), || ());
        assert!(matches!(none, Err(SpawnError::Affinity { .. })), "{none:?}");
        let beyond = in_thread(ThreadOptions::named("beyond").affinity([1_000_000]), || ());
        assert!(matches!(beyond, Err(SpawnError::NoSuchCpu { cpu: 1_000_000 })), "{beyond:?}");
    }

    #[test]
    fn a_nice_value_applies_to_one_thread() {
        let before = getpriority_process(None).unwrap();
        let nice =
            in_thread(ThreadOptions::named("nice").priority(Priority::Nice(7)), || getpriority_process(None).unwrap());
        assert_eq!(nice.unwrap(), 7);
        assert_eq!(getpriority_process(None).unwrap(), before);
        let wrong = in_thread(ThreadOptions::named("wrong").priority(Priority::Nice(20)), || ());
        assert!(matches!(wrong, Err(SpawnError::Priority { .. })), "{wrong:?}");
    }

    #[test]
    fn a_real_time_priority_is_set_or_needs_a_privilege() {
        for (priority, policy) in [(Priority::Fifo(3), 1), (Priority::RoundRobin(3), 2)] {
            let seen = in_thread(ThreadOptions::named("real-time").priority(priority), || {
                // The child of a real-time thread can be an ordinary thread.
                let child = ThreadOptions::named("ordinary").priority(Priority::Normal);
                (own_stat(POLICY), own_stat(REAL_TIME_PRIORITY), in_thread(child, || own_stat(POLICY)).unwrap())
            });
            match seen {
                Ok(seen) => assert_eq!(seen, (policy, 3, 0)),
                Err(SpawnError::NotPermitted { .. }) => assert!(!may_be_favoured(), "refused though privileged"),
                Err(other) => panic!("{other:?}"),
            }
        }
        let wrong = in_thread(ThreadOptions::named("wrong").priority(Priority::Fifo(100)), || ());
        assert!(matches!(wrong, Err(SpawnError::Priority { .. })), "{wrong:?}");
    }

    #[test]
    fn without_the_privilege_the_error_names_it_and_the_body_has_not_run() {
        // Capabilities belong to a thread, and children inherit their parent's: so this thread gives one up,
        // for itself only.
        let without = thread::spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_NICE);
            sets.permitted.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).unwrap();
            let ran = Arc::new(Mutex::new(false));
            let manager = ThreadManager::new();
            let group = manager.group("refused");
            for priority in [Priority::Fifo(99), Priority::Highest, Priority::RoundRobin(1), Priority::High] {
                let inside = Arc::clone(&ran);
                let spawned = group
                    .spawn(ThreadOptions::named("favoured").priority(priority), move |_| *inside.lock() = true)
                    .unwrap_err();
                assert!(matches!(spawned, SpawnError::NotPermitted { .. }), "{spawned:?}");
                assert!(spawned.to_string().contains("CAP_SYS_NICE"), "{spawned}");
            }
            let several = group.spawn_n(3, ThreadOptions::named("x").priority(Priority::Fifo(1)), |_| ());
            assert!(matches!(several, Err(SpawnError::NotPermitted { .. })), "{several:?}");
            assert_eq!(group.running(), 0);
            assert!(manager.wait().is_clean());
            assert!(!*ran.lock());
        });
        without.join().unwrap();
    }
}
