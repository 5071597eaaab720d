//! Clients that flood take no other's share of threads, queue, processor time or memory. Counted, and not timed.

use super::*;

/// The octets of a request's argument.
const PADDING: usize = 4_000;
/// The processor time of a request.
const WORK: Duration = Duration::from_millis(2);

/// The processor time of the calling thread.
fn processor_time() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

/// A servant that computes, and records for each request its client, its octets and its processor time.
#[derive(Default)]
struct Worker(Mutex<Vec<Share>>);

#[derive(Clone, Debug, Default)]
struct Share {
    is_flood: bool,
    octets: usize,
    processor_time: Duration,
}

impl Servant for Worker {
    fn repository_id(&self) -> &str {
        "IDL:Worker:1.0"
    }

    fn is_a(&self, name: &str) -> bool {
        name == self.repository_id()
    }

    fn dispatch(&self, _: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let begin = processor_time();
        let name = call.arguments()?.str()?.into_owned();
        while processor_time() < begin + WORK {
            std::hint::spin_loop();
        }
        let (is_flood, octets) = (name.starts_with("flood"), name.len());
        let share = Share { is_flood, octets, processor_time: processor_time() - begin };
        self.0.lock().unwrap().push(share);
        call.reply(|_| Ok(()))
    }
}

impl Worker {
    /// The shares of the client that floods and of the other one, up to the last request of the other.
    fn shares(&self) -> [Share; 2] {
        let all = self.0.lock().unwrap();
        let until = all.iter().rposition(|share| !share.is_flood).unwrap();
        [true, false].map(|is_flood| {
            let own = all[..=until].iter().filter(|share| share.is_flood == is_flood);
            own.fold(Share::default(), |sum, share| Share {
                is_flood,
                octets: sum.octets + share.octets,
                processor_time: sum.processor_time + share.processor_time,
            })
        })
    }
}

fn padded(name: &str) -> String {
    format!("{name:x<PADDING$}")
}

fn send_many(client: &mut Client, name: &str, requests: usize) {
    for _ in 0..requests {
        client.send("work", &padded(name), Some(5));
    }
}

/// A server with a lane of one thread that a held request occupies, and a client that holds it.
fn occupied(settings: PoolSettings) -> (Server, Arc<Worker>, ObjectRef, Client) {
    let server = Server::new(settings);
    let worker = Arc::<Worker>::default();
    server.poa.activate_object_with_id(&"worker".into(), Arc::<Worker>::clone(&worker) as _).unwrap();
    let object = server.poa.id_to_reference(&"worker".into()).unwrap();
    let mut holder = server.connect();
    holder.send("hold", "held", Some(10));
    server.until_begun(1);
    (server, worker, object, holder)
}

impl Server {
    fn connect_to(&self, object: &ObjectRef) -> Client {
        Client::new(object, TcpStream::connect(("127.0.0.1", self.orb.listen().unwrap()[0].1)).unwrap())
    }
}

#[test]
fn a_client_that_floods_gets_no_more_processor_time_and_octets_than_another() {
    let settings = PoolSettings { buffering: Some((200, 0)), shares_buffers: true, ..one_thread() };
    let (server, worker, object, mut holder) = occupied(settings);
    let (mut flood, mut other) = (server.connect_to(&object), server.connect_to(&object));
    send_many(&mut flood, "flood", 100);
    server.until_buffered(100);
    send_many(&mut other, "other", 10);
    server.until_buffered(110);
    assert_eq!(server.lanes()[0].threads, 1, "the flood has no threads of its own");
    server.sensor.open();
    holder.replies(1);
    other.replies(10);
    flood.replies(100);
    // They take turns: at most one request of the flood goes before each of the other.
    let [flood, other] = worker.shares();
    assert_eq!(other.octets, 10 * PADDING);
    assert!(flood.octets <= other.octets + PADDING, "{flood:?} {other:?}");
    assert!(other.processor_time >= 10 * WORK, "{other:?}");
    let most = other.processor_time * 3 / 2;
    assert!(flood.processor_time <= most, "{flood:?} {other:?}");
}

#[test]
fn a_flood_of_octets_is_bounded_by_its_share_and_leaves_the_rest_to_others() {
    const ROOM: usize = 400_000;
    let settings = PoolSettings { buffering: Some((1_000, ROOM)), shares_buffers: true, ..one_thread() };
    let (server, worker, object, mut holder) = occupied(settings);
    let (mut flood, mut other) = (server.connect_to(&object), server.connect_to(&object));
    send_many(&mut flood, "flood", 200);
    // Refusals come at once, and the rest waits.
    wait_until("the flood is refused", || {
        server.lanes()[0].refused + server.lanes()[0].buffered_requests as u64 == 200
    });
    let lanes = server.lanes();
    let (waiting, octets) = (lanes[0].buffered_requests, lanes[0].buffered_octets);
    assert!((ROOM / 2 - 2 * PADDING..=ROOM / 2 + PADDING).contains(&octets), "{octets} of {ROOM}");
    assert_eq!(lanes[0].buffered_clients, 1);
    // Half of the rest is another's.
    send_many(&mut other, "other", 20);
    server.until_buffered(waiting + 20);
    server.sensor.open();
    holder.replies(1);
    other.replies(20);
    let refused = (0..200).filter(|_| flood.reply().1.is_some()).count();
    assert_eq!(refused, 200 - waiting);
    let [flood, other] = worker.shares();
    assert!(flood.octets <= other.octets + PADDING, "{flood:?} {other:?}");
}

#[test]
fn a_flood_of_low_requests_takes_nothing_of_the_lane_above() {
    let lanes = PoolSettings::with_lanes(vec![lane(1, 1), lane(100, 1)]);
    let (server, _worker, object, mut holder) = occupied(PoolSettings { buffering: Some((20, 0)), ..lanes });
    let (mut flood, mut high) = (server.connect_to(&object), server.connect_to(&object));
    send_many(&mut flood, "flood", 100);
    wait_until("the flood is refused", || server.lanes()[0].refused == 80);
    let before = server.lanes()[0].buffered_octets;
    // More than the buffer of one lane has, while that of the low one is full.
    for _ in 0..40 {
        high.send("work", &padded("high"), Some(100));
        high.replies(1);
    }
    let lanes = server.lanes();
    assert_eq!((lanes[0].threads, lanes[1].threads, lanes[0].buffered_octets), (1, 1, before));
    assert_eq!((lanes[1].begun, lanes[1].refused, lanes[0].buffered_requests), (40, 0, 20));
    server.sensor.open();
    holder.replies(1);
    let refused = (0..100).filter(|_| flood.reply().1.is_some()).count();
    assert_eq!(refused, 80);
}

#[test]
fn the_earliest_deadline_within_a_priority_is_begun_first() {
    let server = Server::new(one_thread());
    let (mut holder, mut client) = (server.connect(), server.connect());
    holder.send("hold", "held", Some(10));
    server.until_begun(1);
    for (name, seconds) in [("none", None), ("late", Some(3_000_u64)), ("early", Some(1_000)), ("middle", Some(2_000))]
    {
        let deadline = seconds.map(|seconds| {
            let hundreds_of_nanos = seconds * 10_000_000;
            let data = [&[0; 8][..], &hundreds_of_nanos.to_be_bytes(), &u64::MAX.to_be_bytes()].concat();
            ServiceContext { id: ids::CONTEXT_REMAINING_TIME, data }
        });
        client.send_with("note", name, deadline.as_slice());
    }
    server.until_buffered(4);
    server.sensor.open();
    client.replies(4);
    let names: Vec<_> = server.sensor.begun().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["held", "early", "middle", "late", "none"]);
}
