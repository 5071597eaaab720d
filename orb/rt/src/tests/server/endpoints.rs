//! The endpoints of lanes: their references, refusals, readers and limits.

use super::*;
use crate::WhenFull;

/// A server whose pool has the lanes 10 and 100, with an endpoint for each.
struct LaneServer {
    server: Server,
    low: (String, u16),
    high: (String, u16),
}

fn loopback() -> Endpoint {
    Endpoint::new("127.0.0.1", 0)
}

impl LaneServer {
    fn new(model: PriorityModel, concurrency: Concurrency) -> Self {
        Self::open(Server::with(
            PoolSettings { buffering: Some((0, 0)), ..PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]) },
            model,
            10,
            concurrency,
        ))
    }

    fn open(server: Server) -> Self {
        let [low, high] = [10, 100].map(|number| {
            let opened = server.rt_orb.listen_for_lane(&server.orb, server.pool, priority(number), &[loopback()]);
            <[(String, u16); 1]>::try_from(opened.unwrap()).unwrap().into_iter().next().unwrap()
        });
        Self { server, low, high }
    }

    fn connect(&self, (host, port): &(String, u16)) -> Client {
        Client::new(&self.server.object, TcpStream::connect((host.as_str(), *port)).unwrap())
    }
}

/// The host and port of the reference's only profile.
fn address_of(object: &ObjectRef) -> (String, u16) {
    let [profile] = &object.ior().profiles[..] else { panic!("{:?}", object.ior()) };
    let profile = IiopProfile::decode(profile).unwrap().unwrap();
    (profile.host, profile.port)
}

fn refused_for_lane(client: &mut Client) -> bool {
    let exception = client.reply().1.expect("it is refused");
    let expected = SystemException::inv_policy(minor::POLICY_CONFLICT, CompletionStatus::No);
    (exception.kind(), exception.minor(), exception.completed())
        == (expected.kind(), expected.minor(), expected.completed())
}

#[test]
fn references_with_a_declared_priority_have_the_endpoint_of_its_lane() {
    let lanes = LaneServer::new(PriorityModel::ServerDeclared, Concurrency::default());
    let LaneServer { server, low, high } = &lanes;
    let of_orb = server.orb.listen().unwrap()[0].clone();
    assert!(low != high && *low != of_orb && *high != of_orb);
    assert_ne!(address_of(&server.root.create_reference("IDL:Sensor:1.0").unwrap()), *low, "no lane has it");
    assert_eq!(address_of(&server.poa.id_to_reference(&"sensor".into()).unwrap()), *low, "the policy's priority");
    let brake = server.poa.create_reference_with_id_and_priority(&"brake".into(), "IDL:Sensor:1.0", 100).unwrap();
    assert_eq!(address_of(&brake), *high);
    assert_eq!(server.poa.reference_to_id(&brake).unwrap(), "brake".into());
    server.poa.deactivate_object(&"sensor".into()).unwrap();
    server.poa.activate_object_with_id(&"brake".into(), Arc::<Sensor>::clone(&server.sensor) as _).unwrap();

    // Callers in the same ORB, and those of another one.
    assert!(server.orb.own_object_key(brake.ior()).is_some());
    brake.is_a("inside").unwrap();
    assert_eq!(server.orb.statistics().count(Event::ConnectionAccepted), 0);
    let client = Orb::builder().build().unwrap();
    client.string_to_object(&brake.to_string()).unwrap().is_a("outside").unwrap();
    assert_eq!(server.sensor.begun(), [("inside".to_owned(), 100), ("outside".to_owned(), 100)]);
    assert!(server.sensor.begun.lock().unwrap().iter().all(|begun| begun.thread == "rt-lane-1"));
    client.shutdown().unwrap();

    // Without an endpoint of its lane, a reference has those of the ORB; clients of any age reach the object.
    let propagated = PriorityModelPolicy { model: PriorityModel::ClientPropagated, server_priority: priority(10) };
    let policies: [Policy; 2] = [propagated.into(), ThreadpoolPolicy(server.pool).into()];
    let propagated = server.root.child("propagated").real_time(&server.rt_orb, policies).unwrap().create().unwrap();
    assert_eq!(address_of(&propagated.create_reference("IDL:Sensor:1.0").unwrap()).1, of_orb.1);
}

#[test]
fn requests_outside_the_range_of_a_lane_are_refused_at_its_endpoint() {
    let lanes = LaneServer::new(PriorityModel::ClientPropagated, Concurrency::default());
    let (mut low, mut high) = (lanes.connect(&lanes.low), lanes.connect(&lanes.high));
    for (number, is_low) in [(10, true), (99, true), (100, false), (i16::MAX, false)] {
        for (client, serves) in [(&mut low, is_low), (&mut high, !is_low)] {
            client.send("note", "asked", Some(number));
            if serves {
                assert_eq!(client.reply().1, None, "{number}");
            } else {
                assert!(refused_for_lane(client), "{number}");
            }
        }
    }
    assert_eq!(lanes.server.sensor.begun().len(), 4);
    // Below all lanes, and without a priority: that of the policy.
    low.send("note", "below", Some(9));
    assert!(refused_for_lane(&mut low));
    high.send("note", "of the policy", None);
    assert!(refused_for_lane(&mut high));

    let mut bind = |low_end, high_end| {
        let range = contexts::encode_priority_range(PriorityBand::new(low_end, high_end).unwrap());
        high.send_with("_bind_priority_band", "", &[range]);
        high.reply().1.map(|exception| exception.kind())
    };
    assert_eq!(bind(100, 20_000), None);
    assert_eq!(bind(50, 20_000), Some(SystemExceptionKind::InvPolicy));

    // An object without a thread pool: the thread that reads would have to run it.
    let plain = lanes.server.root.activate_object(Arc::<Sensor>::clone(&lanes.server.sensor) as _).unwrap();
    let plain = lanes.server.root.id_to_reference(&plain).unwrap();
    let mut other = Client::new(&plain, TcpStream::connect((lanes.high.0.as_str(), lanes.high.1)).unwrap());
    other.send("note", "plain", Some(100));
    assert!(refused_for_lane(&mut other));
    assert_eq!(lanes.server.sensor.begun().len(), 4);
}

#[test]
fn a_lane_reads_its_endpoint_while_the_thread_of_the_orb_is_blocked() {
    let lanes = LaneServer::new(PriorityModel::ClientPropagated, Concurrency::Reactive);
    let LaneServer { server, high, .. } = &lanes;
    let plain = server.root.activate_object(Arc::<Sensor>::clone(&server.sensor) as _).unwrap();
    let plain = server.root.id_to_reference(&plain).unwrap();
    let main = TcpStream::connect(("127.0.0.1", server.orb.listen().unwrap()[0].1)).unwrap();
    let mut blocking = Client::new(&plain, main);
    let held = blocking.send("hold", "held", None);
    server.until_begun(1);
    let mut waiting = server.connect();
    let late = waiting.send("note", "by the ORB's endpoint", Some(100));
    let mut served = lanes.connect(high);
    let id = served.send("note", "by the lane's", Some(100));
    assert_eq!(served.replies(1), [id]);
    assert_eq!(server.sensor.begun().len(), 2, "the other one is not read yet");
    server.sensor.open();
    assert_eq!((blocking.replies(1), waiting.replies(1)), (vec![held], vec![late]));
}

#[test]
fn clients_of_other_endpoints_take_no_connection_from_a_lane() {
    let directory = tempfile::tempdir().unwrap();
    let orb = Orb::builder().listen(loopback()).max_connections(1).build().unwrap();
    let lanes = LaneServer::open(Server::on(
        orb,
        directory,
        PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]),
        PriorityModel::ClientPropagated,
        10,
    ));
    let mut first = lanes.server.connect();
    let id = first.send("note", "first", Some(100));
    assert_eq!(first.replies(1), [id]);
    let mut refused = lanes.server.connect();
    assert_eq!(refused.read().header.message_type, MessageType::CloseConnection);
    let mut served = lanes.connect(&lanes.high);
    let id = served.send("note", "of the lane", Some(100));
    assert_eq!(served.replies(1), [id]);
    // The shutdown closes both in order.
    lanes.server.orb.shutdown().unwrap();
    for mut client in [first, served] {
        assert_eq!(client.read().header.message_type, MessageType::CloseConnection);
    }
    assert!(TcpStream::connect((lanes.high.0.as_str(), lanes.high.1)).is_err(), "no endpoint is open");
}

#[test]
fn an_endpoint_is_refused_without_a_lane_of_its_own() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]));
    let listen = |pool, number| server.rt_orb.listen_for_lane(&server.orb, pool, priority(number), &[loopback()]);
    let kind = |pool, number| listen(pool, number).unwrap_err().kind();
    assert_eq!(kind(77, 10), SystemExceptionKind::BadParam);
    assert_eq!(kind(server.pool, 50), SystemExceptionKind::BadParam, "the lane 10 serves it, but has another priority");
    let without_lanes = server.rt_orb.create(one_thread()).unwrap();
    assert_eq!(kind(without_lanes, 0), SystemExceptionKind::BadParam);
    let [(_, port)] = &listen(server.pool, 10).unwrap()[..] else { panic!("one address") };
    assert_eq!(kind(server.pool, 10), SystemExceptionKind::BadInvOrder, "it has one");
    let occupied = Endpoint::new("127.0.0.1", *port);
    let refused = server.rt_orb.listen_for_lane(&server.orb, server.pool, priority(100), &[occupied]).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::Initialize);
    listen(server.pool, 100).expect("the failure leaves nothing");
    server.orb.shutdown().unwrap();
    assert_eq!(kind(server.pool, 10), SystemExceptionKind::BadInvOrder);
    let without_adapter = Orb::builder().build().unwrap();
    let refused =
        server.rt_orb.listen_for_lane(&without_adapter, server.pool, priority(10), &[loopback()]).unwrap_err();
    assert_eq!(refused.kind(), SystemExceptionKind::BadInvOrder);
    without_adapter.shutdown().unwrap();
}

#[test]
fn a_connection_is_bound_to_a_band_that_the_lanes_serve() {
    let server = Server::new(PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]));
    let mut client = server.connect();
    let mut bind = |contexts: &[ServiceContext]| {
        client.send_with("_bind_priority_band", "", contexts);
        client.reply().1.map(|exception| exception.kind())
    };
    let range = |low, high| [contexts::encode_priority_range(PriorityBand::new(low, high).unwrap())];
    assert_eq!(bind(&range(10, 50)), None);
    assert_eq!(bind(&range(9, 50)), Some(SystemExceptionKind::InvPolicy));
    assert_eq!(bind(&[]), Some(SystemExceptionKind::Marshal));
    assert_eq!(
        bind(&[ServiceContext { id: contexts::RT_CORBA_PRIORITY_RANGE, data: vec![0, 0] }]),
        Some(SystemExceptionKind::Marshal)
    );
    assert!(server.sensor.begun().is_empty(), "no servant runs");
}

/// The real-time priority and the nice value of each thread of this process with this name, as far as the system keeps it
/// (proc(5): the fields 40 and 19 of `stat`).
#[cfg(target_os = "linux")]
fn threads(name: &str) -> Vec<(i64, i64)> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = entries.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("stat")).ok());
    let fields = stats.filter_map(|stat| {
        let (before, after) = stat.rsplit_once(") ").unwrap();
        let fields: Vec<&str> = after.split(' ').collect();
        let number = |field: usize| fields[field - 3].parse::<i64>().unwrap();
        before.split_once('(').is_some_and(|(_, of_thread)| of_thread == name).then(|| (number(40), number(19)))
    });
    fields.collect()
}

#[test]
#[cfg(target_os = "linux")]
fn the_thread_that_reads_an_endpoint_has_the_native_priority_of_its_lane() {
    let scheduling = Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping));
    if scheduling.class() == SchedulingClass::Unchanged {
        return eprintln!("not shown: threads have no native priorities here");
    }
    let orb = Orb::builder().listen(loopback()).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let rt_orb = RtServerOrb::new(scheduling.clone());
    // No other test has a lane of this priority.
    let urgent = priority(23_456);
    let pool = rt_orb.create(PoolSettings::with_lanes(vec![lane(0, 1), lane(urgent.get(), 1)])).unwrap();
    let native = i64::from(scheduling.to_native(urgent).unwrap());
    let has_reader = || {
        let is_native = |(real_time, nice): &(i64, i64)| match scheduling.class() {
            SchedulingClass::Other => *nice == -native,
            _ => *real_time == native,
        };
        threads("spandrel-reacto").iter().any(is_native)
    };
    assert!(!has_reader());
    rt_orb.listen_for_lane(&orb, pool, urgent, &[loopback()]).unwrap();
    wait_until("the reader", has_reader);
    drop(root);
    orb.shutdown().unwrap();
}

/// A server with an endpoint for each of two lanes, which buffer two requests and stop reading.
fn stopping() -> LaneServer {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let settings = PoolSettings { buffering: Some((2, 1 << 20)), when_full: WhenFull::StopReading, ..lanes };
    LaneServer::open(Server::with(settings, PriorityModel::ClientPropagated, 10, Concurrency::default()))
}

#[test]
fn a_full_lane_stops_reading_its_endpoint_until_it_has_room() {
    let lanes = stopping();
    let server = &lanes.server;
    let mut flooding = lanes.connect(&lanes.high);
    let held = flooding.send("hold", "held", Some(100));
    server.until_begun(1);
    // As many octets as the sockets take, and no more.
    let writer = in_background(move || {
        let text = "x".repeat(50_000);
        let ids: Vec<u32> = (0..400).map(|_| flooding.send("note", &text, Some(100))).collect();
        (flooding, ids)
    });
    server.until_buffered(2);
    let high = || server.lanes()[1];
    assert!(high().buffered_octets < 150_000, "{:?}", high());
    // The same lane by the endpoint of the ORB: refused. Another lane by its own: served.
    let mut others = server.connect();
    others.send("note", "by the ORB's endpoint", Some(100));
    assert_eq!(others.refusal().1, SystemExceptionKind::Transient);
    let mut low = lanes.connect(&lanes.low);
    let id = low.send("note", "low", Some(10));
    assert_eq!(low.replies(1), [id]);
    assert_eq!(high().waiting_readers, 1);
    assert!(writer.try_recv().is_err(), "20 MB do not fit into the sockets: the client waits");
    assert_eq!((server.sensor.begun().len(), high().buffered_requests, high().refused), (2, 2, 1));
    server.sensor.open();
    let (mut flooding, ids) = writer.recv_timeout(LONG).unwrap();
    let mut replies = flooding.replies(401);
    replies.sort_unstable();
    assert_eq!(replies, [vec![held], ids].concat(), "none was refused");
    assert_eq!(high().refused, 1);
}

#[test]
fn the_end_of_the_pool_or_of_the_orb_ends_the_wait_of_a_reader() {
    for ends_pool in [true, false] {
        let lanes = stopping();
        let server = &lanes.server;
        let mut client = lanes.connect(&lanes.high);
        client.send("hold", "held", Some(100));
        server.until_begun(1);
        for _ in 0..2 {
            client.send("note", "buffered", Some(100));
        }
        server.until_buffered(2);
        client.send("note", "waits", Some(100));
        wait_until("the reader waits", || server.lanes()[1].waiting_readers == 1);
        if ends_pool {
            server.rt_orb.threadpool(server.pool).unwrap().close();
            for _ in 0..3 {
                assert_eq!(client.refusal().1, SystemExceptionKind::Transient);
            }
            server.sensor.open();
            client.replies(1);
        } else {
            let orb = server.orb.clone();
            let ended = in_background(move || orb.shutdown());
            // The one that waits is refused; those in the buffer run once the servant has returned.
            assert_eq!(client.refusal().1, SystemExceptionKind::Transient);
            server.sensor.open();
            client.replies(3);
            ended.recv_timeout(LONG).unwrap().unwrap();
        }
    }
}

#[test]
fn a_request_that_a_lane_could_never_buffer_is_refused_though_it_stops_reading() {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1)]);
    let settings = PoolSettings { buffering: Some((2, 1_000)), when_full: WhenFull::StopReading, ..lanes };
    let lanes = LaneServer::open(Server::with(settings, PriorityModel::ClientPropagated, 10, Concurrency::default()));
    let mut client = lanes.connect(&lanes.high);
    let held = client.send("hold", "held", Some(100));
    lanes.server.until_begun(1);
    client.send("note", &"x".repeat(2_000), Some(100));
    assert_eq!(client.refusal().1, SystemExceptionKind::Transient);
    lanes.server.sensor.open();
    assert_eq!(client.replies(1), [held]);
}
