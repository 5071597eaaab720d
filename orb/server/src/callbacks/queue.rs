//! The queue of requests that arrived over one connection, and the privilege to take them.
//!
//! The queue also knows the running and the deferred requests. It starts no thread and runs no request.

use std::collections::{HashMap, VecDeque};

use spandrel_cdr::Limits;
use spandrel_giop::{LocateRequestHeader, Message, MessageType, RequestHeader};
use spandrel_orb::internal::cancellation::CancellationSource;
use spandrel_sync::{Arc, thread::ThreadId};

use crate::upcall::origin::RequestKey;

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
    /// Running requests, and how many may run at once.
    running: u32,
    max_running: u32,
    /// The privilege to take waiting requests: its number, and the thread that runs a one-way with it.
    privilege: Option<(u64, Option<ThreadId>)>,
    /// The last number of a privilege or of an entry.
    next: u64,
    /// Requests taken so far.
    taken: u64,
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

/// The next step of a thread that has the privilege.
#[derive(Debug)]
pub(super) enum PrivilegeAction {
    /// To run a message, and whether it is a one-way.
    Run(Message, bool),
    /// To stop: no request may be taken.
    Nothing,
}

impl CallbackQueue {
    pub(super) fn new(max_running: u32, max_deferred: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            octets: 0,
            running: 0,
            max_running,
            privilege: None,
            next: 0,
            taken: 0,
            has_standby: false,
            begun: HashMap::new(),
            deferred: 0,
            max_deferred,
        }
    }

    /// Adds a message, or returns it if a limit would be exceeded.
    pub(super) fn put(&mut self, message: Message) -> Result<(), Message> {
        let octets = message.header.total_len();
        let count = self.waiting.len();
        if count >= MAX_WAITING || count > 0 && octets > MAX_OCTETS.saturating_sub(self.octets) {
            return Err(message);
        }
        self.octets += octets;
        self.waiting.push_back(message);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no request waits, runs or is deferred.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.running == 0 && self.begun.is_empty()
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
        matches!(self.privilege, Some((_, Some(holder))) if holder == thread)
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
        self.privilege = Some((self.next, None));
        Some(self.next)
    }

    /// Whether a thread is to stand by for the end of a one-way. It is expected to do so from now on.
    pub(super) fn needs_standby(&mut self) -> bool {
        let is_held = matches!(self.privilege, Some((_, Some(_))));
        is_held && !self.is_empty() && !std::mem::replace(&mut self.has_standby, true)
    }

    /// Takes the next request with this privilege. A two-way gives the privilege up.
    pub(super) fn take(&mut self, privilege: u64, thread: ThreadId) -> PrivilegeAction {
        if self.running >= self.max_running {
            self.end(privilege);
            return PrivilegeAction::Nothing;
        }
        let Some(message) = self.waiting.pop_front() else {
            self.end(privilege);
            return PrivilegeAction::Nothing;
        };
        self.octets -= message.header.total_len();
        self.running += 1;
        self.taken += 1;
        let is_one_way = is_one_way(&message);
        if is_one_way {
            self.privilege = Some((privilege, Some(thread)));
        } else {
            self.end(privilege);
        }
        PrivilegeAction::Run(message, is_one_way)
    }

    /// Notes the end of a request. Returns the privilege with which its thread goes on, if it gets one.
    pub(super) fn after(&mut self, privilege: u64, was_one_way: bool) -> Option<u64> {
        self.running -= 1;
        let is_own = matches!(self.privilege, Some((known, _)) if known == privilege);
        if was_one_way && is_own {
            self.privilege = Some((privilege, None));
            return Some(privilege);
        }
        self.begin()
    }

    /// Gives up this privilege, unless another thread has taken it.
    pub(super) fn end(&mut self, privilege: u64) {
        if matches!(self.privilege, Some((known, _)) if known == privilege) {
            self.privilege = None;
        }
    }

    /// Removes and returns all waiting requests, which will not be run.
    pub(super) fn clear(&mut self) -> VecDeque<Message> {
        self.octets = 0;
        std::mem::take(&mut self.waiting)
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
        match queue.take(privilege, thread::current().id()) {
            PrivilegeAction::Run(message, is_one_way) => Some((id(&message, Limits::default()).unwrap(), is_one_way)),
            PrivilegeAction::Nothing => None,
        }
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
        assert_eq!(queue.after(first, true), Some(first));
        assert_eq!(taken(&mut queue, first), Some((3, false)));
        let second = queue.begin().expect("a two-way has given it up");
        assert_eq!(taken(&mut queue, second), Some((5, false)));
        assert_eq!((queue.after(first, false), queue.after(second, false)), (None, None));
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
        assert_eq!(queue.after(slow, true), None, "another has it");
        assert_eq!(queue.after(quick, true), Some(quick));
        assert_eq!(taken(&mut queue, quick), Some((5, true)));
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
        let next = queue.after(running[0], false).expect("there is room for one more");
        assert_eq!(taken(&mut queue, next), Some((2, false)));
        assert!(queue.put(two_way(count)).is_ok());
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
        let request_key = |request_id, is_one_way| RequestKey { request_id, is_one_way, turn: 0 };
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
