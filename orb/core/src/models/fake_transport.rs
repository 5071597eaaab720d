//! A fake server: reads all requests, and answers them in any order until it ends.

use spandrel_giop::MessageType;
use spandrel_sync::{Arc, Condition, Mutex, thread};
use spandrel_transport::{ReadError, Transport, send_octets};

use super::{
    below,
    messages::{self, FakeRequest},
    one_in,
    pipe::PipeEnd,
};

/// The faults that a fake server makes in a run of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct FakeBehaviour {
    /// The length of its replies' bodies.
    pub octets: usize,
    /// Whether it ends the connection at some point.
    pub ends: bool,
    /// Whether it leaves some requests with a deadline unanswered.
    pub forgets: bool,
    /// Whether it reads the next request only after it has answered the one before.
    pub is_serial: bool,
}

/// The requests that a fake server has received, to be compared with the reports of its clients.
#[derive(Debug, Default)]
pub struct Record {
    /// The tokens of the requests that it read whole.
    pub read: Vec<u32>,
    /// The tokens of the requests that it answered.
    pub answered: Vec<u32>,
    /// Whether it sent CloseConnection: all other requests were and will not be executed.
    pub sent_close: bool,
}

#[derive(Debug)]
pub struct FakeTransport {
    end: PipeEnd,
    behaviour: FakeBehaviour,
    inbox: Mutex<FakeInput>,
    arrived: Condition,
}

#[derive(Debug, Default)]
struct FakeInput {
    waiting: Vec<FakeRequest>,
    is_complete: bool,
    record: Record,
}

/// A running fake server: its end of the pipe, and its threads.
#[derive(Debug)]
pub struct FakePeer {
    transport: Arc<FakeTransport>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl FakeTransport {
    pub fn start(end: PipeEnd, behaviour: FakeBehaviour) -> FakePeer {
        let transport = Arc::new(Self { end, behaviour, inbox: Mutex::default(), arrived: Condition::new() });
        let (reading, answering) = (Arc::clone(&transport), Arc::clone(&transport));
        let mut threads = vec![thread::spawn(move || reading.read())];
        if !behaviour.is_serial {
            threads.push(thread::spawn(move || answering.answer_all()));
        }
        FakePeer { transport, threads }
    }

    fn read(&self) {
        let mut reader = messages::reader();
        loop {
            match reader.next(&self.end, None) {
                Ok(message) if message.header.message_type == MessageType::Request => {
                    self.take(messages::parse_request(&message));
                }
                // The client may cancel requests, and rejects garbage with MessageError.
                Ok(message) => assert!(
                    matches!(message.header.message_type, MessageType::CancelRequest | MessageType::MessageError),
                    "{message}"
                ),
                Err(ReadError::EndOfFile | ReadError::CutOff) => break,
                Err(error) => panic!("the client wrote nonsense: {error}"),
            }
        }
        self.inbox.lock().is_complete = true;
        self.arrived.notify_one();
    }

    fn take(&self, fake_request: FakeRequest) {
        let mut inbox = self.inbox.lock();
        inbox.record.read.push(fake_request.token);
        if !fake_request.is_two_way {
            return;
        }
        if self.behaviour.is_serial {
            drop(inbox);
            self.answer(fake_request);
        } else {
            inbox.waiting.push(fake_request);
            self.arrived.notify_one();
        }
    }

    fn answer_all(&self) {
        loop {
            let mut inbox = self.inbox.lock();
            self.arrived.wait_while(&mut inbox, |inbox| inbox.waiting.is_empty() && !inbox.is_complete);
            if inbox.waiting.is_empty() {
                return;
            }
            let request_key = below(inbox.waiting.len());
            let fake_request = inbox.waiting.swap_remove(request_key);
            drop(inbox);
            if self.behaviour.ends && one_in(4) {
                return self.finish();
            }
            self.answer(fake_request);
        }
    }

    fn answer(&self, fake_request: FakeRequest) {
        if self.behaviour.forgets && fake_request.is_limited && one_in(2) {
            return;
        }
        self.inbox.lock().record.answered.push(fake_request.token);
        // The client may have closed.
        let _ = send_octets(&self.end, &messages::reply(fake_request, self.behaviour.octets));
    }

    /// Ends the connection in one of the possible ways.
    fn finish(&self) {
        match below(5) {
            0 => self.end.close_writer(),
            1 => self.end.close(),
            2 => self.say(&messages::bare(MessageType::MessageError)),
            3 => self.say(b"garbage, not GIOP"),
            _ => {
                self.inbox.lock().record.sent_close = true;
                self.say(&messages::bare(MessageType::CloseConnection));
            }
        }
    }

    fn say(&self, octets: &[u8]) {
        // The client may have closed.
        let _ = send_octets(&self.end, octets);
        self.end.close_writer();
    }
}

impl FakePeer {
    /// Waits until the server has seen the end of the connection; returns its record.
    pub fn record(self) -> Record {
        for thread in self.threads {
            thread.join().expect("it did not panic");
        }
        std::mem::take(&mut self.transport.inbox.lock().record)
    }
}
