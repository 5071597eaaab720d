//! The ORB's reactor for asynchronous calls: one thread, started by the first of them.
//!
//! It reads replies where no synchronous caller does, writes what the transport did not take at once, ends calls whose time is up,
//! and runs what is to be run when a call has ended. Whatever runs here must not wait: everybody else would wait with it.

use std::{
    cell::Cell,
    collections::HashMap,
    io,
    sync::{OnceLock, Weak},
};

use spandrel_giop::{CompletionStatus, SystemException, minor};
use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{
    CloseReason, Context, EventHandler, Expired, HandlerId, Options, Reactor, Registry, timer::TimerId,
};
use spandrel_sync::{Arc, Mutex, MutexGuard, thread, thread_local};
use spandrel_transport::Deadline;

use super::{ClientConnection, connection::ReactorRegistration, not_sent_in_time};
use crate::{
    task::{self, Task},
    transport::ConnectionTransport,
};

/// Calls that wait for their ends at once, over all connections.
const MAX_CALLS: usize = 1 << 16;
/// Requests of others whose deadlines are waited for at once. Beyond, they are seen by those who look. What clients ask for takes no room
/// from calls of the ORB's own.
#[cfg(feature = "server")]
const MAX_REQUESTS: usize = 1 << 15;

thread_local! {
    /// This thread is that of a station.
    static IS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread brings the ends of asynchronous calls: it cannot wait for one.
pub(crate) fn is_here() -> bool {
    IS_HERE.with(Cell::get)
}

/// Why a call ends that nothing has ended yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ExpiryReason {
    TimeUp,
    /// Of the ORB.
    Shutdown,
    /// Nobody waits any more for what the call is made for.
    #[cfg(feature = "server")]
    Cancelled,
}

impl ExpiryReason {
    /// Whether its connection is given to nobody any more, since its reply will come late, or never.
    pub(crate) fn retires_connection(self) -> bool {
        matches!(self, Self::TimeUp | Self::Shutdown)
    }

    /// What such a call ends in. `may_have_arrived`: the server may have the request.
    pub(crate) fn exception(self, may_have_arrived: bool) -> SystemException {
        let completed = if may_have_arrived { CompletionStatus::Maybe } else { CompletionStatus::No };
        match self {
            Self::TimeUp if !may_have_arrived => not_sent_in_time(None),
            Self::TimeUp => SystemException::timeout(minor::ROUND_TRIP_EXPIRED, completed)
                .with_detail("no reply within the time-out"),
            Self::Shutdown => SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, completed),
            #[cfg(feature = "server")]
            Self::Cancelled => cancelled(completed),
        }
    }
}

/// TRANSIENT for a call that is made for nobody any more.
#[cfg(feature = "server")]
pub(crate) fn cancelled(completed: CompletionStatus) -> SystemException {
    SystemException::transient(minor::REQUEST_CANCELLED, completed)
        .with_detail("the request that this call was made for is cancelled (-ORBCancelNested)")
}

/// A call that the station may end.
pub(crate) trait TimedCall: Send + Sync {
    /// Ends it, unless it has ended.
    fn end(self: Arc<Self>, why: ExpiryReason);
}

/// A call's place among those that wait.
#[derive(Debug)]
pub(crate) struct TimedCallId {
    key: u64,
    of_request: bool,
    timer: Option<TimerId>,
}

/// The reactor, its thread, and the calls that wait.
#[derive(Debug, Default)]
pub(crate) struct ClientReactor {
    running: OnceLock<ReactorThread>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Debug)]
struct ReactorThread {
    reactor: Reactor,
    clock: HandlerId,
}

#[derive(Default)]
struct Calls {
    waiting: HashMap<u64, Weak<dyn TimedCall>>,
    /// Those of them that are requests of others.
    requests: usize,
    next: u64,
    is_closed: bool,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.waiting.len()).field("is_closed", &self.is_closed).finish()
    }
}

impl ClientReactor {
    /// Counts a call in, which is ended when its time is up or the ORB is.
    ///
    /// # Errors
    /// BAD_INV_ORDER after shutdown; TRANSIENT for too many calls; NO_RESOURCES if there can be no reactor.
    pub(crate) fn enter(
        &self,
        call: Weak<dyn TimedCall>,
        deadline: Option<&Deadline>,
    ) -> Result<TimedCallId, SystemException> {
        let calls = self.open_calls()?;
        // One that has just been told may be counted still.
        if calls.waiting.len().saturating_sub(calls.requests) >= MAX_CALLS {
            return Err(SystemException::transient(minor::NO_USABLE_PROFILE, CompletionStatus::No)
                .with_detail(|| format!("{MAX_CALLS} asynchronous calls are under way")));
        }
        self.admit(calls, call, deadline, false)
    }

    /// The same for a request of others, which is told when its time is up.
    ///
    /// # Errors
    /// As [`enter`](Self::enter); there is room for fewer of them.
    #[cfg(feature = "server")]
    pub(crate) fn watch(
        &self,
        request: Weak<dyn TimedCall>,
        deadline: &Deadline,
    ) -> Result<TimedCallId, SystemException> {
        let calls = self.open_calls()?;
        if calls.requests >= MAX_REQUESTS {
            return Err(SystemException::transient(minor::REQUEST_DISCARDED, CompletionStatus::No)
                .with_detail(|| format!("the deadlines of {MAX_REQUESTS} requests are waited for already")));
        }
        self.admit(calls, request, Some(deadline), true)
    }

    fn open_calls(&self) -> Result<MutexGuard<'_, Calls>, SystemException> {
        let calls = self.calls.lock();
        if calls.is_closed {
            return Err(SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No));
        }
        Ok(calls)
    }

    fn admit(
        &self,
        mut calls: MutexGuard<'_, Calls>,
        call: Weak<dyn TimedCall>,
        deadline: Option<&Deadline>,
        of_request: bool,
    ) -> Result<TimedCallId, SystemException> {
        let running = self.running(&mut calls).map_err(no_reactor)?;
        let key = calls.next;
        calls.next += 1;
        let timer = match deadline {
            None => None,
            Some(deadline) => {
                let registry = running.reactor.registry();
                Some(registry.schedule(running.clock, deadline.remaining(), None, key).map_err(no_reactor)?)
            }
        };
        calls.waiting.insert(key, call);
        calls.requests += usize::from(of_request);
        Ok(TimedCallId { key, of_request, timer })
    }

    /// A call has ended.
    pub(crate) fn leave(&self, call_id: TimedCallId) {
        let mut calls = self.calls.lock();
        // Also if it has been told: whoever has a ticket gives it back.
        calls.requests -= usize::from(call_id.of_request && !calls.is_closed);
        let left = calls.waiting.remove(&call_id.key);
        drop(calls);
        drop(left);
        if let (Some(timer), Some(running)) = (call_id.timer, self.running.get()) {
            running.reactor.registry().cancel(timer);
        }
    }

    /// Gives a connection its place in the reactor.
    ///
    /// # Errors
    /// NO_RESOURCES if there is none.
    pub(crate) fn registration(&self, connection: &Arc<ClientConnection>) -> Result<(), SystemException> {
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

    /// Runs a future in the reactor's thread.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub(crate) fn run(&self, task: Task) -> Result<(), SystemException> {
        if self.calls.lock().is_closed {
            return Err(SystemException::bad_inv_order(minor::ORB_HAS_SHUTDOWN, CompletionStatus::No));
        }
        task::run_in(self.registry().map_err(no_reactor)?.clone(), task);
        Ok(())
    }

    /// The reactor, which is started if it does not run yet.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::NotConnected`] after shutdown.
    pub(crate) fn registry(&self) -> io::Result<&Registry> {
        if let Some(running) = self.running.get() {
            return Ok(running.reactor.registry());
        }
        let mut calls = self.calls.lock();
        if calls.is_closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        self.running(&mut calls).map(|running| running.reactor.registry())
    }

    /// `_calls`: locked, so that one thread starts it.
    fn running(&self, _calls: &mut Calls) -> io::Result<&ReactorThread> {
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let reactor = Reactor::with(&Options::new())?;
        let clock = reactor.registry().register(Clock(Arc::downgrade(&self.calls)), Interest::NONE)?;
        let runs = reactor.clone();
        let run = move || {
            IS_HERE.with(|is_here| is_here.set(true));
            if let Err(error) = runs.run() {
                tracing::error!(%error, "the reactor of asynchronous calls ended");
            }
            runs.close();
        };
        thread::Builder::new().name("spandrel-async".into()).spawn(run)?;
        Ok(self.running.get_or_init(|| ReactorThread { reactor, clock }))
    }

    /// Ends all calls, and the reactor.
    pub(crate) fn shut_down(&self) {
        let mut calls = self.calls.lock();
        calls.is_closed = true;
        let waiting = std::mem::take(&mut calls.waiting);
        drop(calls);
        waiting.into_values().filter_map(|call| call.upgrade()).for_each(|call| call.end(ExpiryReason::Shutdown));
        if let Some(running) = self.running.get() {
            // After all that the ends of the calls have still to do there.
            let registry = running.reactor.registry();
            if registry.execute(Registry::stop).is_err() {
                registry.stop();
            }
        }
    }
}

impl Drop for ClientReactor {
    fn drop(&mut self) {
        if let Some(running) = self.running.get() {
            running.reactor.close();
        }
    }
}

fn no_reactor(error: io::Error) -> SystemException {
    SystemException::no_resources(0, CompletionStatus::No)
        .with_detail("no reactor to wait for replies in")
        .with_source(error)
}

/// Knows when whose time is up.
struct Clock(Weak<Mutex<Calls>>);

impl EventHandler for Clock {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_timeout(&mut self, _context: &Context<'_>, timer: Expired) -> io::Result<()> {
        let Some(calls) = self.0.upgrade() else { return Ok(()) };
        let call = calls.lock().waiting.remove(&timer.argument);
        if let Some(call) = call.and_then(|call| call.upgrade()) {
            call.end(ExpiryReason::TimeUp);
        }
        Ok(())
    }
}

/// Reads and writes for one connection. It keeps the handle open, and not the connection.
struct ConnectionInput {
    transport: Arc<dyn ConnectionTransport>,
    connection: Weak<ClientConnection>,
}

impl EventHandler for ConnectionInput {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.transport.pollable()
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let goes_on = self.connection.upgrade().is_some_and(|connection| connection.serve_ready());
        if !goes_on {
            context.close();
        }
        Ok(())
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.connection.upgrade() {
            Some(connection) => connection.write_ready(),
            None => context.close(),
        }
        Ok(())
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if matches!(reason, CloseReason::Removed | CloseReason::Stopped) {
            return;
        }
        let Some(connection) = self.connection.upgrade() else { return };
        // Not here: the connection may be telling the reactor what it wants at the moment, under a lock.
        let receiver = context.execute(move |_| connection.reactor_ended(&reason.to_string()));
        if let Err(error) = receiver {
            tracing::error!(%error, "a connection cannot be told that its replies are no longer read");
        }
    }
}

/// A connection's place in the reactor.
#[derive(Debug)]
struct ConnectionHandler {
    registry: Registry,
    id: HandlerId,
}

impl ReactorRegistration for ConnectionHandler {
    fn wait_for(&self, interest: Interest) {
        // The handler is told if it fails.
        let _ = self.registry.set_interest(self.id, interest);
    }

    fn look(&self) {
        self.registry.mark_ready(self.id, Interest::INPUT);
    }

    fn leave(&self) {
        self.registry.remove(self.id);
    }
}
