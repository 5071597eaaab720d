//! What cancels a request, seen by its servant: every cause, for servants of every kind, however their connections are served.

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
    CancelReason, CancellationToken, CompletionStatus, Concurrency, DeferredCall, ObjectRef, Orb, OrbBuilder, Poa,
    Replied, Servant, ServerCall, SystemException, SystemExceptionKind, minor, poa::ThreadPolicy,
    policies::DeadlineContext, remaining_time, statistics::Event,
};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CancelRequest, RequestTemplate, ResponseFlags, ServiceContext, ids};
use spandrel_orb_tests::support::{
    PATIENCE, block_on, in_background, kind_and_completion, read_message, with_time_enough,
};

/// How a servant learns of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// Waits for it in its upcall.
    Waits,
    /// Looks now and then in its upcall.
    Looks,
    /// Asks only when it is late.
    AsksLate,
    /// Is a future, and dropped.
    Future,
    /// Answers later, from another thread.
    Deferred,
}

const KINDS: [Kind; 5] = [Kind::Waits, Kind::Looks, Kind::AsksLate, Kind::Future, Kind::Deferred];

/// A servant that works until nobody waits for it.
struct Worker {
    kind: Kind,
    begun: Sender<()>,
    ended: Sender<Option<CancelReason>>,
    late: Arc<Late>,
}

/// When one asks who asks late.
#[derive(Default)]
struct Late {
    is_due: Mutex<bool>,
    changed: Condvar,
}

impl Late {
    fn come(&self) {
        *self.is_due.lock().unwrap() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let is_due = self.is_due.lock().unwrap();
        let (_is_due, waited) = self.changed.wait_timeout_while(is_due, PATIENCE, |is_due| !*is_due).unwrap();
        assert!(!waited.timed_out(), "it was never late");
    }
}

/// Says at its end why it has ended.
struct Guard(CancellationToken, Sender<Option<CancelReason>>);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.reason());
    }
}

impl Worker {
    fn work(&self, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        match self.kind {
            Kind::Waits => {
                let token = CancellationToken::current();
                self.begun.send(()).unwrap();
                assert_eq!(token.wait_timeout(PATIENCE), token.is_cancelled());
                self.ended.send(token.reason()).unwrap();
                call.reply(|_| Ok(()))
            }
            Kind::Looks => {
                let token = call.cancellation();
                self.begun.send(()).unwrap();
                let begun = std::time::Instant::now();
                while !token.is_cancelled() && begun.elapsed() < PATIENCE {
                    thread::yield_now();
                }
                self.ended.send(CancellationToken::current().reason()).unwrap();
                call.reply(|_| Ok(()))
            }
            Kind::AsksLate => {
                self.begun.send(()).unwrap();
                self.late.wait();
                let token = CancellationToken::current();
                let _ = token.wait_timeout(PATIENCE);
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
                self.late.come();
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
    late: Arc<Late>,
}

impl Server {
    fn start(builder: OrbBuilder, kind: Kind) -> Self {
        let orb = builder.build().unwrap();
        let poa = Poa::root(&orb).unwrap();
        Self::of(orb, &poa, kind)
    }

    fn of(orb: Orb, poa: &Poa, kind: Kind) -> Self {
        let ((begin, begun), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let late = Arc::<Late>::default();
        let worker = Worker { kind, begun: begin, ended: end, late: Arc::clone(&late) };
        let object = poa.activate(worker).unwrap();
        Self { orb, object, begun, ended, late }
    }

    fn client(&self, builder: OrbBuilder) -> ObjectRef {
        builder.build().unwrap().string_to_object(&self.object.to_string()).unwrap()
    }

    fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn port(&self) -> u16 {
        self.profile().port
    }

    fn profile(&self) -> spandrel::IiopProfile {
        spandrel::IiopProfile::decode(&self.object.ior().profiles[0]).unwrap().unwrap()
    }

    /// A request for `work`, by hand.
    fn request(&self, id: u32, contexts: &[ServiceContext]) -> Vec<u8> {
        let template = RequestTemplate::new(Wire::default(), &self.profile().object_key);
        let mut out = Encoder::new(Wire::default());
        let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, "work", contexts);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    fn await_begun(&self) {
        self.begun.recv_timeout(PATIENCE).expect("the servant is called");
    }

    #[track_caller]
    fn assert_ends(&self, reason: CancelReason) {
        let ended = self.ended.recv_timeout(PATIENCE).expect("the servant learns of it");
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

/// So much time is left, in the context that servers of our kind read.
fn remaining(time: Duration) -> ServiceContext {
    let span = u64::try_from(time.as_nanos() / 100).unwrap();
    let data = [&[0; 8][..], &span.to_be_bytes(), &[0xff; 8]].concat();
    ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data }
}

/// Servants of every kind, over connections that have threads, over those that the reactor serves, where it has one thread and no other, and
/// where one thread reads and another runs.
fn everywhere(test: impl Fn(&dyn Fn() -> OrbBuilder, Kind)) {
    for kind in KINDS {
        for concurrency in [
            Concurrency::ThreadPerConnection { limit: 64 },
            Concurrency::LeaderFollowers { threads: None },
            Concurrency::LeaderFollowers { threads: Some(1) },
            Concurrency::ThreadPool { threads: 1, queue: 8 },
            Concurrency::Reactive,
        ] {
            test(&|| Orb::builder().concurrency(concurrency), kind);
        }
    }
}

#[test]
fn a_cancel_request_reaches_the_servant() {
    everywhere(|builder, kind| {
        let server = Server::start(builder(), kind);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        // Of nobody, and then of the one.
        client.write_all(&[cancel(8), cancel(7)].concat()).unwrap();
        if kind == Kind::AsksLate {
            server.late.come();
        }
        server.assert_ends(CancelReason::ClientCancelled);
        server.orb.shutdown(true).unwrap();
    });
}

#[test]
fn a_client_that_is_gone_is_noticed_while_the_servant_runs() {
    for ends in [
        |client: &TcpStream| client.shutdown(Shutdown::Write).unwrap(),
        |client: &TcpStream| {
            client.shutdown(Shutdown::Both).unwrap();
        },
    ] {
        everywhere(|builder, kind| {
            let server = Server::start(builder(), kind);
            let mut client = server.raw();
            client.write_all(&server.request(7, &[])).unwrap();
            server.await_begun();
            ends(&client);
            server.late.come();
            server.assert_ends(CancelReason::ConnectionLost);
            server.orb.shutdown(true).unwrap();
        });
    }
}

#[test]
fn a_deadline_that_travels_ends_the_work_and_is_known_to_it() {
    everywhere(|builder, kind| {
        with_time_enough(Duration::from_millis(150), |time| {
            let server = Server::start(builder(), kind);
            let mut client = server.raw();
            server.late.come();
            client.write_all(&server.request(7, &[remaining(time)])).unwrap();
            let reply = read_message(&mut client).unwrap();
            assert_eq!(reply[7], 1, "it is answered all the same, {kind:?}");
            // Otherwise its time was up before it was run.
            server.begun.try_recv().ok()?;
            server.assert_ends(CancelReason::DeadlineElapsed);
            server.orb.shutdown(true).unwrap();
            Some(())
        });
    });
}

#[test]
fn the_end_of_the_orb_cancels_what_outlasts_its_patience() {
    everywhere(|builder, kind| {
        let server = Server::start(builder().shutdown_timeout(Duration::from_millis(50)), kind);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        server.late.come();
        server.orb.shutdown(false).unwrap();
        server.assert_ends(CancelReason::ShuttingDown);
        server.orb.shutdown(true).unwrap();
    });
}

#[test]
fn a_caller_whose_time_is_up_tells_the_server() {
    everywhere(|builder, kind| {
        with_time_enough(Duration::from_millis(100), |time| {
            let server = Server::start(builder(), kind);
            server.late.come();
            // What it says of its deadline would come first.
            let client = server.client(Orb::builder().deadline_context(DeadlineContext::None));
            let late = client.with_timeout(Some(time));
            let error = late.invoke::<(), SystemException>("work", |_| Ok(()), |_| Ok(())).unwrap_err();
            // Otherwise it was not there in time.
            server.begun.try_recv().ok()?;
            assert_eq!(kind_and_completion(&error), (SystemExceptionKind::Timeout, CompletionStatus::Maybe));
            server.assert_ends(CancelReason::ClientCancelled);
            client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
            server.orb.shutdown(true).unwrap();
            Some(())
        });
    });
}

#[test]
fn a_future_that_is_dropped_tells_the_server() {
    everywhere(|builder, kind| {
        let server = Server::start(builder(), kind);
        server.late.come();
        let client = server.client(Orb::builder());
        let asked = client.invoke_async::<(), SystemException>("work", |_| Ok(()), |_| Ok(()));
        server.await_begun();
        drop(asked);
        server.assert_ends(CancelReason::ClientCancelled);
        client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
        server.orb.shutdown(true).unwrap();
    });
}

/// A servant that asks for its token only after the CancelRequest has certainly been read: another request was, that came after it.
#[test]
fn a_cancel_request_is_kept_for_a_servant_that_asks_late() {
    let pooled = Concurrency::LeaderFollowers { threads: None };
    for builder in [Orb::builder(), Orb::builder().concurrency(pooled)] {
        let server = Server::start(builder, Kind::AsksLate);
        let mut client = server.raw();
        client.write_all(&server.request(7, &[])).unwrap();
        server.await_begun();
        let template = RequestTemplate::new(Wire::default(), &server.profile().object_key);
        let mut out = Encoder::new(Wire::default());
        template.begin(&mut out, 8, ResponseFlags::TWO_WAY, "late", &[]).end(&mut out).unwrap();
        client.write_all(&[cancel(7), out.to_vec()].concat()).unwrap();
        server.assert_ends(CancelReason::ClientCancelled);
        // The same id again is another request.
        assert_eq!([read_message(&mut client).unwrap()[7], read_message(&mut client).unwrap()[7]], [1, 1]);
        let mut out = Encoder::new(Wire::default());
        template.begin(&mut out, 7, ResponseFlags::TWO_WAY, "idle", &[]).end(&mut out).unwrap();
        client.write_all(&out.to_vec()).unwrap();
        let reply = read_message(&mut client).unwrap();
        assert_eq!(u32::from_ne_bytes(reply[16..20].try_into().unwrap()), 0, "no exception");
        server.orb.shutdown(true).unwrap();
    }
}

/// Where a request changes its thread before it is run.
#[test]
fn servants_of_one_thread_and_of_the_main_thread_are_cancelled_too() {
    for policy in [ThreadPolicy::SingleThreadModel, ThreadPolicy::MainThreadModel] {
        let orb = Orb::builder().build().unwrap();
        let root = Poa::root(&orb).unwrap();
        let poa = root.create_poa("one at a time", Some(&root.the_poa_manager()), [policy.into()]).unwrap();
        let server = Server::of(orb, &poa, Kind::Waits);
        let main = server.orb.clone();
        let main = in_background(move || main.run());
        let mut client = server.raw();
        // The second waits for the turn of the first, and is deferred until then.
        client.write_all(&[server.request(7, &[]), server.request(8, &[])].concat()).unwrap();
        server.await_begun();
        client.write_all(&cancel(7)).unwrap();
        server.assert_ends(CancelReason::ClientCancelled);
        server.await_begun();
        drop(client);
        server.assert_ends(CancelReason::ConnectionLost);
        server.orb.shutdown(true).unwrap();
        main.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn nothing_cancels_what_is_answered_and_nobody_cancels_elsewhere() {
    let server = Server::start(Orb::builder(), Kind::Waits);
    let client = server.client(Orb::builder());
    for _ in 0..3 {
        client.invoke::<(), SystemException>("idle", |_| Ok(()), |_| Ok(())).unwrap();
    }
    client.orb().shutdown(true).unwrap();
    let nobody = CancellationToken::current();
    assert!(!nobody.is_cancelled() && nobody.reason().is_none() && remaining_time().is_none());
    let statistics = server.orb.statistics();
    server.orb.shutdown(true).unwrap();
    for event in [Event::CancelledByClient, Event::CancelledByLoss, Event::CancelledByShutdown] {
        assert_eq!(statistics.count(event), 0, "{event:?}");
    }
}
