//! From octets to GIOP messages: where each begins and ends, fragments joined. After what is no GIOP, or a gap, it goes on at the next
//! `GIOP` that a message could begin with.

use spandrel::net::message::MessageBlock;
use spandrel_giop::{Assembler, GiopError, HEADER_LEN, Message, MessageHeader, MessageType};

/// The longest message that is shown.
const MAX_MESSAGE: usize = 16 << 20;
/// Messages that are unfinished at a time.
const MAX_UNFINISHED: usize = 64;

/// What comes out.
#[derive(Debug)]
pub(super) enum Framed {
    Message(Message),
    /// So many octets, in a row, are of no message.
    Skipped(usize),
    /// A message that is not shown, and why.
    Refused(MessageHeader, GiopError),
}

/// What is known of one direction.
#[derive(Debug)]
pub(super) struct Framer {
    buffer: Vec<u8>,
    /// Looks for the beginning of a message.
    is_lost: bool,
    /// Octets of no message that have not been told of.
    skipped: usize,
    /// Octets that belong to a message which is not shown.
    passing: usize,
    assembler: Assembler,
    /// A message has been seen.
    speaks: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            is_lost: true,
            skipped: 0,
            passing: 0,
            assembler: Assembler::new(MAX_MESSAGE, MAX_UNFINISHED),
            speaks: false,
        }
    }
}

impl Framer {
    /// Octets that wait for the rest of their message.
    pub(super) fn held(&self) -> usize {
        self.buffer.len() + self.assembler.held()
    }

    pub(super) fn take(&mut self, octets: &[u8], out: &mut dyn FnMut(Framed)) {
        let passed = octets.len().min(self.passing);
        self.passing -= passed;
        self.buffer.extend_from_slice(&octets[passed..]);
        let mut at = 0;
        while let Some(step) = self.step(at, out) {
            at += step;
        }
        self.buffer.drain(..at);
    }

    /// So many octets were not seen.
    pub(super) fn gap(&mut self, octets: usize, out: &mut dyn FnMut(Framed)) {
        if octets < self.passing {
            self.passing -= octets;
            return;
        }
        self.skipped += self.buffer.len() + octets - self.passing;
        self.passing = 0;
        self.buffer.clear();
        // What was unfinished stays so.
        self.assembler = Assembler::new(MAX_MESSAGE, MAX_UNFINISHED);
        self.is_lost = true;
        self.tell_skipped(out);
    }

    /// Nothing more will come.
    pub(super) fn end(&mut self, out: &mut dyn FnMut(Framed)) {
        self.skipped += std::mem::take(&mut self.buffer).len();
        self.tell_skipped(out);
    }

    fn tell_skipped(&mut self, out: &mut dyn FnMut(Framed)) {
        let skipped = std::mem::take(&mut self.skipped);
        // What never speaks GIOP is none of our business.
        if skipped > 0 && self.speaks {
            out(Framed::Skipped(skipped));
        }
    }

    /// One message, or the way to one: how many octets are done with. Nothing until more come.
    fn step(&mut self, at: usize, out: &mut dyn FnMut(Framed)) -> Option<usize> {
        let rest = &self.buffer[at..];
        if self.is_lost {
            let begins = rest.windows(4).position(|four| four == b"GIOP");
            let passed = begins.unwrap_or(rest.len().saturating_sub(3));
            self.is_lost = begins.is_none();
            self.skipped += passed;
            return (passed > 0 || begins.is_some()).then_some(passed);
        }
        let header = match MessageHeader::parse(rest.first_chunk::<HEADER_LEN>()?) {
            Ok(header) => header,
            Err(_) => {
                // Not a beginning; perhaps the four octets after the first are.
                self.is_lost = true;
                self.skipped += 1;
                return Some(1);
            }
        };
        let len = header.total_len();
        if len > MAX_MESSAGE {
            let done = rest.len().min(len);
            self.begin(out);
            self.passing = len - done;
            out(Framed::Refused(header, GiopError::TooLarge { len, limit: MAX_MESSAGE }));
            return Some(done);
        }
        let octets = rest.get(..len)?;
        let accepted = self.assembler.accept(header, MessageBlock::from(octets));
        self.begin(out);
        match accepted {
            Ok(Some(message)) => out(Framed::Message(message)),
            Ok(None) => {}
            Err(error) => out(Framed::Refused(header, error)),
        }
        if header.message_type == MessageType::CancelRequest {
            self.cancel(header, at, len);
        }
        Some(len)
    }

    /// A request that is cancelled between its fragments will not be finished.
    fn cancel(&mut self, header: MessageHeader, at: usize, len: usize) {
        let id = self.buffer[at..at + len].get(HEADER_LEN..).and_then(|rest| rest.first_chunk::<4>());
        if let Some(id) = id {
            let is_big = header.order == spandrel::ByteOrder::Big;
            self.assembler.cancel(if is_big { u32::from_be_bytes(*id) } else { u32::from_le_bytes(*id) });
        }
    }

    fn begin(&mut self, out: &mut dyn FnMut(Framed)) {
        self.tell_skipped(out);
        self.speaks = true;
    }
}

#[cfg(test)]
mod tests {
    use spandrel::{ByteOrder, GiopVersion};
    use spandrel_giop::bare_message;

    use super::*;

    fn close() -> [u8; HEADER_LEN] {
        bare_message(GiopVersion::V1_2, ByteOrder::Little, MessageType::CloseConnection)
    }

    /// `M` for each message, the number of octets for what was skipped, `R` for what was refused.
    fn told(parts: &[&[u8]]) -> String {
        let (mut framer, mut told) = (Framer::default(), String::new());
        let mut note = |framed| match framed {
            Framed::Message(_) => told.push('M'),
            Framed::Skipped(count) => told.push_str(&count.to_string()),
            Framed::Refused(..) => told.push('R'),
        };
        parts.iter().for_each(|part| framer.take(part, &mut note));
        framer.end(&mut note);
        told
    }

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let both = [close(), close()].concat();
        for cut in 0..both.len() {
            assert_eq!(told(&[&both[..cut], &both[cut..]]), "MM", "{cut}");
        }
    }

    #[test]
    fn it_goes_on_after_what_is_no_message() {
        let noise = [&close()[..], b"GIOPGIOP\x09 noise GIO", &close()].concat();
        assert_eq!(told(&[&noise]), "M19M");
        assert_eq!(told(&[b"SSH-2.0-nothing of ours"]), "");
    }

    #[test]
    fn what_is_too_long_is_passed_over() {
        let mut long = close();
        long[7] = MessageType::Request as u8;
        long[8..].copy_from_slice(&u32::try_from(MAX_MESSAGE).unwrap().to_le_bytes());
        let body = vec![0; MAX_MESSAGE];
        assert_eq!(told(&[&long, &body, &close()]), "RM");
    }

    #[test]
    fn a_gap_ends_what_was_unfinished() {
        let mut framer = Framer::default();
        let mut skipped = Vec::new();
        let mut note = |framed| {
            if let Framed::Skipped(count) = framed {
                skipped.push(count);
            }
        };
        framer.take(&close(), &mut note);
        framer.take(&close()[..5], &mut note);
        framer.gap(7, &mut note);
        framer.take(&close(), &mut note);
        assert_eq!(skipped, [12]);
        assert_eq!(framer.held(), 0);
    }
}
