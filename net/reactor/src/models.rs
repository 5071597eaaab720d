//! Models of threads that share a reactor, over a simulated demultiplexer.
//!
//! The reactor is the real one; only the system is simulated. A lost wake-up, or a vacant leadership, leaves
//! every thread waiting, which the checker reports.

mod senders;
mod simulated;

use std::io;
use std::time::Duration;

use spandrel_ipc::{Interest, Pollable};
use spandrel_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use spandrel_sync::models::{below, check, one_in};
use spandrel_sync::{Arc, thread};

use crate::{CloseReason, Context, EventHandler, HandlerId, Options, Reactor, Registry, ThreadStrategy};
use simulated::{Endpoint, SimulatedDemultiplexer, System};

/// Never times out: only a hand-over ends it.
const FOR_EVER: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The state shared by all threads of one execution.
#[derive(Clone)]
struct Stage {
    reactor: Reactor,
    system: System,
    observed: Arc<Observations>,
}

#[derive(Default)]
struct Observations {
    opened: AtomicUsize,
    consumed: AtomicUsize,
    notices: AtomicUsize,
    closed: AtomicUsize,
    is_violated: AtomicBool,
}

impl Stage {
    fn new(strategy: ThreadStrategy, takeover_after: Duration) -> Self {
        let system = System::default();
        // Without a watcher, each thread has to find work by itself.
        let processors = if takeover_after == FOR_EVER { usize::MAX } else { 1 };
        let options = Options::default()
            .threads(strategy)
            .takeover_after(takeover_after)
            .processors(processors)
            .max_events_per_wait(2);
        let reactor =
            Reactor::over(&options, Box::new(SimulatedDemultiplexer::new(&system))).expect("nothing can fail");
        Self { reactor, system, observed: Arc::default() }
    }

    fn registry(&self) -> &Registry {
        self.reactor.registry()
    }

    /// A handler that takes one octet each time.
    fn reader(&self, number: usize) -> Reader {
        Reader {
            endpoint: Endpoint::new(number, &self.system),
            observed: Arc::clone(&self.observed),
            is_inside: AtomicBool::new(false),
            is_closed: false,
            on_input: Box::new(|_| {}),
        }
    }

    fn register(&self, reader: Reader) -> HandlerId {
        self.registry().register(reader, Interest::INPUT).expect("there is room")
    }

    /// Starts that many threads that run it until stopped.
    fn run(&self, threads: usize) -> Vec<thread::JoinHandle<()>> {
        let start = |_| {
            let reactor = self.reactor.clone();
            thread::spawn(move || reactor.run().expect("nothing can fail"))
        };
        (0..threads).map(start).collect()
    }

    /// Waits, without a clock.
    fn wait_until(&self, done: impl Fn(&Observations) -> bool) {
        self.system.wait_until(|| done(&self.observed));
    }

    fn end(self, runs: Vec<thread::JoinHandle<()>>, handlers: usize) {
        self.reactor.stop();
        runs.into_iter().for_each(|run| run.join().expect("no panic"));
        self.reactor.close();
        assert_eq!(self.observed.closed.load(Ordering::SeqCst), handlers, "each handler is closed once");
        assert!(
            !self.observed.is_violated.load(Ordering::SeqCst),
            "two threads in a handler, or one after its end, or called for nothing"
        );
    }
}

struct Reader {
    endpoint: Endpoint,
    observed: Arc<Observations>,
    is_inside: AtomicBool,
    is_closed: bool,
    on_input: Box<dyn FnMut(&Context<'_>) + Send>,
}

impl Reader {
    fn on_input(mut self, on_input: impl FnMut(&Context<'_>) + Send + 'static) -> Self {
        self.on_input = Box::new(on_input);
        self
    }

    /// Detects two threads in the handler at once, or one after it was closed.
    fn inside(&mut self, call: impl FnOnce(&mut Self)) -> io::Result<()> {
        if self.is_inside.swap(true, Ordering::SeqCst) || self.is_closed {
            self.observed.is_violated.store(true, Ordering::SeqCst);
        }
        thread::yield_now();
        call(self);
        self.is_inside.store(false, Ordering::SeqCst);
        self.endpoint.signal_change();
        Ok(())
    }
}

impl EventHandler for Reader {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.endpoint)
    }

    fn handle_open(&mut self, _cx: &Context<'_>) -> io::Result<()> {
        self.inside(|this| {
            this.observed.opened.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        self.inside(|this| {
            // No other thread takes them: a handler that is called without input would wait for ever if its
            // handle blocked.
            if this.endpoint.take() {
                this.observed.consumed.fetch_add(1, Ordering::SeqCst);
            } else {
                this.observed.is_violated.store(true, Ordering::SeqCst);
            }
            this.endpoint.signal_change();
            (this.on_input)(cx);
        })
    }

    fn handle_notice(&mut self, _cx: &Context<'_>, _notice: u64) -> io::Result<()> {
        self.inside(|this| {
            this.observed.notices.fetch_add(1, Ordering::SeqCst);
        })
    }

    fn handle_close(&mut self, _cx: &Context<'_>, reason: CloseReason) {
        let is_violated = matches!(reason, CloseReason::Failed(_) | CloseReason::Panicked(_));
        self.observed.is_violated.fetch_or(is_violated, Ordering::SeqCst);
        drop(self.inside(|this| {
            this.is_closed = true;
            this.observed.closed.fetch_add(1, Ordering::SeqCst);
        }));
    }
}

#[test]
fn every_octet_is_consumed_under_any_leader() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, Duration::from_millis(1));
        stage.register(stage.reader(0));
        stage.register(stage.reader(1));
        let runs = stage.run(3);
        for octets in [1, 2] {
            stage.system.send(0, octets);
            stage.system.send(1, 1);
        }
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 5);
        stage.end(runs, 2);
    });
}

/// One handler waits, inside of its call, for an effect of another: some follower must come to lead.
#[test]
fn a_long_dispatch_loses_the_leadership() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, Duration::from_millis(1));
        let others = stage.clone();
        // It took one octet itself.
        stage.register(
            stage
                .reader(0)
                .on_input(move |_| others.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) > 1)),
        );
        stage.register(stage.reader(1));
        let runs = stage.run(2);
        stage.system.send(0, 1);
        if one_in(2) {
            stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 1);
        }
        stage.system.send(1, 1);
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 2);
        stage.end(runs, 2);
    });
}

/// The same without a watching follower: the handler itself passes on the leadership.
#[test]
fn a_promoted_follower_leads() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let others = stage.clone();
        stage.register(stage.reader(0).on_input(move |cx| {
            cx.promote();
            others.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) > 1);
        }));
        stage.register(stage.reader(1));
        let runs = stage.run(2);
        stage.system.send(0, 1);
        stage.system.send(1, 1);
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 2);
        stage.end(runs, 2);
    });
}

/// A run ends after one of two events that were found together: another thread dispatches the other.
#[test]
fn a_run_that_ends_leaves_its_items_to_others() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        stage.register(stage.reader(0));
        stage.register(stage.reader(1));
        stage.system.send(0, 1);
        stage.system.send(1, 1);
        let conditional = {
            let stage = stage.clone();
            thread::spawn(move || {
                let has_consumed = || stage.observed.consumed.load(Ordering::SeqCst) > 0;
                assert!(stage.reactor.run_until(None, has_consumed).expect("nothing can fail"));
            })
        };
        let runs = stage.run(1);
        // Without the wake-up, the first run goes on only when it is told to check its condition.
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 2);
        stage.registry().wake();
        conditional.join().expect("no panic");
        stage.end(runs, 2);
    });
}

#[test]
fn no_notice_is_lost() {
    check(3000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let id = stage.register(stage.reader(0));
        let runs = stage.run(1 + below(2));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let registry = stage.registry().clone();
                thread::spawn(move || {
                    registry.notify(id, 1).expect("it is not removed");
                    registry.notify(id, 2).expect("it is not removed");
                })
            })
            .collect();
        stage.wait_until(|observed| observed.notices.load(Ordering::SeqCst) == 4);
        senders.into_iter().for_each(|sender| sender.join().expect("no panic"));
        stage.end(runs, 1);
    });
}

#[test]
fn a_wake_up_reaches_conditional_runs() {
    check(3000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let flags: Arc<[AtomicBool; 2]> = Arc::default();
        let runs: Vec<_> = (0..2)
            .map(|number| {
                let (reactor, flags) = (stage.reactor.clone(), Arc::clone(&flags));
                thread::spawn(move || {
                    let has_flag = reactor.run_until(None, || flags[number].load(Ordering::SeqCst));
                    assert!(has_flag.expect("nothing can fail"));
                })
            })
            .collect();
        for flag in flags.iter() {
            flag.store(true, Ordering::SeqCst);
            stage.registry().wake();
        }
        runs.into_iter().for_each(|run| run.join().expect("no panic"));
        stage.end(Vec::new(), 0);
    });
}

/// A handler that waits for the end of an outer one is called by an idle thread, and not inside of that one.
#[test]
fn a_nested_run_leaves_events_to_an_idle_thread() {
    check(4000, || {
        let stage =
            Stage::new(ThreadStrategy::LeaderFollowers, if one_in(2) { FOR_EVER } else { Duration::from_millis(1) });
        let flags: Arc<[AtomicBool; 3]> = Arc::default();
        let [begun, released, returned] = [0, 1, 2];
        let is_set = |flag: usize| {
            let flags = Arc::clone(&flags);
            move || flags[flag].load(Ordering::SeqCst)
        };
        let (outer, outer_flags, is_released) = (stage.clone(), Arc::clone(&flags), is_set(released));
        stage.register(stage.reader(0).on_input(move |_| {
            let set = |flag: usize| {
                outer_flags[flag].store(true, Ordering::SeqCst);
                outer.system.signal_change();
            };
            set(begun);
            assert!(outer.reactor.run_until(None, &is_released).expect("nothing can fail"));
            set(returned);
        }));
        let (inner, has_returned) = (stage.clone(), is_set(returned));
        stage.register(stage.reader(1).on_input(move |_| inner.system.wait_until(&has_returned)));
        let runs = stage.run(2);
        stage.system.send(0, 1);
        stage.system.wait_until(is_set(begun));
        while !stage.registry().core().leadership.is_nested_run_last() {
            thread::yield_now();
        }
        stage.system.send(1, 1);
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 2);
        flags[released].store(true, Ordering::SeqCst);
        stage.registry().wake();
        stage.system.wait_until(is_set(returned));
        stage.end(runs, 2);
    });
}

#[test]
fn stopping_wakes_all_threads() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let runs = stage.run(3);
        stage.end(runs, 0);
    });
}

#[test]
fn a_removed_handler_is_closed_once_and_never_called_again() {
    check(3000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, Duration::from_millis(1));
        let id = stage.register(stage.reader(0).on_input(|cx| {
            if one_in(3) {
                cx.close();
            }
        }));
        let runs = stage.run(2);
        let removers: Vec<_> = (0..2)
            .map(|number| {
                let stage = stage.clone();
                thread::spawn(move || {
                    stage.system.send(0, 1);
                    if number == 0 {
                        stage.registry().suspend(id);
                        stage.registry().resume(id);
                    }
                    stage.registry().remove(id)
                })
            })
            .collect();
        for remover in removers {
            remover.join().expect("no panic");
        }
        stage.wait_until(|observed| observed.closed.load(Ordering::SeqCst) == 1);
        // The slot has been reused.
        let new = stage.register(stage.reader(1));
        assert_ne!(id, new);
        assert!(!stage.registry().remove(id));
        let before = stage.observed.consumed.load(Ordering::SeqCst);
        stage.system.send(1, 1);
        stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) > before);
        stage.end(runs, 2);
    });
}

/// After any change to a handler during its call, its octets are consumed in the end.
#[test]
fn changes_during_a_call_take_effect() {
    check(3000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, Duration::from_millis(1));
        let id = stage.register(stage.reader(0));
        let runs = stage.run(2);
        let changer = {
            let stage = stage.clone();
            thread::spawn(move || {
                assert!(stage.registry().suspend(id));
                stage.registry().notify(id, 1).expect("it is not removed");
                assert!(stage.registry().resume(id));
                stage.registry().set_interest(id, Interest::NONE).expect("it is not removed");
                stage.registry().set_interest(id, Interest::INPUT).expect("it is not removed");
            })
        };
        stage.system.send(0, 2);
        changer.join().expect("no panic");
        stage.wait_until(|observed| {
            observed.consumed.load(Ordering::SeqCst) == 2 && observed.notices.load(Ordering::SeqCst) == 1
        });
        stage.end(runs, 1);
    });
}

#[test]
fn workers_finish_queued_items() {
    check(2000, || {
        let strategy = ThreadStrategy::HalfSyncHalfAsync { workers: 2, queue: 1 };
        let stage = Stage::new(strategy, FOR_EVER);
        stage.register(stage.reader(0));
        stage.register(stage.reader(1));
        let runs = stage.run(1);
        stage.system.send(0, 2);
        stage.system.send(1, 1);
        if one_in(2) {
            stage.wait_until(|observed| observed.consumed.load(Ordering::SeqCst) == 3);
        }
        let stopper = {
            let reactor = stage.reactor.clone();
            thread::spawn(move || reactor.close())
        };
        stopper.join().expect("no panic");
        stage.end(runs, 2);
    });
}

#[test]
fn a_handler_registered_while_others_lead_is_opened() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let runs = stage.run(2);
        let other = {
            let stage = stage.clone();
            thread::spawn(move || stage.register(stage.reader(0)))
        };
        stage.register(stage.reader(1));
        stage.system.send(0, 1);
        stage.wait_until(|observed| {
            observed.opened.load(Ordering::SeqCst) == 2 && observed.consumed.load(Ordering::SeqCst) == 1
        });
        other.join().expect("no panic");
        stage.end(runs, 2);
    });
}
