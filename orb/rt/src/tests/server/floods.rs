//! Clients that flood take no other's share of threads, queue, processor time or memory. Counted, and not timed.

use std::path::PathBuf;

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

/// A control group (cgroup v2) with this process, and one in it for the threads of each lane.
struct ControlGroups {
    parent: PathBuf,
    before: PathBuf,
}

impl ControlGroups {
    /// # Errors
    /// The reason for which there are none: no such file system, or no right to change it.
    fn create() -> std::io::Result<Self> {
        let absent = || std::io::Error::other("no file system of the type cgroup2 is mounted");
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let mount =
            mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields[2] == "cgroup2");
        let root = PathBuf::from(mount.ok_or_else(absent)?[1]);
        let own = std::fs::read_to_string("/proc/self/cgroup")?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(absent)?;
        let before = root.join(own);
        let parent = before.join(format!("spandrel-rt-{}", std::process::id()));
        std::fs::create_dir(&parent)?;
        let groups = Self { parent, before }; // removed if the rest fails
        for name in ["low", "high"] {
            std::fs::create_dir(groups.parent.join(name))?;
            std::fs::write(groups.parent.join(name).join("cgroup.type"), "threaded")?;
        }
        std::fs::write(groups.parent.join("cgroup.procs"), std::process::id().to_string())?;
        Ok(groups)
    }

    fn take_thread(&self, name: &str, thread: u32) {
        std::fs::write(self.parent.join(name).join("cgroup.threads"), thread.to_string()).unwrap();
    }

    /// The processor time of the threads in a group, in user space and in the kernel.
    fn usage(&self, name: &str) -> Duration {
        let text = std::fs::read_to_string(self.parent.join(name).join("cpu.stat")).unwrap();
        let usage = text.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
        Duration::from_micros(usage.parse().unwrap())
    }
}

impl Drop for ControlGroups {
    fn drop(&mut self) {
        let _ = std::fs::write(self.before.join("cgroup.procs"), std::process::id().to_string());
        for group in [self.parent.join("low"), self.parent.join("high"), self.parent.clone()] {
            let _ = std::fs::remove_dir(group);
        }
    }
}

#[test]
fn a_flood_takes_no_processor_time_of_the_threads_of_another_lane_in_cpu_stat() {
    const CALLS: usize = 40;
    spandrel_test_support::alone(|| {
        let groups = match ControlGroups::create() {
            Ok(groups) => groups,
            Err(error) => return eprintln!("not shown: no control group can be made: {error}"),
        };
        let lanes = PoolSettings::with_lanes(vec![lane(1, 1), lane(100, 1)]);
        let settings = PoolSettings { buffering: Some((20, 0)), ..lanes };
        let server = Server::with(settings, PriorityModel::ClientPropagated, 1, Concurrency::default());
        let worker = Arc::<Worker>::default();
        server.poa.activate_object_with_id(&"worker".into(), Arc::<Worker>::clone(&worker) as _).unwrap();
        let object = server.poa.id_to_reference(&"worker".into()).unwrap();
        // The threads of each lane, and the one that reads its endpoint.
        let threads = || spandrel_test_support::threads::threads_of(std::process::id());
        let [mut flood, mut high] =
            [("low", 1, "rt-lane-0"), ("high", 100, "rt-lane-1")].map(|(group, number, name)| {
                let before: Vec<u32> = threads().iter().map(|thread| thread.id).collect();
                let opened = server.rt_orb.listen_for_lane(
                    &server.orb,
                    server.pool,
                    priority(number),
                    &[Endpoint::new("127.0.0.1", 0)],
                );
                let (host, port) = opened.unwrap().remove(0);
                let mut client = Client::new(&object, TcpStream::connect((host.as_str(), port)).unwrap());
                client.send("work", &padded("first"), Some(number));
                client.replies(1);
                let own: Vec<_> = threads()
                    .into_iter()
                    .filter(|thread| {
                        thread.name == name || !before.contains(&thread.id) && thread.name == "spandrel-reacto"
                    })
                    .collect();
                assert_eq!(own.len(), 2, "{own:?}");
                own.iter().for_each(|thread| groups.take_thread(group, thread.id));
                client
            });
        let mut call = || {
            let before = groups.usage("high");
            for _ in 0..CALLS {
                high.send("work", &padded("high"), Some(100));
                high.replies(1);
            }
            groups.usage("high") - before
        };
        let alone = call();
        let before = groups.usage("low");
        assert!(alone >= WORK * CALLS as u32, "{alone:?}");
        // The client that floods never waits for a reply.
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let stop = Arc::clone(&is_over);
        let flooding = in_background(move || {
            let mut requests = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                send_many(&mut flood, "flood", 40);
                requests += 40;
                (0..40).for_each(|_| drop(flood.reply()));
            }
            requests
        });
        wait_until("the flood is refused", || server.lanes()[0].refused > 0);
        let beside_the_flood = call();
        let of_flood = groups.usage("low") - before;
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        let requests = flooding.recv_timeout(LONG).unwrap();
        println!(
            "{CALLS} calls: {alone:?} alone, {beside_the_flood:?} beside {requests} others, which took {of_flood:?}"
        );
        assert!(beside_the_flood <= alone * 3 / 2, "{beside_the_flood:?} beside a flood, and {alone:?} alone");
        assert!(of_flood >= WORK * 5, "{of_flood:?}: the flood did run");
    });
}
