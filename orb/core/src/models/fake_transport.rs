//! A pretend server: reads all requests, and answers them in any order until it has reason to end.

use spandrel_giop::MessageType;
use spandrel_sync::{Arc, Condition, Mutex, thread};
use spandrel_transport::{ReadError, Transport, send_octets};

use super::{
    below,
    messages::{self, FakeRequest},
    one_in,
    pipe::PipeEnd,
};

/// How a pretend server behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FakeBehaviour {
    /// Length of its answers' bodies.
    pub(crate) octets: usize,
    /// It ends the connection at some point.
    pub(crate) ends: bool,
    /// It does not answer all who have a deadline.
    pub(crate) forgets: bool,
    /// It reads the next request only when it has answered the one before.
    pub(crate) is_serial: bool,
}

/// What a pretend server did.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// Tokens of the requests that it read whole.
    pub(crate) read: Vec<u32>,
    /// Tokens of the requests that it answered.
    pub(crate) answered: Vec<u32>,
    /// It said that all other requests were and will not be acted on.
    pub(crate) sent_close: bool,
}

#[derive(Debug)]
pub(crate) struct FakeTransport {
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

/// Its threads.
#[derive(Debug)]
pub(crate) struct FakePeer {
    transport: Arc<FakeTransport>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl FakeTransport {
    pub(crate) fn start(end: PipeEnd, behaviour: FakeBehaviour) -> FakePeer {
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
                    self.take(messages::question(&message));
                }
                // Whoever is answered with what cannot be read says so.
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

    fn take(&self, question: FakeRequest) {
        let mut inbox = self.inbox.lock();
        inbox.record.read.push(question.token);
        if !question.is_two_way {
            return;
        }
        if self.behaviour.is_serial {
            drop(inbox);
            self.answer(question);
        } else {
            inbox.waiting.push(question);
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
            let question = inbox.waiting.swap_remove(request_key);
            drop(inbox);
            if self.behaviour.ends && one_in(4) {
                return self.finish();
            }
            self.answer(question);
        }
    }

    fn answer(&self, question: FakeRequest) {
        if self.behaviour.forgets && question.is_limited && one_in(2) {
            return;
        }
        self.inbox.lock().record.answered.push(question.token);
        // The client may have closed.
        let _ = send_octets(&self.end, &messages::reply(question, self.behaviour.octets));
    }

    /// Ends in one of the ways in which connections end.
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
    /// Waits until it has seen the end of the connection; what it did.
    pub(crate) fn record(self) -> Record {
        for thread in self.threads {
            thread.join().expect("it did not panic");
        }
        std::mem::take(&mut self.transport.inbox.lock().record)
    }
}
