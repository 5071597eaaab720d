//! Replies that wait until the client reads them.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use spandrel_giop::MessageHeader;
use spandrel_server::DeferredCall;

use super::*;

/// A servant whose replies are as long as the request says. Each waits for a permit of its priority.
struct Long {
    sensor: Arc<Sensor>,
    permits: Mutex<HashMap<i16, usize>>,
    permitted: Condvar,
}

impl Long {
    fn permit(&self, priority: i16, count: usize) {
        *self.permits.lock().unwrap().entry(priority).or_default() += count;
        self.permitted.notify_all();
    }
}

impl Servant for Long {
    fn repository_id(&self) -> &str {
        "IDL:Long:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let text = "x".repeat(call.arguments()?.str()?.parse().unwrap());
        let priority = self.sensor.current.the_priority()?.get();
        self.sensor.record(operation);
        let waits = |permits: &mut HashMap<i16, usize>| permits.get(&priority).is_none_or(|count| *count == 0);
        let mut permits = self.permitted.wait_while(self.permits.lock().unwrap(), waits).unwrap();
        *permits.get_mut(&priority).unwrap() -= 1;
        drop(permits);
        call.reply(|out| out.str(&text))
    }
}

#[test]
fn the_most_urgent_reply_that_has_not_begun_leaves_first() {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1), lane(1_000, 1)]);
    let server = Server::new(PoolSettings { buffering: Some((0, 0)), ..lanes });
    let sensor = Arc::clone(&server.sensor);
    let long = Arc::new(Long { sensor, permits: Mutex::default(), permitted: Condvar::new() });
    server.poa.activate_object_with_id(&"long".into(), Arc::<Long>::clone(&long) as _).unwrap();
    let object = server.poa.id_to_reference(&"long".into()).unwrap();
    let by_tcp = TcpStream::connect(("127.0.0.1", server.orb.listen().unwrap()[0].1)).unwrap();
    let by_unix = std::os::unix::net::UnixStream::connect(&server.path).unwrap();
    for mut client in [Client::new(&object, by_tcp), Client::new(&object, by_unix)] {
        server.sensor.begun.lock().unwrap().clear();
        let mut send = |number, octets: usize| client.send("long", &octets.to_string(), Some(number));
        // The first reply is more than the sockets take. The last request of each lane shows that its thread is done with
        // those before.
        let [first, low, short, last_low] = [16 << 20, 200_000, 10, 10].map(|octets| send(10, octets));
        let [middle, second_middle, last_middle] = [10; 3].map(|octets| send(100, octets));
        let [high, short_high, last_high] = [70_000, 10, 10].map(|octets| send(1_000, octets));
        server.until_begun(3);
        server.until_buffered(7);
        for (at, number) in [10, 10, 10, 100, 1_000, 1_000, 100].into_iter().enumerate() {
            long.permit(number, 1);
            server.until_begun(4 + at);
        }
        assert_eq!(client.replies(7), [first, high, short_high, middle, second_middle, low, short]);
        [10, 100, 1_000].into_iter().for_each(|number| long.permit(number, 1));
        let mut last = client.replies(3);
        last.sort_unstable();
        assert_eq!(last, [last_low, last_middle, last_high]);
    }
}

/// The way in which a [`Deferring`] servant answers after its upcall.
#[derive(Clone, Copy, Debug)]
enum DeferredBy {
    /// A thread of the test answers.
    Call,
    /// A future answers, in the executor of asynchronous servants.
    Future,
}

/// The replies of a [`Deferring`] servant that have their permit, and the futures that wait for one.
#[derive(Default)]
struct Permits {
    permitted: HashSet<String>,
    wakers: Vec<Waker>,
}

/// A servant that defers each reply, until the test permits it by its length.
struct Deferring {
    by: DeferredBy,
    calls: Mutex<HashMap<String, DeferredCall>>,
    permits: Arc<Mutex<Permits>>,
    answered: Arc<Mutex<Vec<String>>>,
}

impl Deferring {
    fn new(by: DeferredBy) -> Self {
        Self { by, calls: Mutex::default(), permits: Arc::default(), answered: Arc::default() }
    }

    fn answer(call: DeferredCall, length: &str, answered: &Mutex<Vec<String>>) {
        let text = "x".repeat(length.parse().unwrap());
        let outcome = call.answer(|call| call.reply(|out| out.str(&text)));
        call.end(outcome);
        answered.lock().unwrap().push(length.to_owned());
    }

    /// Sends the reply with this length, or leaves it to the connection.
    fn permit(&self, length: &str) {
        let before = self.answered.lock().unwrap().len();
        match self.by {
            DeferredBy::Call => {
                let call = self.calls.lock().unwrap().remove(length).expect("the request has begun");
                Self::answer(call, length, &self.answered);
            }
            DeferredBy::Future => {
                let mut permits = self.permits.lock().unwrap();
                permits.permitted.insert(length.to_owned());
                let wakers = std::mem::take(&mut permits.wakers);
                drop(permits);
                wakers.into_iter().for_each(Waker::wake);
            }
        }
        wait_until("the reply was sent", || self.answered.lock().unwrap().len() == before + 1);
    }
}

impl Servant for Deferring {
    fn repository_id(&self) -> &str {
        "IDL:Deferring:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, _: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let length = call.arguments()?.str()?.into_owned();
        match self.by {
            DeferredBy::Call => {
                let (deferred, replied) = call.defer()?;
                self.calls.lock().unwrap().insert(length, deferred);
                Ok(replied)
            }
            DeferredBy::Future => {
                let (permits, answered) = (Arc::clone(&self.permits), Arc::clone(&self.answered));
                call.spawn(|deferred| async move {
                    poll_fn(|cx| {
                        let mut permits = permits.lock().unwrap();
                        if permits.permitted.contains(&length) {
                            return Poll::Ready(());
                        }
                        permits.wakers.push(cx.waker().clone());
                        Poll::Pending
                    })
                    .await;
                    Self::answer(deferred, &length, &answered);
                })
            }
        }
    }
}

#[test]
fn the_most_urgent_deferred_reply_that_has_not_begun_leaves_first() {
    for by in [DeferredBy::Call, DeferredBy::Future] {
        let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1), lane(1_000, 1)]);
        let server = Server::new(PoolSettings { buffering: Some((0, 0)), ..lanes });
        let deferring = Arc::new(Deferring::new(by));
        server.poa.activate_object_with_id(&"deferring".into(), Arc::<Deferring>::clone(&deferring) as _).unwrap();
        let object = server.poa.id_to_reference(&"deferring".into()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", server.orb.listen().unwrap()[0].1)).unwrap();
        let mut client = Client::new(&object, stream);
        // The first reply is more than the sockets take.
        let requests = [(10, 16 << 20), (10, 300), (100, 200), (1_000, 100_000)];
        let [first, low, middle, high] = requests.map(|(number, length): (i16, usize)| {
            let begun = || server.lanes().iter().map(|lane| lane.begun).sum::<u64>();
            let before = begun();
            let id = client.send("defer", &length.to_string(), Some(number));
            wait_until("the request was begun", || begun() == before + 1);
            wait_until("its lane is idle", || server.lanes().iter().all(|lane| lane.idle == 1));
            id
        });
        requests.iter().for_each(|(_, length)| deferring.permit(&length.to_string()));
        assert_eq!(client.replies(4), [first, high, middle, low], "{by:?}");
        // A reply that is dropped has the priority of its request as well.
        if matches!(by, DeferredBy::Call) {
            let [first, low, dropped] = [(10, 16 << 20), (10, 5), (1_000, 6)].map(|(number, length): (i16, usize)| {
                let id = client.send("defer", &length.to_string(), Some(number));
                wait_until("the request was begun", || {
                    deferring.calls.lock().unwrap().contains_key(&length.to_string())
                });
                id
            });
            deferring.permit(&(16 << 20).to_string());
            deferring.permit("5");
            drop(deferring.calls.lock().unwrap().remove("6"));
            assert_eq!(client.replies(1), [first]);
            assert_eq!(client.refusal(), (dropped, SystemExceptionKind::NoResponse));
            assert_eq!(client.replies(1), [low]);
        }
    }
}

/// A message on the wire: its type, and whether it is the last part of its whole.
#[derive(Debug, Eq, PartialEq)]
struct Part {
    message_type: MessageType,
    is_last: bool,
    request_id: Option<u32>,
}

impl Client {
    /// A client of an older ORB.
    fn with_version(object: &ObjectRef, stream: impl Stream + 'static, version: GiopVersion) -> Self {
        let mut client = Self::new(object, stream);
        let profile = object.ior().profiles.iter().find_map(|profile| IiopProfile::decode(profile).unwrap()).unwrap();
        client.wire = Wire::new(ByteOrder::Big, version);
        client.template = RequestTemplate::new(client.wire, &profile.object_key);
        client
    }

    fn part(&mut self) -> Part {
        let mut octets = vec![0; 12];
        self.stream.read_exact(&mut octets).unwrap();
        let header = MessageHeader::parse(octets[..].first_chunk().unwrap()).unwrap();
        let mut body = vec![0; header.size as usize];
        self.stream.read_exact(&mut body).unwrap();
        // Fragments of GIOP 1.1 have no number, and its replies have their contexts before it.
        let number = |at: usize| {
            let octets = body[at..at + 4].try_into().unwrap();
            if header.order == ByteOrder::Big { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
        };
        let request_id = match (header.version, header.message_type) {
            (GiopVersion::V1_2, _) => Some(number(0)),
            (_, MessageType::Fragment) => None,
            _ => {
                assert_eq!(number(0), 0, "the reply has no contexts");
                Some(number(4))
            }
        };
        Part { message_type: header.message_type, is_last: !header.more_fragments, request_id }
    }
}

#[test]
fn a_reply_in_fragments_that_has_begun_is_written_whole_before_an_urgent_one() {
    for version in [GiopVersion::V1_1, GiopVersion::V1_2] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).fragment_size(Some(8_192));
        let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(1_000, 1)]);
        let settings = PoolSettings { buffering: Some((0, 0)), ..lanes };
        let model = PriorityModel::ClientPropagated;
        let server = Server::on(builder.build().unwrap(), directory, settings, model, 50);
        let deferring = Arc::new(Deferring::new(DeferredBy::Call));
        server.poa.activate_object_with_id(&"deferring".into(), Arc::<Deferring>::clone(&deferring) as _).unwrap();
        let object = server.poa.id_to_reference(&"deferring".into()).unwrap();
        let stream = TcpStream::connect(("127.0.0.1", server.orb.listen().unwrap()[0].1)).unwrap();
        let mut client = Client::with_version(&object, stream, version);
        let requests = [(10, 16 << 20), (10, 20_000), (1_000, 30_000), (1_000, 3)];
        let [first, low, high, short] = requests.map(|(number, length): (i16, usize)| {
            let id = client.send("defer", &length.to_string(), Some(number));
            let has_begun = || deferring.calls.lock().unwrap().contains_key(&length.to_string());
            wait_until("the request was begun", has_begun);
            id
        });
        requests.iter().for_each(|(_, length)| deferring.permit(&length.to_string()));
        for (id, fragments) in [(first, 2_000..3_000), (high, 3..5), (short, 0..1), (low, 2..4)] {
            let begin = client.part();
            assert_eq!((begin.message_type, begin.request_id), (MessageType::Reply, Some(id)), "{version:?}");
            let (mut count, mut is_last) = (0, begin.is_last);
            while !is_last {
                let part = client.part();
                let id = (version == GiopVersion::V1_2).then_some(id);
                assert_eq!((part.message_type, part.request_id), (MessageType::Fragment, id), "{version:?}");
                (count, is_last) = (count + 1, part.is_last);
            }
            assert!(fragments.contains(&count), "{version:?}: {count} fragments");
        }
    }
}
