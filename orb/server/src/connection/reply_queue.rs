//! Replies that the transport does not take at once, and short ones that are held to be written together.
//!
//! The most urgent reply of which no octet was written is first; replies of executors have the level of their request.
//! They are charged against the memory limits of their connection and of the server before they are kept.
//! [`Link`](super::link::Link) decides which thread writes them. The [monitor](crate::monitor)
//! decides how long they may wait.

use std::{
    cell::Cell,
    collections::VecDeque,
    io::{self, IoSlice},
};

use spandrel_cdr::Encoder;
use spandrel_connection::SendHalf;
use spandrel_giop::{CompletionStatus, Fragments, SystemException};
use spandrel_sync::{Arc, thread_local, time::Instant};
use spandrel_transport::{Charge, MemoryLimitExceeded, ReactorTransport, ReceiveBudget, is_timeout};

use crate::reply_urgency;

/// The most octets of replies that are held.
const MAX_HELD: usize = 16 << 10;

thread_local! {
    /// The thread's block for held replies, while it holds none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Messages that wait to be written on one connection. The fields that each reply needs come first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ReplyQueue {
    /// Whether a thread writes without holding the lock of this queue.
    pub(crate) is_writing: bool,
    /// The state that decides whether further messages may be written.
    pub(crate) half: SendHalf,
    pub(crate) cork: Cork,
    /// Whether a task is under way that ends a [scheduled](Cork::Scheduled) cork.
    pub(crate) has_uncork_task: bool,
    queued: VecDeque<QueuedMessage>,
    /// The replies that are held. They come behind all queued messages. Only while the queue is corked.
    held: Option<HeldReplies>,
}

/// The reason why short replies are held.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Cork {
    /// Each reply is written at once.
    #[default]
    None,
    /// Whole further requests are in memory, and the thread that reads serves them at once.
    Reader,
    /// Asynchronous servants have further requests in hand, and a task will write what they have answered until then.
    Scheduled,
}

/// Replies that wait for those of the requests behind theirs.
#[derive(Debug)]
struct HeldReplies {
    octets: Vec<u8>,
    since: Instant,
    /// The urgency of the most urgent one: they stay together.
    urgency: u32,
    charge: Charge,
}

/// A message, or the end of one, that waits to be written.
#[derive(Debug)]
pub(crate) struct QueuedMessage {
    octets: Vec<u8>,
    /// The number of octets that the transport has taken.
    written: usize,
    /// The urgency of a reply, of which no octet was written when it was queued. `None` for messages that keep their place.
    urgency: Option<u32>,
    _charge: Charge,
}

impl ReplyQueue {
    /// Whether a message may be written now: no other is being written or waits.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_writing && self.queued.is_empty()
    }

    /// Adds a message behind those that are as urgent, that have begun, or that keep their place.
    pub(crate) fn push(&mut self, message: QueuedMessage) {
        let stays_before = |before: &QueuedMessage| {
            before.written > 0 || before.urgency.is_none_or(|urgency| urgency >= message.urgency.unwrap_or(0))
        };
        // From the end: all messages are of equal urgency in most programs.
        let at = self.queued.iter().rposition(stays_before).map_or(0, |at| at + 1);
        self.queued.insert(at, message);
    }

    /// Adds the rest of a message that was sent in part.
    pub(crate) fn push_front(&mut self, message: QueuedMessage) {
        self.queued.push_front(message);
    }

    /// Holds a short reply with those that are held already. False if they have to be written first, or if there is no
    /// memory to hold them.
    pub(crate) fn hold(&mut self, message: &OutgoingMessage<'_, '_>, account: &Arc<ReceiveBudget>) -> bool {
        if self.octets_held() + message.len() > MAX_HELD {
            return false;
        }
        let held = match &mut self.held {
            Some(held) => held,
            none => {
                let Ok(charge) = Charge::new(account, MAX_HELD) else { return false };
                none.insert(HeldReplies { octets: SPARE.with(Cell::take), since: Instant::now(), urgency: 0, charge })
            }
        };
        held.urgency = held.urgency.max(reply_urgency::current());
        message.with_slices(0, |slices| slices.iter().for_each(|slice| held.octets.extend_from_slice(slice)));
        true
    }

    /// The number of octets of the held replies.
    pub(crate) fn octets_held(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.octets.len())
    }

    /// The time at which the first of the held replies was held.
    pub(crate) fn held_since(&self) -> Option<Instant> {
        self.held.as_ref().map(|held| held.since)
    }

    /// Removes the octets of the held replies.
    pub(crate) fn take_held(&mut self) -> Vec<u8> {
        self.held.take().map_or_else(Vec::new, |held| held.octets)
    }

    /// Whether replies are held.
    pub(crate) fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Writes what the transport takes of the queued messages and of the held replies behind them, and queues the rest.
    /// Returns whether nothing is left.
    ///
    /// # Errors
    /// Errors of the transport. Nothing further can be written after one.
    pub(crate) fn write_held(&mut self, transport: &dyn ReactorTransport) -> io::Result<bool> {
        if self.queued.is_empty()
            && let Some(HeldReplies { mut octets, urgency, mut charge, .. }) = self.held.take()
        {
            let written = match transport.try_send(&octets) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                sent => sent?,
            };
            if written == octets.len() {
                octets.clear();
                SPARE.with(|spare| spare.set(octets));
                return Ok(true);
            }
            charge.reduce_to(octets.len());
            self.push(QueuedMessage { octets, written, urgency: Some(urgency), _charge: charge });
            return Ok(false);
        }
        self.queue_held();
        self.write_ready(transport, || {})
    }

    /// Queues the held replies.
    pub(crate) fn queue_held(&mut self) {
        if let Some(HeldReplies { octets, urgency, mut charge, .. }) = self.held.take() {
            charge.reduce_to(octets.len());
            self.push(QueuedMessage { octets, written: 0, urgency: Some(urgency), _charge: charge });
        }
    }

    /// Removes the next message, for a thread that writes without the lock.
    pub(crate) fn take(&mut self) -> Option<QueuedMessage> {
        self.queued.pop_front()
    }

    /// Writes what the transport takes without waiting, and reports each step. Returns whether nothing is
    /// left.
    ///
    /// # Errors
    /// Errors of the transport. Nothing further can be written after one.
    pub(crate) fn write_ready(&mut self, transport: &dyn ReactorTransport, progress: impl Fn()) -> io::Result<bool> {
        while let Some(message) = self.queued.front_mut() {
            match transport.try_send(&message.octets[message.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => message.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            progress();
            if message.written == message.octets.len() {
                self.queued.pop_front();
            }
        }
        Ok(true)
    }

    /// Drops all waiting messages; nothing will be written any more.
    pub(crate) fn cut(&mut self) {
        self.half.cut();
        self.queued = VecDeque::new();
        self.held = None;
    }
}

impl QueuedMessage {
    /// A copy of a short message that no later one overtakes.
    pub(crate) fn of(octets: &[u8], charge: Charge) -> Self {
        Self { octets: octets.to_vec(), written: 0, urgency: None, _charge: charge }
    }

    /// A copy of a message without its first `written` octets. `None` if there is no memory for it.
    pub(crate) fn rest_of(message: &OutgoingMessage<'_, '_>, written: usize, charge: Charge) -> Option<Self> {
        let mut octets = Vec::new();
        octets.try_reserve_exact(message.len() - written).ok()?;
        message.with_slices(written, |slices| slices.iter().for_each(|slice| octets.extend_from_slice(slice)));
        let urgency = (written == 0).then(reply_urgency::current);
        Some(Self { octets, written: 0, urgency, _charge: charge })
    }

    /// Writes the rest of the message, waiting for the transport.
    pub(crate) fn write_all(&self, transport: &dyn ReactorTransport, progress: impl Fn()) -> io::Result<()> {
        write_all(transport, &mut [IoSlice::new(&self.octets[self.written..])], progress)
    }
}

/// A message in the form in which it is written: whole or in fragments.
pub(crate) struct OutgoingMessage<'m, 'e> {
    message: &'m Encoder<'e>,
    fragments: Option<Fragments>,
}

impl<'m, 'e> OutgoingMessage<'m, 'e> {
    /// A message that is split into fragments of at most `fragment_size` octets if it is longer.
    #[inline]
    pub(crate) fn new(message: &'m Encoder<'e>, fragment_size: usize) -> Self {
        let is_cut = message.position() > fragment_size;
        Self { message, fragments: if is_cut { Fragments::of(message, fragment_size) } else { None } }
    }

    /// The number of octets to write.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.fragments.as_ref().map_or_else(|| self.message.position(), Fragments::total_len)
    }

    /// Writes what the transport takes without waiting, in one call. Returns the number of octets.
    #[inline]
    pub(crate) fn try_send(&self, transport: &dyn ReactorTransport) -> io::Result<usize> {
        let sent = match (self.message.contiguous(), &self.fragments) {
            (Some(octets), None) => transport.try_send(octets),
            _ => self.with_slices(0, |slices| transport.try_send_v(slices)),
        };
        match sent {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }

    /// Writes what follows the first `written` octets, waiting for the transport.
    pub(crate) fn write_rest(
        &self,
        transport: &dyn ReactorTransport,
        written: usize,
        progress: impl Fn(),
    ) -> io::Result<()> {
        self.with_slices(written, |slices| write_all(transport, slices, progress))
    }

    fn with_slices<R>(&self, skipped: usize, then: impl FnOnce(&mut [IoSlice<'_>]) -> R) -> R {
        let (mut whole, mut cut);
        let mut slices: &mut [IoSlice<'_>] = match &self.fragments {
            None => {
                whole = self.message.parts();
                &mut whole
            }
            Some(fragments) => {
                cut = fragments.slices(self.message);
                &mut cut
            }
        };
        IoSlice::advance_slices(&mut slices, skipped);
        then(slices)
    }
}

/// Writes all slices. A time-out of the transport does not end this: the idle sweep decides when the client
/// is given up.
fn write_all(transport: &dyn ReactorTransport, mut rest: &mut [IoSlice<'_>], progress: impl Fn()) -> io::Result<()> {
    while !rest.is_empty() {
        let sent = match &*rest {
            [one] => transport.send(one),
            several => transport.send_v(several),
        };
        match sent {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                progress();
                IoSlice::advance_slices(&mut rest, count);
            }
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// NO_RESOURCES for a reply that exceeds a memory limit; the request was carried out.
pub(crate) fn no_room_for_reply(no_room: &MemoryLimitExceeded) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::Yes)
        .with_detail(|| format!("the reply cannot be kept until the client takes it: {no_room}"))
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_cdr::{ByteOrder, GiopVersion, Wire};
    use spandrel_transport::MemoryBudget;

    use super::*;
    use crate::reply_urgency::{ReplyUrgency, ReplyUrgencyScope};

    #[test]
    fn held_replies_wait_by_the_urgency_of_the_most_urgent_one() {
        let account = ReceiveBudget::new(1 << 20, Arc::new(MemoryBudget::new(1 << 20)));
        let mut queue = ReplyQueue::default();
        let mut message = Encoder::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2));
        message.u32(7);
        let outgoing = OutgoingMessage::new(&message, usize::MAX);
        for urgency in [1, 900, 2] {
            let _urgency = ReplyUrgencyScope::enter(ReplyUrgency { level: urgency, packets: None });
            assert!(queue.hold(&outgoing, &account));
        }
        let push = |queue: &mut ReplyQueue, urgency, len: usize| {
            let charge = Charge::new(&account, len).unwrap();
            queue.push(QueuedMessage { octets: vec![0; len], written: 0, urgency: Some(urgency), _charge: charge });
        };
        push(&mut queue, 900, 1);
        queue.queue_held();
        push(&mut queue, 901, 2);
        push(&mut queue, 899, 3);
        let lengths: Vec<_> = std::iter::from_fn(|| queue.take()).map(|message| message.octets.len()).collect();
        assert_eq!(lengths, [2, 1, 12, 3]);
    }
}
