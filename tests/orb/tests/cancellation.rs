//! Cancellation as observed by servants: every cause, for every kind of servant and every concurrency
//! strategy.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException, SystemExceptionKind,
    diagnostics::statistics::Event,
    minor,
    options::Concurrency,
    poa::ThreadPolicy,
    policy::DeadlineContext,
    server::{CancelReason, CancellationToken, DeferredCall, Replied, Servant, ServerCall, remaining_time},
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CancelRequest, RequestTemplate, ResponseFlags, ServiceContext, ids};
use spandrel_orb_tests::support::{
    TEST_TIMEOUT, block_on, in_background, kind_and_completion, read_message, retry_with_longer_timeout, wait_until,
};

/// How a servant observes the cancellation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Waits for its token in the upcall.
    WaitsForToken,
    /// Polls its token in the upcall.
    PollsToken,
    /// Gets its token in the upcall only after the cancellation has arrived.
    GetsTokenLate,
    /// An asynchronous servant, whose future is dropped.
    Future,
    /// Defers the call and awaits its token in another thread.
    Deferred,
}

const KINDS: [Kind; 5] = [Kind::WaitsForToken, Kind::PollsToken, Kind::GetsTokenLate, Kind::Future, Kind::Deferred];

/// A servant that works until its request is cancelled.
struct Worker {
    kind: Kind,
    begun: Sender<()>,
    ended: Sender<Option<CancelReason>>,
    release: Arc<ReleaseGate>,
}

/// Releases servants of `Kind::GetsTokenLate`.
#[derive(Default)]
struct ReleaseGate {
    is_open: Mutex<bool>,
    changed: Condvar,
}

impl ReleaseGate {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let is_open = self.is_open.lock().unwrap();
        let (_is_due, waited) = self.changed.wait_timeout_while(is_open, TEST_TIMEOUT, |is_open| !*is_open).unwrap();
        assert!(!waited.timed_out(), "the servant was never released");
    }
}

/// Sends the reason of the cancellation when dropped.
struct Guard(CancellationToken, Sender<Option<CancelReason>>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.reason());
    }
}

impl Worker {
    fn work(&self, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match self.kind {
            Kind::WaitsForToken => {
                let token = CancellationToken::current();
                self.begun.send(()).unwrap();
                assert_eq!(token.wait_timeout(TEST_TIMEOUT), token.is_cancelled());
                self.ended.send(token.reason()).unwrap();
                call.reply(|_| Ok(()))
            }
            Kind::PollsToken => {
                let token = call.cancellation();
                self.begun.send(()).unwrap();
                let begun = std::time::Instant::now();
                while !token.is_cancelled() && begun.elapsed() < TEST_TIMEOUT {
                    thread::yield_now();
                }
                self.ended.send(CancellationToken::current().reason()).unwrap();
                call.reply(|_| Ok(()))
            }
            Kind::GetsTokenLate => {
                self.begun.send(()).unwrap();
                self.release.wait();
                let token = CancellationToken::current();
                let _ = token.wait_timeout(TEST_TIMEOUT);
                self.ended.send(token.reason()).unwrap();
                Err(SystemException::transient(minor::REQUEST_CANCELLED, CompletionStatus::No))
            }
            Kind::Future => {
                let (begun, ended) = (self.begun.clone(), self.ended.clone());
                call.spawn(|deferred: DeferredCall| async move {
                    let _guard = Guard(CancellationToken::current(), ended);
                    begun.send(()).unwrap();
                    std::future::pending::<()>().await;
                    drop(deferred);
                })
            }
            Kind::Deferred => {
                let (deferred, replied) = call.defer()?;
                let ended = self.ended.clone();
                thread::spawn(move || {
                    let reason = block_on(deferred.cancellation().cancelled());
                    ended.send(Some(reason)).unwrap();
                });
                self.begun.send(()).unwrap();
                Ok(replied)
            }
        }
    }
}

impl Servant for Worker {
    fn repository_id(&self) -> &str {
        "IDL:Tests/Worker:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match operation {
            "work" => self.work(call),
            "late" => {
                self.release.open();
                call.reply(|_| Ok(()))
            }
            "idle" => {
                let token = CancellationToken::current();
                assert!(!token.is_cancelled(), "{token:?}");
                call.reply(|_| Ok(()))
            }
            _ => call.implicit(self),
        }
    }
}

struct Server {
    orb: Orb,
    object: ObjectRef,
    begun: Receiver<()>,
    ended: Receiver<Option<CancelReason>>,
    release: Arc<ReleaseGate>,
}

impl Server {
    fn start(builder: OrbBuilder, kind: Kind) -> Self {
        let orb = builder.build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self::of(orb, &poa, kind)
    }

    fn of(orb: Orb, poa: &Poa, kind: Kind) -> Self {
        let ((begin, begun), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let release = Arc::<ReleaseGate>::default();
        let worker = Worker { kind, begun: begin, ended: end, release: Arc::clone(&release) };
        let object = poa.activate(worker).unwrap();
        Self { orb, object, begun, ended, release }
    }

    fn client(&self, builder: OrbBuilder) -> ObjectRef {
        builder.build().unwrap().string_to_object(&self.object.to_string()).unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }

    fn port(&self) -> u16 {
        self.profile().port
    }

    fn profile(&self) -> spandrel::types::IiopProfile {
        spandrel::types::IiopProfile::decode(&self.object.ior().profiles[0]).unwrap().unwrap()
    }

    /// An encoded request for `work`.
    fn request(&self, id: u32, contexts: &[ServiceContext]) -> Vec<u8> {
        let template = RequestTemplate::new(Wire::default(), &self.profile().object_key);
        let mut out = Encoder::new(Wire::default());
        let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, "work", contexts);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    fn await_begun(&self) {
        self.begun.recv_timeout(TEST_TIMEOUT).expect("the servant is called");
    }

    #[track_caller]
    fn assert_ends(&self, reason: CancelReason) {
        let ended = self.ended.recv_timeout(TEST_TIMEOUT).expect("the servant observes the cancellation");
        assert_eq!(ended, Some(reason));
        let counted = match reason {
            CancelReason::ClientCancelled => Event::CancelledByClient,
            CancelReason::DeadlineElapsed => Event::CancelledByDeadline,
            CancelReason::ConnectionLost => Event::CancelledByLoss,
            _ => Event::CancelledByShutdown,
        };
        assert_eq!(self.orb.statistics().count(counted), 1, "{reason}");
    }
}

fn cancel(id: u32) -> Vec<u8> {
    let mut out = Encoder::new(Wire::default());
    CancelRequest { request_id: id }.encode(&mut out).unwrap();
    out.to_vec()
}

/// The remaining time as a service context of Spandrel.
fn remaining(time: Duration) -> ServiceContext {
    let span = u64::try_from(time.as_nanos() / 100).unwrap();
    let data = [&[0; 8][..], &span.to_be_bytes(), &[0xff; 8]].concat();
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data }
}

/// Runs a test with every kind of servant and every concurrency strategy.
fn for_every_servant_and_strategy(test: impl Fn(&dyn Fn() -> OrbBuilder, Kind)) {
    for kind in KINDS {
        for concurrency in [
            Concurrency::ThreadPerConnection { limit: 64 },
            Concurrency::LeaderFollowers { threads: None },
            Concurrency::LeaderFollowers { threads: Some(1) },
            Concurrency::LeaderFollowers { threads: Some(2) },
            Concurrency::ThreadPool { threads: 1, queue: 8 },
            Concurrency::Reactive,
        ] {
            test(&|| Orb::builder().concurrency(concurrency), kind);
        }
    }
}

#[test]
fn a_cancel_request_cancels_its_request_only() {
    for_every_servant_and_strategy(|builder, kind| {
        let server = Server::start(builder(), kind);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        // The first id belongs to no request.
        client.write_all(&[cancel(8), cancel(7)].concat()).unwrap();
        if kind == Kind::GetsTokenLate {
            server.release.open();
        }
        server.assert_ends(CancelReason::ClientCancelled);
        server.orb.shutdown().unwrap();
    });
}

#[test]
fn a_cancel_request_behind_further_requests_cancels_its_request() {
    for_every_servant_and_strategy(|builder, kind| {
        // The others return from their upcalls, and are cancelled before they run.
        if !matches!(kind, Kind::WaitsForToken | Kind::PollsToken) {
            return;
        }
        for is_one_segment in [false, true] {
            let server = Server::start(builder(), kind);
            let mut client = server.raw();
            let further = [server.request(9, &[]), server.request(11, &[]), cancel(11), cancel(7)].concat();
            if is_one_segment {
                // The server reads all of it before it calls the first servant.
                client.write_all(&[server.request(7, &[]), further].concat()).unwrap();
                server.await_begun();
            } else {
                client.write_all(&server.request(7, &[])).unwrap();
                server.await_begun();
                client.write_all(&further).unwrap();
            }
            let ended = || server.ended.recv_timeout(TEST_TIMEOUT).expect("the servant observes the cancellation");
            assert_eq!(ended(), Some(CancelReason::ClientCancelled));
            // The second one begins after the first at the latest; the third is the one that was cancelled before.
            client.write_all(&cancel(9)).unwrap();
            assert_eq!((ended(), ended()), (Some(CancelReason::ClientCancelled), Some(CancelReason::ClientCancelled)));
            server.orb.shutdown().unwrap();
        }
    });
}

/// Replies at once, and goes on until the server has seen the end of the client's connection.
struct RepliesFirst {
    is_deferred: bool,
    has_seen_the_end: Arc<dyn Fn() -> bool + Send + Sync>,
    reasons: Sender<Option<CancelReason>>,
}

impl Servant for RepliesFirst {
    fn repository_id(&self) -> &str {
        "IDL:Tests/Worker:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let (has_seen_the_end, reasons) = (Arc::clone(&self.has_seen_the_end), self.reasons.clone());
        let end = move |token: CancellationToken| {
            wait_until("the end of the connection", || has_seen_the_end());
            reasons.send(token.reason()).unwrap();
        };
        if !self.is_deferred {
            let token = call.cancellation();
            let replied = call.reply(|_| Ok(()));
            end(token);
            return replied;
        }
        let (deferred, replied) = call.defer()?;
        thread::spawn(move || {
            let _ = deferred.answer(|call| call.reply(|_| Ok(()))).unwrap();
            end(deferred.cancellation());
        });
        Ok(replied)
    }
}

#[test]
fn the_end_of_a_client_after_its_reply_cancels_nothing() {
    for is_deferred in [false, true] {
        for concurrency in [
            Concurrency::ThreadPerConnection { limit: 64 },
            Concurrency::LeaderFollowers { threads: None },
            Concurrency::ThreadPool { threads: 1, queue: 8 },
        ] {
            let orb = Orb::builder().concurrency(concurrency).build().unwrap();
            let poa = Poa::root(&orb).unwrap();
            let ((reasons, received), statistics) = (mpsc::channel(), orb.clone());
            let has_seen_the_end = Arc::new(move || statistics.statistics().count(Event::ServerClosedByPeer) == 1);
            let object = poa.activate(RepliesFirst { is_deferred, has_seen_the_end, reasons }).unwrap();
            let server = Server { object, ..Server::of(orb, &poa, Kind::WaitsForToken) };
            let mut client = server.raw();
            client.write_all(&server.request(7, &[])).unwrap();
            read_message(&mut client).unwrap();
            drop(client);
            let reason = received.recv_timeout(TEST_TIMEOUT).expect("the server sees the end");
            assert_eq!(reason, None, "{is_deferred}, {concurrency:?}");
            assert_eq!(server.orb.statistics().count(Event::CancelledByLoss), 0, "{is_deferred}, {concurrency:?}");
            server.orb.shutdown().unwrap();
        }
    }
}

#[test]
fn closing_the_connection_behind_further_requests_cancels_the_running_one() {
    for_every_servant_and_strategy(|builder, kind| {
        if kind == Kind::GetsTokenLate {
            return;
        }
        let server = Server::start(builder(), kind);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        client.write_all(&server.request(9, &[])).unwrap();
        client.shutdown(Shutdown::Both).unwrap();
        let ended = server.ended.recv_timeout(TEST_TIMEOUT).expect("the servant observes the end");
        assert_eq!(ended, Some(CancelReason::ConnectionLost));
        server.orb.shutdown().unwrap();
    });
}

#[test]
fn closing_the_connection_cancels_running_requests() {
    for close_methods in [
        |client: &TcpStream| client.shutdown(Shutdown::Write).unwrap(),
        |client: &TcpStream| {
            client.shutdown(Shutdown::Both).unwrap();
        },
    ] {
        for_every_servant_and_strategy(|builder, kind| {
            let server = Server::start(builder(), kind);
            let mut client = server.raw();
            client.write_all(&server.request(7, &[])).unwrap();
            server.await_begun();
            close_methods(&client);
            server.release.open();
            server.assert_ends(CancelReason::ConnectionLost);
            server.orb.shutdown().unwrap();
        });
    }
}

#[test]
fn the_clients_deadline_cancels_the_request() {
    for_every_servant_and_strategy(|builder, kind| {
        retry_with_longer_timeout(Duration::from_millis(150), |time| {
            let server = Server::start(builder(), kind);
            let mut client = server.raw();
            server.release.open();
            client.write_all(&server.request(7, &[remaining(time)])).unwrap();
            let reply = read_message(&mut client).unwrap();
            assert_eq!(reply[7], 1, "the request is answered nevertheless, {kind:?}");
            // Without a beginning, the deadline had passed before the request was run.
            server.begun.try_recv().ok()?;
            server.assert_ends(CancelReason::DeadlineElapsed);
            server.orb.shutdown().unwrap();
            Some(())
        });
    });
}

#[test]
fn shutdown_cancels_requests_after_its_timeout() {
    for_every_servant_and_strategy(|builder, kind| {
        let server = Server::start(builder().shutdown_timeout(Duration::from_millis(50)), kind);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        server.release.open();
        server.orb.begin_shutdown().unwrap();
        server.assert_ends(CancelReason::ShuttingDown);
        server.orb.shutdown().unwrap();
    });
}

#[test]
fn a_client_timeout_sends_a_cancel_request() {
    for_every_servant_and_strategy(|builder, kind| {
        retry_with_longer_timeout(Duration::from_millis(100), |time| {
            let server = Server::start(builder(), kind);
            server.release.open();
            // Without the deadline context: otherwise the server's own deadline would cancel first.
            let client = server.client(Orb::builder().deadline_context(DeadlineContext::None));
            let release = client.with_timeout(Some(time));
            let error = release.invoke::<(), SystemException>("work", |_| Ok(()), |_| Ok(())).unwrap_err();
            // Without a beginning, the request did not arrive in time.
            server.begun.try_recv().ok()?;
            assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
            server.assert_ends(CancelReason::ClientCancelled);
            client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
            server.orb.shutdown().unwrap();
            Some(())
        });
    });
}

#[test]
fn dropping_a_future_sends_a_cancel_request() {
    for_every_servant_and_strategy(|builder, kind| {
        let server = Server::start(builder(), kind);
        server.release.open();
        let client = server.client(Orb::builder());
        let call = client.invoke_async::<(), SystemException>("work", |_| Ok(()), |_| Ok(()));
        server.await_begun();
        drop(call);
        server.assert_ends(CancelReason::ClientCancelled);
        client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
        server.orb.shutdown().unwrap();
    });
}

/// The servant gets its token after a later request was read, and so after the CancelRequest.
#[test]
fn a_cancellation_is_visible_to_a_token_created_later() {
    let pooled = Concurrency::LeaderFollowers { threads: None };
    for builder in [Orb::builder(), Orb::builder().concurrency(pooled)] {
        let server = Server::start(builder, Kind::GetsTokenLate);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        let template = RequestTemplate::new(Wire::default(), &server.profile().object_key);
        let mut out = Encoder::new(Wire::default());
        template.begin(&mut out, 8, ResponseFlags::TWO_WAY, "late", &[]).end(&mut out).unwrap();
        client.write_all(&[cancel(7), out.to_vec()].concat()).unwrap();
        server.assert_ends(CancelReason::ClientCancelled);
        // A later request with the same id is not cancelled.
        assert_eq!([read_message(&mut client).unwrap()[7], read_message(&mut client).unwrap()[7]], [1, 1]);
        let mut out = Encoder::new(Wire::default());
        template.begin(&mut out, 7, ResponseFlags::TWO_WAY, "idle", &[]).end(&mut out).unwrap();
        client.write_all(&out.to_vec()).unwrap();
        let reply = read_message(&mut client).unwrap();
        assert_eq!(u32::from_ne_bytes(reply[16..20].try_into().unwrap()), 0, "no exception");
        server.orb.shutdown().unwrap();
    }
}

/// Requests that change their thread before they run.
#[test]
fn single_thread_and_main_thread_servants_are_cancelled() {
    for policy in [ThreadPolicy::SingleThreadModel, ThreadPolicy::MainThreadModel] {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let poa = root.create_poa("one at a time", Some(&root.the_poa_manager()), [policy.into()]).unwrap();
        let server = Server::of(orb, &poa, Kind::WaitsForToken);
        let main = server.orb.clone();
        let main = in_background(move || main.run());
        let mut client = server.raw();
        // The second request is deferred until the first has ended.
        client.write_all(&[server.request(7, &[]), server.request(8, &[])].concat()).unwrap();
        server.await_begun();
        client.write_all(&cancel(7)).unwrap();
        server.assert_ends(CancelReason::ClientCancelled);
        server.await_begun();
        drop(client);
        server.assert_ends(CancelReason::ConnectionLost);
        server.orb.shutdown().unwrap();
        main.recv_timeout(TEST_TIMEOUT).unwrap();
    }
}

#[test]
fn answered_requests_and_other_threads_are_not_cancelled() {
    let server = Server::start(Orb::builder(), Kind::WaitsForToken);
    let client = server.client(Orb::builder());
    for _ in 0..3 {
        client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
    }
    client.orb().shutdown().unwrap();
    let outside = CancellationToken::current();
    assert!(!outside.is_cancelled() && outside.reason().is_none() && remaining_time().is_none());
    let statistics = server.orb.statistics();
    server.orb.shutdown().unwrap();
    for event in [Event::CancelledByClient, Event::CancelledByLoss, Event::CancelledByShutdown] {
        assert_eq!(statistics.count(event), 0, "{event:?}");
    }
}
