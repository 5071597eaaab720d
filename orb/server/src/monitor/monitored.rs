//! The connections that the monitor looks at, as it sees them.

use std::{fmt, time::Duration};

use spandrel_connection::ReaderWord;
use spandrel_ipc::Pollable;
use spandrel_orb::internal::ClientTimeouts;

/// A long upcall, as the monitor found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongUpcall {
    /// The reader word during the upcall.
    pub(crate) word: ReaderWord,
    /// The time for which the upcall is known to run.
    pub(crate) age: Duration,
    /// Whether the upcall may keep the reader role nevertheless.
    pub(crate) keeps_reading: bool,
    /// Whether there is input to read.
    pub(crate) has_input: bool,
}

/// A connection's action on a long upcall.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LongUpcallAction {
    /// There is nothing more to do during this upcall.
    Settled,
    /// There is nothing to do before input arrives.
    AwaitsInput,
    /// Another thread takes over reading.
    HandedOver,
    /// Pending input was inspected; the thread of the upcall keeps the reader role while no other is free.
    Listened,
    /// The upcall keeps the reader role for now.
    TooEarly,
    /// The upcall keeps the reader role: its thread only waits for a processor, and so would another one.
    LacksProcessor,
}

/// The consequence of a sweep for a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum IdleVerdict {
    /// The connection is idle. It is closed in order if this is still its reader word.
    Idle(ReaderWord),
    /// The client does not finish a message. The connection is cut off.
    Unfinished,
    /// The client received CloseConnection and has not closed its side. The connection is cut off.
    Overstayed,
    /// The client does not take its replies. The connection is cut off.
    RepliesNotTaken,
    /// The handshake takes too long. The connection is cut off.
    HandshakeLate,
}

/// An accepted connection.
pub(crate) trait MonitoredConnection: Send + Sync + fmt::Debug {
    /// The reader word, which shows whether an upcall keeps the reading thread.
    fn reader_word(&self) -> ReaderWord;

    /// Whether replies wait for a task of an executor, which may be blocked.
    fn holds_for_task(&self) -> bool {
        false
    }

    /// Sends the replies that are held.
    fn send_held(&self) {}

    /// The handle that shows input, if there is one.
    fn pollable(&self) -> Option<&dyn Pollable>;

    /// The time that is left for the handshake of the transport, while it is under way.
    fn handshake_left(&self) -> Option<Duration>;

    /// Whether the upcall that keeps the reading thread is a one-way's.
    fn is_one_way(&self) -> bool;

    /// Whether input in memory waits for the end of an upcall, and another thread could read it.
    fn has_input_in_memory(&self) -> bool;

    /// Whether input that the handle shows waits for the end of an upcall, and another thread could read it.
    fn has_unread_input(&self) -> bool;

    /// Whether servants of running upcalls have taken cancellation tokens.
    fn awaits_cancellation(&self) -> bool;

    /// Handles a long upcall: counts its thread as blocked in the pool, and starts another reader if there is
    /// input.
    fn overdue(&self, upcall: &LongUpcall) -> LongUpcallAction;

    /// A number that is odd while a message is incomplete, and that is unchanged while no more of the message
    /// arrives.
    fn read_progress(&self) -> u64;

    /// A number that changes with each piece of a waiting reply that the client takes; `None` while no reply
    /// waits.
    fn write_progress(&self) -> Option<u64>;

    /// Whether no request runs or waits for its reply, and this side sends no requests over the connection.
    fn has_no_requests(&self) -> bool;

    /// Whether CloseConnection was sent, or the connection is gone.
    fn is_close_sent(&self) -> bool;

    /// Carries out the verdict of a sweep.
    fn apply(&self, verdict: IdleVerdict, client_timeouts: ClientTimeouts);
}

/// The replies on a connection that this ORB has opened.
pub(crate) trait MonitoredReplies: Send + Sync + fmt::Debug {
    /// A number that changes when the peer takes a part of the waiting replies; `None` while none waits.
    fn write_progress(&self) -> Option<u64>;

    /// Cuts the connection, because the peer does not take its replies.
    fn cut(&self);

    /// Whether replies are held, or an upcall keeps a thread from taking further requests.
    fn needs_look(&self) -> bool;

    /// Sends the replies that are held, and has another thread take the requests behind an upcall that lasts since the look
    /// before.
    fn look(&self);
}
