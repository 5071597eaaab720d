//! The contract of a reactor, the same over every back end of this system.

use crate::scripted;

use std::io;
use std::time::Duration;

use scripted::{Log, NONE, Scripted, pair, ping, reactor, run_until};
use spandrel_ipc::{Interest, inet};
use spandrel_reactor::{Backend, Options, Reactor, Trigger};
use spandrel_sync::atomic::{AtomicUsize, Ordering};
use spandrel_sync::{Arc, thread};
use spandrel_test_support::{TEST_TIMEOUT, eventually};

/// One module per test, one test per back end.
macro_rules! suite {
    ($($(#[$when:meta])* $name:ident)*) => { $(
        $(#[$when])*
        mod $name {
            use super::*;
            #[test]
            fn over_every_back_end() {
                for backend in Backend::available() {
                    eprintln!("{}: {backend}", stringify!($name));
                    super::cases::$name(backend);
                }
            }
        }
    )* };
}

suite! {
    echo
    handlers_are_opened_first_and_closed_last
    unread_input_is_reported_again
    remove_from_outside_and_from_inside
    removed_in_the_same_round_is_not_called
    stale_ids_do_nothing
    suspended_handlers_are_not_called
    interest_changes
    output_before_input
    errors_close_one_handler
    panics_close_one_handler
    would_block_closes_nothing
    unhandled_events_close_the_handler
    end_of_stream_is_input
    notices_in_order
    notices_wake
    jobs_run_in_the_reactor
    jobs_come_before_a_look_at_the_handles
    notices_are_limited
    handlers_are_limited
    a_handle_has_one_handler
    timers_fire
    intervals_fire
    cancelled_timers_do_not_fire
    a_sooner_timer_shortens_the_wait
    stop_ends_all_runs
    close_calls_every_handler
    a_closed_reactor_takes_nothing
    one_shot_is_reported_once
    #[cfg(unix)]
    edge_is_reported_once_each_time
    registered_from_a_handler_is_opened_at_once
    runs_inside_of_a_handler
    busy_handlers_take_turns
    a_replaced_handle_is_waited_for
    slots_are_reused
    hidden_readiness_can_be_marked
}

mod cases {
    use super::*;

    pub(crate) fn echo(backend: Backend) {
        let reactor = reactor(backend);
        assert_eq!(reactor.registry().backend(), backend);
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
        let client = thread::spawn(move || (0..100_u8).for_each(|n| ping(&near, &[n; 17])));
        run_until(&reactor, || log.lines().iter().any(|line| line.starts_with("a close")));
        client.join().expect("all was echoed");
        assert!(log.count("a input") >= 101, "each message, and the end");
    }

    pub(crate) fn handlers_are_opened_first_and_closed_last(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        near.send_n(b"before it is registered").expect("sent");
        let id = reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
        assert_eq!(log.take(), [""; 0], "no thread runs the reactor");
        run_until(&reactor, || log.has("a input"));
        assert!(reactor.registry().remove(id));
        let lines = log.take();
        assert_eq!(lines.first().map(String::as_str), Some("a open"));
        assert_eq!(lines.last().map(String::as_str), Some("a close: closed by this side"));
        assert_eq!(lines.iter().filter(|line| *line == "a open").count(), 1);
    }

    pub(crate) fn unread_input_is_reported_again(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| stream.try_recv(&mut [0]).map(drop));
        reactor.registry().register(handler, Interest::INPUT).expect("registered");
        near.send_n(b"abc").expect("sent");
        run_until(&reactor, || log.count("a input") == 3);
    }

    pub(crate) fn remove_from_outside_and_from_inside(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|cx, stream| {
            assert_eq!(stream.try_recv(&mut [0; 8])?, 1);
            cx.close();
            assert!(!cx.contains(cx.id()), "it counts as removed");
            assert!(!cx.remove(cx.id()), "once is enough");
            Ok(())
        });
        let id = reactor.registry().register(handler, Interest::INPUT).expect("registered");
        near.send_n(b"x").expect("sent");
        run_until(&reactor, || log.has("a close: closed by this side"));
        assert_eq!(log.take(), ["a open", "a input", "a close: closed by this side"]);
        assert!(!reactor.registry().remove(id));
        assert!(reactor.registry().is_empty());
        assert_eq!(near.recv(&mut [0; 8]).expect("the end"), 0, "its stream is closed");
    }

    pub(crate) fn removed_in_the_same_round_is_not_called(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let ids = Arc::new(spandrel_sync::Mutex::new(Vec::new()));
        let mut near = Vec::new();
        for _ in 0..2 {
            let (one, far) = pair();
            let others = Arc::clone(&ids);
            let handler = Scripted::new("a", &log).over(far).input(move |cx, _| {
                others.lock().iter().filter(|id| **id != cx.id()).for_each(|id| assert!(cx.remove(*id)));
                cx.suspend(cx.id());
                Ok(())
            });
            ids.lock().push(reactor.registry().register(handler, Interest::INPUT).expect("registered"));
            near.push(one);
        }
        run_until(&reactor, || log.count("a open") == 2);
        near.iter().for_each(|one| one.send_n(b"x").expect("sent"));
        run_until(&reactor, || log.has("a close: closed by this side"));
        while reactor.run_once(Some(Duration::ZERO)).expect("runs") > 0 {}
        assert_eq!(log.count("a input"), 1, "the first removes the other");
    }

    pub(crate) fn stale_ids_do_nothing(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let old = registry.register(Scripted::new("old", &log), NONE).expect("registered");
        assert!(registry.remove(old));
        let new = registry.register(Scripted::new("new", &log), NONE).expect("registered");
        assert_ne!(old, new, "the slot is the same, the generation is not");
        assert!(!registry.remove(old) && !registry.suspend(old) && !registry.resume(old));
        let kind = |result: io::Result<()>| result.map_err(|error| error.kind());
        assert_eq!(kind(registry.set_interest(old, Interest::INPUT)), Err(io::ErrorKind::NotFound));
        assert_eq!(kind(registry.notify(old, 1)), Err(io::ErrorKind::NotFound));
        assert_eq!(kind(registry.schedule(old, TEST_TIMEOUT, None, 1).map(drop)), Err(io::ErrorKind::NotFound));
        assert!(registry.contains(new));
        assert_eq!(registry.len(), 1);
    }

    pub(crate) fn suspended_handlers_are_not_called(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let id = reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
        run_until(&reactor, || log.has("a open"));
        assert!(reactor.registry().suspend(id));
        near.send_n(b"x").expect("sent");
        drop(near);
        reactor.registry().notify(id, 7).expect("accepted");
        run_until(&reactor, || log.has("a notice 7"));
        reactor.run_for(Duration::from_millis(20)).expect("runs");
        assert_eq!(log.count("a input"), 0, "not even for the end of the stream");
        assert!(reactor.registry().resume(id));
        run_until(&reactor, || log.has("a input"));
    }

    pub(crate) fn interest_changes(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).output(|cx, ()| {
            cx.set_interest(Interest::INPUT);
            Ok(())
        });
        let id = reactor.registry().register(handler, NONE).expect("registered");
        near.send_n(b"x").expect("sent");
        run_until(&reactor, || log.has("a open"));
        reactor.run_for(Duration::from_millis(5)).expect("runs");
        assert_eq!(log.take(), ["a open"]);
        reactor.registry().set_interest(id, Interest::OUTPUT).expect("a live handler");
        run_until(&reactor, || log.has("a input"));
        assert_eq!(log.take(), ["a output", "a input"], "once, and then what it asked for");
    }

    pub(crate) fn output_before_input(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        near.send_n(b"x").expect("sent");
        spandrel_ipc::wait_ready(&far, Interest::INPUT, Some(TEST_TIMEOUT)).expect("it arrives");
        let handler = Scripted::new("a", &log).over(far).input(|cx, _| {
            cx.close();
            Ok(())
        });
        reactor.registry().register(handler, Interest::INPUT | Interest::OUTPUT).expect("registered");
        run_until(&reactor, || log.has("a close: closed by this side"));
        assert_eq!(log.take(), ["a open", "a output", "a input", "a close: closed by this side"]);
    }

    pub(crate) fn errors_close_one_handler(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let (other_near, other_far) = pair();
        let failing = Scripted::new("a", &log).over(far).input(|_, _| Err(io::Error::other("had enough")));
        reactor.registry().register(failing, Interest::INPUT).expect("registered");
        reactor.registry().register(Scripted::new("b", &log).over(other_far), Interest::INPUT).expect("registered");
        near.send_n(b"x").expect("sent");
        run_until(&reactor, || log.has("a close: failed: had enough"));
        other_near.send_n(b"x").expect("sent");
        run_until(&reactor, || log.has("b input"));
        assert_eq!(reactor.registry().len(), 1);
    }

    pub(crate) fn panics_close_one_handler(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let failing = Scripted::new("a", &log).over(far).input(|_, _| panic!("on purpose {}", 1));
        let opening = Scripted::new("b", &log).open(|_, ()| panic!("on purpose 2"));
        let other = reactor.registry().register(Scripted::new("c", &log), NONE).expect("registered");
        reactor.registry().register(failing, Interest::INPUT).expect("registered");
        reactor.registry().register(opening, NONE).expect("registered");
        near.send_n(b"x").expect("sent");
        run_until(&reactor, || {
            log.has("a close: panicked: on purpose 1") && log.has("b close: panicked: on purpose 2")
        });
        reactor.registry().execute(|_| panic!("on purpose 3")).expect("accepted");
        reactor.registry().notify(other, 3).expect("accepted");
        run_until(&reactor, || log.has("c notice 3"));
        assert_eq!(reactor.registry().len(), 1);
    }

    pub(crate) fn would_block_closes_nothing(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| {
            loop {
                stream.try_recv(&mut [0; 16])?;
            }
        });
        reactor.registry().register(handler, Interest::INPUT).expect("registered");
        for count in 1..4 {
            near.send_n(b"x").expect("sent");
            run_until(&reactor, || log.count("a input") == count);
        }
        assert_eq!(reactor.registry().len(), 1);
    }

    pub(crate) fn unhandled_events_close_the_handler(backend: Backend) {
        struct Bare(inet::Stream, Log);
        impl spandrel_reactor::EventHandler for Bare {
            fn pollable(&self) -> Option<&dyn spandrel_ipc::Pollable> {
                Some(&self.0)
            }
            fn handle_close(&mut self, _: &spandrel_reactor::Context<'_>, reason: spandrel_reactor::CloseReason) {
                self.1.note(reason.to_string());
            }
        }
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register(Bare(far, log.clone()), Interest::INPUT).expect("registered");
        near.send_n(b"x").expect("sent");
        run_until(&reactor, || !log.lines().is_empty());
        assert_eq!(log.take(), ["failed: the handler does not handle input"]);
    }

    pub(crate) fn end_of_stream_is_input(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
        near.close_writer().expect("half-closed");
        run_until(&reactor, || log.has("a close: failed: unexpected end of file"));
    }

    pub(crate) fn notices_in_order(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let handler = Scripted::new("a", &log).notice(|cx, notice| {
            if notice == 0 { (1..=300).try_for_each(|next| cx.notify(cx.id(), next)) } else { Ok(()) }
        });
        let id = reactor.registry().register(handler, NONE).expect("registered");
        reactor.registry().notify(id, 0).expect("accepted");
        run_until(&reactor, || log.has("a notice 300"));
        let wanted: Vec<_> =
            std::iter::once("a open".into()).chain((0..=300).map(|notice| format!("a notice {notice}"))).collect();
        assert_eq!(log.take(), wanted);
    }

    pub(crate) fn notices_wake(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let id = reactor.registry().register(Scripted::new("a", &log), NONE).expect("registered");
        let (registry, observed_log) = (reactor.registry().clone(), log.clone());
        let notifier = thread::spawn(move || {
            for notice in 0..100 {
                registry.notify(id, notice).expect("accepted");
                eventually(|| observed_log.has(&format!("a notice {notice}")));
            }
            registry.stop();
        });
        reactor.run().expect("runs");
        notifier.join().expect("each notice was delivered");
    }

    pub(crate) fn jobs_run_in_the_reactor(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry().clone();
        let me = thread::current().id();
        let log = Log::default();
        let log_copy = log.clone();
        let other = thread::spawn(move || {
            let job = move |registry: &spandrel_reactor::Registry| {
                assert_eq!(thread::current().id(), me);
                log_copy.note("job");
                registry.stop();
            };
            registry.execute(job).expect("accepted");
        });
        reactor.run().expect("runs");
        other.join().expect("no panic");
        assert_eq!(log.take(), ["job"]);
    }

    /// And a job that adds itself again and again leaves every second round to them.
    pub(crate) fn jobs_come_before_a_look_at_the_handles(backend: Backend) {
        fn add_again(registry: &spandrel_reactor::Registry, log: &Log) {
            let log = log.clone();
            let job = move |registry: &spandrel_reactor::Registry| {
                log.note("job");
                add_again(registry, &log);
            };
            registry.execute(job).expect("there is room");
        }
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| scripted::echo(stream));
        reactor.registry().register(handler, Interest::INPUT).expect("registered");
        run_until(&reactor, || log.has("a open"));
        reactor.run_once(Some(Duration::ZERO)).expect("runs"); // a round without jobs
        log.take();
        near.send_n(b"x").expect("sent");
        add_again(reactor.registry(), &log);
        let mut rounds = Vec::new();
        for _ in 0..4 {
            assert!(reactor.run_once(Some(TEST_TIMEOUT)).expect("runs") > 0);
            rounds.push(log.take());
        }
        assert_eq!(rounds[0], ["job"]);
        assert!(rounds[1].iter().any(|line| line == "a input"), "{rounds:?}");
        assert!(rounds.iter().all(|round| round.iter().any(|line| line == "job")), "{rounds:?}");
    }

    pub(crate) fn notices_are_limited(backend: Backend) {
        let reactor = Reactor::with(&Options::default().backend(backend).max_notices(3)).expect("a reactor");
        let log = Log::default();
        let id = reactor.registry().register(Scripted::new("a", &log), NONE).expect("registered");
        for round in 0..3 {
            (0..3).for_each(|notice| reactor.registry().notify(id, notice).expect("there is room"));
            let refused = reactor.registry().execute(|_| {}).map_err(|error| error.kind());
            assert_eq!(refused, Err(io::ErrorKind::WouldBlock));
            run_until(&reactor, || log.count("a notice 2") == round + 1);
        }
    }

    pub(crate) fn handlers_are_limited(backend: Backend) {
        let reactor = Reactor::with(&Options::default().backend(backend).max_handlers(2)).expect("a reactor");
        let registry = reactor.registry();
        let log = Log::default();
        let first = registry.register(Scripted::new("a", &log), NONE).expect("registered");
        registry.register(Scripted::new("b", &log), NONE).expect("registered");
        let refused = registry.register(Scripted::new("c", &log), NONE).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::QuotaExceeded));
        assert!(registry.remove(first));
        registry.register(Scripted::new("d", &log), NONE).expect("there is room again");
    }

    pub(crate) fn a_handle_has_one_handler(backend: Backend) {
        use spandrel_ipc::{Handle, Pollable};
        struct Shared(Arc<inet::Stream>);
        impl Pollable for Shared {
            fn handle(&self) -> Handle<'_> {
                self.0.handle()
            }
        }
        impl spandrel_reactor::EventHandler for Shared {
            fn pollable(&self) -> Option<&dyn Pollable> {
                Some(self)
            }
        }
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let (_near, far) = pair();
        let far = Arc::new(far);
        let first = registry.register(Shared(Arc::clone(&far)), Interest::INPUT).expect("registered");
        let refused = registry.register(Shared(Arc::clone(&far)), Interest::INPUT).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::AlreadyExists));
        assert!(registry.remove(first));
        registry.register(Shared(far), Interest::INPUT).expect("the handle is free again");
    }

    pub(crate) fn timers_fire(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let handler = Scripted::new("a", &log).open(|cx, ()| {
            cx.schedule(Duration::from_millis(30), None, 30)?;
            cx.schedule(Duration::from_millis(2), None, 2)?;
            cx.schedule(Duration::ZERO, None, 0).map(drop)
        });
        reactor.registry().register(handler, NONE).expect("registered");
        let start = reactor.registry().now();
        run_until(&reactor, || log.has("a timeout 30"));
        assert!(reactor.registry().now().saturating_since(start) >= Duration::from_millis(30), "never early");
        assert_eq!(log.take(), ["a open", "a timeout 0", "a timeout 2", "a timeout 30"]);
    }

    pub(crate) fn intervals_fire(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let handler = Scripted::new("a", &log)
            .open(|cx, ()| cx.schedule(Duration::from_millis(1), Some(Duration::from_millis(2)), 1).map(drop));
        let id = reactor.registry().register(handler, NONE).expect("registered");
        run_until(&reactor, || log.count("a timeout 1") >= 4);
        reactor.registry().remove(id);
        log.take();
        reactor.run_for(Duration::from_millis(10)).expect("runs");
        assert_eq!(log.take(), [""; 0]);
    }

    pub(crate) fn cancelled_timers_do_not_fire(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let id = registry.register(Scripted::new("a", &log), NONE).expect("registered");
        let early = registry.schedule(id, Duration::from_millis(1), None, 1).expect("room");
        let moved = registry.schedule(id, TEST_TIMEOUT * 10, None, 2).expect("room");
        assert!(registry.cancel(early) && !registry.cancel(early));
        assert!(registry.reschedule(moved, Duration::from_millis(5), None));
        run_until(&reactor, || log.has("a timeout 2"));
        assert!(!log.has("a timeout 1"));
        assert!(!registry.reschedule(moved, TEST_TIMEOUT, None) && !registry.cancel(moved));
    }

    pub(crate) fn a_sooner_timer_shortens_the_wait(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let id = reactor.registry().register(Scripted::new("a", &log), NONE).expect("registered");
        reactor.registry().schedule(id, TEST_TIMEOUT * 10, None, 1).expect("room");
        let registry = reactor.registry().clone();
        let other = thread::spawn(move || registry.schedule(id, Duration::from_millis(20), None, 2).map(drop));
        run_until(&reactor, || log.has("a timeout 2"));
        other.join().expect("no panic").expect("room");
    }

    pub(crate) fn stop_ends_all_runs(backend: Backend) {
        let reactor = reactor(backend);
        let runs: Vec<_> = (0..3)
            .map(|_| {
                let reactor = reactor.clone();
                thread::spawn(move || reactor.run())
            })
            .collect();
        reactor.stop();
        runs.into_iter().for_each(|run| run.join().expect("no panic").expect("runs"));
        reactor.run().expect("it returns at once");
        reactor.restart();
        let log = Log::default();
        reactor.registry().register(Scripted::new("a", &log), NONE).expect("registered");
        run_until(&reactor, || log.has("a open"));
    }

    pub(crate) fn close_calls_every_handler(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register(Scripted::new("a", &log).over(far), Interest::INPUT).expect("registered");
        let registry = reactor.registry().clone();
        // A handler that keeps a registry does not keep the reactor.
        let kept = registry.clone();
        registry.register(Scripted::new("b", &log).notice(move |_, _| kept.notify(kept_id(), 0)), NONE).expect("ok");
        run_until(&reactor, || log.has("a open") && log.has("b open"));
        drop(reactor);
        assert!(log.has("a close: the reactor was closed") && log.has("b close: the reactor was closed"));
        assert!(registry.is_empty());
        assert_eq!(near.recv(&mut [0; 8]).expect("the end"), 0);

        fn kept_id() -> spandrel_reactor::HandlerId {
            unreachable!("no notice was sent")
        }
    }

    pub(crate) fn a_closed_reactor_takes_nothing(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        reactor.close();
        let log = Log::default();
        let kind = registry.register(Scripted::new("a", &log), NONE).map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::NotConnected));
        let kind = registry.execute(|_| {}).map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::NotConnected));
        assert_eq!(log.take(), [""; 0]);
        reactor.restart();
        reactor.run().expect("it returns at once");
    }

    pub(crate) fn one_shot_is_reported_once(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| stream.try_recv(&mut [0]).map(drop));
        let id = registry.register_with(Box::new(handler), Interest::INPUT, Trigger::OneShot).expect("registered");
        near.send_n(b"abcd").expect("sent");
        run_until(&reactor, || log.has("a input"));
        for count in 2..4 {
            reactor.run_for(Duration::from_millis(5)).expect("runs");
            assert_eq!(log.count("a input"), count - 1);
            assert!(registry.resume(id));
            run_until(&reactor, || log.count("a input") == count);
        }
        registry.set_interest(id, Interest::INPUT).expect("a live handler");
        run_until(&reactor, || log.count("a input") == 4);
    }

    #[cfg(unix)]
    pub(crate) fn edge_is_reported_once_each_time(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| stream.try_recv(&mut [0]).map(drop));
        let registered =
            reactor.registry().register_with(Box::new(handler), Interest::INPUT, Trigger::Edge).map_err(|e| e.kind());
        if !backend.has_edges() {
            assert_eq!(registered, Err(io::ErrorKind::Unsupported));
            return;
        }
        registered.expect("registered");
        near.send_n(b"abc").expect("sent");
        run_until(&reactor, || log.has("a input"));
        reactor.run_for(Duration::from_millis(5)).expect("runs");
        assert_eq!(log.count("a input"), 1, "it left input, and is not called again");
        near.send_n(b"d").expect("sent");
        run_until(&reactor, || log.count("a input") == 2);
    }

    pub(crate) fn registered_from_a_handler_is_opened_at_once(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let log_copy = log.clone();
        let handler = Scripted::new("a", &log).open(move |cx, ()| {
            cx.register(Scripted::new("b", &log_copy), NONE)?;
            log_copy.note("registered");
            let failing = Scripted::new("c", &log_copy).open(|_, ()| Err(io::Error::other("no")));
            let id = cx.register(failing, NONE)?;
            assert!(!cx.contains(id));
            Ok(())
        });
        reactor.registry().register(handler, NONE).expect("registered");
        run_until(&reactor, || log.has("c close: failed: no"));
        assert_eq!(log.take(), ["a open", "b open", "registered", "c open", "c close: failed: no"]);
    }

    pub(crate) fn runs_inside_of_a_handler(backend: Backend) {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let (inner, observed_log) = (reactor.clone(), log.clone());
        let outer = Scripted::new("a", &log).notice(move |cx, _| {
            near.send_n(b"x")?;
            assert!(inner.run_until(Some(TEST_TIMEOUT), || observed_log.has("b input"))?);
            observed_log.note("a goes on");
            cx.stop();
            Ok(())
        });
        let id = reactor.registry().register(outer, NONE).expect("registered");
        reactor.registry().register(Scripted::new("b", &log).over(far), Interest::INPUT).expect("registered");
        reactor.registry().notify(id, 1).expect("accepted");
        reactor.run().expect("runs");
        assert_eq!(log.lines().last().map(String::as_str), Some("a goes on"));
    }

    /// With one event per round, no handler waits while another gets more than its share.
    pub(crate) fn busy_handlers_take_turns(backend: Backend) {
        const HANDLERS: usize = 5;
        let options = Options::default().backend(backend).max_events_per_wait(2);
        let reactor = Reactor::with(&options).expect("a reactor");
        let counts: Arc<[AtomicUsize; HANDLERS]> = Arc::default();
        let mut near = Vec::new();
        for index in 0..HANDLERS {
            let (one, far) = pair();
            let mine = Arc::clone(&counts);
            // It never receives, so that it is always ready.
            let handler = Scripted::new("a", &Log::default()).over(far).input(move |_, _| {
                mine[index].fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            reactor.registry().register(handler, Interest::INPUT).expect("registered");
            one.send_n(b"x").expect("sent");
            near.push(one);
        }
        run_until(&reactor, || counts.iter().all(|count| count.load(Ordering::Relaxed) > 0));
        counts.iter().for_each(|count| count.store(0, Ordering::Relaxed));
        run_until(&reactor, || counts.iter().any(|count| count.load(Ordering::Relaxed) >= 100));
        let least = counts.iter().map(|count| count.load(Ordering::Relaxed)).min();
        assert!(least >= Some(80), "{counts:?}");
    }

    pub(crate) fn a_replaced_handle_is_waited_for(backend: Backend) {
        use spandrel_ipc::Pollable;
        use spandrel_reactor::{Context, EventHandler};
        struct Changing(Vec<inet::Stream>, Log);
        impl EventHandler for Changing {
            fn pollable(&self) -> Option<&dyn Pollable> {
                self.0.last().map(|stream| stream as &dyn Pollable)
            }
            fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
                self.1.note(format!("{}", self.0.len()));
                if self.0.len() > 1 {
                    self.0.pop();
                    cx.set_interest(Interest::INPUT);
                } else {
                    cx.close();
                }
                Ok(())
            }
        }
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far): (Vec<_>, Vec<_>) = (0..3).map(|_| pair()).unzip();
        near.iter().for_each(|one| one.send_n(b"x").expect("sent"));
        reactor.registry().register(Changing(far, log.clone()), Interest::INPUT).expect("registered");
        run_until(&reactor, || log.has("1"));
        assert_eq!(log.take(), ["3", "2", "1"]);
    }

    pub(crate) fn slots_are_reused(backend: Backend) {
        let reactor = Reactor::with(&Options::default().backend(backend).max_handlers(2)).expect("a reactor");
        let log = Log::default();
        for _ in 0..200 {
            let (near, far) = pair();
            let handler = Scripted::new("a", &log).over(far);
            reactor.registry().register(handler, Interest::INPUT).expect("registered");
            near.send_n(b"x").expect("sent");
            drop(near);
            run_until(&reactor, || reactor.registry().is_empty());
        }
    }

    pub(crate) fn hidden_readiness_can_be_marked(backend: Backend) {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let (_near, far) = pair();
        let handler = Scripted::new("a", &log).over(far).input(|_, stream| stream.try_recv(&mut [0]).map(drop));
        let id = registry.register(handler, Interest::INPUT).expect("registered");
        run_until(&reactor, || log.has("a open"));
        for count in 1..4 {
            // However often it is marked before it is dispatched.
            (0..100).for_each(|_| assert!(registry.mark_ready(id, Interest::INPUT | Interest::OUTPUT)));
            run_until(&reactor, || log.count("a input") == count);
            while reactor.run_once(Some(Duration::ZERO)).expect("runs") > 0 {}
            assert_eq!(log.count("a input"), count);
        }
        assert!(!log.has("a output"), "it does not want that");
        registry.suspend(id);
        assert!(registry.mark_ready(id, Interest::INPUT));
        while reactor.run_once(Some(Duration::ZERO)).expect("runs") > 0 {}
        assert_eq!(log.count("a input"), 3);
        registry.remove(id);
        assert!(!registry.mark_ready(id, Interest::INPUT));
    }
}
