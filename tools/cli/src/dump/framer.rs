//! GIOP framing of a stream of octets, with fragments joined. After foreign octets, or a gap, it resumes at
//! the next `GIOP` that may begin a message.

use spandrel::net::message::MessageBlock;
use spandrel_giop::{Assembler, GiopError, HEADER_LEN, Message, MessageHeader, MessageType};

/// The longest message that is decoded.
const MAX_MESSAGE: usize = 16 << 20;
/// The maximum number of incomplete messages.
const MAX_UNFINISHED: usize = 64;

/// The output of a framer.
#[derive(Debug)]
pub(super) enum Framed {
    Message(Message),
    /// A run of that many octets outside of messages.
    Skipped(usize),
    /// A message that is not decoded, and the reason.
    Refused(MessageHeader, GiopError),
    /// A message of the Zipped Inter-ORB Protocol, which is compressed.
    Compressed(MessageHeader),
    /// So many octets came of a message whose end is missing.
    Incomplete(usize),
}

/// The first octets of a message that is compressed (Zipped Inter-ORB Protocol). Its header is otherwise that of GIOP.
const ZIOP: &[u8; 4] = b"ZIOP";

/// The state of one direction.
#[derive(Debug)]
pub(super) struct Framer {
    buffer: Vec<u8>,
    /// Whether it searches for the beginning of a message.
    is_searching: bool,
    /// Skipped octets that were not reported yet.
    skipped: usize,
    /// Octets left of a message that is not decoded.
    ignored: usize,
    assembler: Assembler,
    /// A message has been found.
    has_message: bool,
}

impl Default for Framer {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            is_searching: true,
            skipped: 0,
            ignored: 0,
            assembler: Assembler::new(MAX_MESSAGE, MAX_UNFINISHED),
            has_message: false,
        }
    }
}

impl Framer {
    /// The number of buffered octets of an incomplete message.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.len() + self.assembler.held()
    }

    pub(super) fn take(&mut self, octets: &[u8], out: &mut dyn FnMut(Framed)) {
        let passed = octets.len().min(self.ignored);
        self.ignored -= passed;
        self.buffer.extend_from_slice(&octets[passed..]);
        let mut at = 0;
        while let Some(step) = self.step(at, out) {
            at += step;
        }
        self.buffer.drain(..at);
    }

    /// Records that octets are missing.
    pub(super) fn gap(&mut self, octets: usize, out: &mut dyn FnMut(Framed)) {
        if octets < self.ignored {
            self.ignored -= octets;
            return;
        }
        self.skipped += self.buffer.len() + octets - self.ignored;
        self.ignored = 0;
        self.buffer.clear();
        // Incomplete messages stay incomplete.
        self.assembler = Assembler::new(MAX_MESSAGE, MAX_UNFINISHED);
        self.is_searching = true;
        self.report_skipped(out);
    }

    /// Records the end of the stream.
    pub(super) fn end(&mut self, out: &mut dyn FnMut(Framed)) {
        let buffered = std::mem::take(&mut self.buffer).len();
        let mut incomplete = self.assembler.held();
        // Behind the beginning of a message, or else behind the last one.
        if self.is_searching {
            self.skipped += buffered
        } else {
            incomplete += buffered
        }
        self.report_skipped(out);
        if incomplete > 0 {
            out(Framed::Incomplete(incomplete));
        }
    }

    fn report_skipped(&mut self, out: &mut dyn FnMut(Framed)) {
        let skipped = std::mem::take(&mut self.skipped);
        // A stream without any GIOP is not reported.
        if skipped > 0 && self.has_message {
            out(Framed::Skipped(skipped));
        }
    }

    /// Processes one message, or skips to one: returns the number of octets consumed. None until more arrive.
    fn step(&mut self, at: usize, out: &mut dyn FnMut(Framed)) -> Option<usize> {
        let rest = &self.buffer[at..];
        if self.is_searching {
            let begins = rest.windows(4).position(|four| four == b"GIOP" || four == ZIOP);
            let passed = begins.unwrap_or(rest.len().saturating_sub(3));
            self.is_searching = begins.is_none();
            self.skipped += passed;
            return (passed > 0 || begins.is_some()).then_some(passed);
        }
        let mut header = *rest.first_chunk::<HEADER_LEN>()?;
        let is_compressed = header.first_chunk() == Some(ZIOP);
        if is_compressed {
            header[0] = b'G';
        }
        let header = match MessageHeader::parse(&header) {
            Ok(header) => header,
            Err(_) => {
                // Not a beginning; perhaps it is one octet further on.
                self.is_searching = true;
                self.skipped += 1;
                return Some(1);
            }
        };
        let len = header.total_len();
        if len > MAX_MESSAGE || is_compressed {
            let skipped = rest.len().min(len);
            self.begin(out);
            self.ignored = len - skipped;
            out(match is_compressed {
                true => Framed::Compressed(header),
                false => Framed::Refused(header, GiopError::TooLarge { len, limit: MAX_MESSAGE }),
            });
            return Some(skipped);
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

    /// A request that is cancelled between its fragments stays incomplete.
    fn cancel(&mut self, header: MessageHeader, at: usize, len: usize) {
        let id = self.buffer[at..at + len].get(HEADER_LEN..).and_then(|rest| rest.first_chunk::<4>());
        if let Some(id) = id {
            let is_big = header.order == spandrel::cdr::ByteOrder::Big;
            self.assembler.cancel(if is_big { u32::from_be_bytes(*id) } else { u32::from_le_bytes(*id) });
        }
    }

    fn begin(&mut self, out: &mut dyn FnMut(Framed)) {
        self.report_skipped(out);
        self.has_message = true;
    }
}

#[cfg(test)]
mod tests {
    use spandrel::cdr::{ByteOrder, GiopVersion};
    use spandrel_giop::bare_message;

    use super::*;

    fn close() -> [u8; HEADER_LEN] {
        bare_message(GiopVersion::V1_2, ByteOrder::Little, MessageType::CloseConnection)
    }

    /// `M` for each message, the number of octets for skipped runs, `R` for refused messages, `Z` for compressed ones, `I` and
    /// the number of octets for incomplete ones.
    fn summary(parts: &[&[u8]]) -> String {
        let (mut framer, mut summary) = (Framer::default(), String::new());
        let mut note = |framed| match framed {
            Framed::Message(_) => summary.push('M'),
            Framed::Skipped(count) => summary.push_str(&count.to_string()),
            Framed::Refused(..) => summary.push('R'),
            Framed::Compressed(_) => summary.push('Z'),
            Framed::Incomplete(octets) => summary.push_str(&format!("I{octets}")),
        };
        parts.iter().for_each(|part| framer.take(part, &mut note));
        framer.end(&mut note);
        summary
    }

    #[test]
    fn messages_are_found_despite_segmentation() {
        let both = [close(), close()].concat();
        for cut in 0..both.len() {
            assert_eq!(summary(&[&both[..cut], &both[cut..]]), "MM", "{cut}");
        }
    }

    #[test]
    fn framing_resumes_after_foreign_octets() {
        let noise = [&close()[..], b"GIOPGIOP\x09 noise GIO", &close()].concat();
        assert_eq!(summary(&[&noise]), "M19M");
        assert_eq!(summary(&[b"SSH-2.0-nothing of ours"]), "");
    }

    #[test]
    fn compressed_messages_are_named_and_passed() {
        let mut compressed = close();
        compressed[0] = b'Z';
        compressed[7] = MessageType::Request as u8;
        compressed[8] = 5;
        assert_eq!(summary(&[&close(), &compressed, b"GIOPx", &close()]), "MZM");
        assert_eq!(summary(&[&compressed[..7], &compressed[7..], b"GI", b"OPx", &close()]), "ZM");
    }

    #[test]
    fn octets_of_a_message_without_an_end_are_told() {
        assert_eq!(summary(&[&close()[..11]]), "I11", "not yet a header");
        let mut long = close();
        (long[7], long[8]) = (MessageType::Request as u8, 100);
        assert_eq!(summary(&[&close(), &long, &[0; 30]]), "MI42");
        assert_eq!(summary(&[&long, &[0; 30]]), "I42");
    }

    #[test]
    fn an_oversized_message_is_skipped() {
        let mut long = close();
        long[7] = MessageType::Request as u8;
        long[8..].copy_from_slice(&u32::try_from(MAX_MESSAGE).unwrap().to_le_bytes());
        let body = vec![0; MAX_MESSAGE];
        assert_eq!(summary(&[&long, &body, &close()]), "RM");
    }

    #[test]
    fn a_gap_discards_incomplete_messages() {
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
        assert_eq!(framer.buffered(), 0);
    }
}
