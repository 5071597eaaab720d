//! Adapters with priorities, end to end: the octets of clients over sockets, and callers in the same ORB.

mod endpoints;
#[cfg(target_os = "linux")]
mod floods;
mod hostile;
#[cfg(target_os = "linux")]
mod lookup;
#[cfg(target_os = "linux")]
mod protocols;
#[cfg(unix)]
mod replies;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::{Condvar, Mutex, mpsc};
use std::time::Duration;

use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Limits, Wire};
use spandrel_giop::component::TAG_POLICIES;
use spandrel_giop::{
    CompletionStatus, IiopProfile, Message, MessageType, ReplyHeader, ReplyStatus, RequestTemplate, ResponseFlags,
    ServiceContext, SystemException, SystemExceptionKind, ids, minor,
};
use spandrel_message::MessageBlock;
use spandrel_orb::diagnostics::statistics::Event;
use spandrel_orb::{Collocation, Concurrency, Endpoint, ObjectRef, Orb, Policy};
use spandrel_poa::{Poa, PoaError, Servant};
use spandrel_server::generated::{Facet, direct, offer};
use spandrel_server::{Replied, ServerCall};
use spandrel_sync::Arc;
use spandrel_test_support::{TEST_TIMEOUT, in_background, wait_until};

use crate::contexts::{self, PropagatedPolicy};
use crate::policies::{
    PriorityBand, PriorityBandedConnectionPolicy, PriorityModel, PriorityModelPolicy, ThreadpoolPolicy,
};
use crate::{
    ExecutionTimes, LaneSettings, LaneStatistics, LinearMapping, Overrun, OverrunAction, PoolSettings, Priority,
    PriorityTransform, RtCurrent, RtPoa, RtPoaBuilder, RtServerOrb, Scheduling, SchedulingClass,
};

const LONG: Duration = TEST_TIMEOUT;

fn priority(number: i16) -> Priority {
    Priority::new(number).unwrap()
}

fn lane(number: i16, static_threads: usize) -> LaneSettings {
    LaneSettings { priority: priority(number), static_threads, dynamic_threads: 0 }
}

/// A servant that records each request with its priority, and keeps those of the operation `hold`.
struct Sensor {
    current: RtCurrent,
    begun: Mutex<Vec<Begun>>,
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Called inside of `relay`.
    other: Mutex<Option<ObjectRef>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Begun {
    name: String,
    priority: Option<i16>,
    thread: String,
}

impl Sensor {
    fn record(&self, name: &str) {
        let priority = self.current.the_priority().ok().map(Priority::get);
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        self.begun.lock().unwrap().push(Begun { name: name.to_owned(), priority, thread });
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn begun(&self) -> Vec<(String, i16)> {
        let begun = self.begun.lock().unwrap();
        begun.iter().map(|begun| (begun.name.clone(), begun.priority.unwrap_or(-1))).collect()
    }
}

impl Servant for Sensor {
    fn repository_id(&self) -> &str {
        "IDL:Sensor:1.0"
    }

    /// Callers in this process use `_is_a`, which needs no stub.
    fn is_a(&self, name: &str) -> bool {
        self.record(name);
        true
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        if operation.starts_with('_') {
            return call.implicit(self);
        }
        let name = call.arguments()?.str()?.into_owned();
        self.record(&name);
        match operation {
            "hold" => drop(self.opened.wait_while(self.is_open.lock().unwrap(), |is_open| !*is_open).unwrap()),
            "relay" => {
                let other = self.other.lock().unwrap().clone().expect("the test has set it");
                other.is_a(&format!("inside {name}"))?;
            }
            "panic" => panic!("intended"),
            // Ends with an exception after the request was cancelled.
            "cancelled" => {
                let token = call.cancellation();
                assert!(token.wait_timeout(LONG));
                self.record(&format!("{:?}", token.reason()));
                return Err(SystemException::unknown(0, CompletionStatus::Yes));
            }
            // Replies after the request was cancelled, by a call that the servant has deferred itself.
            "deferred" => {
                let (deferred, replied) = call.defer()?;
                let token = deferred.cancellation();
                let _replied = deferred.answer(|call| {
                    assert!(token.wait_timeout(LONG));
                    call.reply(|_| Ok(()))
                })?;
                return Ok(replied);
            }
            _ => {}
        }
        call.reply(|_| Ok(()))
    }
}

struct Server {
    orb: Orb,
    rt_orb: RtServerOrb,
    pool: u32,
    root: Poa,
    poa: Poa,
    sensor: Arc<Sensor>,
    object: ObjectRef,
    _directory: tempfile::TempDir,
    path: String,
}

impl Server {
    /// A server whose adapter has a pool with these settings and CLIENT_PROPAGATED, with the priority 50 for requests
    /// without one.
    fn new(settings: PoolSettings) -> Self {
        Self::with(settings, PriorityModel::ClientPropagated, 50, Concurrency::default())
    }

    fn with(settings: PoolSettings, model: PriorityModel, server_priority: i16, concurrency: Concurrency) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket").to_str().unwrap().to_owned();
        let builder = Orb::builder()
            .listen(Endpoint::new("127.0.0.1", 0))
            .concurrency(concurrency)
            .collocation(Collocation::Direct);
        let builder = if cfg!(unix) { builder.listen(Endpoint::of("uds", &path)) } else { builder };
        Self::on(builder.build().unwrap(), directory, settings, model, server_priority)
    }

    /// The server of this ORB, with the path of its socket in a directory.
    fn on(
        orb: Orb,
        directory: tempfile::TempDir,
        settings: PoolSettings,
        model: PriorityModel,
        server_priority: i16,
    ) -> Self {
        let path = directory.path().join("socket").to_str().unwrap().to_owned();
        let rt_orb = RtServerOrb::new(Scheduling::new(SchedulingClass::Unchanged, Arc::new(LinearMapping)));
        let pool = rt_orb.create(settings).unwrap();
        let root = Poa::root(&orb).unwrap();
        let model = PriorityModelPolicy { model, server_priority: priority(server_priority) };
        let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(pool).into()];
        let poa = root.child("sensors").user_ids().real_time(&rt_orb, policies).unwrap().create().unwrap();
        let sensor = Arc::new(Sensor {
            current: rt_orb.current(),
            begun: Mutex::default(),
            is_open: Mutex::default(),
            opened: Condvar::new(),
            other: Mutex::default(),
        });
        poa.activate_object_with_id(&"sensor".into(), Arc::<Sensor>::clone(&sensor) as _).unwrap();
        let object = poa.id_to_reference(&"sensor".into()).unwrap();
        Self { orb, rt_orb, pool, root, poa, sensor, object, _directory: directory, path }
    }

    fn lanes(&self) -> Vec<LaneStatistics> {
        self.rt_orb.threadpool(self.pool).unwrap().statistics()
    }

    fn until_buffered(&self, requests: usize) {
        wait_until("the requests that wait", || self.buffered() == requests);
    }

    fn buffered(&self) -> usize {
        self.lanes().iter().map(|lane| lane.buffered_requests).sum()
    }

    fn until_begun(&self, requests: usize) {
        wait_until("the requests that have begun", || self.sensor.begun().len() == requests);
    }

    fn connect(&self) -> Client {
        Client::new(&self.object, TcpStream::connect(("127.0.0.1", self.orb.listen().unwrap()[0].1)).unwrap())
    }

    /// A client by each transport.
    fn clients(&self) -> Vec<Client> {
        #[allow(unused_mut, reason = "for systems without such sockets")]
        let mut clients = vec![self.connect()];
        #[cfg(unix)]
        clients.push(Client::new(&self.object, std::os::unix::net::UnixStream::connect(&self.path).unwrap()));
        clients
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.sensor.open();
        let _ = self.orb.shutdown();
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A client of another ORB: one connection, and its octets.
struct Client {
    stream: Box<dyn Stream>,
    template: RequestTemplate,
    wire: Wire,
    last: u32,
}

impl Client {
    fn new(object: &ObjectRef, stream: impl Stream + 'static) -> Self {
        let profile = object.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).unwrap()).unwrap();
        let wire = Wire::new(ByteOrder::Big, GiopVersion::V1_2);
        let template = RequestTemplate::new(wire, &profile.object_key);
        Self { stream: Box::new(stream), template, wire, last: 0 }
    }

    /// Sends a request with the priority context as TAO writes it: octet order, padding, short.
    fn send(&mut self, operation: &str, name: &str, priority: Option<i16>) -> u32 {
        let octets = |number: i16| [vec![0, 0], number.to_be_bytes().to_vec()].concat();
        let context = priority.map(|number| ServiceContext { id: contexts::RT_CORBA_PRIORITY, data: octets(number) });
        self.send_with(operation, name, context.as_slice())
    }

    fn send_with(&mut self, operation: &str, name: &str, contexts: &[ServiceContext]) -> u32 {
        self.last += 1;
        let mut out = Encoder::new(self.wire);
        let body = self.template.begin(&mut out, self.last, ResponseFlags::TWO_WAY, operation, contexts);
        out.str(name).unwrap();
        body.end(&mut out).unwrap();
        self.stream.write_all(&out.to_vec()).unwrap();
        self.last
    }

    fn cancel(&mut self, request_id: u32) {
        let header = [b'G', b'I', b'O', b'P', 1, 2, 0, 2, 0, 0, 0, 4];
        self.stream.write_all(&[&header[..], &request_id.to_be_bytes()].concat()).unwrap();
    }

    fn read(&mut self) -> Message {
        let mut octets = vec![0; 12];
        self.stream.read_exact(&mut octets).unwrap();
        let size: [u8; 4] = octets[8..12].try_into().unwrap();
        let size = if octets[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
        octets.resize(12 + size as usize, 0);
        self.stream.read_exact(&mut octets[12..]).unwrap();
        Message::whole(MessageBlock::from(octets.as_slice())).unwrap()
    }

    /// The id of the next reply, and its exception.
    fn reply(&mut self) -> (u32, Option<SystemException>) {
        let message = self.read();
        assert_eq!(message.header.message_type, MessageType::Reply);
        let mut input = message.decoder(Limits::default());
        let header = ReplyHeader::decode(&mut input).unwrap();
        let (id, status) = (header.request_id, header.status);
        let exception = (status == ReplyStatus::SystemException).then(|| {
            let id = input.str().unwrap();
            SystemException::decode(&id, &mut input).unwrap()
        });
        (id, exception)
    }

    fn replies(&mut self, count: usize) -> Vec<u32> {
        (0..count)
            .map(|_| {
                let (id, exception) = self.reply();
                assert!(exception.is_none(), "{exception:?}");
                id
            })
            .collect()
    }

    fn refusal(&mut self) -> (u32, SystemExceptionKind) {
        let (id, exception) = self.reply();
        (id, exception.expect("an exception").kind())
    }
}

/// One thread for all priorities, and room for many requests.
fn one_thread() -> PoolSettings {
    PoolSettings { buffering: Some((0, 0)), ..PoolSettings::without_lanes(1, 0, Priority::MIN) }
}

#[test]
fn a_high_request_overtakes_low_ones_of_its_connection_that_wait_for_the_one_thread() {
    let strategies = [
        Concurrency::default(),
        Concurrency::LeaderFollowers { threads: Some(1) },
        Concurrency::Reactive,
        Concurrency::ThreadPool { threads: 1, queue: 64 },
    ];
    for concurrency in strategies {
        let server = Server::with(one_thread(), PriorityModel::ClientPropagated, 50, concurrency);
        for mut client in server.clients() {
            server.sensor.begun.lock().unwrap().clear();
            *server.sensor.is_open.lock().unwrap() = false;
            let held = client.send("hold", "held", Some(10));
            server.until_begun(1);
            let low: Vec<u32> = (0..100).map(|at| client.send("note", &format!("low {at}"), Some(5))).collect();
            server.until_buffered(100);
            let high = client.send("note", "high", Some(20_000));
            server.until_buffered(101);
            server.sensor.open();
            let mut replies = client.replies(102);
            assert_eq!(replies[..2], [held, high], "{concurrency:?}");
            // Another thread may read on while one hands a request over: low ones may overtake each other.
            replies[2..].sort_unstable();
            assert_eq!(replies[2..], low, "{concurrency:?}");
            let begun = server.sensor.begun();
            let order = [("held".to_owned(), 10), ("high".to_owned(), 20_000)];
            assert_eq!(begun[..2], order, "a flood delays the high request by the upcall that runs, and no further");
            assert!(begun[2..].iter().all(|(_, priority)| *priority == 5), "{begun:?}");
        }
    }
}

#[test]
fn without_a_context_a_request_has_the_priority_of_the_policy_and_either_byte_order_is_read() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(50, 1), lane(100, 1)]));
    let mut client = server.connect();
    client.send("note", "none", None);
    client.replies(1);
    client.send("note", "big-endian", Some(0x0102));
    client.replies(1);
    client.send_with("note", "little-endian", &[ServiceContext { id: 10, data: vec![1, 0, 0x02, 0x01] }]);
    client.replies(1);
    let begun: Vec<_> = server.sensor.begun.lock().unwrap().clone();
    let expected =
        [("none", 50, "rt-lane-1"), ("big-endian", 0x0102, "rt-lane-2"), ("little-endian", 0x0102, "rt-lane-2")];
    for (begun, (name, priority, thread)) in begun.iter().zip(expected) {
        let expected = Begun { name: name.to_owned(), priority: Some(priority), thread: thread.to_owned() };
        assert_eq!(*begun, expected);
    }
    client.send_with("note", "malformed", &[ServiceContext { id: 10, data: vec![0] }]);
    assert_eq!(client.refusal().1, SystemExceptionKind::Marshal);
    client.send("note", "negative", Some(-1));
    assert_eq!(client.refusal().1, SystemExceptionKind::Marshal);
    assert_eq!(server.sensor.begun().len(), 3, "refused requests do not run");
}

#[test]
fn a_busy_lane_without_buffering_refuses_with_transient_and_the_other_lane_serves() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]));
    for mut client in server.clients() {
        server.sensor.begun.lock().unwrap().clear();
        *server.sensor.is_open.lock().unwrap() = false;
        let held = client.send("hold", "held", Some(10));
        server.until_begun(1);
        let refused = client.send("note", "refused", Some(99));
        let (id, exception) = client.reply();
        let exception = exception.expect("an exception");
        assert_eq!((id, exception.kind()), (refused, SystemExceptionKind::Transient));
        assert_eq!(exception.minor(), minor::REQUEST_DISCARDED);
        let high = client.send("note", "high", Some(100));
        assert_eq!(client.replies(1), [high]);
        let below = client.send("note", "below all lanes", Some(9));
        assert_eq!(client.refusal(), (below, SystemExceptionKind::InvPolicy));
        server.sensor.open();
        assert_eq!(client.replies(1), [held]);
        // A client that has its reply finds the thread free.
        for _ in 0..500 {
            let again = client.send("note", "again", Some(99));
            assert_eq!(client.replies(1), [again]);
        }
    }
}

#[test]
fn a_connection_that_floods_delays_another_by_one_turn_and_takes_half_of_the_buffer() {
    let settings = PoolSettings { buffering: Some((100, 0)), shares_buffers: true, ..one_thread() };
    let server = Server::new(settings);
    let (mut flood, mut other) = (server.connect(), server.connect());
    let held = flood.send("hold", "held", Some(10));
    server.until_begun(1);
    let ids: Vec<u32> = (0..60).map(|_| flood.send("note", "flood", Some(5))).collect();
    for _ in 0..10 {
        assert_eq!(flood.refusal().1, SystemExceptionKind::Transient);
    }
    server.until_buffered(50);
    let turn = other.send("note", "other", Some(5));
    server.until_buffered(51);
    server.sensor.open();
    assert_eq!(other.replies(1), [turn]);
    assert_eq!(flood.replies(51).len() + 10, 1 + ids.len());
    let begun = server.sensor.begun();
    assert_eq!(begun[0].0, "held");
    assert!(begun[1..3].iter().any(|(name, _)| name == "other"), "{:?}", &begun[..3]);
    assert!(held < ids[0]);
}

#[test]
fn an_idle_thread_of_a_lower_lane_is_borrowed_at_the_priority_of_the_request() {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let server = Server::new(PoolSettings { allows_borrowing: true, ..lanes });
    let mut client = server.connect();
    client.send("hold", "first", Some(100));
    server.until_begun(1);
    client.send("hold", "second", Some(200));
    server.until_begun(2);
    let begun = server.sensor.begun.lock().unwrap()[1].clone();
    assert_eq!((begun.priority, &*begun.thread), (Some(200), "rt-lane-0"));
    assert_eq!(server.lanes()[1].borrowed, 1);
    server.sensor.open();
    client.replies(2);
}

#[test]
fn a_cancelled_request_that_waits_does_not_run_and_a_late_one_is_answered_with_timeout() {
    let server = Server::new(one_thread());
    let mut client = server.connect();
    let held = client.send("hold", "held", Some(10));
    server.until_begun(1);
    let cancelled = client.send("note", "cancelled", Some(10));
    server.until_buffered(1);
    client.cancel(cancelled);
    // The remaining time in units of 100 ns: of the answer, and of the delivery.
    let remaining = [vec![0; 8], 10_000_u64.to_be_bytes().to_vec(), u64::MAX.to_be_bytes().to_vec()].concat();
    let late = client.send_with("note", "late", &[ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data: remaining }]);
    let next = client.send("note", "next", Some(10));
    // The late request waits, too, unless its deadline has passed before. Then the next one shows that all was read.
    wait_until("a further request that waits", || server.buffered() >= 2);
    std::thread::sleep(Duration::from_millis(2)); // the deadline passes
    server.sensor.open();
    let ends: Vec<_> = (0..3).map(|_| client.reply()).collect();
    let kinds: Vec<_> =
        ends.iter().map(|(id, exception)| (*id, exception.as_ref().map(SystemException::kind))).collect();
    // Its deadline ends the late request wherever it is; the order of its reply is open.
    assert!(kinds.contains(&(held, None)) && kinds.contains(&(next, None)), "{kinds:?}");
    assert!(kinds.contains(&(late, Some(SystemExceptionKind::Timeout))), "{kinds:?}");
    let names: Vec<_> = server.sensor.begun().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["held", "next"]);
}

#[test]
fn a_servant_that_panics_answers_its_client_and_keeps_its_thread() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1)]));
    let mut client = server.connect();
    client.send("panic", "panic", Some(1));
    assert_eq!(client.refusal().1, SystemExceptionKind::Unknown);
    client.send("note", "after", Some(1));
    client.replies(1);
}

#[test]
fn a_servant_beyond_its_time_is_reported_and_its_client_answered_once_with_timeout() {
    let (send, overruns) = mpsc::channel();
    let times = ExecutionTimes::new(OverrunAction::Cancel)
        .lane(priority(100), Duration::from_millis(20))
        .observer(move |overrun: &Overrun| send.send(overrun.clone()).unwrap());
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 2)]);
    let server = Server::new(PoolSettings { execution_times: Some(times), ..lanes });
    for mut client in server.clients() {
        server.sensor.begun.lock().unwrap().clear();
        *server.sensor.is_open.lock().unwrap() = false;
        for operation in ["hold", "cancelled", "deferred"] {
            // The thread of the request before may return after its client has the exception.
            wait_until("a thread is idle", || server.lanes()[1].idle >= 1);
            let sent = client.send(operation, "slow", Some(150));
            let (id, exception) = client.reply();
            let exception = exception.expect("an exception");
            assert_eq!((id, exception.kind()), (sent, SystemExceptionKind::Timeout), "{operation}");
            assert_eq!(exception.completed(), CompletionStatus::Maybe);
            let overrun = overruns.recv_timeout(LONG).unwrap();
            assert_eq!(overrun.adapter.as_deref(), Some("RootPOA/sensors"));
            assert_eq!(overrun.operation.as_deref(), Some(operation));
            assert_eq!((overrun.lane, overrun.priority), (priority(100), priority(150)));
            assert!(overrun.is_cancelled && !overrun.is_demoted && overrun.elapsed >= overrun.limit, "{overrun}");
        }
        server.until_begun(4);
        assert_eq!(server.sensor.begun()[2].0, "Some(TimeExceeded)");
        // The first servant runs still, and the other lane does not notice.
        wait_until("the thread of the second is idle", || server.lanes()[1].idle == 1);
        let other = client.send("note", "other lane", Some(10));
        assert_eq!(client.replies(1), [other]);
        server.sensor.open();
        wait_until("both threads are idle", || server.lanes()[1].idle == 2);
        // Its reply and the exception of the other one are not sent.
        let next = client.send("note", "next", Some(10));
        assert_eq!(client.replies(1), [next]);
    }
    assert_eq!(server.orb.statistics().count(Event::CancelledByExecutor), server.lanes()[1].overruns);
}

#[test]
fn a_shutdown_waits_for_requests_in_lanes_and_closes_their_connection_afterwards() {
    let server = Server::new(one_thread());
    let mut client = server.connect();
    let held = client.send("hold", "held", Some(10));
    server.until_begun(1);
    let waiting = client.send("note", "waiting", Some(10));
    server.until_buffered(1);
    let orb = server.orb.clone();
    let ended = in_background(move || orb.shutdown());
    assert!(ended.recv_timeout(Duration::from_millis(20)).is_err(), "a request runs");
    server.sensor.open();
    assert_eq!(client.replies(2), [held, waiting]);
    assert_eq!(client.read().header.message_type, MessageType::CloseConnection);
    ended.recv_timeout(LONG).unwrap().unwrap();
}

#[test]
fn the_end_of_a_pool_refuses_the_requests_that_wait_and_later_ones() {
    let server = Server::new(one_thread());
    let mut client = server.connect();
    let held = client.send("hold", "held", Some(10));
    server.until_begun(1);
    let waiting = client.send("note", "waiting", Some(10));
    server.until_buffered(1);
    std::thread::scope(|scope| {
        scope.spawn(|| server.rt_orb.destroy_threadpool(server.pool).unwrap());
        assert_eq!(client.refusal(), (waiting, SystemExceptionKind::Transient));
        server.sensor.open();
        assert_eq!(client.replies(1), [held]);
    });
    let later = client.send("note", "later", Some(10));
    assert_eq!(client.refusal(), (later, SystemExceptionKind::Transient));
}

#[test]
fn declared_priorities_are_those_of_objects_and_contexts_do_not_change_them() {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let server = Server::with(lanes, PriorityModel::ServerDeclared, 10, Concurrency::default());
    let sensor: Arc<dyn Servant> = Arc::<Sensor>::clone(&server.sensor) as _;
    let poa = server.root.child("many").user_ids().multiple_ids();
    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
    let poa = poa.real_time(&server.rt_orb, [model.into(), ThreadpoolPolicy(server.pool).into()]).unwrap();
    let poa = poa.create().unwrap();
    poa.activate_object_with_id_and_priority(&"urgent".into(), Arc::clone(&sensor), 100).unwrap();
    poa.activate_object_with_id(&"ordinary".into(), Arc::clone(&sensor)).unwrap();
    for (id, priority, thread) in [("urgent", 100, "rt-lane-1"), ("ordinary", 10, "rt-lane-0")] {
        let object = poa.id_to_reference(&id.into()).unwrap();
        assert_eq!(model_of(&object), PriorityModelPolicy { server_priority: self::priority(priority), ..model });
        let port = server.orb.listen().unwrap()[0].1;
        let mut client = Client::new(&object, TcpStream::connect(("127.0.0.1", port)).unwrap());
        client.send("note", id, Some(20_000));
        client.replies(1);
        let begun = server.sensor.begun.lock().unwrap().pop().unwrap();
        let expected = Begun { name: id.to_owned(), priority: Some(priority), thread: thread.to_owned() };
        assert_eq!(begun, expected);
    }
}

/// The priority model in the profile of a reference.
fn model_of(object: &ObjectRef) -> PriorityModelPolicy {
    let profile = object.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).unwrap()).unwrap();
    let component = profile.components.iter().find(|component| component.tag == TAG_POLICIES).expect("the policies");
    let policies = contexts::decode_policies(component).unwrap().expect("their tag");
    match &policies[..] {
        [PropagatedPolicy::PriorityModel(policy), ..] => *policy,
        other => panic!("{other:?}"),
    }
}

#[test]
fn operations_with_a_priority_have_the_exceptions_of_the_standard() {
    let lanes = || PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let server = Server::with(lanes(), PriorityModel::ServerDeclared, 10, Concurrency::default());
    let (poa, interface) = (&server.poa, "IDL:Sensor:1.0");
    let system = |error: PoaError| match error {
        PoaError::System(exception) => (exception.kind(), exception.minor()),
        other => panic!("{other}"),
    };
    let with_id = |id: &str, priority| poa.create_reference_with_id_and_priority(&id.into(), interface, priority);
    for wrong in [-1, 11, 99] {
        assert_eq!(system(with_id("a", wrong).unwrap_err()), (SystemExceptionKind::BadParam, 0));
    }
    assert_eq!(model_of(&with_id("a", 100).unwrap()).server_priority, priority(100));
    assert_eq!(model_of(&with_id("a", 100).unwrap()).server_priority, priority(100), "the same one is no error");
    let differs = (SystemExceptionKind::BadInvOrder, minor::DEPENDENCY_EXISTS);
    assert_eq!(system(with_id("a", 10).unwrap_err()), differs);
    let servant = || -> Arc<dyn Servant> { Arc::new(Plain) };
    let activate = |id: &str, priority| poa.activate_object_with_id_and_priority(&id.into(), servant(), priority);
    assert_eq!(system(activate("a", 10).unwrap_err()), differs);
    activate("a", 100).unwrap();
    assert!(matches!(activate("a", 100), Err(PoaError::ObjectAlreadyActive { .. })));
    // An activation is no reference: the next one may have another priority, once the first has ended.
    activate("b", 10).unwrap();
    assert!(matches!(activate("b", 100), Err(PoaError::ObjectAlreadyActive { .. })));
    assert_eq!(model_of(&poa.id_to_reference(&"b".into()).unwrap()).server_priority, priority(10));
    poa.deactivate_object(&"b".into()).unwrap();
    activate("b", 100).unwrap();
    assert_eq!(model_of(&poa.id_to_reference(&"b".into()).unwrap()).server_priority, priority(100));
    assert!(matches!(poa.create_reference_with_priority(interface, 10), Err(PoaError::WrongPolicy { .. })));
    assert!(matches!(poa.activate_object_with_priority(servant(), 10), Err(PoaError::WrongPolicy { .. })));

    let model = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(10) };
    let policies = || -> [Policy; 2] { [model.into(), ThreadpoolPolicy(server.pool).into()] };
    let assigned = server.root.child("assigned").real_time(&server.rt_orb, policies()).unwrap().create().unwrap();
    assert_eq!(
        model_of(&assigned.create_reference_with_priority(interface, 100).unwrap()).server_priority,
        priority(100)
    );
    let id = assigned.activate_object_with_priority(servant(), 100).unwrap();
    assert_eq!(model_of(&assigned.id_to_reference(&id).unwrap()).server_priority, priority(100));

    let wrong_policy = |poa: &Poa| match poa.activate_object_with_priority(servant(), 10) {
        Err(PoaError::WrongPolicy { required, .. }) => required,
        other => panic!("{other:?}"),
    };
    assert_eq!(wrong_policy(&server.root.child("plain").create().unwrap()), "SERVER_DECLARED");
    let propagated = PriorityModelPolicy { model: PriorityModel::ClientPropagated, ..model };
    let propagated = server.root.create_rt_poa(&server.rt_orb, "propagated", None, [propagated.into()]).unwrap();
    assert_eq!(wrong_policy(&propagated), "SERVER_DECLARED");
    let implicit = server.root.child("implicit").implicit_activation();
    let implicit = implicit.real_time(&server.rt_orb, policies()).unwrap().create().unwrap();
    assert_eq!(wrong_policy(&implicit), "NO_IMPLICIT_ACTIVATION");
}

struct Plain;

impl Servant for Plain {
    fn repository_id(&self) -> &str {
        "IDL:Sensor:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }
}

#[test]
fn policies_that_contradict_each_other_are_named_with_their_index() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]));
    let model = |model, number| -> Policy { PriorityModelPolicy { model, server_priority: priority(number) }.into() };
    let declared = |number| model(PriorityModel::ServerDeclared, number);
    let pool = || -> Policy { ThreadpoolPolicy(server.pool).into() };
    let bands = |low, high| -> Policy {
        PriorityBandedConnectionPolicy::new(vec![PriorityBand::new(low, high).unwrap()]).unwrap().into()
    };
    let unique: Policy = spandrel_poa::IdUniquenessPolicy::UniqueId.into();
    let single: Policy = spandrel_poa::ThreadPolicy::SingleThreadModel.into();
    let cases: [(Vec<Policy>, u16, &str); 9] = [
        (vec![unique.clone(), ThreadpoolPolicy(77).into()], 1, "there is no such thread pool"),
        (vec![unique, pool()], 1, "a thread pool with lanes requires a priority model"),
        (vec![pool(), declared(50)], 1, "no lane has the declared priority"),
        (vec![declared(50), pool()], 1, "no lane has the declared priority"),
        (vec![declared(10), declared(100)], 1, "an adapter has one policy of each type"),
        (vec![bands(0, 10)], 0, "priority bands require a priority model"),
        (vec![declared(10), pool(), bands(20, 100)], 2, "no band has the declared priority"),
        (vec![declared(10), pool(), bands(0, 9)], 2, "no band has the declared priority"),
        (vec![declared(10), single, pool()], 1, "thread pools require ORB_CTRL_MODEL"),
    ];
    for (policies, expected, text) in cases {
        match server.root.create_rt_poa(&server.rt_orb, "refused", None, policies.clone()) {
            Err(PoaError::InvalidPolicy { index, reason, adapter, .. }) => {
                assert_eq!((index, reason, &*adapter), (expected, text, "RootPOA/refused"), "{policies:?}");
            }
            other => panic!("{policies:?} gave {other:?}"),
        }
    }
    let propagated = model(PriorityModel::ClientPropagated, 50);
    let unserved = vec![propagated, bands(20, 30), pool()];
    match server.root.create_rt_poa(&server.rt_orb, "refused", None, unserved) {
        Err(PoaError::InvalidPolicy { index: 2, clash: Some(_), reason, .. }) => {
            assert_eq!(reason, "each band requires a lane whose priority it has");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_collocated_caller_waits_for_the_lane_and_a_thread_of_the_lane_calls_itself() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(100, 1)]));
    let caller = std::thread::spawn({
        let (object, current) = (server.object.clone(), server.rt_orb.current());
        move || {
            object.is_a("without a priority").unwrap();
            current.set_the_priority(150).unwrap();
            object.is_a("at the caller's").unwrap();
        }
    });
    caller.join().unwrap();
    let take = || std::mem::take(&mut *server.sensor.begun.lock().unwrap());
    let expected = |name: &str, priority, thread: &str| Begun {
        name: name.to_owned(),
        priority: Some(priority),
        thread: thread.to_owned(),
    };
    assert_eq!(
        take(),
        [expected("without a priority", 50, "rt-lane-0"), expected("at the caller's", 150, "rt-lane-1")]
    );
    // The lane has one thread: a call of it to its own lane would wait for ever, if it waited.
    *server.sensor.other.lock().unwrap() = Some(server.object.clone());
    let mut client = server.connect();
    client.send("relay", "own lane", Some(130));
    client.replies(1);
    assert_eq!(take(), [expected("own lane", 130, "rt-lane-1"), expected("inside own lane", 130, "rt-lane-1")]);
    // To an object of the other lane it is handed over.
    let low = PriorityModelPolicy { model: PriorityModel::ServerDeclared, server_priority: priority(0) };
    let low = server.root.create_rt_poa(
        &server.rt_orb,
        "low",
        Some(&server.root.the_poa_manager()),
        [low.into(), ThreadpoolPolicy(server.pool).into()],
    );
    let low = low.unwrap();
    let id = low.activate_object(Arc::<Sensor>::clone(&server.sensor) as _).unwrap();
    *server.sensor.other.lock().unwrap() = Some(low.id_to_reference(&id).unwrap());
    client.send("relay", "other lane", Some(130));
    client.replies(1);
    assert_eq!(take(), [expected("other lane", 130, "rt-lane-1"), expected("inside other lane", 0, "rt-lane-0")]);
}

#[test]
fn a_priority_transform_changes_the_priority_of_requests() {
    struct Doubled;
    impl PriorityTransform for Doubled {
        fn inbound(&self, priority: Priority, id: &[u8]) -> Option<Priority> {
            assert_eq!(id, b"sensor");
            Priority::from_number(priority.get().checked_mul(2)?)
        }

        fn outbound(&self, priority: Priority, _: &[u8]) -> Option<Priority> {
            Some(priority)
        }
    }

    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(200, 1)]));
    server.rt_orb.set_priority_transform(Some(Arc::new(Doubled)));
    let mut client = server.connect();
    client.send("note", "doubled", Some(100));
    client.replies(1);
    client.send("note", "too much", Some(20_000));
    assert_eq!(client.refusal().1, SystemExceptionKind::Unknown);
    server.rt_orb.set_priority_transform(None);
    client.send("note", "unchanged", Some(100));
    client.replies(1);
    assert_eq!(server.sensor.begun(), [("doubled".to_owned(), 200), ("unchanged".to_owned(), 100)]);
}

#[test]
fn without_a_thread_pool_policy_requests_run_in_the_default_pool() {
    let server = Server::new(one_thread());
    let model = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: priority(7) };
    let poa = server.root.child("default").real_time(&server.rt_orb, [model.into()]).unwrap().create().unwrap();
    let id = poa.activate_object(Arc::<Sensor>::clone(&server.sensor) as _).unwrap();
    poa.id_to_reference(&id).unwrap().is_a("default").unwrap();
    assert_eq!(server.sensor.begun(), [("default".to_owned(), 7)]);
    let begun: u64 = server.rt_orb.default_threadpool().unwrap().statistics().iter().map(|lane| lane.begun).sum();
    assert_eq!(begun, 1);
}

#[test]
fn asynchronous_servants_are_refused_with_the_reason() {
    struct Asynchronous;

    impl Servant for Asynchronous {
        fn repository_id(&self) -> &str {
            "IDL:Slow:1.0"
        }

        fn is_a(&self, _: &str) -> bool {
            true
        }

        fn is_asynchronous(&self) -> bool {
            true
        }
    }

    let server = Server::new(one_thread());
    let policies = || -> [Policy; 1] { [ThreadpoolPolicy(server.pool).into()] };
    let new = |name: &str| server.root.child(name).real_time(&server.rt_orb, policies()).unwrap();
    let servant = || -> Arc<dyn Servant> { Arc::new(Asynchronous) };
    let refusals = [
        server.poa.activate_object_with_id(&"slow".into(), servant()).unwrap_err(),
        new("assigned").create().unwrap().activate_object(servant()).unwrap_err(),
        new("implicit").implicit_activation().create().unwrap().servant_to_id(&servant()).unwrap_err(),
        new("default").shared_default_servant(servant()).create().unwrap_err(),
    ];
    for refusal in refusals {
        let PoaError::System(exception) = refusal else { panic!("{refusal}") };
        assert_eq!(exception.kind(), SystemExceptionKind::InvPolicy);
        let text = exception.to_string();
        assert!(text.contains("`IDL:Slow:1.0` is an asynchronous servant"), "{text}");
    }
    assert_eq!(server.root.the_children().len(), 3, "the adapter with the default servant was not made");
}

#[test]
fn a_direct_call_runs_in_the_calling_thread_only_if_that_is_of_the_lane() {
    /// The trait that a stub calls directly.
    trait Names: Send + Sync {
        fn thread(&self) -> String;
    }

    #[derive(Clone)]
    struct Skeleton(Arc<Mutex<Option<ObjectRef>>>, Arc<Mutex<Vec<Option<String>>>>);

    impl Names for Skeleton {
        fn thread(&self) -> String {
            std::thread::current().name().unwrap_or_default().to_owned()
        }
    }

    impl Facet<dyn Names> for Skeleton {
        fn facet(&self) -> &(dyn Names + 'static) {
            self
        }
    }

    fn call(object: &ObjectRef) -> Option<String> {
        let called = direct(object, "thread", |names: &(dyn Names + 'static)| Ok::<_, SystemException>(names.thread()));
        called.map(|called| called.unwrap())
    }

    impl Servant for Skeleton {
        fn repository_id(&self) -> &str {
            "IDL:Names:1.0"
        }

        /// Calls the object directly, from inside its lane.
        fn is_a(&self, _: &str) -> bool {
            let object = self.0.lock().unwrap().clone().expect("the test has set it");
            self.1.lock().unwrap().push(call(&object));
            true
        }

        fn direct(self: std::sync::Arc<Self>, cell: &mut dyn std::any::Any) {
            let _other_trait = offer::<dyn Names, Self>(self, cell);
        }

        fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
            call.implicit(self)
        }
    }

    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(100, 1)]));
    let servant = Skeleton(Arc::default(), Arc::default());
    let object = |model, server_priority: i16, name: &str| {
        let model = PriorityModelPolicy { model, server_priority: priority(server_priority) };
        let policies: [Policy; 2] = [model.into(), ThreadpoolPolicy(server.pool).into()];
        let poa = server.root.child(name).real_time(&server.rt_orb, policies).unwrap().create().unwrap();
        let id = poa.activate_object(Arc::new(servant.clone())).unwrap();
        poa.id_to_reference(&id).unwrap()
    };
    let outer = object(PriorityModel::ServerDeclared, 100, "outer");
    assert_eq!(call(&outer), None, "this thread is of no lane");
    let inner = [
        (PriorityModel::ServerDeclared, 100, Some("rt-lane-1".to_owned())),
        (PriorityModel::ServerDeclared, 0, None),
        (PriorityModel::ClientPropagated, 0, Some("rt-lane-1".to_owned())),
    ];
    for (at, (model, priority, expected)) in inner.into_iter().enumerate() {
        *servant.0.lock().unwrap() = Some(object(model, priority, &format!("inner {at}")));
        outer.is_a("").unwrap();
        assert_eq!(servant.1.lock().unwrap().pop(), Some(expected), "{model:?} {priority}");
    }
}

#[test]
fn a_client_of_omniorb_gets_the_priority_of_the_policy() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(0, 1), lane(50, 1)]));
    let mut command = Command::new("nameclt");
    command.env("ORBclientCallTimeOutPeriod", "30000").args(["-ior", &server.object.to_string(), "list"]);
    match command.output() {
        // The client narrows the reference by `_is_a`, which this servant answers; the naming operation then fails.
        Ok(_) => {}
        Err(error) => {
            assert!(std::env::var_os("SPANDREL_EXPECTS_PROGRAMS").is_none(), "nameclt of omniORB: {error}");
            return eprintln!("absent: nameclt of omniORB");
        }
    }
    let begun = server.sensor.begun.lock().unwrap()[0].clone();
    assert!(begun.name.contains("NamingContext"), "{begun:?}");
    assert_eq!((begun.priority, &*begun.thread), (Some(50), "rt-lane-1"));
}
