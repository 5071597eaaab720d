//! Whole messages from a transport, with as few system calls as possible.
//!
//! Octets beyond a message stay in the buffer: a half-read message belongs to its connection and not to the thread that happens to lead
//! (design decision 3). What a server adds, such as budgets of memory, is a [`ReceiveMonitor`].

mod monitored;

use std::{fmt, io, time::Duration};

use spandrel_giop::{Assembler, GiopError, HEADER_LEN, Message, MessageHeader};
use spandrel_message::ReceiveBuffer;

pub use monitored::Monitored;

use crate::{
    deadline::Deadline,
    read_error::ReadError,
    transport::{ReactorTransport, Transport, is_timeout},
};

/// How much is read ahead at once: several small messages. More would cost more in caches than it saves in calls.
const BUFFER_OCTETS: usize = 64 * 1024;

/// Messages from this size on are placed so that their bodies are aligned in memory (design decision 4).
const PLACED_OCTETS: usize = 1024;

/// Messages from this size on are read to their end and no further: reading ahead would leave the next message's beginning
/// where it must be moved from. After one, the next is expected to be as long.
const EXACT_OCTETS: usize = 16 * 1024;

/// How much memory a message gets before any of it is there; then twice what is there.
const AT_ONCE: usize = 1 << 20;

/// The reading side of one connection.
#[derive(Debug)]
pub struct MessageReader<M = Unmonitored> {
    buffer: ReceiveBuffer,
    assembler: Assembler,
    /// The header of the message at the buffer's start, once its twelve octets are there.
    header: Option<MessageHeader>,
    /// The length of the previous message, header included.
    last_len: usize,
    max_message: usize,
    /// The time-out that was last set on the transport.
    timeout: Option<Duration>,
    monitor: M,
}

/// Follows a [`MessageReader`] while messages arrive.
pub trait ReceiveMonitor: fmt::Debug + Sized {
    /// Whether a message or an error was found before it was asked for.
    #[inline]
    fn has_pending(&self) -> bool {
        false
    }

    /// The message or the error that was found before it was asked for.
    #[inline]
    fn take_pending(&mut self) -> Option<Result<Message, ReadError>> {
        None
    }

    /// Octets have arrived.
    #[inline]
    fn received(&mut self, octets: usize) {
        let _ = octets;
    }

    /// Discards octets that are not wanted. Returns false if more must come before the next message.
    #[inline]
    fn discard(reader: &mut MessageReader<Self>) -> bool {
        let _ = reader;
        true
    }

    /// There is no whole message.
    ///
    /// # Errors
    /// The message that is arriving is not taken.
    #[inline]
    fn incomplete(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        let _ = reader;
        Ok(())
    }

    /// A fragment has arrived that does not complete its message.
    ///
    /// # Errors
    /// The message is not taken.
    #[inline]
    fn fragment(reader: &mut MessageReader<Self>) -> Result<(), ReadError> {
        let _ = reader;
        Ok(())
    }

    /// A message is whole.
    #[inline]
    fn complete(reader: &mut MessageReader<Self>) {
        let _ = reader;
    }

    /// A message exceeds the limit. Returns `None` if more of it must come before that can be decided.
    ///
    /// # Errors
    /// The message is not taken.
    fn too_long(reader: &mut MessageReader<Self>, header: MessageHeader) -> Result<Option<MessageHeader>, ReadError> {
        Err(GiopError::TooLarge { len: header.total_len(), limit: reader.max_message }.into())
    }
}

/// The monitor of a client, which follows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmonitored;

impl ReceiveMonitor for Unmonitored {}

impl MessageReader {
    /// A reader of a server's messages. `max_unfinished`: how many messages may arrive in fragments at a time.
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
    /// [`ReadError`]; after [`ReadError::TimedOut`] and [`ReadError::Discarded`] reading can go on.
    pub fn next(&mut self, transport: &dyn Transport, deadline: Option<&Deadline>) -> Result<Message, ReadError> {
        if self.monitor.has_pending()
            && let Some(pending) = self.monitor.take_pending()
        {
            return pending;
        }
        loop {
            // Mostly nothing is there yet, which is soon seen.
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
                Err(error) if is_timeout(&error) => return Err(ReadError::TimedOut),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next whole message, if it is there now or comes with what can be read without waiting: one system call at most, unless
    /// the message is longer than one call reads.
    ///
    /// # Errors
    /// [`ReadError`]; after [`ReadError::Discarded`] reading can go on.
    pub fn next_ready(&mut self, transport: &dyn ReactorTransport) -> Result<Option<Message>, ReadError> {
        if self.monitor.has_pending() {
            return self.monitor.take_pending().transpose();
        }
        loop {
            if let Some(message) = self.whole()? {
                return Ok(Some(message));
            }
            let room = self.room();
            let len = room.len();
            match transport.try_recv(room) {
                Ok(0) => return Err(self.stream_end()),
                Ok(count) => {
                    self.commit(count);
                    if count < len {
                        // That was all for now.
                        return self.whole();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether nothing was read beyond the messages that were taken.
    #[must_use]
    #[inline]
    pub fn is_drained(&self) -> bool {
        !self.monitor.has_pending() && self.buffer.filled().is_empty()
    }

    /// A message that is there as a whole.
    fn whole(&mut self) -> Result<Option<Message>, ReadError> {
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

    /// There is no whole message.
    #[inline]
    fn not_yet(&mut self) -> Result<Option<Message>, ReadError> {
        M::incomplete(self)?;
        Ok(None)
    }

    /// The error for the end of the stream.
    #[cold]
    fn stream_end(&self) -> ReadError {
        match self.buffer.filled() {
            [] => ReadError::EndOfFile,
            [m0, m1, m2, m3, ..] if self.header.is_none() && [*m0, *m1, *m2, *m3] != *b"GIOP" => {
                // The last message of another protocol may be shorter than a header of this one.
                GiopError::BadMagic([*m0, *m1, *m2, *m3]).into()
            }
            _ => ReadError::CutOff,
        }
    }

    /// So many octets have come.
    #[inline]
    fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
        self.monitor.received(count);
    }

    /// How much memory a message of `total` octets gets while `filled` of them are there: an announced length alone costs little.
    fn at_once(total: usize, filled: usize) -> usize {
        total.min(AT_ONCE.max(filled.saturating_mul(2)))
    }

    /// The header of the next message, which is forgotten until its message is known not to be whole.
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

    /// The memory to read into, and no more than should be read.
    // Called before each read, by two functions.
    #[inline(always)]
    fn room(&mut self) -> &mut [u8] {
        let filled = self.buffer.filled().len();
        let Some(header) = self.header else {
            let expected = self.last_len.min(AT_ONCE);
            let wanted = if expected >= EXACT_OCTETS { expected } else { BUFFER_OCTETS };
            return self.exact_room(wanted - filled);
        };
        let total = Self::at_once(header.total_len(), filled);
        if total >= PLACED_OCTETS {
            self.buffer.reserve_message(total);
        }
        if total >= EXACT_OCTETS { self.exact_room(total - filled) } else { self.buffer.spare(total - filled) }
    }

    #[inline(always)]
    fn exact_room(&mut self, len: usize) -> &mut [u8] {
        &mut self.buffer.spare(len)[..len]
    }

    /// Sets the transport's time-out, if it is not set already.
    fn arm(&mut self, transport: &dyn Transport, deadline: Option<&Deadline>) -> Result<(), ReadError> {
        let wanted = deadline.map(|deadline| deadline.wait().ok_or(ReadError::TimedOut)).transpose()?;
        if wanted != self.timeout {
            transport.set_recv_timeout(wanted)?;
            self.timeout = wanted;
        }
        Ok(())
    }
}
