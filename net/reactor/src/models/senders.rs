//! Models of senders: threads that post to a service in a reactor, and to one with a thread of its own.
//!
//! The posted work, its wake-ups and the waits are the real ones; the connection is simulated. A lost wake-up
//! leaves work that no thread takes, and the checker reports that all threads wait.

use std::io;

use spandrel_ipc::{Interest, Pollable};
use spandrel_sync::atomic::{AtomicBool, Ordering};
use spandrel_sync::models::{check, one_in};
use spandrel_sync::{Arc, Mutex, thread};

use super::simulated::{Endpoint, SimulatedDemultiplexer, System};
use super::{FOR_EVER, Stage};
use crate::service::open_connections::Member;
use crate::service::posted::{End, PostedWork, SendError};
use crate::service::sender::{Sender, SenderRunner, SenderState};
use crate::service::thread_wait::ThreadWait;
use crate::{Context, EventHandler, ThreadStrategy};

/// The limit on octets of the modelled connections.
const LIMIT: usize = 4;

/// The octets and notices that a service has received from its senders.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    octets: Vec<u8>,
    notices: Vec<u8>,
    end: Option<End>,
}

impl Received {
    /// Takes the posted work as a service does; true for the end.
    fn take(&self, posted: &PostedWork) -> bool {
        let turn = posted.take_turn();
        let mut octets = Vec::new();
        posted.take_octets(&mut octets, 0);
        assert!(octets.len() <= LIMIT, "the octets are bounded");
        let mut received = self.0.lock();
        received.octets.extend(octets);
        received.notices.extend(turn.notices.into_iter().map(|notice| *notice.downcast::<u8>().expect("an octet")));
        assert!(received.end.is_none(), "the end is the last turn");
        received.end = turn.end;
        drop(received);
        posted.set_queued(0); // all is sent at once
        turn.end.is_some()
    }

    fn expect(&self, octets: &[u8], notices: &[u8]) {
        let received = self.0.lock();
        let mut sorted = received.octets.clone();
        sorted.sort_by_key(|octet| octet & 0xf0); // stable: the order of each sender remains
        assert_eq!((&*sorted, &*received.notices), (octets, notices));
    }

    fn is_ended(&self) -> bool {
        self.0.lock().end.is_some()
    }
}

/// A service in a reactor.
struct Reactive {
    state: Arc<Mutex<Option<Arc<SenderState>>>>,
    received: Received,
    system: System,
}

impl EventHandler for Reactive {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_open(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let runner = SenderRunner::Reactor { registry: crate::Registry::clone(cx), id: cx.id() };
        *self.state.lock() = Some(SenderState::new(PostedWork::new(0, LIMIT), runner));
        self.system.signal_change();
        Ok(())
    }

    fn handle_wakeup(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let state = self.state.lock().clone().expect("it was opened");
        if self.received.take(&state.posted) {
            state.posted.close();
            cx.close();
        }
        self.system.signal_change();
        Ok(())
    }
}

/// Two threads post, and then one of them ends the connection.
fn post(state: &Arc<SenderState>, end: End) -> Vec<thread::JoinHandle<()>> {
    let first = Sender::new(Arc::clone(state));
    let second = first.clone();
    let other = thread::spawn(move || {
        second.put(&[0x20, 0x21]).expect("there is room");
    });
    let closer = thread::spawn(move || {
        first.put(&[0x10]).expect("there is room");
        first.notice(1_u8).expect("there is room");
        first.put(&[0x11]).expect("there is room");
        first.notice(2_u8).expect("there is room");
        other.join().expect("no panic");
        match end {
            End::Close => first.close(),
            End::Abort => first.abort(),
        }
        assert_eq!(first.put(&[0x12]), Err(SendError::Closed));
    });
    vec![closer]
}

#[test]
fn a_reactor_takes_all_that_was_posted_before_a_close() {
    check(3000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let (state, received) = (Arc::default(), Received::default());
        let service = Reactive { state: Arc::clone(&state), received: received.clone(), system: stage.system.clone() };
        stage.registry().register(service, Interest::NONE).expect("there is room");
        let runs = stage.run(2);
        stage.system.wait_until(|| state.lock().is_some());
        let shared = state.lock().clone().expect("it was opened");
        let posting = post(&shared, End::Close);
        stage.system.wait_until(|| received.is_ended());
        posting.into_iter().for_each(|thread| thread.join().expect("no panic"));
        received.expect(&[0x10, 0x11, 0x20, 0x21], &[1, 2]);
        stage.end(runs, 0);
    });
}

#[test]
fn an_abort_ends_a_service_in_a_reactor_whatever_was_posted() {
    check(2000, || {
        let stage = Stage::new(ThreadStrategy::LeaderFollowers, FOR_EVER);
        let (state, received) = (Arc::default(), Received::default());
        let service = Reactive { state: Arc::clone(&state), received: received.clone(), system: stage.system.clone() };
        stage.registry().register(service, Interest::NONE).expect("there is room");
        let runs = stage.run(1);
        stage.system.wait_until(|| state.lock().is_some());
        let shared = state.lock().clone().expect("it was opened");
        let posting = post(&shared, End::Abort);
        stage.system.wait_until(|| received.is_ended());
        posting.into_iter().for_each(|thread| thread.join().expect("no panic"));
        stage.end(runs, 0);
    });
}

/// The stream of a thread: cutting it shows as input.
struct CutStream {
    system: System,
    is_cut: Arc<AtomicBool>,
}

impl Member for CutStream {
    fn drain(&self) {}

    fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        self.system.send(0, 1);
    }
}

/// A service with a thread of its own: waits for its connection and for senders at once.
fn thread_of_its_own(end: End) {
    let system = System::default();
    let is_cut = Arc::new(AtomicBool::new(false));
    let stream = Box::new(CutStream { system: system.clone(), is_cut: Arc::clone(&is_cut) });
    let wait = ThreadWait::over(Box::new(SimulatedDemultiplexer::new(&system)));
    let state = SenderState::new(PostedWork::new(0, LIMIT), SenderRunner::Thread { wait, stream });
    let received = Received::default();
    let serving = {
        let (state, received, system) = (Arc::clone(&state), received.clone(), system.clone());
        thread::spawn(move || {
            let endpoint = Endpoint::new(0, &system);
            let SenderRunner::Thread { wait, .. } = &state.runner else { unreachable!("it has a thread") };
            let (mut armed, mut inputs) = (Interest::NONE, 0);
            loop {
                if state.posted.is_woken() && received.take(&state.posted) {
                    state.posted.close();
                    return inputs;
                }
                let has_work = || state.posted.is_woken();
                let ready =
                    wait.wait(&endpoint, &mut armed, Interest::INPUT, None, has_work).expect("nothing can fail");
                if ready.contains(Interest::INPUT) {
                    inputs += usize::from(endpoint.take());
                }
            }
        })
    };
    if one_in(2) {
        system.send(0, 1); // input besides
    }
    let posting = post(&state, end);
    posting.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert!(serving.join().expect("no panic") <= 2, "one input, and the cut");
    match end {
        End::Close => received.expect(&[0x10, 0x11, 0x20, 0x21], &[1, 2]),
        End::Abort => assert!(is_cut.load(Ordering::SeqCst)),
    }
}

#[test]
fn a_thread_takes_all_that_was_posted_before_a_close() {
    check(3000, || thread_of_its_own(End::Close));
}

#[test]
fn an_abort_ends_a_service_with_a_thread() {
    check(3000, || thread_of_its_own(End::Abort));
}
