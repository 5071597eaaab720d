//! Requests that arrive over connections which this ORB has opened itself (bidirectional GIOP).
//!
//! A thread that reads such a connection may wait for a reply, so it only queues requests. The threads of the
//! server's pool run them.
//!
//! The right to take the next request of a connection is its *privilege*. A one-way keeps it while it runs:
//! one-ways run in the order of their arrival, and before later requests. A two-way gives it up, so later
//! requests may pass. One of a quick operation keeps it, so that its thread can send [several replies](held_answers) in
//! one write. A request that lasts loses it, because it might wait for a request behind it.

mod held_answers;
mod origin;
mod queue;

use std::{sync::OnceLock, time::Duration};

use spandrel_cdr::{Encoder, GiopVersion};
use spandrel_giop::{
    CancelRequest, CompletionStatus, GiopError, LocateRequestHeader, Message, MessageType, RequestHeader,
    SystemException, begin_reply, ids, minor,
};
use spandrel_orb::{
    BidirectionalPolicy, CancelReason, Orb, Spawn,
    internal::{
        CallbackDispatcher, ClientConnection, WeakOrb,
        cancellation::CancellationSource,
        held_replies::{self, HeldReplies, Holder},
    },
};
use spandrel_sync::{Arc, Condition, Mutex, Weak, thread, time::Instant};
use spandrel_transport::{Charge, DecodedMemory, ReceiveBudget};

use crate::{
    connection::link,
    monitor::MonitoredReplies,
    resources::ServingOrb,
    unordered_requests,
    upcall::{
        self,
        received_request::{ReceivedRequest, RequestContext, RequestState},
        reply,
    },
};
use origin::{CallbackOrigin, CallbackPeer};
use queue::{CallbackQueue, TakenRequest};

/// How long a one-way may keep the privilege while requests wait.
const ONE_WAY_OVERTAKE_DELAY: Duration = Duration::from_millis(100);

/// The number of waiting requests with which a thread begins although the reading thread will add further ones.
const EARLY_START: usize = 16;

/// The longest time of the upcall of a quick operation, without the write of its reply.
const QUICK_TIME: Duration = Duration::from_micros(50);

/// The requests that arrive over one connection.
#[derive(Debug)]
pub(crate) struct Callbacks {
    weak_self: Weak<Self>,
    orb: WeakOrb,
    connection: Weak<ClientConnection>,
    peer: Arc<CallbackPeer>,
    /// Notified when the privilege is given up.
    passed_on: Condition,
}

impl Callbacks {
    /// Creates the dispatcher for the requests of this connection.
    pub(crate) fn of(orb: &Orb, connection: &Arc<ClientConnection>) -> Arc<dyn CallbackDispatcher> {
        let resources = orb.resources();
        let settings = &resources.settings;
        let peer = Arc::new(CallbackPeer {
            name: connection.peer().to_string(),
            address: Arc::new(connection.peer().clone()),
            settings: Arc::clone(settings),
            intake: ReceiveBudget::new(settings.max_connection_memory, Arc::clone(&resources.budget)),
            code_sets: OnceLock::new(),
            queue: Mutex::new(CallbackQueue::new(settings.max_in_flight, settings.max_deferred)),
        });
        let callbacks = Arc::new_cyclic(|weak_self| Self {
            weak_self: Weak::clone(weak_self),
            orb: WeakOrb::of(orb),
            connection: Arc::downgrade(connection),
            peer,
            passed_on: Condition::new(),
        });
        let replies: Weak<dyn MonitoredReplies> = Weak::<Self>::clone(&callbacks.weak_self);
        resources.upcall_monitor.watch_replies(replies);
        callbacks
    }

    fn shared(&self) -> Arc<Self> {
        self.weak_self.upgrade().expect("a dispatcher in use is owned by an Arc")
    }

    /// Has a thread of the pool run this job. Returns false if there is none.
    fn elsewhere(&self, job: impl FnOnce(&Self) + Send + 'static) -> bool {
        let Some(orb) = self.orb.upgrade() else { return false };
        let callbacks = self.shared();
        let mut job = Some(job);
        let task = Box::pin(std::future::poll_fn(move |_| {
            if let Some(job) = job.take() {
                job(&callbacks);
            }
            std::task::Poll::Ready(())
        }));
        match orb.resources().pool.workers() {
            Ok(workers) => {
                workers.spawn(task);
                true
            }
            Err(error) => {
                log_limited!(error, orb.resources(), "no thread", %error, peer = %self.peer.name, "no thread for requests over an outgoing connection");
                false
            }
        }
    }

    /// Has a thread of the pool take the waiting requests, or stand by in case the running one-way lasts.
    fn ensure_dispatch(&self) {
        let mut queue = self.peer.queue.lock();
        if let Some(privilege) = queue.begin() {
            drop(queue);
            if !self.elsewhere(move |callbacks| callbacks.serve(privilege)) {
                self.give_up(privilege);
            }
        } else if queue.needs_standby() {
            drop(queue);
            if !self.elsewhere(Self::serve_after_one_way) {
                self.peer.queue.lock().has_standby = false;
            }
        }
    }

    /// Refuses all waiting requests, because no thread can run them.
    fn give_up(&self, privilege: u64) {
        let mut queue = self.peer.queue.lock();
        let left = queue.clear();
        queue.end(privilege);
        drop(queue);
        let exception = SystemException::no_resources(0, CompletionStatus::No).with_detail(
            "no thread could be started for requests over connections that this ORB has opened (-ORBMaxServerThreads)",
        );
        left.iter().for_each(|message| self.refuse(message, &exception));
    }

    /// Runs the waiting requests while this thread has the privilege.
    fn serve(&self, mut privilege: u64) {
        let Some(orb) = self.orb.upgrade() else {
            // The connection ends with the ORB.
            return self.peer.queue.lock().end(privilege);
        };
        let resources = orb.resources();
        // The shutdown waits until the replies that this thread holds are sent. Without it, no request runs.
        let _running = resources.running_calls.enter(&orb);
        loop {
            let request = self.peer.queue.lock().take(privilege, thread::current().id(), &resources.quick_operations);
            let Some(TakenRequest { message, keeps_privilege, operation }) = request else {
                self.end_holding();
                return self.passed_on.notify_all();
            };
            if !keeps_privilege || operation.is_none() {
                self.end_holding();
            }
            if !keeps_privilege {
                // Later requests may pass it.
                self.pass_on();
            }
            // A reply that this thread holds follows at once, or after quick upcalls.
            let upcall = operation.map(|operation| {
                held_replies::record(&self.weak_self);
                resources.upcall_monitor.record_upcall();
                (operation, Instant::now())
            });
            self.run(&message);
            drop(message);
            if let Some((operation, begin)) = upcall {
                let is_quick = begin.elapsed() <= QUICK_TIME;
                resources.quick_operations.record(operation, is_quick);
                if !is_quick {
                    self.end_holding();
                }
            }
            let again = self.peer.queue.lock().after(privilege);
            let Some(again) = again else { return self.end_holding() };
            privilege = again;
        }
    }

    /// Holds a reply of this thread, or sends it with those that are held. False if it is to be sent by itself.
    fn hold(&self, connection: &ClientConnection, answer: &Encoder<'_>) -> bool {
        if !held_replies::is_recorded(&self.weak_self, Holder::Thread) {
            return false;
        }
        let mut queue = self.peer.queue.lock();
        let is_last = queue.is_empty() && !queue.is_filling();
        if is_last && queue.held.is_empty() {
            return false;
        }
        let is_held = queue.held.add(answer, connection.fragment_size(), &self.peer.intake);
        let due = if !is_held || is_last || queue.held.is_due() { queue.held.take() } else { None };
        drop(queue);
        self.write(connection, due);
        is_held
    }

    /// Sends the replies that this thread holds, if it holds any.
    fn end_holding(&self) {
        if held_replies::forget(&self.weak_self) {
            self.write_held();
        }
    }

    fn write_held(&self) {
        let held = self.peer.queue.lock().held.take();
        // A forked copy would write into the replies of the original.
        if self.orb.upgrade().is_some_and(|orb| !orb.is_copied())
            && let Some(connection) = self.connection.upgrade()
        {
            self.write(&connection, held);
        }
    }

    fn write(&self, connection: &ClientConnection, held: Option<(Vec<u8>, Charge)>) {
        if let Some((octets, charge)) = held {
            let mut out = Encoder::new(self.peer.wire(GiopVersion::V1_2));
            out.octets(&octets);
            connection.answer(&out, charge, 0);
        }
    }

    /// Lets another thread take the next request.
    fn pass_on(&self) {
        self.passed_on.notify_all();
        self.ensure_dispatch();
    }

    /// Waits until the running one-way has ended or has lasted for [`ONE_WAY_OVERTAKE_DELAY`], and takes the
    /// requests behind it.
    fn serve_after_one_way(&self) {
        let mut queue = self.peer.queue.lock();
        let privilege = loop {
            if queue.is_empty() {
                break None;
            }
            let before = queue.progress();
            let is_own = queue.is_privileged(thread::current().id());
            if !is_own && !queue.is_free() {
                self.passed_on.wait_for(&mut queue, ONE_WAY_OVERTAKE_DELAY);
            }
            if queue.is_free() || is_own || queue.progress() == before {
                break queue.take_privilege();
            }
        };
        queue.has_standby = false;
        drop(queue);
        if let Some(privilege) = privilege {
            self.serve(privilege);
        }
    }

    fn run(&self, message: &Message) {
        let (Some(orb), Some(connection)) = (self.orb.upgrade(), self.connection.upgrade()) else { return };
        // Without its ORB or its connection, a request is not acted on. The peer finds the end of the
        // connection.
        let request = || match message.header.message_type {
            MessageType::LocateRequest => self.locate(&orb, &connection, message),
            _ => self.request(&orb, &connection, message),
        };
        unordered_requests::run(&orb, &self.peer.name, request, |error| {
            self.end_for_protocol_error(&connection, error)
        });
    }

    fn request(&self, orb: &Orb, connection: &Arc<ClientConnection>, message: &Message) -> Result<(), GiopError> {
        let limit = self.peer.settings.limits.decoded_memory(message.octets().len());
        let memory = DecodedMemory::new(&*self.peer.intake, limit);
        let mut arguments = memory.of(self.peer.bare_decoder(orb, message));
        let header = RequestHeader::decode(&mut arguments)?;
        let contexts = &header.service_contexts;
        let remember = || link::record_code_sets(&self.peer.code_sets, contexts);
        let request_context = RequestContext::from_contexts(contexts, self.peer.settings.context_limits, remember);
        let cancellation = CancellationSource::of_peer(
            &self.peer.address,
            Some(connection.transport()),
            WeakOrb::of(orb),
            request_context.deadline.and_then(|deadline| deadline.answer),
        );
        let caller = self.caller(orb, connection, &cancellation);
        let request = ReceivedRequest::new(&caller, message, &header).with_context(Some(&request_context));
        if header.target.object_key().is_some_and(|key| !takes_callbacks(orb, &key)) {
            reply::answer_exception(&RequestState::new(&request), &not_both_ways());
            return Ok(());
        }
        let request_key = request.request_key(!header.response.is_expected());
        let _begun = CallbackScope { callbacks: self, key: self.peer.queue.lock().enter(request_key, &cancellation) };
        if connection.is_closed() {
            cancellation.cancel(CancelReason::ConnectionLost);
        }
        unordered_requests::serve(&request, &cancellation, self.peer.code_sets(), &mut arguments);
        Ok(())
    }

    fn locate(&self, orb: &Orb, connection: &Arc<ClientConnection>, message: &Message) -> Result<(), GiopError> {
        let request = LocateRequestHeader::decode(&mut self.peer.bare_decoder(orb, message))?;
        let caller = self.caller(orb, connection, &CancellationSource::never());
        upcall::handle_locate_request(&caller, &orb.resources().adapter, &request, message.header.version);
        Ok(())
    }

    fn caller(
        &self,
        orb: &Orb,
        connection: &Arc<ClientConnection>,
        cancellation: &Arc<CancellationSource>,
    ) -> CallbackOrigin {
        let (orb, connection, cancellation) = (orb.clone(), Arc::clone(connection), Arc::clone(cancellation));
        CallbackOrigin { orb, connection, callbacks: self.shared(), cancellation }
    }

    fn end_for_protocol_error(&self, connection: &ClientConnection, error: &GiopError) {
        if let Some(orb) = self.orb.upgrade() {
            log_limited!(warn, orb.resources(), "message refused", peer = %self.peer.name, %error, "refused a message");
        }
        connection.send_control(MessageType::MessageError);
        connection.end_for(ids::COMM_FAILURE_PROTOCOL, &format!("the peer sent a malformed message: {error}"));
    }

    /// Answers a message with an exception, without waiting: the caller may read for other threads.
    fn refuse(&self, message: &Message, exception: &SystemException) {
        let Some(connection) = self.connection.upgrade() else { return };
        let mut input = message.decoder(self.peer.settings.limits);
        let (MessageType::Request, Ok(request)) = (message.header.message_type, RequestHeader::decode(&mut input))
        else {
            // No exception can be sent for this message, so the connection ends.
            connection.end_for(ids::COMM_FAILURE_PROTOCOL, "a message of the peer could neither be run nor be refused");
            return;
        };
        if !request.response.is_expected() {
            return;
        }
        let mut out = Encoder::new(self.peer.wire(message.header.version));
        let body = begin_reply(&mut out, request.request_id, spandrel_giop::ReplyStatus::SystemException, &[]);
        let written = exception.encode(&mut out).and_then(|()| body.end(&mut out));
        if written.is_err() || !connection.send_control_later(&out) {
            connection.end_for(0, "the peer does not take its replies");
        }
    }

    fn cancel(&self, message: &Message) {
        let Ok(cancelled) = CancelRequest::decode(&mut message.decoder(self.peer.settings.limits)) else { return };
        let (forgotten, begun) = self.peer.queue.lock().cancel(cancelled.request_id, self.peer.settings.limits);
        drop(forgotten);
        begun.iter().for_each(|cancellation| cancellation.cancel(CancelReason::ClientCancelled));
    }
}

impl MonitoredReplies for Callbacks {
    fn write_progress(&self) -> Option<u64> {
        self.connection.upgrade()?.write_progress()
    }

    fn cut(&self) {
        let Some((connection, orb)) = self.connection.upgrade().zip(self.orb.upgrade()) else { return };
        log_limited!(
            warn,
            orb.resources(),
            "replies not taken",
            peer = self.peer.name,
            "cut off because it does not take its replies (-ORBSendTimeout)"
        );
        connection.cut();
    }

    fn needs_look(&self) -> bool {
        self.peer.queue.lock().needs_look()
    }

    fn look(&self) {
        let is_released = self.peer.queue.lock().release_at_look();
        self.write_held();
        if is_released {
            self.pass_on();
        }
    }
}

impl HeldReplies for Callbacks {
    fn send_held(&self, _holder: Holder) {
        self.write_held();
        if self.peer.queue.lock().release_quick(thread::current().id()) {
            self.pass_on();
        }
    }
}

impl CallbackDispatcher for Callbacks {
    fn dispatch(&self, message: Message) {
        if message.header.message_type == MessageType::CancelRequest {
            return self.cancel(&message);
        }
        let mut queue = self.peer.queue.lock();
        let put = queue.put(message);
        let starts_early = queue.waiting() == EARLY_START;
        drop(queue);
        match put {
            Ok(()) if starts_early => self.ensure_dispatch(),
            Ok(()) => {}
            Err(message) => {
                let exception =
                    SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(queue::FULL);
                self.refuse(&message, &exception);
            }
        }
    }

    fn dispatch_accepted(&self) {
        let has_accepted = self.peer.queue.lock().end_filling();
        if has_accepted {
            self.ensure_dispatch();
        }
    }

    fn end(&self) {
        let mut queue = self.peer.queue.lock();
        let left = queue.clear();
        let begun = queue.awaited();
        drop(queue);
        drop(left);
        begun.iter().for_each(|cancellation| cancellation.cancel(CancelReason::ConnectionLost));
    }

    fn is_idle(&self) -> bool {
        self.peer.queue.lock().is_idle()
    }
}

/// The entry of a running request; removed on drop.
struct CallbackScope<'c> {
    callbacks: &'c Callbacks,
    key: u64,
}

impl Drop for CallbackScope<'_> {
    fn drop(&mut self) {
        let left = self.callbacks.peer.queue.lock().leave(self.key);
        drop(left);
    }
}

/// Whether the object may be called over connections that this side has opened.
fn takes_callbacks(orb: &Orb, object_key: &[u8]) -> bool {
    let own = orb.resources().adapter.bidirectional_policy(object_key);
    own.map_or(orb.bidirectional().is_default(), |own| own == BidirectionalPolicy::Both)
}

fn not_both_ways() -> SystemException {
    SystemException::no_permission(ids::NO_PERMISSION_CALLBACK, CompletionStatus::No)
}
