//! The queue of requests that arrived over one connection, and the privilege to take them.
//!
//! The queue also knows the running and the deferred requests, and the replies that are held. It starts no thread and runs
//! no request.

use std::{
    collections::{HashMap, VecDeque},
    mem,
};

use spandrel_cdr::Limits;
use spandrel_giop::{LocateRequestHeader, Message, MessageType, RequestHeader};
use spandrel_orb::internal::cancellation::CancellationSource;
use spandrel_sync::{Arc, thread::ThreadId};

use super::held_answers::HeldAnswers;
use crate::{quick_operations::QuickOperations, upcall::origin::RequestKey};

/// The greatest number of requests of one connection that wait for a thread.
const MAX_WAITING: usize = 1024;
/// The greatest total length of the waiting ones, in octets. A single message may exceed it.
const MAX_OCTETS: usize = 64 << 20;

/// The exception detail for a request beyond these limits.
pub(super) const FULL: &str = "1024 requests of one connection, or 64 MiB of them, wait to be run";

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct CallbackQueue {
    waiting: VecDeque<Message>,
    octets: usize,
    /// Whether messages were added that the reading thread has not yet announced.
    is_filling: bool,
    /// Running requests, and how many may run at once.
    running: u32,
    max_running: u32,
    /// The privilege to take waiting requests: its number, and what is done with it.
    privilege: Option<(u64, PrivilegeUse)>,
    /// The last number of a privilege or of an entry.
    next: u64,
    /// Requests taken so far.
    taken: u64,
    /// The same number when the monitor last found the privilege used by a quick two-way.
    taken_at_look: u64,
    /// The replies that threads hold.
    pub(super) held: HeldAnswers,
    /// Whether a thread waits for the privilege, or soon will.
    pub(super) has_standby: bool,
    /// Running and deferred requests, by their keys.
    begun: HashMap<u64, CallbackScope>,
    /// Deferred requests, and how many there may be.
    deferred: usize,
    max_deferred: usize,
}

#[derive(Debug)]
struct CallbackScope {
    request_key: RequestKey,
    is_deferred: bool,
    cancellation: Arc<CancellationSource>,
}

/// The use that a thread makes of the privilege.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PrivilegeUse {
    /// It takes the next request.
    Taking,
    /// It runs a one-way, and keeps the privilege.
    OneWay(ThreadId),
    /// It runs a two-way of an operation that was quick the last time, and keeps the privilege unless that lasts.
    Quick(ThreadId),
}

/// A request that a thread has taken, and is to run.
#[derive(Debug)]
pub(super) struct TakenRequest {
    pub(super) message: Message,
    /// Whether no other thread may take a request meanwhile.
    pub(super) keeps_privilege: bool,
    /// The hash of its operation, for a two-way.
    pub(super) operation: Option<u32>,
}

impl CallbackQueue {
    pub(super) fn new(max_running: u32, max_deferred: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            octets: 0,
            is_filling: false,
            running: 0,
            max_running,
            privilege: None,
            next: 0,
            taken: 0,
            taken_at_look: 0,
            held: HeldAnswers::default(),
            has_standby: false,
            begun: HashMap::new(),
            deferred: 0,
            max_deferred,
        }
    }

    /// Adds a message, or returns it if a limit would be exceeded. The reading thread is
    /// *filling* the queue until [`end_filling`](Self::end_filling): it may add further messages without waiting.
    pub(super) fn put(&mut self, message: Message) -> Result<(), Message> {
        let octets = message.header.total_len();
        let count = self.waiting.len();
        if count >= MAX_WAITING || count > 0 && octets > MAX_OCTETS.saturating_sub(self.octets) {
            return Err(message);
        }
        self.octets += octets;
        self.waiting.push_back(message);
        self.is_filling = true;
        Ok(())
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether the reading thread may be about to add further messages.
    pub(super) fn is_filling(&self) -> bool {
        self.is_filling
    }

    /// Ends the filling. Returns whether messages were added since the last end.
    pub(super) fn end_filling(&mut self) -> bool {
        mem::replace(&mut self.is_filling, false)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no request waits, runs or is deferred, and no reply is held.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.running == 0 && self.begun.is_empty() && self.held.is_empty()
    }

    /// The number of requests taken so far.
    pub(super) fn progress(&self) -> u64 {
        self.taken
    }

    pub(super) fn is_free(&self) -> bool {
        self.privilege.is_none()
    }

    /// Whether this thread runs a one-way with the privilege, and so cannot wait for its end.
    pub(super) fn is_privileged(&self, thread: ThreadId) -> bool {
        matches!(self.privilege, Some((_, PrivilegeUse::OneWay(holder))) if holder == thread)
    }

    /// Takes the privilege if it is free and a request may be run.
    pub(super) fn begin(&mut self) -> Option<u64> {
        if self.privilege.is_none() { self.take_privilege() } else { None }
    }

    /// Takes the privilege if a request may be run, even from another thread.
    pub(super) fn take_privilege(&mut self) -> Option<u64> {
        if self.is_empty() || self.running >= self.max_running {
            return None;
        }
        self.next += 1;
        self.privilege = Some((self.next, PrivilegeUse::Taking));
        Some(self.next)
    }

    /// Whether a thread is to stand by for the end of a one-way. It is expected to do so from now on.
    pub(super) fn needs_standby(&mut self) -> bool {
        let is_held = matches!(self.privilege, Some((_, PrivilegeUse::OneWay(_))));
        is_held && !self.is_empty() && !mem::replace(&mut self.has_standby, true)
    }

    /// Takes the next request with this privilege. A two-way gives the privilege up, unless its operation is quick. `None` if
    /// no request may be taken.
    pub(super) fn take(&mut self, privilege: u64, thread: ThreadId, quick: &QuickOperations) -> Option<TakenRequest> {
        let message = if self.running < self.max_running { self.waiting.pop_front() } else { None };
        let Some(message) = message else {
            self.end(privilege);
            return None;
        };
        self.octets -= message.header.total_len();
        self.running += 1;
        self.taken += 1;
        let operation = two_way_operation(&message);
        let privilege_use = match operation {
            None if is_one_way(&message) => Some(PrivilegeUse::OneWay(thread)),
            Some(operation) if quick.contains(operation) => Some(PrivilegeUse::Quick(thread)),
            _ => None,
        };
        match privilege_use {
            Some(privilege_use) => self.privilege = Some((privilege, privilege_use)),
            None => self.end(privilege),
        }
        Some(TakenRequest { message, keeps_privilege: privilege_use.is_some(), operation })
    }

    /// Records the end of a request. Returns the privilege with which its thread goes on, if it gets one.
    pub(super) fn after(&mut self, privilege: u64) -> Option<u64> {
        self.running -= 1;
        if matches!(self.privilege, Some((current, _)) if current == privilege) {
            self.privilege = Some((privilege, PrivilegeUse::Taking));
            return Some(privilege);
        }
        self.begin()
    }

    /// Takes the privilege from a quick two-way that this thread runs. Returns whether it had it.
    pub(super) fn release_quick(&mut self, thread: ThreadId) -> bool {
        let is_released = matches!(self.privilege, Some((_, PrivilegeUse::Quick(holder))) if holder == thread);
        if is_released {
            self.privilege = None;
        }
        is_released
    }

    /// Whether the monitor is to look at this queue.
    pub(super) fn needs_look(&self) -> bool {
        matches!(self.privilege, Some((_, PrivilegeUse::Quick(_)))) || !self.held.is_empty()
    }

    /// Takes the privilege from a quick two-way that runs since the last look. Returns whether it had it.
    pub(super) fn release_at_look(&mut self) -> bool {
        let is_quick = matches!(self.privilege, Some((_, PrivilegeUse::Quick(_))));
        let is_released = is_quick && mem::replace(&mut self.taken_at_look, self.taken) == self.taken;
        if is_released {
            self.privilege = None;
        }
        is_released
    }

    /// Gives up this privilege, unless another thread has taken it.
    pub(super) fn end(&mut self, privilege: u64) {
        if matches!(self.privilege, Some((current, _)) if current == privilege) {
            self.privilege = None;
        }
    }

    /// Removes and returns all waiting requests, which will not be run.
    pub(super) fn clear(&mut self) -> VecDeque<Message> {
        self.octets = 0;
        mem::take(&mut self.waiting)
    }

    /// Cancels the requests of this id. Returns the waiting one, to be dropped, and the cancellations of
    /// begun ones.
    pub(super) fn cancel(
        &mut self,
        request_id: u32,
        limits: Limits,
    ) -> (Option<Message>, Vec<Arc<CancellationSource>>) {
        let at = self.waiting.iter().position(|message| id(message, limits) == Some(request_id));
        let message = at.and_then(|at| self.waiting.remove(at));
        self.octets -= message.as_ref().map_or(0, |message| message.header.total_len());
        (message, self.cancellation_sources(|request_key| request_key.request_id == request_id))
    }

    /// The cancellations of all begun two-ways.
    pub(super) fn awaited(&self) -> Vec<Arc<CancellationSource>> {
        self.cancellation_sources(|_| true)
    }

    /// The cancellations of begun two-ways that meet a condition. No client waits for the reply to a one-way.
    fn cancellation_sources(&self, is_meant: impl Fn(RequestKey) -> bool) -> Vec<Arc<CancellationSource>> {
        let meant = self.begun.values().filter(|begun| !begun.request_key.is_one_way && is_meant(begun.request_key));
        meant.map(|begun| Arc::clone(&begun.cancellation)).collect()
    }

    /// Enters a running request. Returns its key for [`leave`](Self::leave).
    pub(super) fn enter(&mut self, request_key: RequestKey, cancellation: &Arc<CancellationSource>) -> u64 {
        self.record_begun(request_key, cancellation, false)
    }

    /// Enters a deferred request. Returns its key for [`leave`](Self::leave).
    ///
    /// # Errors
    /// The limit of deferred requests, if their number has reached it.
    pub(super) fn defer(
        &mut self,
        request_key: RequestKey,
        cancellation: &Arc<CancellationSource>,
    ) -> Result<u64, usize> {
        if self.deferred >= self.max_deferred {
            return Err(self.max_deferred);
        }
        self.deferred += 1;
        Ok(self.record_begun(request_key, cancellation, true))
    }

    fn record_begun(
        &mut self,
        request_key: RequestKey,
        cancellation: &Arc<CancellationSource>,
        is_deferred: bool,
    ) -> u64 {
        self.next += 1;
        self.begun
            .insert(self.next, CallbackScope { request_key, is_deferred, cancellation: Arc::clone(cancellation) });
        self.next
    }

    /// Removes the entry of a request that has ended. Returns its cancellation, to be dropped outside of the
    /// lock.
    pub(super) fn leave(&mut self, key: u64) -> Option<Arc<CancellationSource>> {
        let left = self.begun.remove(&key)?;
        self.deferred -= usize::from(left.is_deferred);
        if !self.begun.values().any(|begun| Arc::ptr_eq(&begun.cancellation, &left.cancellation)) {
            left.cancellation.mark_answered();
        }
        Some(left.cancellation)
    }
}

/// Whether the client waits for no reply. A message that cannot be decoded counts as a two-way; its error is
/// found when it is run.
fn is_one_way(message: &Message) -> bool {
    message.header.message_type == MessageType::Request
        && RequestHeader::decode(&mut message.decoder(Limits::default()))
            .is_ok_and(|request| !request.response.is_expected())
}

/// The hash of the operation whose reply the client waits for.
fn two_way_operation(message: &Message) -> Option<u32> {
    if message.header.message_type != MessageType::Request {
        return None;
    }
    let request = RequestHeader::decode(&mut message.decoder(Limits::default())).ok()?;
    request.response.is_expected().then(|| QuickOperations::hash(&request.operation))
}

fn id(message: &Message, limits: Limits) -> Option<u32> {
    let mut input = message.decoder(limits);
    match message.header.message_type {
        MessageType::LocateRequest => LocateRequestHeader::decode(&mut input).ok().map(|header| header.request_id),
        _ => RequestHeader::decode(&mut input).ok().map(|header| header.request_id),
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
    use spandrel_connection::UpcallNumber;
    use spandrel_giop::{RequestTemplate, ResponseFlags};
    use spandrel_sync::thread;

    use super::*;
    use crate::collocated::deliver;

    fn request(request_id: u32, response: ResponseFlags, octets: usize) -> Message {
        let wire = Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2);
        let mut out = Encoder::new(wire);
        let body = RequestTemplate::new(wire, b"key").begin(&mut out, request_id, response, "ring", &[]);
        out.octet_sequence(&vec![0; octets]).unwrap();
        body.end(&mut out).unwrap();
        deliver(&out).unwrap()
    }

    fn one_way(request_id: u32) -> Message {
        request(request_id, ResponseFlags::NONE, 0)
    }

    fn two_way(request_id: u32) -> Message {
        request(request_id, ResponseFlags::TWO_WAY, 0)
    }

    fn taken(queue: &mut CallbackQueue, privilege: u64) -> Option<(u32, bool)> {
        taken_if(queue, privilege, &QuickOperations::default())
    }

    fn taken_if(queue: &mut CallbackQueue, privilege: u64, quick: &QuickOperations) -> Option<(u32, bool)> {
        let request = queue.take(privilege, thread::current().id(), quick)?;
        Some((id(&request.message, Limits::default()).unwrap(), request.keeps_privilege))
    }

    #[test]
    fn a_one_way_holds_back_later_requests_and_a_two_way_does_not() {
        let mut queue = CallbackQueue::new(8, 1);
        [one_way(1), two_way(3), two_way(5)].into_iter().for_each(|message| queue.put(message).unwrap());
        let first = queue.begin().unwrap();
        assert_eq!(queue.begin(), None, "one has the privilege");
        assert_eq!(taken(&mut queue, first), Some((1, true)));
        assert_eq!(queue.begin(), None, "a one-way keeps it");
        assert!(queue.needs_standby() && !queue.needs_standby(), "one is enough");
        assert_eq!(queue.after(first), Some(first));
        assert_eq!(taken(&mut queue, first), Some((3, false)));
        let second = queue.begin().expect("a two-way has given it up");
        assert_eq!(taken(&mut queue, second), Some((5, false)));
        assert_eq!((queue.after(first), queue.after(second)), (None, None));
        assert!(queue.is_idle());
    }

    #[test]
    fn a_one_way_that_has_lost_its_privilege_takes_nothing() {
        let mut queue = CallbackQueue::new(8, 1);
        [one_way(1), one_way(3), one_way(5)].into_iter().for_each(|message| queue.put(message).unwrap());
        let slow = queue.begin().unwrap();
        assert_eq!(taken(&mut queue, slow), Some((1, true)));
        let quick = queue.take_privilege().unwrap();
        assert_eq!(taken(&mut queue, quick), Some((3, true)));
        assert_eq!(queue.after(slow), None, "another has it");
        assert_eq!(queue.after(quick), Some(quick));
        assert_eq!(taken(&mut queue, quick), Some((5, true)));
    }

    #[test]
    fn a_quick_two_way_keeps_the_privilege_until_it_waits_or_lasts() {
        let mut queue = CallbackQueue::new(8, 1);
        let quick = QuickOperations::default();
        quick.record(QuickOperations::hash("ring"), true);
        (0..4).for_each(|id| queue.put(two_way(id)).unwrap());
        let first = queue.begin().unwrap();
        for id in 0..2 {
            assert_eq!(taken_if(&mut queue, first, &quick), Some((id, true)));
            assert_eq!((queue.begin(), queue.needs_standby()), (None, false), "its thread takes the next one");
            if id == 0 {
                assert!(!queue.release_at_look(), "it has just begun");
                assert_eq!(queue.after(first), Some(first));
            }
        }
        assert!(!queue.release_at_look(), "another one than at the last look");
        assert!(queue.needs_look() && queue.release_at_look() && !queue.needs_look());
        let second = queue.begin().expect("it was given up");
        assert_eq!(queue.after(first), None, "another thread has it");
        assert_eq!(taken_if(&mut queue, second, &quick), Some((2, true)));
        let elsewhere = thread::spawn(|| thread::current().id()).join().unwrap();
        assert!(!queue.release_quick(elsewhere), "that thread does not run it");
        assert!(queue.release_quick(thread::current().id()));
        let third = queue.begin().expect("a thread that waits gives it up");
        assert_eq!(taken_if(&mut queue, third, &quick), Some((3, true)));
    }

    #[test]
    fn running_and_waiting_requests_are_bounded() {
        let mut queue = CallbackQueue::new(2, 1);
        let count = u32::try_from(MAX_WAITING).unwrap();
        (0..count).for_each(|number| queue.put(two_way(number)).unwrap());
        assert!(queue.put(two_way(count)).is_err());
        let running = [0, 1].map(|number| {
            let privilege = queue.begin().unwrap();
            assert_eq!(taken(&mut queue, privilege), Some((number, false)));
            privilege
        });
        assert_eq!(queue.begin(), None);
        let next = queue.after(running[0]).expect("there is room for one more");
        assert_eq!(taken(&mut queue, next), Some((2, false)));
        assert!(queue.put(two_way(count)).is_ok());
    }

    #[test]
    fn the_reading_thread_fills_the_queue_until_it_says_so() {
        let mut queue = CallbackQueue::new(2, 1);
        assert!(!queue.end_filling(), "nothing was added");
        (0..2).for_each(|number| queue.put(two_way(number)).unwrap());
        assert!(queue.is_filling() && queue.waiting() == 2);
        let privilege = queue.begin().unwrap();
        assert_eq!(taken(&mut queue, privilege), Some((0, false)));
        assert!(queue.is_filling(), "also while requests run");
        assert!(queue.end_filling() && !queue.is_filling() && !queue.end_filling());
    }

    #[test]
    fn waiting_octets_are_bounded_except_for_the_first_request() {
        let mut queue = CallbackQueue::new(2, 1);
        queue.put(request(1, ResponseFlags::TWO_WAY, MAX_OCTETS)).unwrap();
        assert!(queue.put(two_way(3)).is_err());
        let (forgotten, begun) = queue.cancel(1, Limits::default());
        assert!(forgotten.is_some() && begun.is_empty());
        queue.put(two_way(3)).unwrap();
        queue.clear();
        assert!(queue.is_idle() && queue.octets == 0);
    }

    #[test]
    fn a_running_or_deferred_request_is_cancelled_by_its_id() {
        let mut queue = CallbackQueue::new(2, 1);
        let cancellation = CancellationSource::never();
        let request_key = |request_id, is_one_way| RequestKey { request_id, is_one_way, upcall: UpcallNumber::NONE };
        let running = queue.enter(request_key(1, false), &cancellation);
        let deferred = queue.defer(request_key(1, false), &cancellation).unwrap();
        let one_way = queue.enter(request_key(3, true), &cancellation);
        assert_eq!(queue.defer(request_key(5, false), &cancellation), Err(1), "one may be deferred");
        assert_eq!(queue.cancel(1, Limits::default()).1.len(), 2);
        assert_eq!(queue.cancel(3, Limits::default()).1.len(), 0, "no thread waits for a one-way");
        assert_eq!(queue.awaited().len(), 2);
        [running, deferred, one_way].into_iter().for_each(|key| assert!(queue.leave(key).is_some()));
        assert!(queue.is_idle() && queue.leave(running).is_none());
        assert!(queue.defer(request_key(5, false), &cancellation).is_ok(), "the deferred one has ended");
    }
}
