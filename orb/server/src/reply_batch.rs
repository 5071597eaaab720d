//! The replies of one round of a reactor, sent by one system call.
//!
//! The handlers of a round leave their replies here. Each thread of the reactor sends all of them before it waits;
//! earlier if the batch is full, or if there is further input of a connection with a reply. During a long upcall the
//! [monitor](crate::monitor) sends them.
//!
//! A connection has at most one reply here. It is charged against the memory limits.

use std::{cell::Cell, fmt, io, mem::swap};

use spandrel_ipc::Handle;
use spandrel_reactor::BatchSender;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::Charge;

/// The most octets of a reply in a batch. A longer one is worth a system call of its own.
const MAX_REPLY: usize = 4096;

thread_local! {
    /// The address of the batch that collects replies of this thread; 0 if none does.
    static COLLECTING: Cell<usize> = const { Cell::new(0) };
}

/// A connection whose replies may enter a batch.
pub(crate) trait BatchedConnection: Send + Sync {
    fn send_socket(&self) -> Handle<'_>;

    /// Records the result of sending the reply `octets`: the number of octets that the socket has taken. Returns whether
    /// a part of it, or a later message, waits for a reactor.
    fn batched_reply_sent(&self, octets: &[u8], charge: Charge, sent: io::Result<usize>) -> bool;

    /// Continues after [`batched_reply_sent`](Self::batched_reply_sent) has returned `waits`.
    fn after_batched_reply(&self, waits: bool);
}

/// The replies of one round.
pub(crate) struct ReplyBatch {
    collected: Mutex<Replies>,
    sending: Mutex<Sending>,
}

#[derive(Default)]
struct Replies {
    entries: Vec<Entry>,
    octets: Vec<u8>,
}

struct Entry {
    connection: Arc<dyn BatchedConnection>,
    /// The position of the reply in the octets of all.
    start: usize,
    end: usize,
    charge: Charge,
}

/// The replies that are being sent. Empty between two batches.
struct Sending {
    sender: BatchSender,
    replies: Replies,
    results: Vec<io::Result<usize>>,
}

/// A visit of a thread whose replies enter a batch.
pub(crate) struct Collecting(());

impl ReplyBatch {
    /// # Errors
    /// Errors of the system, also if it has no `io_uring` or forbids it.
    pub(crate) fn new() -> io::Result<Self> {
        let sending = Sending { sender: BatchSender::new()?, replies: Replies::default(), results: Vec::new() };
        Ok(Self { collected: Mutex::default(), sending: Mutex::new(sending) })
    }

    /// Collects the replies of this thread until the end of its visit.
    pub(crate) fn collect(&self) -> Collecting {
        COLLECTING.set(self.address());
        Collecting(())
    }

    /// Whether a reply of this thread with this many octets may enter the batch.
    #[inline]
    pub(crate) fn accepts(&self, octets: usize) -> bool {
        octets <= MAX_REPLY && COLLECTING.get() == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Adds a reply. Its connection has no other in the batch.
    pub(crate) fn push(&self, connection: Arc<dyn BatchedConnection>, octets: &[u8], charge: Charge) {
        let mut collected = self.collected.lock();
        let start = collected.octets.len();
        collected.octets.extend_from_slice(octets);
        collected.entries.push(Entry { connection, start, end: start + octets.len(), charge });
        let is_full = collected.entries.len() == BatchSender::MAX_MESSAGES;
        drop(collected);
        if is_full {
            self.send();
        }
    }

    /// Sends the collected replies, and reports the results to their connections. When it returns, no other thread
    /// sends any.
    pub(crate) fn send(&self) {
        let sent = self.sending.lock().send(&self.collected);
        go_on(sent);
        self.send_or_leave(); // replies that were left meanwhile
    }

    /// As [`send`](Self::send); a thread that sends already may take over the replies. For a thread that begins to wait.
    pub(crate) fn send_or_leave(&self) {
        // Checked again after the lock is free: another thread may have left its replies meanwhile.
        while !self.collected.lock().entries.is_empty() {
            let Some(mut sending) = self.sending.try_lock() else { return };
            let sent = sending.send(&self.collected);
            drop(sending);
            go_on(sent);
        }
    }
}

/// The connections of sent replies, and whether a part waits.
type Sent = Vec<(Arc<dyn BatchedConnection>, bool)>;

/// Called without a lock, because a connection may end here.
fn go_on(sent: Sent) {
    for (connection, waits) in sent {
        connection.after_batched_reply(waits);
    }
}

impl Sending {
    fn send(&mut self, collected: &Mutex<Replies>) -> Sent {
        let Self { sender, replies, results } = self;
        swap(&mut *collected.lock(), replies);
        let Replies { entries, octets } = replies;
        if entries.is_empty() {
            return Sent::new();
        }
        let messages = entries.iter().map(|entry| (entry.connection.send_socket(), &octets[entry.start..entry.end]));
        sender.send(messages, |result| results.push(result));
        let record = |(entry, result)| {
            let Entry { connection, start, end, charge } = entry;
            let waits = connection.batched_reply_sent(&octets[start..end], charge, result);
            (connection, waits)
        };
        let sent = entries.drain(..).zip(results.drain(..)).map(record).collect();
        octets.clear();
        sent
    }
}

impl fmt::Debug for ReplyBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyBatch").finish_non_exhaustive()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        COLLECTING.set(0);
    }
}
