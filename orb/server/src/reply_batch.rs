//! The replies of one round of a reactor, sent by one system call.
//!
//! The handlers of a round leave their replies here. Each thread of the reactor sends all of them before it waits, and
//! earlier
//!
//! - before an upcall of an operation that is not known to be [quick](crate::quick_operations), and after one that was
//!   not;
//! - before an upcall that begins 200 µs after the first of them;
//! - before a LocateRequest is answered;
//! - before a call that the servant makes (`held_replies` of `spandrel-orb`), and before a future is polled outside of an
//!   upcall;
//! - if the batch is full, or if there is further input of a connection with a reply;
//! - when the [monitor](crate::monitor) first looks at a long upcall.
//!
//! A connection has at most one reply here, of at most 4,096 octets, so that a batch has 256 KiB at most. The octets
//! that a client does not take at once are charged against the memory limits.

use std::{cell::Cell, fmt, io, mem::swap, time::Duration};

use spandrel_ipc::Handle;
use spandrel_orb::internal::held_replies::{self, HeldReplies, Holder};
use spandrel_reactor::BatchSender;
use spandrel_sync::{
    Arc, Mutex, MutexGuard, Weak,
    atomic::{AtomicBool, Ordering},
    time::Instant,
};

/// The most octets of a reply in a batch. A longer one is worth a system call of its own.
const MAX_REPLY: usize = 4096;
/// The time after which replies that wait are sent before a further upcall begins.
pub(crate) const HOLD_TIME: Duration = Duration::from_micros(200);

thread_local! {
    /// The address of the batch that collects replies of this thread; 0 if none does.
    static COLLECTING: Cell<usize> = const { Cell::new(0) };
    /// The time at which this thread has added the first reply since it sent a batch. Another thread may have sent it.
    static FIRST_ADDED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// A connection whose replies may enter a batch.
pub(crate) trait BatchedConnection: Send + Sync {
    fn send_socket(&self) -> Handle<'_>;

    /// Records the result of sending the reply `octets`: the number of octets that the socket has taken. Returns whether
    /// a part of it, or a later message, waits for a reactor.
    fn batched_reply_sent(&self, octets: &[u8], sent: io::Result<usize>) -> bool;

    /// Continues after [`batched_reply_sent`](Self::batched_reply_sent) has returned `waits`.
    fn after_batched_reply(&self, waits: bool);
}

/// The replies of one round.
pub(crate) struct ReplyBatch {
    weak_self: Weak<Self>,
    collected: Mutex<Replies>,
    sending: Mutex<Sending>,
    /// Whether one system call sends all replies. Otherwise none are collected: the copies would cost more than they save.
    is_worthwhile: AtomicBool,
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
}

/// The replies that are being sent. Empty between two batches.
struct Sending {
    sender: BatchSender,
    replies: Replies,
    results: Vec<io::Result<usize>>,
}

/// A visit of a reactor's thread, whose replies enter a batch or are sent each by itself. A visit may be nested in
/// another one, which goes on when it is dropped.
pub(crate) struct Collecting {
    /// The address of the batch of the visit around this one.
    outer: usize,
}

impl ReplyBatch {
    /// # Errors
    /// `Unsupported` where the system has no such system call.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let sending = Sending { sender: BatchSender::new()?, replies: Replies::default(), results: Vec::new() };
        Ok(Arc::new_cyclic(|weak_self| Self {
            weak_self: Weak::clone(weak_self),
            collected: Mutex::default(),
            sending: Mutex::new(sending),
            is_worthwhile: AtomicBool::new(true),
        }))
    }

    /// Begins a visit. Collects the replies of this thread until its end if that is worthwhile, and `is_one_of_several`
    /// visits of a round.
    #[inline]
    pub(crate) fn begin_visit(&self, is_one_of_several: bool) -> Collecting {
        let collects = is_one_of_several && self.is_worthwhile.load(Ordering::Relaxed);
        Collecting { outer: COLLECTING.replace(if collects { self.address() } else { 0 }) }
    }

    /// Whether a reply of this thread with this many octets may enter the batch.
    #[inline]
    pub(crate) fn accepts(&self, octets: usize) -> bool {
        octets <= MAX_REPLY && COLLECTING.get() == self.address()
    }

    /// Whether a batch collects the replies of this thread.
    #[inline]
    pub(crate) fn is_collecting() -> bool {
        COLLECTING.get() != 0
    }

    /// Sends the replies of this thread that an upcall must not delay which begins now. `is_quick`: whether it is known
    /// to be quick.
    pub(crate) fn begin_upcall(&self, now: Instant, is_quick: bool) {
        let Some(first_added) = FIRST_ADDED.get() else { return };
        if !is_quick || now.saturating_duration_since(first_added) >= HOLD_TIME {
            self.send_or_leave();
        }
    }

    /// Sends the replies that this thread has added, unless they were sent.
    pub(crate) fn send_added(&self) {
        if FIRST_ADDED.get().is_some() {
            self.send_or_leave();
        }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Adds a reply. Its connection has no other in the batch.
    pub(crate) fn push(&self, connection: Arc<dyn BatchedConnection>, octets: &[u8]) {
        let mut collected = self.collected.lock();
        let start = collected.octets.len();
        collected.octets.extend_from_slice(octets);
        collected.entries.push(Entry { connection, start, end: start + octets.len() });
        let is_full = collected.entries.len() >= BatchSender::MAX_MESSAGES;
        drop(collected);
        if FIRST_ADDED.get().is_none() {
            FIRST_ADDED.set(Some(Instant::now()));
        }
        held_replies::record(&self.weak_self);
        if is_full {
            self.send();
        }
    }

    /// Sends the collected replies, and reports the results to their connections. When it returns, no other thread
    /// sends any.
    pub(crate) fn send(&self) {
        let sent = self.send_with(self.sending.lock());
        go_on(sent);
        self.send_or_leave(); // replies that were left meanwhile
    }

    /// As [`send`](Self::send); a thread that sends already may take over the replies. For a thread that begins to wait.
    pub(crate) fn send_or_leave(&self) {
        FIRST_ADDED.set(None);
        held_replies::forget(&self.weak_self);
        // Checked again after the lock is free: another thread may have left its replies meanwhile.
        while !self.collected.lock().entries.is_empty() {
            let Some(sending) = self.sending.try_lock() else { return };
            let sent = self.send_with(sending);
            go_on(sent);
        }
    }

    fn send_with(&self, mut sending: MutexGuard<'_, Sending>) -> Sent {
        let sent = sending.send(&self.collected);
        if !sending.sender.sends_together() {
            self.is_worthwhile.store(false, Ordering::Relaxed);
        }
        sent
    }
}

impl HeldReplies for ReplyBatch {
    fn send_held(&self, _holder: Holder) {
        self.send();
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
            let Entry { connection, start, end } = entry;
            let waits = connection.batched_reply_sent(&octets[start..end], result);
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
        COLLECTING.set(self.outer);
    }
}

/// Connections in place of those of clients, for tests.
#[cfg(all(test, target_os = "linux", not(shuttle)))]
pub(crate) mod fake {
    use std::{
        io::{ErrorKind, Read as _},
        os::{fd::AsFd as _, unix::net::UnixStream},
    };

    use spandrel_sync::atomic::AtomicU32;

    use super::*;

    /// A connection whose client has received something only after its reply was sent.
    pub(crate) struct Connection {
        here: UnixStream,
        there: UnixStream,
        results: AtomicU32,
    }

    impl Connection {
        pub(crate) fn new() -> Arc<Self> {
            let (here, there) = UnixStream::pair().unwrap();
            there.set_nonblocking(true).unwrap();
            Arc::new(Self { here, there, results: AtomicU32::new(0) })
        }

        pub(crate) fn reply_in(self: &Arc<Self>, batch: &ReplyBatch) {
            batch.push(Arc::<Self>::clone(self), b"reply");
        }

        /// Whether the client has its reply.
        pub(crate) fn has_reply(&self) -> bool {
            match (&self.there).read(&mut [0; 8]) {
                Ok(count) => {
                    assert_eq!((count, self.results.load(Ordering::SeqCst)), (5, 1));
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    false
                }
            }
        }
    }

    impl BatchedConnection for Connection {
        fn send_socket(&self) -> Handle<'_> {
            self.here.as_fd()
        }

        fn batched_reply_sent(&self, octets: &[u8], sent: io::Result<usize>) -> bool {
            assert_eq!(sent.unwrap(), octets.len());
            self.results.fetch_add(1, Ordering::SeqCst);
            false
        }

        fn after_batched_reply(&self, _waits: bool) {}
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use spandrel_sync::thread;

    use super::{fake::Connection, *};

    #[test]
    fn replies_wait_for_quick_upcalls_of_their_round_only() {
        let (batch, [first, second, third]) = (ReplyBatch::new().unwrap(), [(); 3].map(|()| Connection::new()));
        let begin = Instant::now();
        first.reply_in(&batch);
        let first_added = FIRST_ADDED.get().expect("a reply was added");
        assert!(first_added >= begin);
        batch.begin_upcall(first_added + HOLD_TIME / 2, true);
        second.reply_in(&batch);
        assert!(!first.has_reply() && !second.has_reply(), "the next upcall was quick");
        batch.begin_upcall(first_added + HOLD_TIME, true);
        assert!(first.has_reply() && second.has_reply(), "the first has waited for long enough");
        third.reply_in(&batch);
        batch.begin_upcall(first_added, false);
        assert!(third.has_reply(), "the next upcall may be long");
    }

    #[test]
    fn replies_leave_at_the_end_of_the_round_and_before_a_call() {
        let (batch, [first, second]) = (ReplyBatch::new().unwrap(), [(); 2].map(|()| Connection::new()));
        first.reply_in(&batch);
        batch.send_or_leave();
        assert!(first.has_reply());
        second.reply_in(&batch);
        assert!(!second.has_reply());
        // As a call does, and the replies that another connection holds.
        let other = ReplyBatch::new().unwrap();
        assert!(held_replies::record(&other.weak_self));
        assert!(second.has_reply());
    }

    #[test]
    fn replies_that_come_while_a_thread_sends_are_all_sent() {
        let batch = ReplyBatch::new().unwrap();
        let connections: Vec<_> = (0..2 * BatchSender::MAX_MESSAGES + 1).map(|_| Connection::new()).collect();
        thread::scope(|scope| {
            let sending = batch.sending.lock();
            for connection in &connections {
                scope.spawn(|| connection.reply_in(&batch));
            }
            while batch.collected.lock().entries.len() < connections.len() {
                thread::yield_now();
            }
            drop(sending);
        });
        assert!(connections.iter().all(|connection| connection.has_reply()));
    }
}
