//! Reads whole messages from a transport, with as few system calls as can be.
//!
//! What was read beyond a message stays in the buffer: a half-read message belongs to its connection and not to the
//! thread that happens to lead (design decision 3).

#[cfg(feature = "server")]
use std::cell::Cell;
use std::{io, time::Duration};

#[cfg(feature = "server")]
use spandrel_giop::MessageType;
use spandrel_giop::{Assembler, GiopError, HEADER_LEN, Message, MessageHeader};
#[cfg(feature = "server")]
use spandrel_message::Memory;
use spandrel_message::ReceiveBuffer;
#[cfg(feature = "server")]
use spandrel_sync::thread_local;
use spandrel_sync::time::Instant;

use crate::transport::{Transport, is_timeout};

/// How much is read ahead at once: several small messages. More would cost more in caches than it saves in calls.
const BUFFER_OCTETS: usize = 64 * 1024;

#[cfg(feature = "server")]
thread_local! {
    /// The memory of connections that this thread has served and that are idle now.
    static SPARE: Cell<Option<Memory>> = const { Cell::new(None) };
}

/// Messages from this size on are placed so that their bodies are aligned in memory (design decision 4).
const PLACED_OCTETS: usize = 1024;

/// Messages from this size on are read to their end and no further: reading ahead would leave the next message's beginning
/// where it must be moved from. After one, the next is expected to be as long.
const EXACT_OCTETS: usize = 16 * 1024;

/// Until when to wait, and the whole span, so that a constant time-out needs no system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: Instant,
    pub(crate) span: Duration,
    /// Until when the request must be sent, and the span from the beginning to that, if that is limited for itself.
    sending: Option<(Instant, Duration)>,
}

/// As good as for ever, and small enough for every clock.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How much of the span may have passed before waiting for what is left is worth a system call.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

impl Deadline {
    pub(crate) fn after(span: Duration) -> Self {
        let span = span.min(LONGEST);
        Self { at: Instant::now() + span, span, sending: None }
    }

    /// The same, with another limit on sending.
    #[cfg(feature = "policies")]
    pub(crate) fn with_sending(self, span: Duration) -> Self {
        let Self { at, span, .. } = Self::after(span);
        Self { sending: Some((at, span)), ..self }
    }

    /// The limit on sending.
    #[inline]
    pub(crate) fn to_send(self) -> Self {
        match self.sending.filter(|_| cfg!(feature = "policies")) {
            Some((at, span)) if at < self.at => Self { at, span, sending: None },
            _ => self,
        }
    }

    /// True if it is for sending that time is short.
    pub(crate) fn limits_sending(&self) -> bool {
        cfg!(feature = "policies") && self.sending.is_some_and(|(at, _)| at < self.at)
    }

    /// How long a transport may wait now, `None` if the time is up: the same span from call to call while all of it is
    /// ahead, so that a constant time-out costs no system call.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let remaining = self.remaining();
        if remaining.is_zero() {
            None
        } else if self.span - remaining < NEGLIGIBLE {
            Some(self.span)
        } else {
            Some(remaining)
        }
    }

    /// What is left; nothing once it has passed.
    pub(crate) fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Why no message came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("the peer closed the connection")]
    EndOfFile,
    #[error("the peer closed the connection inside a message")]
    CutOff,
    #[error("nothing came within the time-out")]
    TimedOut,
    #[cfg(feature = "server")]
    #[error("a {0}, which only servers may send, came from a client")]
    Unexpected(MessageType),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Giop(#[from] GiopError),
}

/// The reading side of one connection.
#[derive(Debug)]
pub(crate) struct MessageReader {
    buffer: ReceiveBuffer,
    assembler: Assembler,
    /// Of the message at the buffer's start, once its twelve octets are there.
    header: Option<MessageHeader>,
    /// Of the message before, header included.
    last_len: usize,
    max_message: usize,
    /// What the transport was told last.
    timeout: Option<Duration>,
}

impl MessageReader {
    pub(crate) fn new(max_message: usize, max_unfinished: usize) -> Self {
        Self {
            buffer: ReceiveBuffer::new(BUFFER_OCTETS),
            assembler: Assembler::new(max_message, max_unfinished),
            header: None,
            last_len: 0,
            max_message,
            timeout: None,
        }
    }

    /// The next whole message; fragments are joined.
    pub(crate) fn next(
        &mut self,
        transport: &dyn Transport,
        deadline: Option<&Deadline>,
    ) -> Result<Message, ReadError> {
        loop {
            // Mostly nothing is there yet, which is soon seen.
            if !self.buffer.filled().is_empty()
                && let Some(message) = self.buffered()?
            {
                return Ok(message);
            }
            self.arm(transport, deadline)?;
            let room = self.room();
            match transport.recv(room) {
                Ok(0) if self.buffer.filled().is_empty() => return Err(ReadError::EndOfFile),
                Ok(0) => return Err(ReadError::CutOff),
                Ok(count) => self.buffer.commit(count),
                Err(error) if is_timeout(&error) => return Err(ReadError::TimedOut),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next whole message, if it is there now or comes with what can be read without waiting: one system call at most, unless
    /// the message is longer than what one takes.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn next_ready(&mut self, transport: &dyn Transport) -> Result<Option<Message>, ReadError> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            let room = self.room();
            let len = room.len();
            match transport.try_recv(room) {
                Ok(0) if self.buffer.filled().is_empty() => return Err(ReadError::EndOfFile),
                Ok(0) => return Err(ReadError::CutOff),
                Ok(count) => {
                    self.buffer.commit(count);
                    if count < len {
                        // That was all for now.
                        return self.buffered();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// True if nothing was read beyond the messages that were taken.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn is_drained(&self) -> bool {
        self.buffer.filled().is_empty()
    }

    /// Before reading on a thread that serves many connections: uses the memory that the thread keeps.
    #[cfg(feature = "server")]
    pub(crate) fn wake(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = spare.take() {
                spare.set(self.buffer.use_memory(memory));
            }
        });
    }

    /// After that: leaves the memory with the thread, so that an idle connection has none.
    #[cfg(feature = "server")]
    pub(crate) fn rest(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = self.buffer.take_memory() {
                spare.set(Some(memory));
            }
        });
    }

    /// Forgets the fragments of a request that its sender gave up.
    #[cfg(feature = "server")]
    pub(crate) fn cancel(&mut self, request_id: u32) {
        self.assembler.cancel(request_id);
    }

    /// A message that needs no further octet.
    pub(crate) fn buffered(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            if self.buffer.filled().len() < header.total_len() {
                self.header = Some(header);
                return Ok(None);
            }
            self.last_len = header.total_len();
            let octets = self.buffer.take(header.total_len());
            if let Some(message) = self.assembler.accept(header, octets)? {
                return Ok(Some(message));
            }
        }
    }

    /// The header of the next message, which is forgotten until its message is known not to be whole.
    #[inline]
    fn header(&mut self) -> Result<Option<MessageHeader>, ReadError> {
        if let Some(known) = self.header.take() {
            return Ok(Some(known));
        }
        let Some(octets) = self.buffer.filled().first_chunk::<HEADER_LEN>() else { return Ok(None) };
        let header = MessageHeader::parse(octets)?;
        header.check(self.max_message)?;
        Ok(Some(header))
    }

    /// Where to read into, and no more than should be read.
    fn room(&mut self) -> &mut [u8] {
        let filled = self.buffer.filled().len();
        let Some(header) = self.header else {
            let wanted = if self.last_len >= EXACT_OCTETS { self.last_len } else { BUFFER_OCTETS };
            return self.exact_room(wanted - filled);
        };
        let total = header.total_len();
        if total >= PLACED_OCTETS {
            self.buffer.reserve_message(total);
        }
        if total >= EXACT_OCTETS { self.exact_room(total - filled) } else { self.buffer.spare(total - filled) }
    }

    fn exact_room(&mut self, len: usize) -> &mut [u8] {
        &mut self.buffer.spare(len)[..len]
    }

    /// Tells the transport how long to wait, if that is not what it was told last.
    fn arm(&mut self, transport: &dyn Transport, deadline: Option<&Deadline>) -> Result<(), ReadError> {
        let wanted = deadline.map(|deadline| deadline.wait().ok_or(ReadError::TimedOut)).transpose()?;
        if wanted != self.timeout {
            transport.set_recv_timeout(wanted)?;
            self.timeout = wanted;
        }
        Ok(())
    }
}
