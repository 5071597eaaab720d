//! Models of connections on which both sides send requests: adopted ones, which their owner reads, and those
//! that are read at all times because the peer may send requests.

use spandrel_giop::{Message, MessageType, SystemException};
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread};
use spandrel_transport::{Address, Charge, MemoryBudget, ReceiveBudget, Transport, send_octets};

use super::{Outcome, TestBed, async_calls::FakeReactor, verify};
use crate::{
    Orb,
    client::{
        ClientConnection,
        connection::{AdoptedReader, CallbackDispatcher},
    },
    diagnostics::statistics::Statistics,
    models::{
        check,
        fake_transport::{FakeBehaviour, FakeTransport, Record},
        messages::{self, FakeRequest},
        one_in,
        pipe::{self, PipeEnd},
    },
};

/// The reader of an adopted connection.
#[derive(Debug)]
struct FakeAdoptedReader {
    orb: Orb,
    near: PipeEnd,
}

impl AdoptedReader for FakeAdoptedReader {
    fn ensure_reading(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn cut(&self) {
        self.near.close();
    }

    fn written(&self) {}

    fn run_in_other_thread(&self, notify: crate::Task) -> Result<(), SystemException> {
        self.orb.client_reactor().run(notify)
    }
}

impl FakeAdoptedReader {
    fn deliver(&self, connection: &Arc<ClientConnection>) {
        let mut reader = messages::reader();
        let is_orderly = loop {
            match reader.next(&self.near, None) {
                Ok(message) if message.header.message_type == MessageType::Reply => {
                    connection.receive(message).expect("it is a reply");
                }
                Ok(message) => break message.header.message_type == MessageType::CloseConnection,
                Err(_) => break false,
            }
        };
        connection.end_of_input(is_orderly);
    }
}

/// Makes calls by several threads over an adopted connection, on which others write replies; returns the
/// outcomes.
fn adopted(behaviour: FakeBehaviour, capacity: usize, call: fn(&TestBed, u32)) -> (Vec<Outcome>, Record) {
    let (near, far) = pipe::pair(capacity);
    let feeding = Arc::new(FakeAdoptedReader { orb: Orb::builder().build().unwrap(), near: near.clone() });
    let adopted_reader: Weak<dyn AdoptedReader> = Arc::downgrade(&(Arc::clone(&feeding) as Arc<dyn AdoptedReader>));
    let (address, transport) = (Arc::new(Address::new("pretend", "")), Arc::new(near.clone()));
    let connection = Arc::new(ClientConnection::adopted(address, transport, adopted_reader, Statistics::default()));
    let test_bed = Arc::new(TestBed { connection: Arc::clone(&connection), octets: 20, outcomes: Mutex::default() });
    let server = FakeTransport::start(far, behaviour);
    let reading = thread::spawn(move || feeding.deliver(&connection));
    test_bed.callers(3, call);
    near.close();
    reading.join().expect("it did not panic");
    test_bed.close(server)
}

impl TestBed {
    /// Writes a one-way under the connection's lock, as the server writes replies.
    fn answer(&self, token: u32) {
        let fake_request = FakeRequest { id: 1000 + token, token, is_two_way: false, is_limited: false };
        // The connection may have ended.
        if self.connection.one_way(&messages::request(fake_request, self.octets), None).is_ok() {
            self.record_outcome(fake_request, Ok(()));
        }
    }
}

#[test]
fn each_call_gets_its_own_reply_from_any_reader() {
    check(4000, || {
        let behaviour = FakeBehaviour { octets: 4, ..FakeBehaviour::default() };
        let (outcomes, record) = adopted(behaviour, 64, |test_bed, caller| match caller {
            0 => (0..2).for_each(|turn| test_bed.answer(turn)),
            _ => (0..2).for_each(|turn| assert!(test_bed.two_way(caller * 10 + turn, None), "nothing ended it")),
        });
        verify(&outcomes, &record);
        assert_eq!(record.read.len(), 6, "no message was written inside another");
    });
}

#[test]
fn the_end_of_an_adopted_connection_ends_every_call() {
    check(4000, || {
        let behaviour = FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() };
        let (outcomes, record) = adopted(behaviour, 4096, |test_bed, caller| {
            if caller == 0 {
                test_bed.answer(0);
            }
            let _ = test_bed.two_way(caller * 10 + 1, None)
                && (!one_in(2) || test_bed.one_way(caller * 10 + 2, None))
                && test_bed.two_way(caller * 10 + 3, None);
        });
        verify(&outcomes, &record);
    });
}

#[test]
fn a_reply_that_is_written_in_part_leaves_the_calls_as_they_are() {
    check(4000, || {
        let behaviour = FakeBehaviour { octets: 4, ends: true, ..FakeBehaviour::default() };
        let (outcomes, record) = adopted(behaviour, 128, |test_bed, caller| match caller {
            0 => {
                let fake_request = FakeRequest { id: 1000, token: 0, is_two_way: false, is_limited: false };
                let answer = messages::request(fake_request, test_bed.octets);
                let budget = ReceiveBudget::new(1 << 20, Arc::new(MemoryBudget::new(1 << 20)));
                test_bed.connection.answer(&answer, Charge::new(&budget, 0).expect("nothing is charged"), 0);
            }
            _ => {
                test_bed.two_way(caller, None);
            }
        });
        verify(&outcomes, &record);
    });
}

/// The dispatcher of requests that come over a connection of this side.
#[derive(Debug, Default)]
struct FakeDispatcher {
    accepted: Mutex<Vec<u32>>,
    received: Mutex<Received>,
    changed: Condition,
}

#[derive(Debug, Default)]
struct Received {
    tokens: Vec<u32>,
    has_ended: bool,
}

impl CallbackDispatcher for FakeDispatcher {
    fn dispatch(&self, message: Message) {
        self.accepted.lock().push(messages::parse_request(&message).token);
    }

    fn dispatch_accepted(&self) {
        self.received.lock().tokens.append(&mut self.accepted.lock());
        self.changed.notify_all();
    }

    fn end(&self) {
        self.received.lock().has_ended = true;
        self.changed.notify_all();
    }

    fn is_idle(&self) -> bool {
        true
    }
}

/// A server that replies to each request and sends a number of requests itself.
fn calling_server(far: PipeEnd, calls: u32) -> Vec<thread::JoinHandle<()>> {
    let writer = Arc::new(Mutex::new(far.clone()));
    let replies = Arc::clone(&writer);
    let reading = thread::spawn(move || {
        let mut reader = messages::reader();
        while let Ok(message) = reader.next(&far, None) {
            if message.header.message_type == MessageType::Request {
                let _ = send_octets(&*replies.lock(), &messages::reply(messages::parse_request(&message), 4));
            }
        }
    });
    let writing = thread::spawn(move || {
        for token in 0..calls {
            let fake_request = FakeRequest { id: 2 * token + 1, token, is_two_way: true, is_limited: false };
            let _ = send_octets(&*writer.lock(), &messages::request(fake_request, 4).to_vec());
        }
    });
    vec![reading, writing]
}

#[test]
fn callbacks_are_dispatched_in_order_with_and_without_waiting_calls() {
    const CALLS: u32 = 3;
    check(4000, || {
        let (near, far) = pipe::pair(4096);
        let (address, transport) = (Arc::new(Address::new("pretend", "")), Arc::new(near.clone()));
        let connection = Arc::new(ClientConnection::new(address, transport, messages::reader(), Statistics::default()));
        let reactor = FakeReactor::start(&connection, near.clone());
        let dispatcher = Arc::new(FakeDispatcher::default());
        connection.accept_callbacks(|| Arc::clone(&dispatcher) as Arc<dyn CallbackDispatcher>);
        let server = calling_server(far, CALLS);
        let test_bed = Arc::new(TestBed { connection, octets: 4, outcomes: Mutex::default() });
        test_bed.callers(2, |test_bed, caller| {
            assert!(test_bed.two_way(caller * 10, None), "nothing ended it");
            if one_in(2) {
                assert!(test_bed.two_way(caller * 10 + 1, None), "nothing ended it");
            }
        });
        let mut received = dispatcher.received.lock();
        dispatcher.changed.wait_while(&mut received, |received| received.tokens.len() < CALLS as usize);
        assert_eq!(received.tokens, (0..CALLS).collect::<Vec<_>>());
        drop(received);
        near.close();
        let mut received = dispatcher.received.lock();
        dispatcher.changed.wait_while(&mut received, |received| !received.has_ended);
        drop(received);
        drop(test_bed);
        server.into_iter().for_each(|thread| thread.join().expect("it did not panic"));
        reactor.join().expect("it did not panic");
    });
}
