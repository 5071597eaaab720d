//! The paper's service (paper 004, section 4.1, with the corrected protocol of 5.5.3).
//!
//! ```text
//! server                                    client
//! "Hello\n" and a zero octet (7 octets) ──>
//!                                       <── 4 digits: a length, such as "4000"
//! that many octets 'A'                  ──>
//!                                       <── closes first, and keeps TIME_WAIT
//! closes
//! ```
//!
//! Without the greeting, a slow server finds the request in its queue and does not wait for it. This race of section
//! 5.5.2 favours slow servers.

use crate::session::{MAX_PIECE, Phase, Protocol, Session};

/// The greeting: the paper's `sizeof("Hello\n")` octets.
pub const GREETING: &[u8; 7] = b"Hello\n\0";
/// The length of a request, in octets.
pub const REQUEST: usize = 4;
/// The octet that replies consist of.
pub const FILLER: u8 = b'A';

/// The longest reply, which a request of four digits can ask for.
static REPLY: [u8; 9_999] = [FILLER; 9_999];
const _: () = assert!(REPLY.len() <= MAX_PIECE);

/// The paper's transfer service: each reply has as many octets as requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether the server speaks first.
    pub has_greeting: bool,
}

impl Protocol for Transfer {
    type Session = TransferSession;

    fn open(&self) -> TransferSession {
        let output: &[u8] = if self.has_greeting { GREETING } else { &[] };
        TransferSession { state: State::Request { octets: [0; REQUEST], len: 0 }, output }
    }
}

/// The state machine of one connection: greeting, request, reply.
#[derive(Clone, Debug)]
pub struct TransferSession {
    state: State,
    output: &'static [u8],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It waits for the rest of the request.
    Request {
        octets: [u8; REQUEST],
        len: usize,
    },
    /// It has replied, and waits for the client to close.
    Replied,
    Closing,
}

impl Session for TransferSession {
    fn receive(&mut self, received: &[u8]) {
        let State::Request { mut octets, len } = self.state else {
            self.state = State::Closing; // there is one request for each connection
            return;
        };
        let room = &mut octets[len..];
        let count = room.len().min(received.len());
        room[..count].copy_from_slice(&received[..count]);
        self.state = if len + count < REQUEST {
            State::Request { octets, len: len + count }
        } else if received.len() > count {
            State::Closing
        } else if let Some(length) = length(octets) {
            self.output = &REPLY[..length];
            State::Replied
        } else {
            State::Closing
        };
    }

    fn end_input(&mut self) {
        self.state = State::Closing;
    }

    fn time_out(&mut self) {
        self.state = State::Closing;
    }

    fn output(&mut self) -> &[u8] {
        self.output
    }

    fn sent(&mut self, octets: usize) {
        self.output = &self.output[octets..];
    }

    fn phase(&self) -> Phase {
        match self.state {
            State::Request { len: 0, .. } | State::Replied => Phase::Idle,
            State::Request { .. } => Phase::InRequest,
            State::Closing => Phase::Closing,
        }
    }
}

/// The length that a request asks for; none unless it is four digits.
fn length(octets: [u8; REQUEST]) -> Option<usize> {
    octets.iter().try_fold(0, |length, octet| octet.is_ascii_digit().then(|| length * 10 + usize::from(octet - b'0')))
}
