//! Endpoints whose handle alone does not show all events, such as those of TLS and of shared memory.

use crate::scripted;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;

use scripted::{Log, pair, reactor, run_until};
use spandrel_ipc::{Handle, Interest, Pollable, Prepared, inet};
use spandrel_reactor::{Backend, CloseReason, Context, EventHandler, Trigger};

/// Receives octets from the system in chunks, and returns them one by one. It needs output events where
/// exceptions are wanted, like a protocol that has to send before it can receive.
struct Buffered {
    stream: inet::Stream,
    held: RefCell<VecDeque<u8>>,
}

impl Buffered {
    fn next(&self) -> io::Result<Option<u8>> {
        let mut held = self.held.borrow_mut();
        if held.is_empty() {
            let mut octets = [0; 64];
            let count = self.stream.try_recv(&mut octets)?;
            held.extend(&octets[..count]);
        }
        Ok(held.pop_front())
    }
}

impl Pollable for Buffered {
    fn handle(&self) -> Handle<'_> {
        self.stream.handle()
    }
    fn pending(&self) -> bool {
        !self.held.borrow().is_empty()
    }
    fn is_plain(&self) -> bool {
        false
    }
    fn prepare(&self, wanted: Interest) -> Prepared {
        let mut wait_for = wanted - Interest::EXCEPTION;
        if wanted.contains(Interest::EXCEPTION) {
            wait_for |= Interest::OUTPUT;
        }
        let ready = if self.pending() { wanted & Interest::INPUT } else { Interest::NONE };
        Prepared { wait_for, ready }
    }
    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        if seen.contains(Interest::OUTPUT) { (seen | Interest::EXCEPTION) & wanted } else { seen & wanted }
    }
}

struct Reader {
    source: Buffered,
    log: Log,
}

impl Reader {
    fn new(stream: inet::Stream, log: &Log) -> Box<Self> {
        Box::new(Self { source: Buffered { stream, held: RefCell::default() }, log: log.clone() })
    }
}

impl EventHandler for Reader {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.source)
    }
    fn handle_input(&mut self, _cx: &Context<'_>) -> io::Result<()> {
        match self.source.next()? {
            Some(octet) => self.log.note(char::from(octet).to_string()),
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }
    fn handle_exception(&mut self, cx: &Context<'_>) -> io::Result<()> {
        self.log.note("exception");
        cx.set_interest(Interest::INPUT);
        Ok(())
    }
    fn handle_close(&mut self, _cx: &Context<'_>, _why: CloseReason) {
        self.log.note("end");
    }
}

#[test]
fn buffered_input_is_dispatched_without_handle_events() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        reactor.registry().register_with(Reader::new(far, &log), Interest::INPUT, Trigger::Level).expect("registered");
        for _ in 0..10 {
            near.send_n(b"abc").expect("sent");
            run_until(&reactor, || log.lines() == ["a", "b", "c"]);
            log.take();
        }
        near.send_n(b"xy").expect("sent");
        drop(near);
        run_until(&reactor, || log.has("end"));
        assert_eq!(log.take(), ["x", "y", "end"]);
    }
}

/// The layer above the endpoint has input that the endpoint does not show, such as messages read ahead by
/// another thread.
#[test]
fn hidden_readiness_of_an_endpoint_can_be_marked() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let log = Log::default();
        let (_near, far) = pair();
        let handler =
            Box::new(Recorder { source: Buffered { stream: far, held: RefCell::default() }, log: log.clone() });
        let id = reactor.registry().register_with(handler, Interest::INPUT, Trigger::Level).expect("registered");
        for _ in 0..10 {
            assert!(reactor.registry().mark_ready(id, Interest::INPUT));
            run_until(&reactor, || log.has("input"));
            assert_eq!(log.take(), ["input"]);
        }
    }
}

/// Records its calls, and takes nothing.
struct Recorder {
    source: Buffered,
    log: Log,
}

impl EventHandler for Recorder {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.source)
    }
    fn handle_input(&mut self, _cx: &Context<'_>) -> io::Result<()> {
        self.log.note("input");
        Ok(())
    }
}

#[test]
fn much_buffered_input_does_not_starve_another_handler() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let (other_near, other_far) = pair();
        reactor.registry().register_with(Reader::new(far, &log), Interest::INPUT, Trigger::Level).expect("registered");
        near.send_n(&[b'm'; 60]).expect("sent");
        run_until(&reactor, || log.has("m"));
        other_near.send_n(b"o").expect("sent");
        let other = Reader::new(other_far, &log);
        reactor.registry().register_with(other, Interest::INPUT, Trigger::Level).expect("registered");
        run_until(&reactor, || log.has("o"));
        assert!(log.count("m") < 60, "the other was called before all was read");
        run_until(&reactor, || log.count("m") == 60);
    }
}

#[test]
fn the_endpoint_chooses_the_awaited_events() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let log = Log::default();
        let (near, far) = pair();
        let wanted = Interest::EXCEPTION | Interest::INPUT;
        reactor.registry().register_with(Reader::new(far, &log), wanted, Trigger::Level).expect("registered");
        run_until(&reactor, || log.has("exception"));
        near.send_n(b"a").expect("sent");
        run_until(&reactor, || log.has("a"));
        assert_eq!(log.take(), ["exception", "a"], "once, since it was no longer wanted then");
    }
}

#[test]
fn buffered_input_waits_while_suspended() {
    for backend in Backend::available() {
        let reactor = reactor(backend);
        let registry = reactor.registry();
        let log = Log::default();
        let (near, far) = pair();
        let id = registry.register_with(Reader::new(far, &log), Interest::INPUT, Trigger::OneShot).expect("registered");
        near.send_n(b"abc").expect("sent");
        for (count, octet) in ["a", "b", "c"].into_iter().enumerate() {
            run_until(&reactor, || log.has(octet));
            reactor.run_for(std::time::Duration::from_millis(2)).expect("runs");
            assert_eq!(log.lines().len(), count + 1, "one shot, one octet");
            assert!(registry.resume(id));
        }
        near.send_n(b"d").expect("sent");
        run_until(&reactor, || log.has("d"));
    }
}
