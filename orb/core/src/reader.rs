//! Reads whole messages from a transport, with as few system calls as can be.
//!
//! What was read beyond a message stays in the buffer: a half-read message belongs to its connection and not to the
//! thread that happens to lead (design decision 3).

mod deadline;
#[cfg(feature = "server")]
mod intake;

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

pub(crate) use deadline::Deadline;
#[cfg(feature = "server")]
use intake::Watched;
#[cfg(feature = "server")]
pub(crate) use intake::{Budget, Charge, Dropped, Intake, NoRoom, Why};

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

/// What is there of a message that has just begun is moved to memory of its own, where others wait for that which it was read into.
#[cfg(feature = "server")]
const SMALL_OCTETS: usize = 1024;

/// Messages from this size on are read to their end and no further: reading ahead would leave the next message's beginning
/// where it must be moved from. After one, the next is expected to be as long.
const EXACT_OCTETS: usize = 16 * 1024;

/// How much room is made for a message before anything of it is there; then twice what is there.
const AT_ONCE: usize = 1 << 20;

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
    /// The connection goes on.
    #[cfg(feature = "server")]
    #[error("request {} is not taken: {}", .0.request_id, .0.why)]
    Dropped(Dropped),
    #[cfg(feature = "server")]
    #[error(transparent)]
    NotTaken(Why),
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
    /// What was found by [looking ahead](Self::look_ahead).
    #[cfg(feature = "server")]
    parked: Option<Result<Message, ReadError>>,
    /// What a server keeps an eye on.
    #[cfg(feature = "server")]
    watched: Option<Watched>,
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
            #[cfg(feature = "server")]
            parked: None,
            #[cfg(feature = "server")]
            watched: None,
        }
    }

    /// The next whole message; fragments are joined.
    pub(crate) fn next(
        &mut self,
        transport: &dyn Transport,
        deadline: Option<&Deadline>,
    ) -> Result<Message, ReadError> {
        #[cfg(feature = "server")]
        if self.parked.is_some()
            && let Some(message) = self.unpark()?
        {
            return Ok(message);
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
    /// the message is longer than what one takes.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn next_ready(&mut self, transport: &dyn Transport) -> Result<Option<Message>, ReadError> {
        #[cfg(feature = "server")]
        if self.parked.is_some() {
            return self.unpark();
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

    /// True if nothing was read beyond the messages that were taken.
    #[cfg(feature = "asynchronous")]
    pub(crate) fn is_drained(&self) -> bool {
        #[cfg(feature = "server")]
        if self.parked.is_some() {
            return false;
        }
        self.buffer.filled().is_empty()
    }

    /// A CancelRequest that is there now, for one who reads only for these, while nobody reads otherwise. What else is there is
    /// kept for whoever reads next, and nothing beyond it is looked at.
    #[cfg(feature = "server")]
    pub(crate) fn look_ahead(&mut self, transport: &dyn Transport) -> Option<Message> {
        if self.parked.is_some() {
            return None;
        }
        let next = self.next_ready(transport);
        self.stop();
        match next {
            Ok(None) => None,
            Ok(Some(message)) if message.header.message_type == MessageType::CancelRequest => Some(message),
            Ok(Some(message)) => {
                self.parked = Some(Ok(message));
                None
            }
            Err(error) => {
                self.parked = Some(Err(error));
                None
            }
        }
    }

    /// Whether something was found by [looking ahead](Self::look_ahead) that is for another reader.
    #[cfg(feature = "server")]
    pub(crate) fn is_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// Whether the end was found by looking ahead.
    #[cfg(feature = "server")]
    pub(crate) fn has_ended(&self) -> bool {
        self.parked
            .as_ref()
            .is_some_and(|parked| matches!(parked, Err(error) if !matches!(error, ReadError::Dropped(_))))
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

    /// After that: leaves the memory with the thread, so that an idle connection has none, and one whose client has begun something little.
    #[cfg(feature = "server")]
    pub(crate) fn rest(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = self.buffer.set_aside(SMALL_OCTETS) {
                spare.set(Some(memory));
            }
        });
    }

    /// The same once nothing will be read any more, whatever came.
    #[cfg(feature = "server")]
    pub(crate) fn end(&mut self) {
        SPARE.with(|spare| {
            if let Some(memory) = self.buffer.give_up_memory() {
                spare.set(Some(memory));
            }
        });
    }

    /// Forgets the fragments of a request that its sender gave up.
    #[cfg(feature = "server")]
    pub(crate) fn cancel(&mut self, request_id: u32) {
        self.assembler.cancel(request_id);
        self.note_whole();
    }

    /// A message that needs no further octet.
    #[cfg(feature = "server")]
    pub(crate) fn buffered(&mut self) -> Result<Option<Message>, ReadError> {
        if self.parked.is_some() {
            return self.unpark();
        }
        self.whole()
    }

    /// What was found by looking ahead.
    #[cfg(feature = "server")]
    #[cold]
    fn unpark(&mut self) -> Result<Option<Message>, ReadError> {
        self.parked.take().transpose()
    }

    /// A message that is there as a whole.
    fn whole(&mut self) -> Result<Option<Message>, ReadError> {
        loop {
            #[cfg(feature = "server")]
            let is_partial = self.watched.as_ref().is_some_and(Watched::is_partial);
            #[cfg(feature = "server")]
            if is_partial && self.drops() && !self.drop_more() {
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
                #[cfg(feature = "server")]
                if is_partial {
                    self.note_whole();
                }
                return Ok(message);
            }
            #[cfg(feature = "server")]
            self.note_begun()?;
        }
    }

    /// There is no whole message.
    ///
    /// # Errors
    /// What comes is not taken.
    #[inline]
    #[cfg_attr(
        not(feature = "server"),
        allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "servers look at what comes")
    )]
    fn not_yet(&mut self) -> Result<Option<Message>, ReadError> {
        #[cfg(feature = "server")]
        if !self.buffer.filled().is_empty() || self.assembler.unfinished() != 0 || self.drops() {
            self.note_begun()?;
        }
        Ok(None)
    }

    /// The stream has ended.
    #[cold]
    fn stream_end(&self) -> ReadError {
        match self.buffer.filled() {
            [] => ReadError::EndOfFile,
            [m0, m1, m2, m3, ..] if self.header.is_none() && [*m0, *m1, *m2, *m3] != *b"GIOP" => {
                // Other protocols have shorter farewells than a header of this one.
                GiopError::BadMagic([*m0, *m1, *m2, *m3]).into()
            }
            _ => ReadError::CutOff,
        }
    }

    /// So many octets have come.
    #[inline]
    fn commit(&mut self, count: usize) {
        self.buffer.commit(count);
        #[cfg(feature = "server")]
        if let Some(watched) = &mut self.watched {
            watched.note_received(count);
        }
    }

    /// Whether what comes is to be dropped.
    #[cfg(feature = "server")]
    #[inline]
    fn drops(&self) -> bool {
        self.watched.as_ref().is_some_and(Watched::drops)
    }

    /// How much of a message's length is asked for while so much of it is there: what a peer merely announces costs little.
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
        #[cfg(feature = "server")]
        if header.total_len() > self.max_message {
            return self.too_long(header);
        }
        header.check(self.max_message)?;
        Ok(Some(header))
    }

    /// Where to read into, and no more than should be read.
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
