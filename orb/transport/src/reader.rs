//! Whole messages from a transport, with as few system calls as possible.
//!
//! Octets after a message stay in the buffer: an incomplete message belongs to its connection, not to the
//! thread that reads (design decision 3). A [`ReceiveMonitor`] adds the functions of a server:
//! `server_monitor` charges memory budgets, and reads requests that are too long to their end.

mod server_monitor;

use std::{fmt, io, time::Duration};

use spandrel_giop::{Assembler, GiopError, HEADER_LEN, Message, MessageHeader, MessageType};
use spandrel_message::ReceiveBuffer;

pub use server_monitor::ServerMonitor;

use crate::{
    deadline::Deadline,
    read_error::ReadError,
    transport::{Transport, is_timeout},
};

/// Octets read ahead at once: several small messages. More would cost more in caches than it saves in calls.
const BUFFER_OCTETS: usize = 64 * 1024;

/// Messages of at least this size are placed so that their bodies are aligned in memory (design decision 4).
const PLACED_OCTETS: usize = 1024;

/// Messages of at least this size are read exactly to their end: reading ahead would leave the beginning of
/// the next message in a place from which it must be moved. After such a message, the next is expected to be
/// as long.
const EXACT_OCTETS: usize = 16 * 1024;

/// The memory reserved for a message before any octet of it has arrived; later twice its received part.
const AT_ONCE: usize = 1 << 20;

/// The reads without waiting of which one call discards all octets or joins them to unfinished messages. A peer that
/// sends such octets without end must not keep the calling thread, which serves others.
const MOST_VAIN_READS: u32 = 16;

/// How long memory for another long message is kept while none arrives.
const LONG_WAIT: Duration = Duration::from_millis(100);

/// Divides the octets of one connection into messages, and joins fragments.
///
/// The fields that each message needs come first: a server with thousands of busy connections finds none of them in the
/// caches.
#[derive(Debug)]
#[repr(C)]
pub struct MessageReader<M = Unmonitored> {
    /// The length of the previous message, header included.
    last_len: usize,
    max_message: usize,
    /// The header of the message at the buffer's start, once it is complete.
    header: Option<MessageHeader>,
    buffer: ReceiveBuffer,
    monitor: M,
    assembler: Assembler,
    /// The time-out last set on the transport.
    timeout: Option<Duration>,
}

/// Observer of a [`MessageReader`] while messages arrive.
pub trait ReceiveMonitor: fmt::Debug + Sized {
    /// Whether looking ahead has found a message or an error that was not returned yet.
    #[inline]
    fn has_pending(&self) -> bool {
        false
    }

    /// The message or the error that looking ahead has found first.
    #[inline]
    fn take_pending(&mut self) -> Option<Result<Message, ReadError>> {
        None
    }

    /// Called after each read, with the number of octets that arrived.
    #[inline]
    fn received(&mut self, octets: usize) {
        let _ = octets;
    }

    /// Discards unwanted octets. Returns false if more must arrive before the next message.
    #[inline]
    fn discard(reader: &mut MessageReader<Self>) -> bool {
        let _ = reader;
        true
    }

    /// No whole message is available.
    ///
    /// # Errors
    /// If the arriving message is rejected.
    #[inline]
    fn incomplete(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        let _ = reader;
        Ok(())
    }

    /// A fragment arrived that does not complete its message.
    ///
    /// # Errors
    /// If the message is rejected.
    #[inline]
    fn fragment(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        let _ = reader;
        Ok(())
    }

    /// Called when the last octet of a message has been read.
    #[inline]
    fn complete(reader: &mut MessageReader<Self>) {
        let _ = reader;
    }

    /// A message exceeds the limit. Returns `None` if more of it must arrive before that can be decided.
    ///
    /// # Errors
    /// If the message is rejected.
    fn too_long(reader: &mut MessageReader<Self>, header: MessageHeader) -> Result<Option<MessageHeader>, ReadError> {
        Err(GiopError::TooLarge { len: header.total_len(), limit: reader.max_message }.into())
    }
}

/// The monitor of a client, which observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmonitored;

impl ReceiveMonitor for Unmonitored {}

impl MessageReader {
    /// A reader of a server's messages. `max_unfinished`: the number of messages that may arrive in fragments
    /// at a time.
    #[must_use]
    pub fn new(max_message: usize, max_unfinished: usize) -> Self {
        Self::with(Unmonitored, max_message, max_unfinished)
    }
}

impl<M: ReceiveMonitor> MessageReader<M> {
    fn with(monitor: M, max_message: usize, max_unfinished: usize) -> Self {
        Self {
            buffer: ReceiveBuffer::new(BUFFER_OCTETS),
            assembler: Assembler::new(max_message, max_unfinished),
            header: None,
            last_len: 0,
            max_message,
            timeout: None,
            monitor,
        }
    }

    /// The next whole message; fragments are joined.
    ///
    /// # Errors
    /// [`ReadError`]; after [`ReadError::TimedOut`] and [`ReadError::Discarded`] reading can continue.
    pub fn next(&mut self, transport: &dyn Transport, deadline: Option<&Deadline>) -> Result<Message, ReadError> {
        if self.monitor.has_pending()
            && let Some(pending) = self.monitor.take_pending()
        {
            return pending;
        }
        loop {
            // Usually nothing has arrived yet, which this finds quickly.
            if !self.buffer.filled().is_empty()
                && let Some(message) = self.whole()?
            {
                return Ok(message);
            }
            self.arm(transport, deadline)?;
            let room = self.room();
            match transport.recv(room) {
                Ok(0) => return Err(self.stream_end()),
                Ok(count) => self.commit(count),
                Err(error) if is_timeout(&error) && self.expects_long() => self.expect_nothing(),
                Err(error) if is_timeout(&error) => return Err(ReadError::TimedOut),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next whole message, if it is available now or after a read without waiting: one system call at
    /// most, unless the message is longer than one call reads. Of a message in fragments, a call reads a MiB at most;
    /// the handle then shows the rest.
    ///
    /// # Errors
    /// [`ReadError`]; after [`ReadError::Discarded`] reading can continue.
    pub fn next_ready(&mut self, transport: &dyn Transport) -> Result<Option<Message>, ReadError> {
        if self.monitor.has_pending() {
            return self.monitor.take_pending().transpose();
        }
        self.read_ready(transport)
    }

    /// [`next_ready`](Self::next_ready) beyond what was found ahead.
    fn read_ready(&mut self, transport: &dyn Transport) -> Result<Option<Message>, ReadError> {
        let mut vain_reads = 0;
        loop {
            let filled = self.buffer.filled().len();
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            vain_reads += u32::from(self.buffer.filled().len() < filled);
            if vain_reads > MOST_VAIN_READS {
                return Ok(None);
            }
            let room = self.room();
            let len = room.len();
            match transport.try_recv(room) {
                Ok(0) => return Err(self.stream_end()),
                Ok(count) => {
                    self.commit(count);
                    if count < len {
                        // All available octets have been read.
                        return self.whole();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.buffer.release_reserved();
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether memory is reserved for a message as long as the previous one.
    #[inline]
    fn expects_long(&self) -> bool {
        self.last_len > BUFFER_OCTETS
    }

    /// Releases what is reserved for another long message.
    #[cold]
    fn expect_nothing(&mut self) {
        self.last_len = 0;
        self.buffer.release_reserved();
    }

    /// Whether a further request seems to be whole in memory. A hint: the octets have not been checked.
    #[must_use]
    #[inline]
    pub fn holds_request(&self) -> bool {
        !self.buffer.filled().is_empty() && self.holds_whole_request()
    }

    #[cold]
    #[inline(never)]
    fn holds_whole_request(&self) -> bool {
        let filled = self.buffer.filled();
        let header = filled.first_chunk::<HEADER_LEN>().and_then(|octets| MessageHeader::parse(octets).ok());
        header.is_some_and(|header| {
            header.message_type == MessageType::Request && !header.more_fragments && header.total_len() <= filled.len()
        })
    }

    /// Whether nothing was read beyond the returned messages.
    #[must_use]
    #[inline]
    pub fn is_drained(&self) -> bool {
        !self.monitor.has_pending() && self.buffer.filled().is_empty()
    }

    /// The next message, if the buffer holds all of it.
    #[inline]
    fn whole(&mut self) -> Result<Option<Message>, ReadError> {
        // Usually so before a read, and again after the message that it has brought.
        if self.buffer.filled().is_empty() { self.not_yet() } else { self.whole_in_memory() }
    }

    /// The next message, if all of its octets are among those in the buffer.
    fn whole_in_memory(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            if !M::discard(self) {
                return self.not_yet();
            }
            let Some(header) = self.header()? else { return self.not_yet() };
            if self.buffer.filled().len() < header.total_len() {
                self.header = Some(header);
                return self.not_yet();
            }
            self.last_len = header.total_len();
            let octets = self.buffer.take(header.total_len());
            let message = self.assembler.accept(header, octets)?;
            if message.is_some() {
                M::complete(self);
                return Ok(message);
            }
            M::fragment(self)?;
        }
    }

    /// The result when no whole message is available.
    #[inline]
    fn not_yet(&mut self) -> Result<Option<Message>, ReadError> {
        M::incomplete(self)?;
        Ok(None)
    }

    /// The error for an end of the stream: an orderly one between messages, or one inside a message.
    #[cold]
    fn stream_end(&self) -> ReadError {
        match self.buffer.filled() {
            [] => ReadError::EndOfFile,
            [m0, m1, m2, m3, ..] if self.header.is_none() && [*m0, *m1, *m2, *m3] != *b"GIOP" => {
                // The last message of another protocol may be shorter than a GIOP header.
                GiopError::BadMagic([*m0, *m1, *m2, *m3]).into()
            }
            _ => ReadError::CutOff,
        }
    }

    /// Adds `count` received octets to the buffer.
    #[inline]
    fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
        self.monitor.received(count);
    }

    /// The memory reserved for a message of `total` octets while `filled` of them have arrived: an announced
    /// length alone reserves little.
    fn at_once(total: usize, filled: usize) -> usize {
        total.min(AT_ONCE.max(filled.saturating_mul(2)))
    }

    /// The header of the next message; it is stored once the message is known to be incomplete.
    #[inline]
    fn header(&mut self) -> Result<Option<MessageHeader>, ReadError> {
        if let Some(known) = self.header.take() {
            return Ok(Some(known));
        }
        let Some(octets) = self.buffer.filled().first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::parse(octets)?;
        if header.total_len() > self.max_message {
            return M::too_long(self, header);
        }
        header.check(self.max_message)?;
        Ok(Some(header))
    }

    /// The memory to read into, limited to the octets that should be read.
    // Called before each read, by two functions.
    #[inline(always)]
    fn room(&mut self) -> &mut [u8] {
        let filled = self.buffer.filled().len();
        let Some(header) = self.header else {
            // Within a limit that one of just a mebibyte does not reach with its headers.
            let expected = self.last_len.min(2 * AT_ONCE);
            let is_exact =
                expected >= EXACT_OCTETS && (expected <= BUFFER_OCTETS || self.buffer.reserve_message(expected));
            return self.exact_room(if is_exact { expected } else { BUFFER_OCTETS } - filled);
        };
        let total = Self::at_once(header.total_len(), filled);
        if total >= PLACED_OCTETS {
            // A server has reserved it within its limits, or rejected the message. `spare` makes up for the rest.
            let _ = self.buffer.reserve_message(total);
        }
        if total >= EXACT_OCTETS { self.exact_room(total - filled) } else { self.buffer.spare(total - filled) }
    }

    #[inline(always)]
    fn exact_room(&mut self, len: usize) -> &mut [u8] {
        &mut self.buffer.spare(len)[..len]
    }

    /// Sets the transport's time-out, if it is not set already.
    fn arm(&mut self, transport: &dyn Transport, deadline: Option<&Deadline>) -> Result<(), ReadError> {
        let mut wanted = deadline.map(|deadline| deadline.wait().ok_or(ReadError::TimedOut)).transpose()?;
        if self.expects_long() {
            wanted = Some(wanted.map_or(LONG_WAIT, |wanted| wanted.min(LONG_WAIT)));
        }
        if wanted != self.timeout {
            transport.set_recv_timeout(wanted)?;
            self.timeout = wanted;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::IoSlice,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// A peer that begins a reply and sends fragments of no octets without end, as fast as they are read.
    #[derive(Default)]
    struct EndlessFragments {
        sent: AtomicUsize,
        reads: AtomicUsize,
    }

    /// The length of each of its messages.
    const LEN: usize = 16;
    const REPLY: [u8; LEN] = *b"GIOP\x01\x02\x03\x01\x04\0\0\0\x07\0\0\0";
    const FRAGMENT: [u8; LEN] = *b"GIOP\x01\x02\x03\x07\x04\0\0\0\x07\0\0\0";

    impl Transport for EndlessFragments {
        fn try_recv(&self, room: &mut [u8]) -> io::Result<usize> {
            let begin = self.sent.fetch_add(room.len(), Ordering::Relaxed);
            for (octet, at) in room.iter_mut().zip(begin..) {
                *octet = if at < LEN { REPLY[at] } else { FRAGMENT[at % LEN] };
            }
            // The test ends in any case.
            let reads = self.reads.fetch_add(1, Ordering::Relaxed);
            if reads < 1000 { Ok(room.len()) } else { Err(io::ErrorKind::ConnectionReset.into()) }
        }

        fn recv(&self, room: &mut [u8]) -> io::Result<usize> {
            self.try_recv(room)
        }

        fn send(&self, octets: &[u8]) -> io::Result<usize> {
            Ok(octets.len())
        }

        fn send_v(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
            Ok(parts.iter().map(|part| part.len()).sum())
        }

        fn set_recv_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }

        fn set_send_timeout(&self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }

        fn close_writer(&self) {}

        fn close(&self) {}
    }

    #[test]
    fn fragments_without_end_do_not_keep_the_reading_thread() {
        let (mut reader, peer) = (MessageReader::new(1 << 20, 4), EndlessFragments::default());
        for call in 1..=3 {
            assert!(reader.next_ready(&peer).expect("each fragment may come").is_none());
            assert!(peer.reads.load(Ordering::Relaxed) <= call * (MOST_VAIN_READS as usize + 1));
        }
        let deadline = Deadline::after(Duration::ZERO);
        assert!(matches!(reader.next(&peer, Some(&deadline)), Err(ReadError::TimedOut)));
    }
}
