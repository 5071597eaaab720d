//! The ORB's reactor for asynchronous calls: one thread, started by the first of them.
//!
//! The thread reads replies where no synchronous caller does and writes the octets that the transport did not
//! take at once. It ends calls at their deadline and runs their completions. Code that runs here must not
//! wait: all asynchronous calls would wait with it.

mod block_on;

use std::{
    cell::Cell,
    io,
    sync::{OnceLock, Weak},
};

use slab::Slab;
use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{
    CloseReason, Context, EventHandler, Expired, HandlerId, Options, Reactor, Registry, timer::TimerId,
};
use spandrel_sync::{Arc, Mutex, MutexGuard, thread, thread_local};
use spandrel_transport::Deadline;

use block_on::DriverRole;

use super::{
    CallReactor, ClientConnection,
    connection::{ReactorRegistration, serve_ready, write_ready},
    not_sent_in_time,
};
use crate::client::{
    task::{self, Task},
    transport::ConnectionTransport,
};

/// The most asynchronous calls that may be pending at once, over all connections.
const MAX_CALLS: usize = 1 << 16;
/// The most server requests whose deadlines this reactor watches at once. Beyond, a request's deadline is
/// only seen where its token is polled. The separate limit keeps clients from using up the room of the ORB's
/// own calls.
const MAX_REQUESTS: usize = 1 << 15;

thread_local! {
    /// Whether this thread is a client reactor's.
    static IS_REACTOR_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread completes asynchronous calls, and therefore cannot wait for one.
pub(crate) fn is_client_reactor_thread() -> bool {
    IS_REACTOR_THREAD.with(Cell::get)
}

/// The reason why a pending call is ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ExpiryReason {
    /// The call's deadline has passed.
    DeadlinePassed,
    /// The ORB was shut down.
    Shutdown,
    /// The request on whose behalf the call is made was cancelled.
    Cancelled,
}

impl ExpiryReason {
    /// Whether the connection is not used for further calls, since the reply will come late or never.
    pub(crate) fn retires_connection(self) -> bool {
        matches!(self, Self::DeadlinePassed | Self::Shutdown)
    }

    /// Returns the exception that the call ends in. `may_have_arrived`: the server may have received the
    /// request.
    pub(crate) fn exception(self, may_have_arrived: bool) -> SystemException {
        let completed = if may_have_arrived { CompletionStatus::Maybe } else { CompletionStatus::No };
        match self {
            Self::DeadlinePassed if !may_have_arrived => not_sent_in_time(None),
            Self::DeadlinePassed => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, completed).with_detail(
                "no reply arrived before the deadline of the call (-ORBRequestTimeout, or the timeout policy)",
            ),
            Self::Shutdown => SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, completed),
            Self::Cancelled => cancelled(completed),
        }
    }
}

/// Returns the exception of a call whose own request was cancelled: TRANSIENT.
pub(crate) fn cancelled(completed: CompletionStatus) -> SystemException {
    SystemException::transient(minor::REQUEST_CANCELLED, completed)
        .with_detail("the request that this call was made for is cancelled (-ORBCancelNested)")
}

/// A call that the reactor may end.
pub(crate) trait TimedCall: Send + Sync {
    /// Ends it, unless it has ended.
    fn end(self: Arc<Self>, reason: ExpiryReason);
}

/// A call's entry among the pending ones.
#[derive(Debug)]
pub(crate) struct TimedCallId {
    key: CallKey,
    of_request: bool,
    timer: Option<TimerId>,
}

/// The entry of a call, and the number of its registration. Its timer may run after the call has ended, when another call
/// has the entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct CallKey {
    entry: u32,
    registration: u32,
}

impl CallKey {
    /// The argument of the timer.
    fn to_argument(self) -> u64 {
        u64::from(self.registration) << 32 | u64::from(self.entry)
    }

    fn from_argument(argument: u64) -> Self {
        Self { entry: argument as u32, registration: (argument >> 32) as u32 }
    }
}

/// The reactor, its thread, and the pending calls.
#[derive(Debug, Default)]
pub struct ClientReactor {
    reactor_thread: OnceLock<ReactorThread>,
    driver_role: Arc<DriverRole>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug)]
struct ReactorThread {
    reactor: Reactor,
    clock: HandlerId,
}

#[derive(Default)]
struct Calls {
    /// The calls with the numbers of their registrations.
    waiting: Slab<(u32, Weak<dyn TimedCall>)>,
    /// The number of entries that are requests of clients.
    requests: usize,
    registrations: u32,
    is_closed: bool,
}

impl Calls {
    /// Removes a call, unless its entry is that of another one by now.
    fn remove(&mut self, key: CallKey) -> Option<Weak<dyn TimedCall>> {
        let entry = key.entry as usize;
        let is_of_key = self.waiting.get(entry).is_some_and(|(registration, _)| *registration == key.registration);
        if is_of_key { self.waiting.try_remove(entry).map(|(_, call)| call) } else { None }
    }
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.waiting.len()).field("is_closed", &self.is_closed).finish()
    }
}

impl ClientReactor {
    /// Registers a call, which is ended at its deadline or when the ORB shuts down.
    ///
    /// # Errors
    /// BAD_INV_ORDER after shutdown; TRANSIENT for too many calls; NO_RESOURCES if the reactor cannot be
    /// started.
    pub(crate) fn register_call(
        &self,
        call: Weak<dyn TimedCall>,
        deadline: Option<&Deadline>,
    ) -> Result<TimedCallId, SystemException> {
        let calls = self.open_calls()?;
        // A call that has just ended may still be counted.
        if calls.waiting.len().saturating_sub(calls.requests) >= MAX_CALLS {
            return Err(SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No).with_detail(|| {
                format!(
                    "{MAX_CALLS} asynchronous calls of this ORB wait for replies, which is the limit; try again later"
                )
            }));
        }
        self.insert(calls, call, deadline, false)
    }

    /// Registers a request of a client, which is ended at its deadline.
    ///
    /// # Errors
    /// As [`register_call`](Self::register_call); the limit is lower.
    pub(crate) fn register_request(
        &self,
        request: Weak<dyn TimedCall>,
        deadline: &Deadline,
    ) -> Result<TimedCallId, SystemException> {
        let calls = self.open_calls()?;
        if calls.requests >= MAX_REQUESTS {
            return Err(SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No).with_detail(|| {
                format!("{MAX_REQUESTS} requests with a deadline run in this ORB, which is the limit; try again later")
            }));
        }
        self.insert(calls, request, Some(deadline), true)
    }

    fn open_calls(&self) -> Result<MutexGuard<'_, Calls>, SystemException> {
        let calls = self.calls.lock();
        if calls.is_closed {
            return Err(SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No));
        }
        Ok(calls)
    }

    fn insert(
        &self,
        mut calls: MutexGuard<'_, Calls>,
        call: Weak<dyn TimedCall>,
        deadline: Option<&Deadline>,
        of_request: bool,
    ) -> Result<TimedCallId, SystemException> {
        let reactor_thread = self.reactor_thread(&mut calls).map_err(no_reactor)?;
        let Calls { waiting, requests, registrations, .. } = &mut *calls;
        let vacant = waiting.vacant_entry();
        let entry = u32::try_from(vacant.key()).expect("the number of entries is limited");
        *registrations = registrations.wrapping_add(1);
        let key = CallKey { entry, registration: *registrations };
        let timer = match deadline {
            None => None,
            Some(deadline) => {
                let registry = reactor_thread.reactor.registry();
                Some(
                    registry
                        .schedule(reactor_thread.clock, deadline.remaining(), None, key.to_argument())
                        .map_err(no_reactor)?,
                )
            }
        };
        vacant.insert((key.registration, call));
        *requests += usize::from(of_request);
        Ok(TimedCallId { key, of_request, timer })
    }

    /// Removes a call that has ended.
    pub(crate) fn unregister(&self, call_id: TimedCallId) {
        let mut calls = self.calls.lock();
        // Also for a call that the timer has removed: each id is given back once.
        calls.requests -= usize::from(call_id.of_request && !calls.is_closed);
        let removed = calls.remove(call_id.key);
        drop(calls);
        drop(removed);
        if let (Some(timer), Some(reactor_thread)) = (call_id.timer, self.reactor_thread.get()) {
            reactor_thread.reactor.registry().cancel(timer);
        }
    }

    /// Registers a connection with the reactor, which watches its handle only once the connection asks for
    /// it.
    ///
    /// # Errors
    /// NO_RESOURCES if the reactor cannot be started.
    pub fn register_connection(&self, connection: &Arc<ClientConnection>) -> Result<(), SystemException> {
        if connection.is_registered() {
            return Ok(());
        }
        let registry = self.registry().map_err(no_reactor)?;
        let register = |connection: &Arc<ClientConnection>| {
            let handler = ConnectionInput {
                transport: Arc::clone(connection.transport()),
                connection: Arc::downgrade(connection),
            };
            let id = registry.register(handler, Interest::NONE)?;
            Ok(Arc::new(ConnectionHandler { registry: registry.clone(), id }) as Arc<dyn ReactorRegistration>)
        };
        connection.register_with(register).map_err(no_reactor)
    }

    /// Runs a future in the reactor's thread, until it is ready or the ORB is shut down.
    ///
    /// # Errors
    /// As `register_call`.
    pub fn run(&self, task: Task) -> Result<(), SystemException> {
        if self.calls.lock().is_closed {
            return Err(SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No));
        }
        task::run_in(self.registry().map_err(no_reactor)?.clone(), task);
        Ok(())
    }

    /// Ends the pending calls and requests, and accepts no further ones.
    fn end_calls(&self) {
        let mut calls = self.calls.lock();
        calls.is_closed = true;
        let waiting = std::mem::take(&mut calls.waiting);
        drop(calls);
        waiting
            .into_iter()
            .filter_map(|(_, (_, call))| call.upgrade())
            .for_each(|call| call.end(ExpiryReason::Shutdown));
    }

    /// The reactor, which is started if it does not run yet.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::NotConnected`] after shutdown.
    pub(crate) fn registry(&self) -> io::Result<&Registry> {
        if let Some(reactor_thread) = self.reactor_thread.get() {
            return Ok(reactor_thread.reactor.registry());
        }
        let mut calls = self.calls.lock();
        if calls.is_closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.reactor_thread(&mut calls).map(|reactor_thread| reactor_thread.reactor.registry())
    }

    /// Returns the running reactor, or starts it. The lock on `_calls` makes one thread start it.
    fn reactor_thread(&self, _calls: &mut Calls) -> io::Result<&ReactorThread> {
        if let Some(reactor_thread) = self.reactor_thread.get() {
            return Ok(reactor_thread);
        }
        let reactor = Reactor::with(&Options::new())?;
        let clock = reactor.registry().register(Clock(Arc::downgrade(&self.calls)), Interest::NONE)?;
        let (runner, driver_role) = (reactor.clone(), Arc::clone(&self.driver_role));
        let run = move || {
            IS_REACTOR_THREAD.with(|is_client_reactor_thread| is_client_reactor_thread.set(true));
            loop {
                match runner.run_until(None, || driver_role.is_taken()) {
                    Ok(true) => driver_role.wait_until_free(),
                    Ok(false) => break,
                    Err(error) => {
                        tracing::error!(%error, "the reactor of asynchronous calls ended");
                        break;
                    }
                }
            }
            runner.close();
        };
        thread::Builder::new().name("spandrel-async".into()).spawn(run)?;
        Ok(self.reactor_thread.get_or_init(|| ReactorThread { reactor, clock }))
    }
}

impl CallReactor for ClientReactor {
    fn shut_down(&self) {
        self.end_calls();
        if let Some(reactor_thread) = self.reactor_thread.get() {
            // After the work that the ends of the calls have queued there.
            let registry = reactor_thread.reactor.registry();
            if registry.execute(Registry::stop).is_err() {
                registry.stop();
            }
        }
    }
}

impl Drop for ClientReactor {
    fn drop(&mut self) {
        // A timer of an ORB that was not shut down: its entry and its task refer to each other.
        self.end_calls();
        if let Some(reactor_thread) = self.reactor_thread.get() {
            reactor_thread.reactor.close();
        }
    }
}

fn no_reactor(error: io::Error) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No)
        .with_detail("the reactor for asynchronous calls cannot be used")
        .with_source(error)
}

/// The timer handler that ends calls at their deadline.
struct Clock(Weak<Mutex<Calls>>);

impl EventHandler for Clock {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_timeout(&mut self, _context: &Context<'_>, timer: Expired) -> io::Result<()> {
        let Some(calls) = self.0.upgrade() else { return Ok(()) };
        let call = calls.lock().remove(CallKey::from_argument(timer.argument));
        if let Some(call) = call.and_then(|call| call.upgrade()) {
            call.end(ExpiryReason::DeadlinePassed);
        }
        Ok(())
    }
}

/// The handler of a connection's input and output. It keeps the handle open, but not the connection.
struct ConnectionInput {
    transport: Arc<dyn ConnectionTransport>,
    connection: Weak<ClientConnection>,
}

impl EventHandler for ConnectionInput {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.transport.pollable()
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let is_open = self.connection.upgrade().is_some_and(|connection| serve_ready(&connection));
        if !is_open {
            context.close();
        }
        Ok(())
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.connection.upgrade() {
            Some(connection) => write_ready(&connection),
            None => context.close(),
        }
        Ok(())
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if matches!(reason, CloseReason::Removed | CloseReason::Stopped) {
            return;
        }
        let Some(connection) = self.connection.upgrade() else { return };
        // Not in this call: the connection may be changing its interest at the moment, under a lock.
        let queued = context.execute(move |_| connection.end_for(0, &format!("the reactor ended: {reason}")));
        if let Err(error) = queued {
            tracing::error!(%error, "a connection cannot be closed although its replies are no longer read");
        }
    }
}

/// A connection's registration with the reactor.
#[derive(Debug)]
struct ConnectionHandler {
    registry: Registry,
    id: HandlerId,
}

impl ReactorRegistration for ConnectionHandler {
    fn wait_for(&self, interest: Interest) {
        // The handler is closed if this fails.
        let _ = self.registry.set_interest(self.id, interest);
    }

    fn mark_readable(&self) {
        self.registry.mark_ready(self.id, Interest::INPUT);
    }

    fn deregister(&self) {
        self.registry.remove(self.id);
    }
}
impl crate::client::task::Executor for Registry {
    fn execute(&self, job: Box<dyn FnOnce() + Send>) -> bool {
        Self::execute(self, move |_| job()).is_ok()
    }
}
