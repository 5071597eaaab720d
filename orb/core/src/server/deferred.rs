//! Requests that are answered after their upcall has returned, by whatever thread.
//!
//! A deferred call owns its request, and keeps its connection from ending under it. It is given up when the client cancels it or is
//! gone: nobody would read the answer.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use spandrel_cdr::Decoder;
use spandrel_giop::{CompletionStatus, Message, RequestHeader, SystemException};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{
    ServerConnection,
    call::{Asked, ServerCall, answer_exception, panicked},
};
use crate::{Replied, asynchronous::Task, orb::UpcallScope};

/// Deferred calls of one connection. A client that sends more has them refused.
const MAX_DEFERRED: usize = 1024;

/// The deferred calls of one connection.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    calls: HashMap<u64, (u32, Arc<Cancellation>)>,
    next: u64,
}

/// Whether somebody still waits for the answer.
#[derive(Debug, Default)]
struct Cancellation {
    is_cancelled: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Cancellation {
    fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// True once it is cancelled; the task is woken when it is.
    fn poll(&self, waker: &Waker) -> bool {
        let mut place = self.waker.lock();
        if !place.as_ref().is_some_and(|old| old.will_wake(waker)) {
            *place = Some(waker.clone());
        }
        // Looked at afterwards: who cancels takes the waker after that.
        self.is_cancelled.load(Ordering::SeqCst)
    }
}

/// A request that is answered later. It owns what it was sent, so that borrowed arguments stay valid.
///
/// Dropped without an answer, it answers with NO_RESPONSE, or with UNKNOWN if that was a panic.
pub struct DeferredCall {
    connection: Arc<ServerConnection>,
    message: Message,
    /// Where the arguments begin.
    body: usize,
    key: u64,
    cancellation: Arc<Cancellation>,
    is_over: AtomicBool,
}

impl ServerCall<'_> {
    /// Takes the request out of its upcall, to be answered later. The [`Replied`] is for the upcall to return.
    ///
    /// # Errors
    /// TRANSIENT if a thousand calls of this connection are deferred.
    pub fn defer(self) -> Result<(DeferredCall, Replied), SystemException> {
        let connection = self.connection().shared();
        let cancellation = Arc::<Cancellation>::default();
        let key = connection.enter_deferred(self.request_id(), &cancellation)?;
        let (message, body) = (self.message().clone(), self.body());
        let is_over = AtomicBool::new(false);
        Ok((DeferredCall { connection, message, body, key, cancellation, is_over }, Replied(())))
    }

    /// Defers the call, and has a future answer it, which the ORB's [`Spawn`](crate::Spawn) polls: by default the threads that serve
    /// connections without a thread of their own. It is dropped when nobody waits for the answer any more.
    ///
    /// # Errors
    /// As [`defer`](Self::defer); NO_RESOURCES if there are no threads for it.
    pub fn spawn<F>(self, serve: impl FnOnce(DeferredCall) -> F) -> Result<Replied, SystemException>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (call, replied) = self.defer()?;
        let (orb, cancellation) = (call.connection.orb().clone(), Arc::clone(&call.cancellation));
        let task: Task = Box::pin(Serving { cancellation, task: Box::pin(serve(call)) });
        match &orb.settings().serving.spawner {
            Some(spawner) => spawner.0.spawn(task),
            None => orb.server().pool().run(task).map_err(|error| {
                SystemException::no_resources(0, CompletionStatus::No)
                    .with_detail("no threads for asynchronous servants")
                    .with_source(error)
            })?,
        }
        Ok(replied)
    }
}

/// A future that serves a call, as long as somebody waits for the answer.
struct Serving<F> {
    cancellation: Arc<Cancellation>,
    task: Pin<Box<F>>,
}

impl<F: Future<Output = ()>> Future for Serving<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.cancellation.poll(cx.waker()) {
            return Poll::Ready(());
        }
        let _scope = UpcallScope::enter();
        self.task.as_mut().poll(cx)
    }
}

impl DeferredCall {
    /// The arguments; values lent from it live as long as this call.
    ///
    /// # Errors
    /// None now, as [`ServerCall::arguments`].
    pub fn arguments(&self) -> Result<Decoder<'_>, SystemException> {
        let code_sets = self.connection.link().code_sets();
        let input = self.connection.decoder(&self.message).with_code_sets(code_sets.char_set, code_sets.wchar_set);
        Ok(input.at(self.body))
    }

    /// True once nobody waits for the answer any more: the client has cancelled the request, or is gone.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled.load(Ordering::SeqCst)
    }

    /// Answers, as `how` says. Only the first answer counts.
    ///
    /// # Errors
    /// Those of `how`; nothing was sent then.
    pub fn answer(
        &self,
        how: impl FnOnce(ServerCall<'_>) -> Result<Replied, SystemException>,
    ) -> Result<Replied, SystemException> {
        if self.is_cancelled() || self.is_over.load(Ordering::SeqCst) {
            return Ok(Replied(()));
        }
        let mut arguments = self.connection.decoder(&self.message);
        let header = RequestHeader::decode(&mut arguments)?;
        let asked = Asked::new(&header, self.message.header.version);
        let replied = how(ServerCall::new(&self.connection, &self.message, &asked, arguments));
        if replied.is_ok() {
            self.is_over.store(true, Ordering::SeqCst);
        }
        replied
    }

    /// Ends the call: an error is answered with.
    pub fn end(self, outcome: Result<Replied, SystemException>) {
        if let (Err(exception), false) = (outcome, self.is_over.swap(true, Ordering::SeqCst)) {
            self.fail(&exception);
        }
    }

    fn fail(&self, exception: &SystemException) {
        let mut arguments = self.connection.decoder(&self.message);
        let Ok(header) = RequestHeader::decode(&mut arguments) else { return };
        let asked = Asked::new(&header, self.message.header.version);
        answer_exception(self.connection.link(), &asked, exception);
    }

    fn operation(&self) -> String {
        let header = RequestHeader::decode(&mut self.connection.decoder(&self.message));
        header.map_or_else(|_| String::new(), |header| header.operation.to_string())
    }
}

impl Drop for DeferredCall {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::SeqCst) && !self.is_cancelled() {
            let exception = if std::thread::panicking() {
                panicked(&self.operation(), &"a task of it")
            } else {
                SystemException::no_response(0, CompletionStatus::Maybe).with_detail("the servant never answered")
            };
            self.fail(&exception);
        }
        self.connection.leave_deferred(self.key);
    }
}

impl fmt::Debug for DeferredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredCall").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Deferred {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Those whose answers nobody waits for: of one request, or all. To be told outside of the lock.
    fn cancelled(&self, request_id: Option<u32>) -> Vec<Arc<Cancellation>> {
        let calls = self.calls.values().filter(|(id, _)| request_id.is_none_or(|wanted| wanted == *id));
        calls.map(|(_, cancellation)| Arc::clone(cancellation)).collect()
    }
}

impl ServerConnection {
    fn enter_deferred(&self, request_id: u32, cancellation: &Arc<Cancellation>) -> Result<u64, SystemException> {
        let mut deferred = self.deferred.lock();
        if deferred.calls.len() >= MAX_DEFERRED {
            return Err(SystemException::transient(0, CompletionStatus::No)
                .with_detail(|| format!("{MAX_DEFERRED} requests of this connection wait for their answers")));
        }
        let key = deferred.next;
        deferred.next += 1;
        deferred.calls.insert(key, (request_id, Arc::clone(cancellation)));
        Ok(key)
    }

    /// A deferred call has ended: what waited for it goes on.
    fn leave_deferred(&self, key: u64) {
        let left = self.deferred.lock().calls.remove(&key);
        drop(left);
        self.after_deferred();
    }

    /// The client waits no longer for the answer to this request, or to any.
    pub(super) fn cancel_deferred(&self, request_id: Option<u32>) {
        let cancelled = self.deferred.lock().cancelled(request_id);
        for cancellation in cancelled {
            cancellation.cancel();
        }
    }
}
