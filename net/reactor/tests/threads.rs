//! Several threads in one reactor, and other threads outside of it, over every back end.

use crate::scripted;

use std::io;
use std::time::Duration;

use scripted::{Log, NONE, Scripted, echo, pair, ping};
use spandrel_ipc::{Interest, Pollable, inet};
use spandrel_reactor::timer::{TestClock, TimerStrategy};
use spandrel_reactor::{
    Backend, CloseReason, Context, EventHandler, HandlerId, Options, Reactor, ThreadStrategy, TimerId,
};
use spandrel_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel_sync::{Arc, Mutex, thread};
use spandrel_test_support::{TEST_TIMEOUT, eventually};

const POOL: ThreadStrategy = ThreadStrategy::HalfSyncHalfAsync { workers: 3, queue: 4 };

/// A reactor with its own threads, until dropped.
struct Running {
    reactor: Reactor,
    threads: Vec<thread::JoinHandle<io::Result<()>>>,
}

impl Running {
    fn new(backend: Backend, strategy: ThreadStrategy, threads: usize) -> Self {
        Self::with(&Options::default().backend(backend).threads(strategy).max_events_per_wait(8), threads)
    }

    fn with(options: &Options, threads: usize) -> Self {
        let reactor = Reactor::with(options).expect("a reactor");
        let start = |_| {
            let reactor = reactor.clone();
            thread::spawn(move || reactor.run())
        };
        Self { threads: (0..threads).map(start).collect(), reactor }
    }

    fn register(&self, handler: Scripted, interest: Interest) -> HandlerId {
        self.reactor.registry().register(handler, interest).expect("registered")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reactor.stop();
        for thread in self.threads.drain(..) {
            let result = thread.join();
            if !std::thread::panicking() {
                result.expect("no panic").expect("runs");
            }
        }
    }
}

fn everywhere(test: impl Fn(Running)) {
    for backend in Backend::available() {
        for (strategy, threads) in [(ThreadStrategy::LeaderFollowers, 4), (POOL, 1)] {
            eprintln!("{backend}, {strategy:?}");
            test(Running::new(backend, strategy, threads));
        }
    }
}

/// An echo that detects two threads in it.
fn exclusive(log: &Log, stream: inet::Stream) -> Scripted {
    let inside = AtomicBool::new(false);
    Scripted::new("a", log).over(stream).input(move |_, stream| {
        assert!(!inside.swap(true, Ordering::SeqCst), "two threads are in one handler");
        let result = echo(stream);
        inside.store(false, Ordering::SeqCst);
        result
    })
}

#[test]
fn many_connections_at_once_and_no_handler_is_entered_twice() {
    everywhere(|running| {
        let log = Log::default();
        let clients: Vec<_> = (0..8_u8)
            .map(|number| {
                let (near, far) = pair();
                running.register(exclusive(&log, far), Interest::INPUT);
                thread::spawn(move || (0..100).for_each(|_| ping(&near, &[number; 33])))
            })
            .collect();
        clients.into_iter().for_each(|client| client.join().expect("all was echoed"));
        eventually(|| running.reactor.registry().is_empty());
        let closes: Vec<_> = log.take().into_iter().filter(|line| line.starts_with("a close")).collect();
        assert_eq!(closes, ["a close: failed: unexpected end of file"; 8]);
    });
}

/// Octets keep arriving while the handler is busy with earlier ones.
#[test]
fn one_connection_with_continuous_input() {
    everywhere(|running| {
        let log = Log::default();
        let (near, far) = pair();
        running.register(exclusive(&log, far), Interest::INPUT);
        let near = Arc::new(near);
        let sender = {
            let near = Arc::clone(&near);
            thread::spawn(move || (0..2000).for_each(|_| near.send_n(&[7; 9]).expect("sent")))
        };
        let mut octets = vec![0; 2000 * 9];
        near.recv_n(&mut octets).expect("all is echoed");
        sender.join().expect("no panic");
        assert!(octets.iter().all(|octet| *octet == 7));
    });
}

/// A long handler delays no other for longer than the takeover time.
#[test]
fn a_long_dispatch_loses_the_leadership() {
    everywhere(|running| {
        let log = Log::default();
        let (near, far) = pair();
        let (other_near, other_far) = pair();
        let observed_log = log.clone();
        let slow = Scripted::new("slow", &log).over(far).input(move |_, stream| {
            eventually(|| observed_log.has("quick input"));
            echo(stream)
        });
        running.register(slow, Interest::INPUT);
        running.register(Scripted::new("quick", &log).over(other_far), Interest::INPUT);
        near.send_n(b"x").expect("sent");
        eventually(|| log.has("slow input"));
        ping(&other_near, b"y");
        near.recv_n(&mut [0]).expect("echoed");
    });
}

#[test]
fn a_handler_passes_on_the_leadership() {
    for backend in Backend::available() {
        // With a takeover time so long that only the handler itself can let another lead in time.
        let options = Options::default().backend(backend).takeover_after(TEST_TIMEOUT * 100);
        let reactor = Reactor::with(&options).expect("a reactor");
        let runs: Vec<_> = (0..2)
            .map(|_| {
                let reactor = reactor.clone();
                thread::spawn(move || reactor.run())
            })
            .collect();
        let log = Log::default();
        let (near, far) = pair();
        let (other_near, other_far) = pair();
        let observed_log = log.clone();
        let slow = Scripted::new("slow", &log).over(far).input(move |cx, stream| {
            cx.promote();
            eventually(|| observed_log.has("quick input"));
            echo(stream)
        });
        reactor.registry().register(slow, Interest::INPUT).expect("registered");
        reactor.registry().register(Scripted::new("quick", &log).over(other_far), Interest::INPUT).expect("registered");
        near.send_n(b"x").expect("sent");
        eventually(|| log.has("slow input"));
        ping(&other_near, b"y");
        near.recv_n(&mut [0]).expect("echoed");
        reactor.stop();
        runs.into_iter().for_each(|run| run.join().expect("no panic").expect("runs"));
    }
}

/// Removing a handler does not wait for it, and the thread that is in it closes it.
#[test]
fn a_handler_is_removed_while_it_runs() {
    everywhere(|running| {
        let registry = running.reactor.registry();
        let log = Log::default();
        let (near, far) = pair();
        let goes_on = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&goes_on);
        let handler = Scripted::new("a", &log).over(far).input(move |cx, _| {
            eventually(|| gate.load(Ordering::SeqCst));
            assert!(!cx.contains(cx.id()));
            Ok(())
        });
        let id = running.register(handler, Interest::INPUT);
        near.send_n(b"x").expect("sent");
        eventually(|| log.has("a input"));
        assert!(registry.remove(id), "it does not wait for the handler");
        assert!(!log.has("a close: closed by this side"));
        assert!(!registry.suspend(id) && !registry.remove(id));
        goes_on.store(true, Ordering::SeqCst);
        eventually(|| log.has("a close: closed by this side"));
    });
}

/// Two handlers that remove each other, both running.
#[test]
fn handlers_remove_each_other() {
    everywhere(|running| {
        let log = Log::default();
        let ids: Arc<Mutex<Vec<HandlerId>>> = Arc::default();
        let both = Arc::new(AtomicUsize::new(0));
        let mut near = Vec::new();
        for number in 0..2 {
            let (one, far) = pair();
            let (ids_seen, inside) = (Arc::clone(&ids), Arc::clone(&both));
            let handler = Scripted::new("a", &log).over(far).input(move |cx, _| {
                inside.fetch_add(1, Ordering::SeqCst);
                eventually(|| inside.load(Ordering::SeqCst) >= 2);
                let other = ids_seen.lock()[1 - number];
                cx.remove(other);
                Ok(())
            });
            ids.lock().push(running.register(handler, Interest::INPUT));
            near.push(one);
        }
        near.iter().for_each(|one| one.send_n(b"x").expect("sent"));
        eventually(|| log.count("a close: closed by this side") == 2);
        eventually(|| running.reactor.registry().is_empty());
    });
}

#[test]
fn changes_to_a_running_handler_take_effect_when_it_returns() {
    everywhere(|running| {
        let registry = running.reactor.registry();
        let log = Log::default();
        let (near, far) = pair();
        let goes_on = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&goes_on);
        let handler = Scripted::new("a", &log).over(far).input(move |_, stream| {
            eventually(|| gate.load(Ordering::SeqCst));
            stream.try_recv(&mut [0]).map(drop)
        });
        let id = running.register(handler, Interest::INPUT);
        near.send_n(b"xy").expect("sent");
        eventually(|| log.has("a input"));
        assert!(registry.suspend(id));
        registry.notify(id, 1).expect("accepted");
        registry.schedule(id, Duration::from_millis(1), None, 2).expect("room");
        goes_on.store(true, Ordering::SeqCst);
        eventually(|| log.has("a notice 1") && log.has("a timeout 2"));
        assert_eq!(log.count("a input"), 1, "it is suspended, and one octet is left");
        assert!(registry.resume(id));
        eventually(|| log.count("a input") == 2);
    });
}

/// Notices for a busy handler wait for it, in order, and do not keep the reactor from others.
#[test]
fn notices_wait_for_a_busy_handler() {
    everywhere(|running| {
        let registry = running.reactor.registry();
        let log = Log::default();
        let goes_on = Arc::new(AtomicBool::new(false));
        let gate = Arc::clone(&goes_on);
        let busy = Scripted::new("busy", &log).notice(move |_, _| {
            eventually(|| gate.load(Ordering::SeqCst));
            Ok(())
        });
        let busy = running.register(busy, NONE);
        let other = running.register(Scripted::new("other", &log), NONE);
        for notice in 0..50 {
            registry.notify(busy, notice).expect("accepted");
        }
        eventually(|| log.has("busy notice 0"));
        registry.notify(other, 99).expect("accepted");
        eventually(|| log.has("other notice 99"));
        assert!(!log.has("busy notice 1"));
        goes_on.store(true, Ordering::SeqCst);
        eventually(|| log.has("busy notice 49"));
        let delivered: Vec<_> = log.take().into_iter().filter(|line| line.starts_with("busy notice")).collect();
        let sent: Vec<_> = (0..50).map(|notice| format!("busy notice {notice}")).collect();
        assert_eq!(delivered, sent);
    });
}

/// The leadership is taken over, and regained, by threads that leave and join.
#[test]
fn threads_come_and_go() {
    for backend in Backend::available() {
        let reactor = Reactor::with(&Options::default().backend(backend)).expect("a reactor");
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register(exclusive(&log, far), Interest::INPUT).expect("registered");
        let is_over = Arc::new(AtomicBool::new(false));
        let runs: Vec<_> = (0..4)
            .map(|number| {
                let (reactor, is_over) = (reactor.clone(), Arc::clone(&is_over));
                thread::spawn(move || {
                    while !is_over.load(Ordering::SeqCst) {
                        if number % 2 == 0 {
                            reactor.run_once(Some(Duration::from_micros(300))).expect("runs");
                        } else {
                            reactor.run_for(Duration::from_micros(700)).expect("runs");
                        }
                    }
                })
            })
            .collect();
        (0..300).for_each(|_| ping(&near, b"abc"));
        is_over.store(true, Ordering::SeqCst);
        runs.into_iter().for_each(|run| run.join().expect("no panic"));
    }
}

/// A follower whose condition another thread makes true.
#[test]
fn run_until_ends_whichever_thread_makes_it_true() {
    for backend in Backend::available() {
        let reactor = Reactor::with(&Options::default().backend(backend)).expect("a reactor");
        let start = spandrel_sync::time::Instant::now();
        let flags: Arc<[AtomicBool; 3]> = Arc::default();
        let runs: Vec<_> = (0..3)
            .map(|number| {
                let (reactor, flags) = (reactor.clone(), Arc::clone(&flags));
                thread::spawn(move || reactor.run_until(Some(TEST_TIMEOUT), || flags[number].load(Ordering::SeqCst)))
            })
            .collect();
        for flag in flags.iter() {
            flag.store(true, Ordering::SeqCst);
            reactor.registry().wake();
        }
        runs.into_iter().for_each(|run| assert!(run.join().expect("no panic").expect("runs")));
        assert!(start.elapsed() < TEST_TIMEOUT, "it was not notified, but timed out");
    }
}

#[test]
fn a_reactive_reactor_has_one_thread() {
    let reactor = Reactor::with(&Options::default().threads(ThreadStrategy::Reactive)).expect("a reactor");
    let log = Log::default();
    let other = reactor.clone();
    let handler = Scripted::new("a", &log).open(move |_, ()| {
        let elsewhere = other.clone();
        let refused = thread::spawn(move || elsewhere.run().map_err(|error| error.kind())).join().expect("no panic");
        assert_eq!(refused, Err(io::ErrorKind::ResourceBusy));
        other.run_once(Some(Duration::ZERO)).expect("the same thread may run it inside");
        Ok(())
    });
    reactor.registry().register(handler, NONE).expect("registered");
    scripted::run_until(&reactor, || log.has("a open"));
    assert_eq!(log.take(), ["a open"]);
}

/// The thread in `run` waits, and the workers dispatch.
#[test]
fn half_sync_half_async_dispatches_in_its_workers() {
    for backend in Backend::available() {
        let running = Running::new(backend, POOL, 1);
        let log = Log::default();
        let (near, far) = pair();
        let log_copy = log.clone();
        let handler = Scripted::new("a", &log).over(far).input(move |_, stream| {
            log_copy.note(std::thread::current().name().unwrap_or_default());
            echo(stream)
        });
        running.register(handler, Interest::INPUT);
        ping(&near, b"x");
        assert!(log.lines().iter().any(|line| line.starts_with("spandrel-work-")), "{:?}", log.lines());
    }
}

/// However many handlers are ready, the queue between the halves stays within its limit, and all are served.
#[test]
fn half_sync_half_async_with_a_short_queue() {
    for backend in Backend::available() {
        let strategy = ThreadStrategy::HalfSyncHalfAsync { workers: 1, queue: 1 };
        let running = Running::new(backend, strategy, 1);
        let log = Log::default();
        let near: Vec<_> = (0..10)
            .map(|_| {
                let (near, far) = pair();
                running.register(exclusive(&log, far), Interest::INPUT);
                near
            })
            .collect();
        for _ in 0..20 {
            near.iter().for_each(|one| one.send_n(b"x").expect("sent"));
            near.iter().for_each(|one| one.recv_n(&mut [0]).expect("echoed"));
        }
        running.reactor.close();
        eventually(|| running.reactor.registry().is_empty());
        assert_eq!(log.count("a close: the reactor was closed"), 10);
    }
}

/// Echoes each octet; at a `(` it passes its handle to another handler of its kind, and runs the reactor
/// inside of itself until a `)` has come.
struct Nesting {
    stream: Arc<inet::Stream>,
    reactor: Reactor,
    open: Arc<AtomicUsize>,
    log: Log,
}

impl EventHandler for Nesting {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&*self.stream)
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let mut octet = [0];
        if self.stream.recv(&mut octet)? == 0 {
            cx.close();
            return Ok(());
        }
        match octet[0] {
            b'(' => {
                let depth = self.open.fetch_add(1, Ordering::SeqCst);
                assert!(cx.detach(cx.id()));
                assert!(!cx.detach(cx.id()), "once is enough");
                let Self { stream, reactor, open, log } = self;
                let next = Nesting {
                    stream: Arc::clone(stream),
                    reactor: reactor.clone(),
                    open: Arc::clone(open),
                    log: log.clone(),
                };
                cx.register(next, Interest::INPUT)?;
                assert!(reactor.run_until(Some(TEST_TIMEOUT), || open.load(Ordering::SeqCst) == depth)?);
            }
            b')' => drop(self.open.fetch_sub(1, Ordering::SeqCst)),
            _ => {}
        }
        Ok(self.stream.send_n(&octet)?)
    }

    fn handle_close(&mut self, _cx: &Context<'_>, reason: CloseReason) {
        self.log.note(format!("closed: {reason}"));
    }
}

#[test]
fn a_running_handler_passes_its_handle_to_another() {
    for backend in Backend::available() {
        let running = Running::new(backend, ThreadStrategy::LeaderFollowers, 1);
        let (near, far) = pair();
        let log = Log::default();
        let handler =
            Nesting { stream: Arc::new(far), reactor: running.reactor.clone(), open: Arc::default(), log: log.clone() };
        running.reactor.registry().register(handler, Interest::INPUT).expect("registered");
        for round in 1..=3 {
            near.send_n(b"x(y(z))").expect("sent");
            let mut echoed = [0; 7];
            near.recv_n(&mut echoed).expect("echoed");
            // The innermost returns first.
            assert_eq!(&echoed, b"xyz)()(", "{backend}");
            eventually(|| log.count("closed: closed by this side") == 2 * round);
        }
        assert_eq!(running.reactor.registry().len(), 1);
        drop(near);
        eventually(|| running.reactor.registry().is_empty());
        assert_eq!(log.count("closed: closed by this side"), 7);
    }
}

/// The time in which timers become due together.
const DUE: Duration = Duration::from_millis(10);

/// Timers that are due in the same round: all are taken from the queue before the first handler is called.
#[test]
fn timers_that_are_due_can_be_cancelled_and_rescheduled_until_their_calls() {
    let strategies = [(ThreadStrategy::Reactive, 1), (ThreadStrategy::LeaderFollowers, 4), (POOL, 1)];
    for (strategy, threads) in strategies {
        for queue in [TimerStrategy::Heap, TimerStrategy::Wheel, TimerStrategy::HashedWheel, TimerStrategy::List] {
            eprintln!("{strategy:?}, {queue:?}");
            let clock = Arc::new(TestClock::new());
            let options = Options::default().threads(strategy).timers(queue).clock(Arc::clone(&clock) as _);
            let running = Running::with(&options, threads);
            let registry = running.reactor.registry();
            let advance = |span| {
                clock.advance(span);
                registry.wake();
            };
            let (log, timers) = (Log::default(), Arc::new(Mutex::new(Vec::<TimerId>::new())));
            // The first call cancels all timers; two of them are periodic.
            let (noted, shared) = (log.clone(), Arc::clone(&timers));
            let first = running.register(
                Scripted::new("a", &log).timeout(move |cx, expired| {
                    let cancelled = shared.lock().iter().filter(|id| cx.cancel(**id)).count();
                    noted.note(format!("{cancelled} others, periodic {}", expired.argument));
                    Ok(())
                }),
                NONE,
            );
            for argument in [0, 1, 0, 1] {
                let interval = (argument == 1).then_some(DUE);
                timers.lock().push(registry.schedule(first, DUE, interval, argument).expect("room"));
            }
            advance(2 * DUE);
            eventually(|| log.lines().iter().any(|line| line.contains("others")));
            advance(5 * DUE);

            // The first call gives the other timers a new time.
            timers.lock().clear();
            let (noted, shared) = (log.clone(), Arc::clone(&timers));
            let second = running.register(
                Scripted::new("b", &log).timeout(move |cx, expired| {
                    let others = shared.lock().clone();
                    let moved = others.iter().filter(|id| cx.reschedule(**id, 10 * DUE, None)).count();
                    noted.note(format!("at {}: {moved} moved", expired.argument));
                    Ok(())
                }),
                NONE,
            );
            for _ in 0..3 {
                timers.lock().push(registry.schedule(second, DUE, None, 7).expect("room"));
            }
            advance(2 * DUE);
            eventually(|| log.has("at 7: 2 moved"));
            advance(5 * DUE);
            let last = registry.schedule(second, Duration::ZERO, None, 8).expect("room");
            advance(DUE); // a tick of the wheels
            eventually(|| log.has("at 8: 2 moved"));
            assert!(!registry.cancel(last), "it was called");
            let lines = log.lines();
            let cancelled = lines.iter().filter(|line| line.contains("others")).collect::<Vec<_>>();
            let is_right =
                |line: &&String| line.starts_with("3 others, periodic 0") || line.starts_with("4 others, periodic 1");
            assert!(cancelled.len() == 1 && cancelled.iter().all(is_right), "{lines:?}");
            assert_eq!(lines.iter().filter(|line| *line == "b timeout 7").count(), 1, "{lines:?}");
            // Those that were moved are called at their new time, once.
            timers.lock().clear();
            advance(20 * DUE);
            eventually(|| log.count("b timeout 7") == 3);
        }
    }
}

#[test]
fn a_timer_that_another_handler_has_cancelled_is_not_called() {
    for (strategy, threads) in [(ThreadStrategy::Reactive, 1), (ThreadStrategy::LeaderFollowers, 4), (POOL, 1)] {
        let clock = Arc::new(TestClock::new());
        let options = Options::default().threads(strategy).clock(Arc::clone(&clock) as _);
        let running = Running::with(&options, threads);
        let registry = running.reactor.registry();
        for round in 0..50 {
            // Each cancels the other's timer: either the other has been called, or it never is.
            let (log, timers) = (Log::default(), Arc::new(Mutex::new([None::<TimerId>; 2])));
            let handlers = [0, 1].map(|own: usize| {
                let (noted, shared) = (log.clone(), Arc::clone(&timers));
                let handler = Scripted::new("a", &log).timeout(move |cx, _| {
                    let other = shared.lock()[1 - own];
                    noted.note(if other.is_some_and(|other| cx.cancel(other)) { "cancelled" } else { "late" });
                    Ok(())
                });
                running.register(handler, NONE)
            });
            let interval = (round % 2 == 1).then_some(DUE * 1_000);
            let ids = handlers.map(|handler| registry.schedule(handler, DUE, interval, 0).expect("room"));
            *timers.lock() = ids.map(Some);
            clock.advance(2 * DUE);
            registry.wake();
            eventually(|| {
                let (cancelled, late) = (log.count("cancelled"), log.count("late"));
                cancelled + late > 0 && cancelled + late == log.count("a timeout 0")
            });
            handlers.into_iter().for_each(|handler| _ = registry.remove(handler));
            let (cancelled, calls) = (log.count("cancelled"), log.count("a timeout 0"));
            if strategy == ThreadStrategy::Reactive {
                assert_eq!((cancelled, calls), (1, 1), "{interval:?}: {:?}", log.lines());
            } else if interval.is_none() {
                assert!(cancelled == 0 || calls == 1, "{:?}", log.lines());
            }
        }
    }
}

#[test]
fn a_condition_that_holds_only_for_a_moment_ends_the_run() {
    let reactor = Reactor::new().unwrap();
    let mut checks = 0;
    let mut holds_once = || {
        checks += 1;
        checks == 1
    };
    assert!(reactor.run_until(Some(TEST_TIMEOUT), &mut holds_once).unwrap());
    assert_eq!(checks, 1);
    assert!(!reactor.run_until(Some(Duration::ZERO), || false).unwrap());
}
