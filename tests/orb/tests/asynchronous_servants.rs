//! Servants that answer when they can, over real sockets.

use std::{
    collections::HashSet,
    future::poll_fn,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, Replied, Servant, ServerCall, SystemException,
    SystemExceptionKind, Task,
};
use spandrel_orb_tests::{
    probe::{Refused, Target, TargetAsyncServant, TargetAsyncSkeleton, target::RefuseError},
    support::{PATIENCE, block_on, in_background, kind_and_completion},
};

/// Gates that futures wait at.
#[derive(Default)]
struct Gates {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    open: HashSet<u32>,
    wakers: Vec<Waker>,
    held: usize,
    dropped: usize,
}

impl Gates {
    fn open(&self, gate: u32) {
        let mut state = self.state.lock().unwrap();
        state.open.insert(gate);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn pass(&self, gate: u32) {
        let _held = Held::new(self);
        poll_fn(|cx| {
            let mut state = self.state.lock().unwrap();
            if state.open.contains(&gate) {
                return Poll::Ready(());
            }
            state.wakers.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn await_that(&self, is_so: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (_state, result) = self.changed.wait_timeout_while(state, PATIENCE, |state| !is_so(state)).unwrap();
        assert!(!result.timed_out(), "it never came to be");
    }
}

/// The time for which a request waits.
struct Held<'g>(&'g Gates);

impl<'g> Held<'g> {
    fn new(gates: &'g Gates) -> Self {
        gates.state.lock().unwrap().held += 1;
        gates.changed.notify_all();
        Self(gates)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap();
        state.held -= 1;
        state.dropped += 1;
        self.0.changed.notify_all();
    }
}

struct Patient {
    gates: Arc<Gates>,
    notes: AtomicUsize,
}

impl TargetAsyncServant for Patient {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    async fn echo(&self, text: &str) -> Result<String, SystemException> {
        // What is borrowed stays valid, although other requests are read meanwhile.
        self.gates.pass(100).await;
        Ok(text.to_owned())
    }

    async fn echo_octets(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        self.gates.pass(100).await;
        Ok(data.to_vec())
    }

    async fn echo_doubles(&self, data: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(data.to_vec())
    }

    async fn refuse(&self, code: i32) -> Result<(), RefuseError> {
        if code == 0 { Ok(()) } else { Err(Refused { why: "as asked".to_owned(), code }.into()) }
    }

    async fn fail(&self, minor: u32) -> Result<(), SystemException> {
        Err(SystemException::bad_param(minor, CompletionStatus::No))
    }

    async fn panic(&self) -> Result<(), SystemException> {
        panic!("as asked")
    }

    async fn note(&self, _data: &[u8]) -> Result<(), SystemException> {
        self.notes.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn count(&self) -> Result<u32, SystemException> {
        Ok(self.notes.load(Ordering::SeqCst) as u32)
    }

    async fn hold(&self, gate: u32) -> Result<(), SystemException> {
        self.gates.pass(gate).await;
        Ok(())
    }

    async fn release(&self, gate: u32) -> Result<(), SystemException> {
        self.gates.open(gate);
        Ok(())
    }

    async fn same(&self, other: Option<&Target>) -> Result<Option<Target>, SystemException> {
        Ok(other.cloned())
    }

    async fn call_back(&self, other: Option<&Target>) -> Result<(), SystemException> {
        let other = other.ok_or_else(|| SystemException::bad_param(0, CompletionStatus::No))?;
        other.ping_async().await
    }

    async fn stop(&self) -> Result<bool, SystemException> {
        Ok(false)
    }
}

struct Server {
    orb: Orb,
    object: ObjectRef,
    gates: Arc<Gates>,
}

impl Server {
    fn with(builder: OrbBuilder) -> Self {
        let orb = builder.build();
        let gates = Arc::<Gates>::default();
        let patient = Patient { gates: Arc::clone(&gates), notes: AtomicUsize::new(0) };
        let object = Poa::root(&orb).unwrap().activate(TargetAsyncSkeleton::new(patient)).unwrap();
        Self { orb, object, gates }
    }

    fn client_with(&self, builder: OrbBuilder) -> Target {
        Target::narrow(&builder.build().string_to_object(&self.object.to_string()).unwrap()).unwrap()
    }

    fn client(&self) -> Target {
        self.client_with(Orb::builder())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown(true).unwrap();
    }
}

/// Over connections that have threads, and over those that the reactor serves.
fn everywhere(test: impl Fn(OrbBuilder)) {
    test(Orb::builder());
    test(Orb::builder().threaded_connections(0));
}

#[test]
fn it_answers_like_any_other() {
    everywhere(|builder| {
        let server = Server::with(builder);
        let target = server.client();
        target.ping().unwrap();
        assert_eq!(target.add(1, 2).unwrap(), 3);
        match target.refuse(4) {
            Err(RefuseError::Refused(refused)) => assert_eq!(refused.code, 4),
            other => panic!("{other:?}"),
        }
        assert_eq!(target.fail(3).unwrap_err().minor(), 3);
        assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
        target.note(&[1]).unwrap();
        let end = Instant::now() + PATIENCE;
        while target.count().unwrap() == 0 {
            assert!(Instant::now() < end, "the one-way was never served");
        }
        assert!(target.as_object().is_a("IDL:Probe/Target:1.0").unwrap());
        assert_eq!(target.same(Some(&target)).unwrap().as_ref(), Some(&target));
        target.call_back(Some(&target)).unwrap();
    });
}

#[test]
fn hundreds_of_requests_wait_without_a_thread_each() {
    everywhere(|builder| {
        let server = Server::with(builder);
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let text = "borrowed".repeat(100);
        let octets = vec![9; 5000];
        let mut texts: Vec<_> = (0..200).map(|_| target.echo_async(&text)).collect();
        let mut sequences: Vec<_> = (0..50).map(|_| target.echo_octets_async(&octets)).collect();
        server.gates.await_that(|state| state.held == 250);
        assert_eq!(target.add(1, 1).unwrap(), 2, "others are served meanwhile");
        target.release(100).unwrap();
        texts.drain(..).for_each(|echo| assert_eq!(block_on(echo).unwrap(), text));
        sequences.drain(..).for_each(|echo| assert_eq!(block_on(echo).unwrap(), octets));
    });
}

#[test]
fn what_the_client_cancels_is_dropped() {
    everywhere(|builder| {
        let server = Server::with(builder);
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let call = target.hold_async(1);
        server.gates.await_that(|state| state.held == 1);
        drop(call);
        server.gates.await_that(|state| state.held == 0 && state.dropped == 1);
        target.ping().unwrap();
    });
}

#[test]
fn what_a_client_asked_that_is_gone_is_dropped() {
    everywhere(|builder| {
        let server = Server::with(builder);
        let target = server.client_with(Orb::builder().request_timeout(Some(Duration::from_millis(100))));
        assert_eq!(target.hold(1).unwrap_err().kind(), SystemExceptionKind::Timeout);
        drop(target);
        server.gates.await_that(|state| state.held == 0 && state.dropped == 1);
    });
}

#[test]
fn shutdown_waits_for_answers() {
    everywhere(|builder| {
        let server = Server::with(builder);
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.gates.await_that(|state| state.held == 1);
        server.orb.shutdown(false).unwrap();
        let (gates, orb) = (Arc::clone(&server.gates), server.orb.clone());
        let ended = in_background(move || orb.run());
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "one is still to be answered");
        gates.open(1);
        held.recv_timeout(PATIENCE).unwrap().expect("it was answered before the goodbye");
        ended.recv_timeout(PATIENCE).expect("that was all");
    });
}

#[test]
fn shutdown_does_not_wait_for_ever() {
    everywhere(|builder| {
        let server = Server::with(builder.shutdown_timeout(Duration::from_millis(100)));
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.gates.await_that(|state| state.held == 1);
        server.orb.shutdown(true).unwrap();
        let error = held.recv_timeout(PATIENCE).unwrap().unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
        server.gates.await_that(|state| state.held == 0);
    });
}

#[test]
fn any_executor_will_do() {
    let (send, tasks) = mpsc::channel::<Task>();
    let executor = thread::spawn(move || tasks.into_iter().map(block_on).count());
    let server = Server::with(Orb::builder().spawner(move |task| send.send(task).unwrap()));
    let target = server.client();
    assert_eq!(target.add(20, 3).unwrap(), 23);
    assert_eq!(target.add(20, 4).unwrap(), 24);
    drop(target);
    drop(server);
    assert_eq!(executor.join().unwrap(), 2);
}

/// Answers from a thread of its own, or never.
struct Later;

impl Servant for Later {
    fn repository_id(&self) -> &'static str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let answers = operation == "add";
        let (call, replied) = call.defer()?;
        thread::spawn(move || {
            if answers {
                let answered = call.arguments().and_then(|mut input| {
                    let sum = input.i32()? + input.i32()?;
                    call.answer(|call| {
                        call.reply(|out| {
                            out.i32(sum);
                            Ok(())
                        })
                    })
                });
                call.end(answered);
            }
        });
        Ok(replied)
    }
}

#[test]
fn another_thread_may_answer_and_one_that_does_not_is_noticed() {
    let orb = Orb::builder().build();
    let object = Poa::root(&orb).unwrap().activate(Later).unwrap();
    let client = Orb::builder().build().string_to_object(&object.to_string()).unwrap();
    let target = Target::unchecked_narrow(&client);
    assert_eq!(target.add(5, 6).unwrap(), 11);
    let error = target.ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::NoResponse, CompletionStatus::Maybe), "{error}");
    orb.shutdown(true).unwrap();
}

#[test]
fn a_connection_defers_a_bounded_number() {
    let server = Server::with(Orb::builder());
    let target = server.client_with(Orb::builder().connections_per_peer(1).pending_requests(2000));
    let held: Vec<_> = (0..1024).map(|_| target.hold_async(1)).collect();
    server.gates.await_that(|state| state.held == 1024);
    let error = block_on(target.hold_async(1)).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    server.gates.open(1);
    held.into_iter().for_each(|held| block_on(held).unwrap());
    target.ping().unwrap();
}
