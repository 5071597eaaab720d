//! Octets, notices and requests to close that senders have posted to a service, until the service takes them.
//!
//! The first poster since the service last looked wakes it; so at most one wake-up is under way. Everything
//! is bounded: octets by the connection's limit, together with those in its outbox; notices by their number.

use std::any::Any;
use std::collections::VecDeque;
use std::io;

use spandrel_sync::{Mutex, MutexGuard};

/// The limit on notices that wait for one service.
pub const MAX_NOTICES: usize = 1024;
/// The number of notices that a service takes at once, so that its other events are not delayed.
const NOTICES_AT_ONCE: usize = 16;

/// A message for a service: any value, which [`handle_notice`](crate::ServiceHandler::handle_notice) gets
/// back by [`downcast`](Box::downcast).
pub type Notice = Box<dyn Any + Send>;

/// The reason why a [`Sender`](crate::Sender) did not accept something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection has ended, or was told to end.
    #[error("cannot send to the peer: the connection is closed")]
    Closed,
    /// More octets would wait for the peer than the connection's limit.
    #[error("cannot queue {octets} octets: the peer does not read, {waiting} octets wait, and the limit is {limit}")]
    PeerDoesNotRead {
        /// The number of octets that were refused.
        octets: usize,
        /// The number of octets that wait for the peer.
        waiting: usize,
        /// The limit on octets that wait.
        limit: usize,
    },
    /// As many notices wait for the service as are allowed.
    #[error("cannot post a notice: the service is busy, and {limit} notices wait, the limit")]
    TooManyNotices {
        /// The limit on notices that wait.
        limit: usize,
    },
}

impl From<SendError> for io::Error {
    /// [`io::ErrorKind::NotConnected`] for a closed connection, otherwise [`io::ErrorKind::QuotaExceeded`].
    fn from(error: SendError) -> Self {
        let kind = match error {
            SendError::Closed => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::QuotaExceeded,
        };
        Self::new(kind, error)
    }
}
/// Posted octets and notices, and the end.
pub(crate) struct PostedWork(Mutex<Posted>);

struct Posted {
    octets: Vec<u8>,
    notices: VecDeque<Notice>,
    /// The number of octets in the service's own outbox.
    queued: usize,
    /// The limit on both kinds of octets.
    limit: usize,
    end: Option<End>,
    /// A wake-up is under way.
    is_woken: bool,
    /// This side has ended the input of the connection.
    is_input_ended: bool,
    /// The service has ended.
    is_closed: bool,
}

/// The way in which a sender ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// After all posted work.
    Close,
    /// At once, without the posted work that waits.
    Abort,
}

/// The notices to handle now, and then the end, if there is one.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) notices: Vec<Notice>,
    pub(crate) end: Option<End>,
    /// There are more notices: the service has to take another turn.
    pub(crate) has_more: bool,
}

impl PostedWork {
    pub(crate) fn new(queued: usize, limit: usize) -> Self {
        Self(Mutex::new(Posted {
            octets: Vec::new(),
            notices: VecDeque::new(),
            queued,
            limit,
            end: None,
            is_woken: false,
            is_input_ended: false,
            is_closed: false,
        }))
    }

    /// Adds octets. True: the caller must wake the service.
    pub(crate) fn put(&self, data: &[u8]) -> Result<bool, SendError> {
        let mut posted = self.open()?;
        let (waiting, limit) = (posted.queued + posted.octets.len(), posted.limit);
        if data.len() > limit.saturating_sub(waiting) {
            return Err(SendError::PeerDoesNotRead { octets: data.len(), waiting, limit });
        }
        posted.octets.extend_from_slice(data);
        Ok(posted.begin_wake())
    }

    /// Adds a notice. True: the caller must wake the service.
    pub(crate) fn notice(&self, notice: Notice) -> Result<bool, SendError> {
        let mut posted = self.open()?;
        if posted.notices.len() >= MAX_NOTICES {
            drop(posted); // before the notice, whose drop is foreign code
            return Err(SendError::TooManyNotices { limit: MAX_NOTICES });
        }
        posted.notices.push_back(notice);
        Ok(posted.begin_wake())
    }

    /// Ends the connection. True: the caller must wake the service.
    pub(crate) fn end(&self, end: End) -> bool {
        let mut posted = self.0.lock();
        if posted.is_closed || posted.end >= Some(end) {
            return false;
        }
        posted.end = Some(end);
        posted.begin_wake()
    }

    /// Refuses further octets and notices: the service closes the connection. An abort still takes effect.
    pub(crate) fn refuse(&self) {
        let mut posted = self.0.lock();
        posted.end = posted.end.max(Some(End::Close));
    }

    fn open(&self) -> Result<MutexGuard<'_, Posted>, SendError> {
        let posted = self.0.lock();
        if posted.is_closed || posted.end.is_some() { Err(SendError::Closed) } else { Ok(posted) }
    }

    /// Moves the octets to `into`, which is empty, for an outbox with `queued` octets.
    pub(crate) fn take_octets(&self, into: &mut Vec<u8>, queued: usize) {
        let mut posted = self.0.lock();
        std::mem::swap(&mut posted.octets, into);
        posted.queued = queued + into.len();
    }

    /// Records the number of octets in the outbox.
    pub(crate) fn set_queued(&self, queued: usize) {
        self.0.lock().queued = queued;
    }

    pub(crate) fn set_limit(&self, limit: usize) {
        self.0.lock().limit = limit;
    }

    /// Whether a wake-up is under way, so that the service must not sleep.
    pub(crate) fn is_woken(&self) -> bool {
        self.0.lock().is_woken
    }

    /// Records that this side has ended the input. The caller must wake the service.
    pub(crate) fn end_input(&self) {
        let mut posted = self.0.lock();
        posted.is_input_ended = true;
        posted.is_woken = true;
    }

    /// Whether this side has ended the input.
    pub(crate) fn is_input_ended(&self) -> bool {
        self.0.lock().is_input_ended
    }

    /// Takes the notices of one turn, and the end once there are no more. To be called after each wake-up.
    /// Octets are taken [afterwards](Self::take_octets), so that those posted before a notice or an end are
    /// there.
    pub(crate) fn take_turn(&self) -> Turn {
        let mut posted = self.0.lock();
        posted.is_woken = false;
        if posted.end == Some(End::Abort) {
            return Turn { end: posted.end, ..Turn::default() };
        }
        let count = posted.notices.len().min(NOTICES_AT_ONCE);
        let notices = posted.notices.drain(..count).collect();
        let has_more = !posted.notices.is_empty();
        posted.is_woken = has_more; // the service wakes itself
        Turn { notices, end: if has_more { None } else { posted.end }, has_more }
    }

    /// Refuses everything from now on, and drops what was not taken.
    pub(crate) fn close(&self) {
        let mut posted = self.0.lock();
        posted.is_closed = true;
        posted.queued = 0;
        let dropped = (std::mem::take(&mut posted.octets), std::mem::take(&mut posted.notices));
        drop(posted);
        drop(dropped);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.open().is_err()
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.0.lock().end == Some(End::Abort)
    }

    pub(crate) fn waiting(&self) -> usize {
        let posted = self.0.lock();
        posted.queued + posted.octets.len()
    }
}

impl Posted {
    fn begin_wake(&mut self) -> bool {
        !std::mem::replace(&mut self.is_woken, true)
    }
}
