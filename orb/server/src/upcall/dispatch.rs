//! Upcalls: the servant of an object is found, run, and released, for requests and for direct calls.
//!
//! The adapter finds the servant and returns an [`Upcall`]; this module alone runs servants. A request that
//! has to wait for its adapter, or that the main thread has to run, is deferred and then resolved anew from
//! its key, as if it had just arrived (CORBA 3.3 Part 1, 15.3.9.4 requires that).
//!
//! # Order
//! A request whose target has no readable key is answered before, with NEEDS_ADDRESSING_MODE, by `run` of the
//! parent module, which also checks the deadline (`begin_in_time`). A request with interceptors and a servant locator passes these steps (15.3.7.2, 16.3.10.2):
//!
//! 1. `receive_request_service_contexts`;
//! 2. `preinvoke`, in [`ObjectAdapter::resolve`];
//! 3. `receive_request`;
//! 4. the servant, whose reply is marshaled whole;
//! 5. `postinvoke`: an exception that it raises replaces results of the servant, and no other outcome;
//! 6. `send_reply`, `send_exception` or `send_other`;
//! 7. the reply is sent;
//! 8. the upcall is dropped: the use of the servant ends if it has not ended at step 5 (deactivation,
//!    etherealization), then the thread's turn in a single-threaded adapter.
//!
//! The upcall of a servant that fails or panics is dropped before its exception passes steps 6 and 7.
//!
//! Without interceptors and without a locator, the servant sends its reply from its own memory at step 4, and
//! no octet of it is copied.
//!
//! A deferred request leaves its upcall at step 4 and keeps its servant in use. Its answer passes steps 4 to
//! 7 later; then the use ends. Direct calls have steps 4 and 8 only.

use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_cdr::Encode;
use spandrel_giop::{CompletionStatus, ReplyStatus, ResponseFlags, SystemException, SystemExceptionKind, minor};
use spandrel_orb::{
    SupportedInterfaces, Target,
    internal::{OBJECT_ID, UpcallScope, cancellation::renew},
};
use spandrel_sync::{Arc, Mutex};

use super::{
    call::{ServerCall, apply_decision},
    deferred::DeferredCall,
    deferred_slot::UnusedMemory,
    executor::{HandedOverRequest, HandedOverWork, Placed, Placement, RequestExecutor, RequestToPlace, RunningRequest},
    interception,
    interface_definition::interface_definition,
    marshaled_reply::ReplySlot,
    origin::NotifyingOrigin,
    received_request::RequestState,
    reply::{answer, answer_marshaled, panicked},
    request_memory::RequestMemory,
};
use crate::reply_urgency::ReplyUrgency;
use crate::request_of_thread::Frame;
use crate::{AdapterWait, Entry, ObjectAdapter, Replied, Reservation, Resolution, Servant, Upcall};

/// Runs a request on the object with this key, or defers it. `reservation`: the result of its last wait.
///
/// # Errors
/// The exception to reply with, if the servant has not replied itself.
#[inline]
pub(crate) fn serve(
    object_key: &[u8],
    call: ServerCall<'_>,
    adapter: &Arc<dyn ObjectAdapter>,
    reservation: Option<Reservation>,
) -> Result<Replied, SystemException> {
    let request = call.request();
    let entry = Entry::Request { last: request, reservation };
    match adapter.resolve(object_key, &request.header.operation, entry)? {
        Resolution::Serve(upcall) => {
            if call.state.flow.is_some() || upcall.ends_before_reply() {
                return serve_marshaled(&upcall, call);
            }
            let (servant, target) = upcall.parts();
            call.run(&**servant, &*target)
        }
        other => answer_without_servant(other, object_key, call, adapter),
    }
}

/// Forwards, defers or rejects a request that has no servant now.
#[cold]
#[inline(never)]
fn answer_without_servant(
    resolution: Resolution,
    object_key: &[u8],
    call: ServerCall<'_>,
    adapter: &Arc<dyn ObjectAdapter>,
) -> Result<Replied, SystemException> {
    match resolution {
        Resolution::Forward(target) => call.forward(&target),
        Resolution::ForwardPermanently(target) => call.forward_permanently(&target),
        Resolution::Wait(wait) => serve_after(wait, call, Arc::clone(adapter)),
        Resolution::MainThread => serve_in_main_thread(call, Arc::clone(adapter)),
        Resolution::Executor { executor, object_id_at } => {
            serve_in_executor(&*executor, object_key, object_id_at, call, adapter)
        }
        Resolution::Serve(_) | Resolution::Marshal => Err(misplaced()),
    }
}

/// Runs a request whose use of the servant, or interception points, come between its servant and its reply.
#[cold]
#[inline(never)]
fn serve_marshaled(upcall: &Upcall, call: ServerCall<'_>) -> Result<Replied, SystemException> {
    let state = call.state;
    let reply_slot = ReplySlot::default();
    let served = call.run_marshaled(&**upcall.servant(), &*upcall.target(), &reply_slot);
    let ended = if upcall.ends_before_reply() { upcall.end() } else { Ok(()) };
    if let Err(exception) = &ended {
        tracing::debug!(%exception, operation = %state.request.header.operation, "postinvoke raised an exception");
    }
    let replied = served?;
    let Some(reply) = reply_slot.take() else { return Ok(replied) };
    if reply.status == ReplyStatus::NoException {
        ended?;
    }
    let target = upcall.target();
    answer_marshaled(&RequestState { response: reply.response, target: Some(&*target), ..*state }, &reply)
        .map_err(|error| SystemException::from(error).with_completed(CompletionStatus::Yes))?;
    Ok(replied)
}

impl ServerCall<'_> {
    /// Runs the request on the servant that the adapter has found for it.
    ///
    /// # Errors
    /// The system exception to reply with, if the servant has not replied itself.
    #[inline]
    fn run(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        if self.response() == ResponseFlags::WITH_SERVER {
            return self.run_answered(servant, target);
        }
        self.serve(servant, target)
    }

    /// Runs the request as [`run`](Self::run) does, after the intermediate interception points; the slot
    /// receives the reply.
    #[cold]
    fn run_marshaled(
        self,
        servant: &dyn Servant,
        target: &dyn Target,
        reply_slot: &ReplySlot,
    ) -> Result<Replied, SystemException> {
        let state = RequestState { target: Some(target), reply_slot: Some(reply_slot), ..*self.state };
        let receive = |flow| interception::receive_request(flow, &state, &InterfacesOf(servant), target);
        match state.flow.and_then(receive) {
            Some(instead) => apply_decision(&state, instead),
            None => ServerCall::new(&state, self.arguments).run(servant, target),
        }
    }

    /// Runs a one-way whose client waits for the server, and not for the servant (9.4.2.1; sync scope
    /// WITH_SERVER).
    #[cold]
    fn run_answered(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        // Interceptors and diagnostics see the end of the upcall, not this reply.
        let alone = RequestState { flow: None, observed: None, reply_slot: None, ..*self.state };
        answer(&alone, ReplyStatus::NoException, &|_| Ok(()))?;
        // From now on the request is a one-way without a response.
        let state = RequestState { response: ResponseFlags::NONE, ..*self.state };
        ServerCall::new(&state, self.arguments).serve(servant, target)
    }

    /// Finds the operation and runs it.
    #[inline(always)]
    fn serve(self, servant: &dyn Servant, target: &dyn Target) -> Result<Replied, SystemException> {
        // The result of the upcall does not borrow the target.
        let call = ServerCall { target: Some(target), ..self };
        let name = self.operation();
        let operations = servant.operations();
        let index = self.look_up(operations, target.operation_demux());
        if let Some(observed) = self.state.observed {
            observed.record_servant(servant.repository_id(), name, index.is_some() || operations.is_empty());
        }
        match index {
            // A servant with a table is behind a skeleton, and has begun its operation.
            Some(operation) => {
                let call = ServerCall { passes_on: true, ..call };
                servant.upcall(operation, call).map_err(SystemException::passed_on)
            }
            None if operations.is_empty() => servant.dispatch(name, call),
            None => call.implicit(servant),
        }
    }

    /// Runs an operation that every object has (CORBA 3.3 Part 1, 8.3), such as `_is_a`.
    ///
    /// # Errors
    /// - BAD_OPERATION: no object has such an operation.
    /// - INTF_REPOS: the operation is `_interface`, the servant has no [interface](Servant::interface), and the ORB's
    ///   initial reference `InterfaceRepository` is missing or does not know it.
    /// - MARSHAL: the arguments cannot be read.
    pub fn implicit(self, servant: &dyn Servant) -> Result<Replied, SystemException> {
        match self.operation() {
            "_is_a" => {
                let mut arguments = self.arguments.clone();
                let id = arguments.str()?;
                let answer = id == OBJECT_ID || servant.is_a(&id);
                self.reply(|out| {
                    out.bool(answer);
                    Ok(())
                })
            }
            // Clients of GIOP 1.0 and 1.1 may send `_not_existent` (9.4.2.1).
            "_non_existent" | "_not_existent" => {
                let answer = servant.non_existent();
                self.reply(|out| {
                    out.bool(answer);
                    Ok(())
                })
            }
            "_repository_id" => self.reply(|out| out.short_str(servant.repository_id())),
            "_interface" => {
                let interface = match servant.interface() {
                    Some(interface) => interface,
                    None => interface_definition(self.origin().orb(), servant.repository_id())?,
                };
                self.reply(|out| interface.ior().encode(out))
            }
            // There are no policy domains, so the object has no domain manager (8.3.11).
            "_domain_managers" => self.reply(|out| out.len(0)),
            // JacORB's clients send the name of an attribute; a servant that has one finds it in its table.
            "_component" | "_get_component" => {
                let component = servant.component();
                self.reply(|out| component.encode(out))
            }
            operation => {
                let detail = || format!("`{}` has no operation `{operation}`", servant.repository_id());
                Err(SystemException::bad_operation(minor::UNKNOWN_OPERATION, CompletionStatus::No)
                    .with_public_detail(detail))
            }
        }
    }
}

/// A servant of which only the interfaces are asked, without an upcall.
struct InterfacesOf<'s>(&'s dyn Servant);

impl SupportedInterfaces for InterfacesOf<'_> {
    fn repository_id(&self) -> &str {
        self.0.repository_id()
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.0.is_a(repository_id)
    }
}

/// Calls the servant of an object without a request, inside the context of a request's upcall. Returns false,
/// without a call, if that needs a request.
///
/// # Errors
/// The exception that the call ends with.
pub(crate) fn call_directly(
    adapter: &dyn ObjectAdapter,
    object_key: &[u8],
    operation: &str,
    call: &mut dyn FnMut(&Arc<dyn Servant>),
) -> Result<bool, SystemException> {
    let Resolution::Serve(upcall) = adapter.resolve(object_key, operation, Entry::Direct)? else { return Ok(false) };
    call(&upcall.servant());
    Ok(true)
}

/// Defers a request until its adapter's wait has ended.
#[cold]
fn serve_after(
    wait: AdapterWait,
    call: ServerCall<'_>,
    adapter: Arc<dyn ObjectAdapter>,
) -> Result<Replied, SystemException> {
    call.spawn(move |deferred| async move {
        let reservation = wait.await;
        let outcome = deferred.answer(|call| serve_again(call, &adapter, reservation));
        deferred.end(outcome);
    })
}

/// Has the main thread run a request.
#[cold]
fn serve_in_main_thread(call: ServerCall<'_>, adapter: Arc<dyn ObjectAdapter>) -> Result<Replied, SystemException> {
    let orb = call.origin().orb().clone();
    let unbegun = call.origin().services().for_main_thread().give(&orb);
    let (deferred, replied) = call.defer()?;
    // Shared, so that the request can be rejected if the job is.
    let deferred = Arc::new(Mutex::new(Some(deferred)));
    let job = Arc::clone(&deferred);
    let rejected = orb.run_in_main(Box::new(move || {
        drop(unbegun);
        let Some(deferred) = job.lock().take() else { return };
        let outcome = deferred.answer(|call| serve_again(call, &adapter, None));
        deferred.end(outcome);
    }));
    if let Err(exception) = rejected {
        let deferred = deferred.lock().take();
        deferred.into_iter().for_each(|deferred| deferred.end(Err(exception.clone())));
    }
    Ok(replied)
}

/// Runs a request where the adapter's executor wants it.
fn serve_in_executor(
    executor: &dyn RequestExecutor,
    object_key: &[u8],
    object_id_at: usize,
    call: ServerCall<'_>,
    adapter: &Arc<dyn ObjectAdapter>,
) -> Result<Replied, SystemException> {
    let request = RequestToPlace {
        object_id: object_key.get(object_id_at..).unwrap_or_default(),
        operation: call.operation(),
        contexts: &call.header().service_contexts,
        is_collocated: call.origin().peer_address().is_none(),
        endpoint: adapter.endpoint(),
    };
    let (level, packets) = match executor.choose_thread(&request)? {
        Placement::Here(_scope) => return serve(object_key, call, adapter, Some(Box::new(Placed))),
        Placement::HandOver { level, reply_packets } => (level, reply_packets),
        Placement::Acknowledge => return call.reply(|_| Ok(())),
    };
    let octets = call.message().header.total_len();
    let deadline = call.request().deadline();
    let deadline = deadline.and_then(|deadline| deadline.answer.into_iter().chain(deadline.delivery).min());
    // A request that has waited for its adapter comes from another thread, or outside of a connection's upcall.
    let is_of_reader = Frame::current().is_some();
    let memory = executor.request_memory();
    let mut unused = memory.map(|memory| memory.take()).unwrap_or_default();
    let (mut deferred, replied) = call.defer_in(&mut unused)?;
    deferred.set_urgency(ReplyUrgency { level, packets });
    let client = deferred.origin_address();
    let (adapter, memory) = (Arc::clone(adapter), memory.cloned());
    let content = WorkContent { deferred, adapter, is_of_reader, memory };
    let unused = unused.work.take().and_then(|work| work.downcast().ok());
    let work = renew(unused, DeferredWork(Some(content)));
    executor.submit(HandedOverRequest { level, octets, deadline, client, work });
    Ok(replied)
}

/// A deferred request that a thread of an executor runs.
struct DeferredWork(Option<WorkContent>);

struct WorkContent {
    deferred: DeferredCall,
    adapter: Arc<dyn ObjectAdapter>,
    /// Whether the thread that hands it over has read it from a connection.
    is_of_reader: bool,
    /// Gets the memory of the request at its end.
    memory: Option<Arc<RequestMemory>>,
}

impl DeferredWork {
    fn content(&self) -> &WorkContent {
        self.0.as_ref().expect("only the memory of a request outlives its content")
    }

    /// Ends the request, and leaves its memory to another one unless something else refers to it.
    fn end(mut self: Arc<Self>) {
        let content = Arc::get_mut(&mut self).and_then(|work| work.0.take());
        let Some(WorkContent { deferred, memory: Some(memory), .. }) = content else { return };
        memory.give_back(UnusedMemory { work: Some(self), ..deferred.into_memory() });
    }
}

impl RunningRequest for DeferredWork {
    fn operation(&self) -> String {
        self.content().deferred.operation()
    }

    fn end_early(&self, exception: &SystemException) -> bool {
        self.content().deferred.end_early(exception)
    }
}

impl HandedOverWork for DeferredWork {
    fn run(self: Arc<Self>, before_reply: &(dyn Fn() + Sync)) {
        let WorkContent { deferred, adapter, .. } = self.content();
        let orb = deferred.origin().orb().clone();
        if orb.is_copied() {
            return;
        }
        let _scope = UpcallScope::enter();
        let served = catch_unwind(AssertUnwindSafe(|| {
            let origin = NotifyingOrigin { origin: deferred.origin(), before_reply };
            deferred.answer_through(&origin, |call| serve_again(call, adapter, Some(Box::new(Placed))))
        }));
        let outcome = served.unwrap_or_else(|panic| {
            let exception = panicked(&deferred.operation(), &*panic);
            orb.statistics().servant_panicked();
            log_limited!(error, deferred.origin().services(), "servant panicked", peer = %deferred.origin().name(), %exception, "a servant panicked");
            Err(exception)
        });
        before_reply();
        deferred.end_with(outcome);
        self.end();
    }

    fn may_wait(&self) -> bool {
        let WorkContent { is_of_reader, adapter, .. } = self.content();
        *is_of_reader && adapter.reader_may_wait()
    }

    fn refuse(self: Arc<Self>, exception: SystemException) {
        let deferred = &self.content().deferred;
        if exception.kind() == SystemExceptionKind::Timeout {
            deferred.origin().orb().statistics().refused_expired();
        }
        deferred.end_with(Err(exception));
        self.end();
    }
}

/// Serves a deferred request by its key.
fn serve_again(
    call: ServerCall<'_>,
    adapter: &Arc<dyn ObjectAdapter>,
    reservation: Option<Reservation>,
) -> Result<Replied, SystemException> {
    match call.header().target.object_key() {
        Some(object_key) => serve(&object_key, call, adapter, reservation),
        None => call.request_object_key(),
    }
}

/// The exception for an adapter that returns the resolution of a direct call for a request.
#[cold]
fn misplaced() -> SystemException {
    SystemException::internal(0, CompletionStatus::No)
        .with_detail("the object adapter returned the resolution of a direct call for a request")
}
