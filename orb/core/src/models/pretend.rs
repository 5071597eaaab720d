//! A pretend server: reads all requests, and answers them in any order until it has reason to end.

use spandrel_giop::MessageType;
use spandrel_sync::{Arc, Condition, Mutex, thread};
use spandrel_transport::{ReadError, Transport, send_octets};

use super::{
    below, one_in,
    pipe::End,
    talk::{self, Question},
};

/// How a pretend server behaves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manners {
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
    pub(crate) said_goodbye: bool,
}

#[derive(Debug)]
pub(crate) struct Pretend {
    end: End,
    manners: Manners,
    inbox: Mutex<Inbox>,
    arrived: Condition,
}

#[derive(Debug, Default)]
struct Inbox {
    waiting: Vec<Question>,
    is_complete: bool,
    record: Record,
}

/// Its threads.
#[derive(Debug)]
pub(crate) struct Running {
    pretend: Arc<Pretend>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Pretend {
    pub(crate) fn start(end: End, manners: Manners) -> Running {
        let pretend = Arc::new(Self { end, manners, inbox: Mutex::default(), arrived: Condition::new() });
        let (reading, answering) = (Arc::clone(&pretend), Arc::clone(&pretend));
        let mut threads = vec![thread::spawn(move || reading.read())];
        if !manners.is_serial {
            threads.push(thread::spawn(move || answering.answer_all()));
        }
        Running { pretend, threads }
    }

    fn read(&self) {
        let mut reader = talk::reader();
        loop {
            match reader.next(&self.end, None) {
                Ok(message) if message.header.message_type == MessageType::Request => {
                    self.take(talk::question(&message));
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

    fn take(&self, question: Question) {
        let mut inbox = self.inbox.lock();
        inbox.record.read.push(question.token);
        if !question.is_two_way {
            return;
        }
        if self.manners.is_serial {
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
            let which = below(inbox.waiting.len());
            let question = inbox.waiting.swap_remove(which);
            drop(inbox);
            if self.manners.ends && one_in(4) {
                return self.finish();
            }
            self.answer(question);
        }
    }

    fn answer(&self, question: Question) {
        if self.manners.forgets && question.is_limited && one_in(2) {
            return;
        }
        self.inbox.lock().record.answered.push(question.token);
        // The client may have closed.
        let _ = send_octets(&self.end, &talk::reply(question, self.manners.octets));
    }

    /// Ends in one of the ways in which connections end.
    fn finish(&self) {
        match below(5) {
            0 => self.end.close_writer(),
            1 => self.end.close(),
            2 => self.say(&talk::bare(MessageType::MessageError)),
            3 => self.say(b"garbage, not GIOP"),
            _ => {
                self.inbox.lock().record.said_goodbye = true;
                self.say(&talk::bare(MessageType::CloseConnection));
            }
        }
    }

    fn say(&self, octets: &[u8]) {
        // The client may have closed.
        let _ = send_octets(&self.end, octets);
        self.end.close_writer();
    }
}

impl Running {
    /// Waits until it has seen the end of the connection; what it did.
    pub(crate) fn record(self) -> Record {
        for thread in self.threads {
            thread.join().expect("it did not panic");
        }
        std::mem::take(&mut self.pretend.inbox.lock().record)
    }
}
