//! Collocated calls: caller and object are in the same ORB, and the call needs no socket and no other thread.
//!
//! `-ORBCollocation` chooses the form. With `direct`, the stub calls the servant's method ([`direct`](mod@direct))
//! where it can. With `through-poa`, and for all other calls, requests go through this module. With `no`, calls
//! use a connection.
//!
//! A request is marshaled, copied like a message from a connection, and run in the calling thread. All rules
//! for requests of other processes apply. The caller waits for another thread only if the servant defers its
//! reply.
//!
//! One-ways and asynchronous calls must not wait for the servant. They go through a socket, and another
//! thread runs them. The first two-way after one-ways of the same thread takes the same way, so that it does
//! not overtake them.

mod delivery;
pub(crate) mod direct;
#[cfg(all(test, shuttle))]
mod models;
mod reply;

use std::{cell::RefCell, sync::OnceLock};

use spandrel_cdr::{Decoder, Encoder, GiopVersion, Wire};
use spandrel_giop::{LocateRequestHeader, Message, MessageType, RequestHeader, SystemException};
use spandrel_orb::{
    Orb,
    internal::{
        CallFailure, Reply,
        cancellation::{self, CancellationSource},
        request_deadlines::{InheritedDeadline, RequestDeadline},
    },
};
use spandrel_sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU32, Ordering},
    thread_local,
    time::{self, Instant},
};
use spandrel_transport::{Address, Deadline};

use crate::{
    request_of_thread,
    resources::ServerResources,
    running_calls::RunningCalls,
    upcall::{
        self,
        origin::{AnswerKind, RequestKey, RequestOrigin, UnusedSource, UpcallServices},
        received_request::{ReceivedRequest, RequestContext, RequestState},
    },
};
pub(crate) use delivery::deliver;
use delivery::{cut_off, malformed, read, too_late, unanswered};
use reply::CollocatedReply;

thread_local! {
    /// The ORBs to which this thread has sent one-ways, and no two-way call by the same way since.
    static UNSETTLED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Records that this thread sends a one-way to an object of this ORB.
pub(crate) fn record_one_way(orb: &Orb) {
    UNSETTLED.with(|unsettled| {
        let (mut unsettled, orb) = (unsettled.borrow_mut(), orb.instance());
        if !unsettled.contains(&orb) {
            unsettled.push(orb);
        }
    });
}

/// Whether a call of this thread may be run at once: it would overtake no one-ways.
#[inline]
pub(crate) fn is_settled(orb: &Orb) -> bool {
    UNSETTLED.with(|unsettled| {
        let unsettled = unsettled.borrow();
        unsettled.is_empty() || !unsettled.contains(&orb.instance())
    })
}

/// As [`is_settled`]. If it returns false, the call takes the way of the one-ways, and later calls need not.
#[inline]
pub(crate) fn settle(orb: &Orb) -> bool {
    is_settled(orb) || {
        UNSETTLED.with(|unsettled| unsettled.borrow_mut().retain(|other| *other != orb.instance()));
        false
    }
}

/// The collocated calls of one ORB.
#[derive(Debug)]
pub(crate) struct CollocatedCalls {
    /// The id of the next request.
    ids: AtomicU32,
    /// Calls that wait for another thread; `None` once the ORB does not wait for them any more.
    waiting: Mutex<Option<Vec<Weak<CollocatedReply>>>>,
}

impl Default for CollocatedCalls {
    fn default() -> Self {
        Self { ids: AtomicU32::new(0), waiting: Mutex::new(Some(Vec::new())) }
    }
}

impl CollocatedCalls {
    /// The id of a request.
    pub(crate) fn request_id(&self) -> u32 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Runs a request and returns its reply. `wire`: the encoding of both.
    pub(crate) fn call(
        &self,
        orb: &Orb,
        resources: &Arc<ServerResources>,
        request: &Message,
        wire: Wire,
        deadline: Option<&Deadline>,
    ) -> Result<Reply, CallFailure> {
        let _running = resources.running_calls.enter(orb).map_err(CallFailure::new)?;
        let caller =
            CollocatedCaller { orb, resources, calls: self, wire, answer: Mutex::new(None), awaited: OnceLock::new() };
        let request_deadline = deadline.and_then(|deadline| request_deadline(orb, deadline));
        caller.run(request, request_deadline)?;
        let answer = match (caller.answer.into_inner(), caller.awaited.into_inner()) {
            (Some(_), _) if deadline.is_some_and(|deadline| deadline.remaining().is_zero()) => {
                return Err(CallFailure::new(too_late()));
            }
            (Some(answer), _) => answer,
            (None, Some(awaited)) => awaited.wait(deadline)?,
            (None, None) => return Err(CallFailure::new(unanswered())),
        };
        Reply::parse(answer).map_err(|error| CallFailure::new(malformed(&error)))
    }

    /// Waits for the end of all running calls, until the deadline at most. Gives up the calls that still wait for a
    /// reply.
    pub(crate) fn shut_down(&self, running_calls: &RunningCalls, deadline: time::Deadline) {
        running_calls.await_end(deadline);
        let left = self.waiting.lock().take();
        for awaited in left.iter().flatten().filter_map(Weak::upgrade) {
            awaited.give_up(Some(cut_off()));
        }
    }

    fn record_waiting(&self, awaited: &Arc<CollocatedReply>) {
        let mut waiting = self.waiting.lock();
        if let Some(waiting) = &mut *waiting {
            waiting.retain(|known| known.strong_count() > 0);
            waiting.push(Arc::downgrade(awaited));
            return;
        }
        drop(waiting);
        awaited.give_up(Some(cut_off()));
    }
}

/// Notes the ORB that this thread calls. Returns the deadline of the call, if it limits the reply.
#[cold]
fn request_deadline(orb: &Orb, deadline: &Deadline) -> Option<RequestDeadline> {
    request_of_thread::record_calling_orb(orb);
    deadline.end().map(|end| RequestDeadline { answer: Some(end), ..RequestDeadline::default() })
}

/// Sets the deadline that a servant inherits when it is called directly. It holds until the result is
/// dropped.
#[cold]
pub(crate) fn limit(orb: &Orb, deadline: &Deadline) -> Option<InheritedDeadline> {
    request_deadline(orb, deadline)?.answer.map(InheritedDeadline::enter)
}

/// A caller whose thread runs the servant.
#[derive(Debug)]
struct CollocatedCaller<'o> {
    orb: &'o Orb,
    resources: &'o Arc<ServerResources>,
    calls: &'o CollocatedCalls,
    wire: Wire,
    answer: Mutex<Option<Message>>,
    /// Set if the reply may come from another thread.
    awaited: OnceLock<Arc<CollocatedReply>>,
}

impl CollocatedCaller<'_> {
    fn run(&self, request: &Message, request_deadline: Option<RequestDeadline>) -> Result<(), CallFailure> {
        let mut arguments = self.decoder(request);
        if request.header.message_type == MessageType::LocateRequest {
            let header =
                LocateRequestHeader::decode(&mut arguments).map_err(|error| CallFailure::new(malformed(&error)))?;
            upcall::handle_locate_request(self, &self.resources.adapter, &header, request.header.version);
            return Ok(());
        }
        let header = RequestHeader::decode(&mut arguments).map_err(|error| CallFailure::new(malformed(&error)))?;
        let request_context = RequestContext::of(request_deadline);
        let request = ReceivedRequest::new(self, request, &header).with_context(request_context.as_ref());
        upcall::run(&RequestState::new(&request), &self.resources.adapter, &mut arguments);
        Ok(())
    }
}

impl RequestOrigin for CollocatedCaller<'_> {
    fn orb(&self) -> &Orb {
        self.orb
    }

    fn services(&self) -> &dyn UpcallServices {
        &**self.resources
    }

    fn name(&self) -> &str {
        "this ORB"
    }

    fn peer_address(&self) -> Option<&Arc<Address>> {
        None
    }

    fn wire(&self, version: GiopVersion) -> Wire {
        Wire { version, ..self.wire }
    }

    fn decoder<'m>(&'m self, message: &'m Message) -> Decoder<'m> {
        read(self.orb, self.wire, message)
    }

    fn send(&self, answer: &Encoder<'_>, _kind: AnswerKind) -> Result<(), SystemException> {
        *self.answer.lock() = deliver(answer).ok();
        Ok(())
    }

    fn shared(&self) -> Arc<dyn RequestOrigin> {
        Arc::<CollocatedReply>::clone(self.awaited.get_or_init(|| {
            let awaited = CollocatedReply::new(self.orb.clone(), Arc::clone(self.resources), self.wire);
            self.calls.record_waiting(&awaited);
            awaited
        }))
    }

    /// Returns the cancellation of the request that the calling thread serves, if it serves one.
    fn cancellation_source(&self, _request_key: RequestKey, _deadline: Option<Instant>) -> Arc<CancellationSource> {
        cancellation::source_of_thread()
    }

    fn enter_deferred(
        &self,
        request_key: RequestKey,
        octets: usize,
        unused: UnusedSource,
    ) -> Result<(u64, Arc<CancellationSource>), SystemException> {
        self.shared().enter_deferred(request_key, octets, unused)
    }

    fn leave_deferred(&self, key: u64) {
        self.shared().leave_deferred(key);
    }
}
