//! Servants that answer asynchronously, over real sockets.

use std::{
    collections::HashSet,
    future::poll_fn,
    io::{ErrorKind, Write},
    net::{Shutdown, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
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
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    options::{Concurrency, Task, poll_once},
    poa::{Current, IdAssignmentPolicy, IdUniquenessPolicy, LifespanPolicy, RequestProcessingPolicy},
    server::{DeferredCall, Replied, Servant, ServerCall},
    types::IiopProfile,
};
use spandrel_cdr::{CdrError, Encoder, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags};
use spandrel_orb_tests::{
    probe::{Refused, Target, TargetAsyncServant, TargetAsyncSkeleton, target::RefuseError},
    support::{
        TEST_TIMEOUT, block_on, in_background, kind_and_completion, read_message, read_some, retry_with_longer_timeout,
        wait_until,
    },
};

/// Gates that futures await.
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

    fn await_state(&self, is_so: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (_state, result) = self.changed.wait_timeout_while(state, TEST_TIMEOUT, |state| !is_so(state)).unwrap();
        assert!(!result.timed_out(), "timed out waiting for the condition");
    }
}

/// Guard of a held request.
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

/// An open gate.
const OPEN: u32 = 101;
/// The gate of one-way requests with the data `[1]`.
const NOTES: u32 = 102;

struct GatedServant {
    gates: Arc<Gates>,
    notes: Arc<AtomicUsize>,
}

impl TargetAsyncServant for GatedServant {
    async fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    async fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
        Ok(a.wrapping_add(b))
    }

    async fn echo(&self, text: &str) -> Result<String, SystemException> {
        // Borrowed arguments stay valid while other requests are read.
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
        if code == 0 { Ok(()) } else { Err(Refused { why: "intended".to_owned(), code }.into()) }
    }

    async fn fail(&self, minor: u32) -> Result<(), SystemException> {
        Err(SystemException::bad_param(minor, CompletionStatus::No))
    }

    async fn panic(&self) -> Result<(), SystemException> {
        panic!("intended")
    }

    async fn note(&self, data: &[u8]) -> Result<(), SystemException> {
        self.gates.pass(if data == [1] { NOTES } else { OPEN }).await;
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
    notes: Arc<AtomicUsize>,
}

impl Server {
    fn with(builder: OrbBuilder) -> Self {
        let orb = builder.build().unwrap();
        let (gates, notes) = (Arc::<Gates>::default(), Arc::<AtomicUsize>::default());
        gates.open(OPEN);
        let servant = GatedServant { gates: Arc::clone(&gates), notes: Arc::clone(&notes) };
        let object = Poa::root(&orb).unwrap().activate(TargetAsyncSkeleton::new(servant)).unwrap();
        Self { orb, object, gates, notes }
    }

    fn client_with(&self, builder: OrbBuilder) -> Target {
        Target::narrow(&builder.build().unwrap().string_to_object(&self.object.to_string()).unwrap()).unwrap()
    }

    fn client(&self) -> Target {
        self.client_with(Orb::builder())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.orb.shutdown().unwrap();
    }
}

/// Runs a test with connections that have their own threads, and with connections of the reactor.
fn with_threads_and_reactor(test: impl Fn(OrbBuilder)) {
    test(Orb::builder());
    test(Orb::builder().concurrency(Concurrency::LeaderFollowers { threads: None }));
}

#[test]
fn an_asynchronous_servant_answers_every_kind_of_call() {
    with_threads_and_reactor(|builder| {
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
        target.note(&[2]).unwrap();
        let end = Instant::now() + TEST_TIMEOUT;
        while target.count().unwrap() == 0 {
            assert!(Instant::now() < end, "the one-way was never served");
        }
        assert!(target.as_object().is_a("IDL:Probe/Target:1.0").unwrap());
        assert_eq!(target.same(Some(&target)).unwrap().as_ref(), Some(&target));
        target.call_back(Some(&target)).unwrap();
    });
}

#[test]
fn hundreds_of_pending_requests_need_no_thread_each() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder);
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let text = "borrowed".repeat(100);
        let octets = vec![9; 5000];
        let mut texts: Vec<_> = (0..200).map(|_| target.echo_async(&text)).collect();
        let mut sequences: Vec<_> = (0..50).map(|_| target.echo_octets_async(&octets)).collect();
        server.gates.await_state(|state| state.held == 250);
        assert_eq!(target.add(1, 1).unwrap(), 2, "other requests are served meanwhile");
        target.release(100).unwrap();
        texts.drain(..).for_each(|echo| assert_eq!(block_on(echo).unwrap(), text));
        sequences.drain(..).for_each(|echo| assert_eq!(block_on(echo).unwrap(), octets));
    });
}

#[test]
fn a_cancelled_requests_future_is_dropped() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder);
        let target = server.client_with(Orb::builder().connections_per_peer(1));
        let call = target.hold_async(1);
        server.gates.await_state(|state| state.held == 1);
        drop(call);
        server.gates.await_state(|state| state.held == 0 && state.dropped == 1);
        target.ping().unwrap();
    });
}

#[test]
fn the_futures_of_a_closed_connection_are_dropped() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder);
        let target = server.client();
        retry_with_longer_timeout(Duration::from_millis(50), |time| {
            let limited = Target::unchecked_narrow(&target.as_object().with_timeout(Some(time)));
            assert_eq!(limited.hold(1).unwrap_err().kind(), SystemExceptionKind::Timeout);
            let state = server.gates.state.lock().unwrap();
            (state.held + state.dropped > 0).then_some(())
        });
        drop(target);
        server.gates.await_state(|state| state.held == 0 && state.dropped > 0);
    });
}

#[test]
fn shutdown_waits_for_pending_futures() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder);
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.gates.await_state(|state| state.held == 1);
        server.orb.begin_shutdown().unwrap();
        let (gates, orb) = (Arc::clone(&server.gates), server.orb.clone());
        let ended = in_background(move || orb.run());
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err(), "a request is not answered yet");
        gates.open(1);
        held.recv_timeout(TEST_TIMEOUT).unwrap().expect("the request was answered before CloseConnection");
        ended.recv_timeout(TEST_TIMEOUT).expect("the shutdown is complete");
    });
}

#[test]
fn shutdown_drops_pending_futures_after_its_timeout() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder.shutdown_timeout(Duration::from_millis(100)));
        let target = server.client();
        let held = in_background(move || target.hold(1));
        server.gates.await_state(|state| state.held == 1);
        server.orb.shutdown().unwrap();
        let error = held.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
        server.gates.await_state(|state| state.held == 0);
    });
}

#[test]
fn a_custom_spawner_runs_the_futures() {
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

#[test]
fn a_spawner_that_polls_once_gets_only_the_futures_that_wait() {
    let (send, tasks) = mpsc::channel::<Task>();
    let executor = thread::spawn(move || tasks.into_iter().map(block_on).count());
    let server = Server::with(Orb::builder().spawner(move |task| {
        poll_once(task).into_iter().for_each(|task| send.send(task).unwrap());
    }));
    let target = server.client();
    assert_eq!(target.add(20, 3).unwrap(), 23);
    assert_eq!(target.panic().unwrap_err().kind(), SystemExceptionKind::Unknown);
    let held = in_background({
        let target = target.clone();
        move || target.hold(1).unwrap()
    });
    target.release(1).unwrap();
    held.recv_timeout(TEST_TIMEOUT).unwrap();
    drop(target);
    drop(server);
    assert!(executor.join().unwrap() <= 1, "`hold` alone may have waited");
}

/// A servant whose futures return whether the thread of their upcall polls them, after they have yielded if that is asked for.
struct PollingThreadServant;

impl Servant for PollingThreadServant {
    fn repository_id(&self) -> &'static str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let (upcall, yields) = (thread::current().id(), call.arguments()?.u32()? != 0);
        call.spawn(move |call| async move {
            let mut remaining = i32::from(yields);
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                remaining -= 1;
                if remaining == 0 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            let is_in_upcall = thread::current().id() == upcall;
            let answered = call.answer(|call| {
                call.reply(|out| {
                    out.u32(u32::from(is_in_upcall));
                    Ok(())
                })
            });
            call.end(answered);
        })
    }
}

#[test]
fn the_thread_of_the_upcall_polls_a_future_until_it_waits() {
    let orb = Orb::builder().build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(PollingThreadServant).unwrap();
    let client = Orb::builder().build().unwrap();
    let target = client.string_to_object(&object.to_string()).unwrap();
    for _ in 0..3 {
        let is_in_upcall = |yields: u32| {
            let argument = |out: &mut Encoder<'_>| {
                out.u32(yields);
                Ok(())
            };
            let answer = target.invoke("poll", argument, |results| results.u32());
            answer.map_err(|error: SystemException| error.to_string()) == Ok(1)
        };
        assert!(is_in_upcall(0), "a future that need not wait");
        assert!(!is_in_upcall(1), "a future that has yielded");
    }
    client.shutdown().unwrap();
    orb.shutdown().unwrap();
}

/// A default servant whose futures return the id of the called object.
struct ObjectIdServant;

impl Servant for ObjectIdServant {
    fn repository_id(&self) -> &'static str {
        "IDL:Probe/Target:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.spawn(|call| async move {
            let mut is_first = true;
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            let current = Current::new();
            let answered = current.object_id().map_err(SystemException::from).and_then(|id| {
                assert_eq!(current.poa()?.the_name(), "targets");
                assert_eq!(current.reference()?.type_id(), "IDL:Probe/Target:1.0");
                assert_eq!(current.servant()?.repository_id(), "IDL:Probe/Target:1.0");
                let id = String::from_utf8_lossy(&id);
                call.answer(|call| call.reply(|out| out.str(&id)))
            });
            call.end(answered);
        })
    }
}

#[test]
fn current_in_a_future_refers_to_its_request() {
    let (send, tasks) = mpsc::channel::<Task>();
    let executor = thread::spawn(move || tasks.into_iter().map(block_on).count());
    for builder in [Orb::builder(), Orb::builder().spawner(move |task| send.send(task).unwrap())] {
        let orb = builder.build().unwrap();
        let policies = [
            LifespanPolicy::Persistent.into(),
            IdAssignmentPolicy::UserId.into(),
            IdUniquenessPolicy::MultipleId.into(),
            RequestProcessingPolicy::UseDefaultServant.into(),
        ];
        let targets = Poa::root(&orb).unwrap().create_poa("targets", None, policies).unwrap();
        targets.set_servant(Arc::new(ObjectIdServant)).unwrap();
        targets.the_poa_manager().activate().unwrap();
        let client = Orb::builder().build().unwrap();
        for id in ["one", "two"] {
            let object = targets.create_reference_with_id(&id.into(), "IDL:Probe/Target:1.0").unwrap();
            let target = Target::unchecked_narrow(&client.string_to_object(&object.to_string()).unwrap());
            assert_eq!(target.echo("").unwrap(), id);
        }
        let outside = SystemException::from(Current::new().object_id().unwrap_err());
        assert_eq!(kind_and_completion(&outside), (SystemExceptionKind::BadInvOrder, CompletionStatus::No));
        client.shutdown().unwrap();
        orb.shutdown().unwrap();
    }
    assert_eq!(executor.join().unwrap(), 2);
}

/// A servant that answers `add` from another thread, and drops other calls.
struct AnsweringThread;

impl Servant for AnsweringThread {
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
                let read_reply_id = call.arguments().and_then(|mut input| {
                    let sum = input.i32()? + input.i32()?;
                    call.answer(|call| {
                        call.reply(|out| {
                            out.i32(sum);
                            Ok(())
                        })
                    })
                });
                call.end(read_reply_id);
            }
        });
        Ok(replied)
    }
}

#[test]
fn a_deferred_call_is_answered_by_another_thread_or_raises_no_response() {
    let orb = Orb::builder().build().unwrap();
    let object = Poa::root(&orb).unwrap().activate(AnsweringThread).unwrap();
    let client = Orb::builder().build().unwrap().string_to_object(&object.to_string()).unwrap();
    let target = Target::unchecked_narrow(&client);
    assert_eq!(target.add(5, 6).unwrap(), 11);
    let error = target.ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::NoResponse, CompletionStatus::Maybe), "{error}");
    orb.shutdown().unwrap();
}

#[test]
fn a_one_way_is_served_after_its_client_has_closed() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder);
        let (gates, notes) = (Arc::clone(&server.gates), Arc::clone(&server.notes));
        let mut stream = connect(&server.object);
        // The one-way is held until the client has closed; the two-way beside it is cancelled then.
        stream
            .write_all(&request(&server.object, 1, ResponseFlags::NONE, "note", |out| out.octet_sequence(&[1])))
            .unwrap();
        let hold = request(&server.object, 2, ResponseFlags::TWO_WAY, "hold", |out| {
            out.u32(1);
            Ok(())
        });
        stream.write_all(&hold).unwrap();
        gates.await_state(|state| state.held == 2);
        drop(stream);
        gates.await_state(|state| state.held == 1 && state.dropped == 1);
        assert_eq!(notes.load(Ordering::SeqCst), 0);
        gates.open(NOTES);
        wait_until("the one-way", || notes.load(Ordering::SeqCst) > 0);
    });
}

#[test]
fn shutdown_drops_pending_one_ways_after_its_timeout() {
    with_threads_and_reactor(|builder| {
        let server = Server::with(builder.shutdown_timeout(Duration::from_millis(100)));
        let target = server.client();
        target.note(&[1]).unwrap();
        server.gates.await_state(|state| state.held == 1);
        server.orb.shutdown().unwrap();
        server.gates.await_state(|state| state.held == 0);
        assert_eq!(server.notes.load(Ordering::SeqCst), 0);
    });
}

/// A servant with errors between an upcall and its answer.
struct FaultyServant;

impl Servant for FaultyServant {
    fn repository_id(&self) -> &'static str {
        "IDL:Clumsy:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let failure = || SystemException::bad_param(77, CompletionStatus::Yes);
        if operation == "ping" {
            return call.reply(|_| Ok(()));
        }
        let empty = |call: ServerCall<'_>| call.reply(|_| Ok(()));
        let (call, replied) = call.defer()?;
        match operation {
            "fails_after_deferring" => return Err(failure()),
            "panics_after_deferring" => panic!("intended"),
            "answers_twice" => drop((call.answer(empty)?, call.answer(empty)?)),
            "answers_inside_of_an_answer" => {
                let both = call.answer(|outer| {
                    let _ = call.answer(empty)?;
                    empty(outer)
                });
                call.end(both);
            }
            "answers_and_fails" => {
                let both = call.answer(|call| empty(call).and(Err(failure())));
                call.end(both);
            }
            "fails_and_answers" => {
                call.answer(|_| Err(failure())).unwrap_err();
                let read_reply_id = call.answer(empty);
                call.end(read_reply_id);
            }
            "panics_in_an_answer" => {
                let panicked = catch_unwind(AssertUnwindSafe(|| call.answer(|_| panic!("intended"))));
                assert!(panicked.is_err());
                call.end(Err(failure()));
            }
            _ => call.end(Err(failure())),
        }
        Ok(replied)
    }
}

#[test]
fn every_error_after_deferring_gives_exactly_one_reply() {
    with_threads_and_reactor(|builder| {
        let orb = builder.build().unwrap();
        let object = Poa::root(&orb).unwrap().activate(FaultyServant).unwrap();
        let mut stream = connect(&object);
        let operations = [
            "fails_after_deferring",
            "panics_after_deferring",
            "answers_twice",
            "answers_inside_of_an_answer",
            "answers_and_fails",
            "fails_and_answers",
            "panics_in_an_answer",
            "fails",
        ];
        for (id, operation) in (0..).step_by(2).zip(operations) {
            for (id, operation) in [(id, operation), (id + 1, "ping")] {
                let request = request(&object, id, ResponseFlags::TWO_WAY, operation, |_| Ok(()));
                stream.write_all(&request).unwrap();
            }
            let mut ids = [read_reply_id(&mut stream), read_reply_id(&mut stream)];
            ids.sort_unstable();
            assert_eq!(ids, [id, id + 1], "{operation}");
        }
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(read_message(&mut stream).is_err(), "there is no further reply");
        orb.shutdown().unwrap();
    });
}

/// A servant that hands its requests to the test, to be answered there.
struct DeferringServant(mpsc::SyncSender<DeferredCall>);

impl Servant for DeferringServant {
    fn repository_id(&self) -> &'static str {
        "IDL:Deferring:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let (deferred, replied) = call.defer()?;
        self.0.send(deferred).unwrap();
        Ok(replied)
    }
}

#[test]
fn a_half_closed_connection_stays_open_until_its_deferred_requests_have_ended() {
    with_threads_and_reactor(|builder| {
        let orb = builder.build().unwrap();
        let (sender, deferred) = mpsc::sync_channel(1);
        let object = Poa::root(&orb).unwrap().activate(DeferringServant(sender)).unwrap();
        let mut stream = connect(&object);
        stream.write_all(&request(&object, 7, ResponseFlags::TWO_WAY, "ping", |_| Ok(()))).unwrap();
        let deferred = deferred.recv_timeout(TEST_TIMEOUT).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(deferred.cancellation().wait_timeout(TEST_TIMEOUT), "the server has seen the end of the input");
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let waiting = read_some(&stream, &mut [0]).unwrap_err();
        assert!(matches!(waiting.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{waiting}");
        drop(deferred);
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        assert_eq!(read_some(&stream, &mut [0]).unwrap(), 0);
        orb.shutdown().unwrap();
    });
}

#[test]
fn a_spawner_that_refuses_tasks_gives_exactly_one_reply() {
    let refuse: [fn(Task); 2] = [|task| drop(task), |_| panic!("intended")];
    for refuse in refuse {
        let server = Server::with(Orb::builder().spawner(refuse));
        let mut stream = connect(&server.object);
        for id in 0..3 {
            stream.write_all(&request(&server.object, id, ResponseFlags::TWO_WAY, "ping", |_| Ok(()))).unwrap();
            assert_eq!(read_reply_id(&mut stream), id);
        }
        let error = server.client().ping().unwrap_err();
        assert!(matches!(error.kind(), SystemExceptionKind::NoResponse | SystemExceptionKind::Unknown), "{error}");
    }
}

/// A connection whose messages are encoded by the test.
fn connect(object: &ObjectRef) -> TcpStream {
    let profile = profile_of(object);
    let stream = TcpStream::connect((profile.host.as_str(), profile.port)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

fn profile_of(object: &ObjectRef) -> IiopProfile {
    IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap()
}

fn request(
    object: &ObjectRef,
    id: u32,
    response: ResponseFlags,
    operation: &str,
    encode: impl FnOnce(&mut Encoder<'_>) -> Result<(), CdrError>,
) -> Vec<u8> {
    let template = RequestTemplate::new(Wire::default(), &profile_of(object).object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, id, response, operation, &[]);
    encode(&mut out).unwrap();
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// Reads a Reply and returns its request id.
fn read_reply_id(stream: &mut TcpStream) -> u32 {
    let message = read_message(stream).unwrap();
    assert_eq!(message[7], 1, "a reply");
    u32::from_ne_bytes(message[12..16].try_into().unwrap())
}

#[test]
fn the_number_of_deferred_requests_of_a_connection_is_bounded() {
    let server = Server::with(Orb::builder());
    let target = server.client_with(Orb::builder().connections_per_peer(1).pending_requests(2000));
    let held: Vec<_> = (0..1024).map(|_| target.hold_async(1)).collect();
    server.gates.await_state(|state| state.held == 1024);
    let error = block_on(target.hold_async(1)).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    server.gates.open(1);
    held.into_iter().for_each(|held| block_on(held).unwrap());
    target.ping().unwrap();
}

#[test]
fn the_memory_of_deferred_requests_of_a_connection_is_bounded() {
    const OCTETS: usize = 30 << 20;
    let server = Server::with(Orb::builder().max_connection_memory(64 << 20));
    let target = server.client_with(Orb::builder().connections_per_peer(1));
    let data = vec![7; OCTETS];
    let held: Vec<_> = (0..2).map(|_| target.echo_octets_async(&data)).collect();
    server.gates.await_state(|state| state.held == 2);
    let error = block_on(target.echo_octets_async(&data)).unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Transient, CompletionStatus::No), "{error}");
    let small = target.echo_octets_async(&data[..10]);
    server.gates.await_state(|state| state.held == 3);
    server.gates.open(100);
    assert_eq!(block_on(small).unwrap(), data[..10]);
    held.into_iter().for_each(|held| assert!(block_on(held).unwrap() == data));
    assert!(block_on(target.echo_octets_async(&data)).unwrap() == data, "answered requests release their memory");
}
