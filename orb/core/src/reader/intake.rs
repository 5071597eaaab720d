//! What a server keeps an eye on while its clients' messages arrive: whether they go on, and what memory they take.
//!
//! Nothing here is touched by a message that arrives whole. One that arrives in pieces shows its progress to whoever looks from outside, and is
//! charged for what it takes before that is allocated; one that is too long, or finds no memory, is read to its end and dropped, if it
//! is a request that can be answered.

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::{GiopError, HEADER_LEN, MessageHeader, MessageType};
use spandrel_sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::{MessageReader, ReadError};

/// What progress is counted in.
const STRIDE: usize = 1 << 20;

/// Less than this is not worth counting.
const SMALL: usize = 1024;

/// Requests up to so many times the limit are read and dropped, so that their clients, which may not read before they have written,
/// see the answer. Beyond, the connection ends.
const LENIENCY: usize = 16;

/// What a request has, from its header on, before anything of variable length: its id, and whether it is answered (GIOP 1.2).
const START_LEN: usize = HEADER_LEN + 5;

/// What all clients of a server may take of its memory together.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    limit: usize,
    /// The longest reply of late, of those that were long.
    longest_reply: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: AtomicUsize::new(0), limit, longest_reply: AtomicUsize::new(0) }
    }

    /// The longest reply of late in octets, of those that were long.
    pub(crate) fn longest_reply(&self) -> usize {
        self.longest_reply.load(Ordering::Relaxed)
    }

    /// Halves what is remembered of long replies: called from time to time.
    pub(crate) fn forget_long_replies(&self) {
        self.longest_reply.store(self.longest_reply() / 2, Ordering::Relaxed);
    }

    /// How much of it is taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// There is no memory for something.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("{wanted} octets more than the {used} in use exceed the limit of {limit} octets for {whom} ({setting})")]
pub(crate) struct NoRoom {
    wanted: usize,
    used: usize,
    limit: usize,
    whom: &'static str,
    setting: &'static str,
}

/// What is seen from outside of a connection's reader, and what memory the connection takes.
#[derive(Debug)]
pub(crate) struct Intake {
    progress: AtomicU64,
    used: AtomicUsize,
    limit: usize,
    budget: Arc<Budget>,
}

impl Intake {
    /// `limit`: what this connection may take.
    pub(crate) fn new(limit: usize, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self { progress: AtomicU64::new(0), used: AtomicUsize::new(0), limit, budget })
    }

    /// Odd while a message is half read; another number with each [`STRIDE`] of it, and at its end.
    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    fn go_on(&self, by: u64) {
        self.progress.fetch_add(by, Ordering::Relaxed);
    }

    /// A reply of so many octets is long.
    pub(crate) fn note_long_reply(&self, octets: usize) {
        self.budget.longest_reply.fetch_max(octets, Ordering::Relaxed);
    }

    /// Counts so many octets more.
    pub(crate) fn charge(&self, octets: usize) -> Result<(), NoRoom> {
        add(&self.used, octets, self.limit, "one connection", "-ORBMaxConnectionMemory")?;
        let all = add(&self.budget.used, octets, self.budget.limit, "all connections", "-ORBMaxServerMemory");
        all.inspect_err(|_| {
            self.used.fetch_sub(octets, Ordering::Relaxed);
        })
    }

    /// Counts so many octets less.
    pub(crate) fn release(&self, octets: usize) {
        self.used.fetch_sub(octets, Ordering::Relaxed);
        self.budget.used.fetch_sub(octets, Ordering::Relaxed);
    }
}

/// Octets that are counted against the limits of one connection and of the server until this is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    intake: Arc<Intake>,
    octets: usize,
}

impl Charge {
    /// How far the messages of [`beyond_limit`](Self::beyond_limit) may exceed the limit of one connection.
    const EXCESS: usize = 64 << 10;

    /// Counts so many octets.
    ///
    /// # Errors
    /// One of the limits would be exceeded.
    pub(crate) fn new(intake: &Arc<Intake>, octets: usize) -> Result<Self, NoRoom> {
        intake.charge(octets)?;
        Ok(Self { intake: Arc::clone(intake), octets })
    }

    /// The same for a short message that says why a longer one is not sent: it may exceed both limits, the connection's by 64 KiB.
    ///
    /// # Errors
    /// The connection's limit would be exceeded by more.
    pub(crate) fn beyond_limit(intake: &Arc<Intake>, octets: usize) -> Result<Self, NoRoom> {
        let limit = intake.limit.saturating_add(Self::EXCESS);
        add(&intake.used, octets, limit, "one connection", "-ORBMaxConnectionMemory")?;
        intake.budget.used.fetch_add(octets, Ordering::Relaxed);
        Ok(Self { intake: Arc::clone(intake), octets })
    }

    /// Counts only so many octets from now on, if these are fewer.
    pub(crate) fn reduce_to(&mut self, octets: usize) {
        self.intake.release(self.octets.saturating_sub(octets));
        self.octets = self.octets.min(octets);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.intake.release(self.octets);
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.used.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

fn add(
    count: &AtomicUsize,
    wanted: usize,
    limit: usize,
    whom: &'static str,
    setting: &'static str,
) -> Result<(), NoRoom> {
    let more = |used: usize| used.checked_add(wanted).filter(|sum| *sum <= limit);
    let added = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    added.map(drop).map_err(|used| NoRoom { wanted, used, limit, whom, setting })
}

/// A request that is not read, but dropped as it comes.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) request_id: u32,
    pub(crate) is_answered: bool,
    pub(crate) why: Why,
}

/// Why a message is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Why {
    #[error("{len} octets of message exceed the limit of {limit} (-ORBMaxMessageSize)")]
    TooLong { len: usize, limit: usize },
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// The reader's side of it.
#[derive(Debug)]
pub(super) struct Watched {
    intake: Arc<Intake>,
    /// A message is half read, and the progress says so.
    is_begun: bool,
    /// Something has been charged, or begun.
    is_partial: bool,
    /// Octets since the progress last went on.
    received: usize,
    charged: usize,
    /// Octets that are still to be dropped.
    to_drop: usize,
}

impl Watched {
    pub(super) fn new(intake: Arc<Intake>) -> Self {
        Self { intake, is_begun: false, is_partial: false, received: 0, charged: 0, to_drop: 0 }
    }

    /// Whether there is anything to do when a message is whole.
    #[inline]
    pub(super) fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Whether what comes is to be dropped.
    #[inline]
    pub(super) fn drops(&self) -> bool {
        self.to_drop != 0
    }

    /// Nothing but so much is taken any more.
    fn settle(&mut self, held: usize) {
        self.intake.release(self.charged.saturating_sub(held));
        self.charged = self.charged.min(held);
    }

    #[inline]
    pub(super) fn note_received(&mut self, octets: usize) {
        self.received += octets;
    }
}

impl MessageReader {
    /// A reader of what a client sends.
    pub(crate) fn watched(max_message: usize, max_unfinished: usize, intake: Arc<Intake>) -> Self {
        Self { watched: Some(Watched::new(intake)), ..Self::new(max_message, max_unfinished) }
    }

    /// A message is half read, and waits for more.
    #[cold]
    pub(super) fn note_begun(&mut self) -> Result<(), ReadError> {
        let filled = self.buffer.filled().len();
        let reading = match self.header {
            Some(header) => Self::at_once(header.total_len(), filled),
            None => filled,
        };
        let wanted = self.assembler.held() + if reading > SMALL { reading } else { 0 };
        let Some(watched) = &mut self.watched else { return Ok(()) };
        watched.is_partial = true;
        if !watched.is_begun {
            watched.is_begun = true;
            watched.received = 0;
            watched.intake.go_on(1);
        } else if watched.received >= STRIDE {
            watched.received = 0;
            watched.intake.go_on(2);
        }
        if wanted > watched.charged {
            match watched.intake.charge(wanted - watched.charged) {
                Ok(()) => watched.charged = wanted,
                Err(no_room) => return self.drop_rest(no_room.into()),
            }
        }
        Ok(())
    }

    /// What was half read is whole, or given up.
    #[cold]
    pub(super) fn note_whole(&mut self) {
        let held = self.assembler.held();
        let Some(watched) = &mut self.watched else { return };
        watched.settle(held);
        if self.assembler.unfinished() == 0 {
            watched.is_partial = false;
            self.stop();
        }
    }

    /// Nothing is read for now, for which the peer is not to blame.
    pub(crate) fn stop(&mut self) {
        if let Some(watched) = &mut self.watched
            && std::mem::take(&mut watched.is_begun)
        {
            watched.intake.go_on(1);
        }
    }

    /// Drops what is there of a message that is to be dropped; true if that was all of it.
    #[cold]
    pub(super) fn drop_more(&mut self) -> bool {
        let Some(watched) = &mut self.watched else { return true };
        let count = watched.to_drop.min(self.buffer.filled().len());
        watched.to_drop -= count;
        let is_over = watched.to_drop == 0;
        self.buffer.consume(count);
        if is_over {
            self.note_whole();
        }
        is_over
    }

    /// A message is too long.
    #[cold]
    pub(super) fn too_long(&mut self, header: MessageHeader) -> Result<Option<MessageHeader>, ReadError> {
        let (len, limit) = (header.total_len(), self.max_message);
        let is_absurd = len / LENIENCY > limit;
        if self.watched.is_none() || !is_droppable(header) || is_absurd {
            return Err(GiopError::TooLarge { len, limit }.into());
        }
        if self.buffer.filled().len() < START_LEN {
            return Ok(None);
        }
        self.header = Some(header);
        self.drop_rest(Why::TooLong { len, limit }).map(|()| None)
    }

    /// Drops the message that is being read, as far as it is there and as it comes.
    fn drop_rest(&mut self, why: Why) -> Result<(), ReadError> {
        let filled = self.buffer.filled();
        let header = self.header.take().filter(|header| is_droppable(*header) && filled.len() >= START_LEN);
        let (Some(header), Some(start)) = (header, filled.get(HEADER_LEN..START_LEN)) else {
            return Err(ReadError::NotTaken(why));
        };
        let id = [start[0], start[1], start[2], start[3]];
        let request_id = match header.order {
            ByteOrder::Big => u32::from_be_bytes(id),
            ByteOrder::Little => u32::from_le_bytes(id),
        };
        let is_answered = start[4] & 1 != 0;
        let held = self.assembler.held();
        if let Some(watched) = &mut self.watched {
            watched.settle(held);
            watched.to_drop = header.total_len();
            watched.is_partial = true;
        }
        self.drop_more();
        self.last_len = 0;
        Err(ReadError::Dropped(Dropped { request_id, is_answered, why }))
    }
}

/// Whether a message is a request that tells who waits for its answer in the same place, and is not continued elsewhere.
fn is_droppable(header: MessageHeader) -> bool {
    header.version >= GiopVersion::V1_2 && header.message_type == MessageType::Request && !header.more_fragments
}
