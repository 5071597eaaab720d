//! The Connector pattern: connects without waiting, turns the connection into a running service, and
//! reconnects when it is lost.

mod attempt;
mod backoff;
mod gave_up;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::{Family, Interest, Pollable};
use spandrel_sync::Arc;

pub use backoff::Backoff;
pub use gave_up::GaveUp;

use crate::service::Service;
use crate::service::open_connections::OpenConnections;
use crate::strategy::{Concurrency, Creation, Reactive};
use crate::timer::{Time, TimerId};
use crate::{CloseReason, Context, EventHandler, Expired, HandlerId, Registry};
use attempt::{Attempt, Outcome, notify};

/// The default timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Notice: the attempt has ended, see its result.
const ATTEMPT_ENDED: u64 = 0;
/// Notice: the connection has ended.
const CONNECTION_ENDED: u64 = 1;
/// Timer: the attempt has timed out. (Timers may also stand for notices.)
const ATTEMPT_TIMEOUT: u64 = 2;
/// Timer: the wait before the next attempt is over.
const RETRY: u64 = 3;

/// Connects to an address and serves the connection: the counterpart of an [`Acceptor`](crate::Acceptor).
///
/// The creation of the handler (`C`) and the thread that runs it (`K`) are strategies, as there.
#[must_use = "it does nothing until it connects"]
pub struct Connector<F, C, K = Reactive> {
    family: F,
    creation: C,
    concurrency: K,
    timeout: Duration,
    backoff: Option<Backoff>,
    on_failure: Box<dyn FnMut(&io::Error) + Send>,
    on_give_up: Option<Box<dyn FnOnce(GaveUp) + Send>>,
}

impl<F: fmt::Debug, C, K> fmt::Debug for Connector<F, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Connector");
        out.field("family", &self.family).field("timeout", &self.timeout).field("backoff", &self.backoff);
        out.finish_non_exhaustive()
    }
}

impl<F: Family, C: Creation<F>> Connector<F, C> {
    /// Serves the connection with a handler of `creation`, on the reactor's threads.
    pub fn new(family: F, creation: C) -> Self {
        let on_failure = Box::new(|_: &io::Error| {});
        Self { family, creation, concurrency: Reactive, timeout: TIMEOUT, backoff: None, on_failure, on_give_up: None }
    }
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> Connector<F, C, K> {
    /// Sets the strategy that runs the service.
    pub fn concurrency<L: Concurrency<F, C::Handler>>(self, concurrency: L) -> Connector<F, C, L> {
        let Self { family, creation, timeout, backoff, on_failure, on_give_up, .. } = self;
        Connector { family, creation, concurrency, timeout, backoff, on_failure, on_give_up }
    }

    /// The timeout of an attempt. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Reconnects when an attempt fails and when the connection ends, until the [`Client`] is closed or the
    /// backoff gives up.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Called with the error of each failed attempt, in a thread of the reactor.
    pub fn on_failure(mut self, call: impl FnMut(&io::Error) + Send + 'static) -> Self {
        self.on_failure = Box::new(call);
        self
    }

    /// Called once when no further attempt will be made after a failure, in a thread of the reactor: at the
    /// first failure without [`reconnect`](Self::reconnect), otherwise when the [`Backoff`] gives up. Not
    /// called when the [`Client`] or the reactor is closed.
    pub fn on_give_up(mut self, call: impl FnOnce(GaveUp) + Send + 'static) -> Self {
        self.on_give_up = Some(Box::new(call));
        self
    }

    /// Starts to connect to `addr`, without waiting.
    ///
    /// # Errors
    /// The errors of [`Registry::register`]. [`on_failure`](Self::on_failure) gets the reason of a failed
    /// attempt.
    pub fn connect(self, registry: &Registry, addr: &F::Addr) -> io::Result<Client> {
        let open_connections = Arc::new(OpenConnections::default());
        let connecting = Supervisor {
            connector: self,
            addr: addr.clone(),
            open_connections: Arc::clone(&open_connections),
            attempt: None,
            timer: None,
            since: Time::ZERO,
            service_error: None,
        };
        let id = registry.register(connecting, Interest::NONE)?;
        Ok(Client { id, registry: registry.clone(), open_connections })
    }
}

/// A running [`Connector`]. Dropping this handle changes nothing: the connector runs as long as its reactor
/// does.
#[derive(Clone, Debug)]
pub struct Client {
    id: HandlerId,
    registry: Registry,
    open_connections: Arc<OpenConnections>,
}

impl Client {
    /// Whether there is a connection now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        !self.open_connections.is_empty()
    }

    /// Cancels a pending attempt, and connects no more. An open connection continues.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Connects no more, and lets the service finish, without waiting: the first step of
    /// [`drain`](Self::drain).
    pub fn begin_drain(&self) {
        self.close();
        self.open_connections.begin_drain();
    }

    /// Connects no more, lets the service finish, and waits for it, at most for `timeout`; then closes the
    /// connection. Returns the number of connections closed so (0 or 1). Not to be called in a thread of the
    /// reactor.
    #[must_use = "how many connections were cut"]
    pub fn drain(&self, timeout: Duration) -> usize {
        self.close();
        self.open_connections.drain(timeout)
    }
}

/// Keeps up the connection. It has no handle: attempts and services have theirs.
struct Supervisor<F: Family, C, K> {
    connector: Connector<F, C, K>,
    addr: F::Addr,
    open_connections: Arc<OpenConnections>,
    /// The pending attempt. Each has its own result, so that a cancelled attempt that succeeds after all is
    /// ignored.
    attempt: Option<(HandlerId, Outcome<F>)>,
    /// Of the attempt, or of the wait before the next.
    timer: Option<TimerId>,
    /// The time at which the connection was made.
    since: Time,
    /// The reason why the last connection could not be served.
    service_error: Option<io::Error>,
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> Supervisor<F, C, K> {
    fn start(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.try_start(context) {
            Ok(()) => Ok(()),
            Err(error) => self.attempt_failed(context, error),
        }
    }

    fn try_start(&mut self, context: &Context<'_>) -> io::Result<()> {
        let connecting = self.connector.family.start(&self.addr)?;
        let outcome = Outcome::<F>::default();
        let attempt = Attempt::<F>::new(connecting, Arc::clone(&outcome), context.id(), ATTEMPT_ENDED);
        let timer = context.schedule(self.connector.timeout, None, ATTEMPT_TIMEOUT)?;
        match context.register(attempt, Interest::OUTPUT) {
            Ok(attempt) => (self.attempt, self.timer) = (Some((attempt, outcome)), Some(timer)),
            Err(error) => {
                context.cancel(timer);
                return Err(error);
            }
        }
        Ok(())
    }

    fn attempt_failed(&mut self, context: &Context<'_>, error: io::Error) -> io::Result<()> {
        tracing::debug!(addr = %self.addr, %error, "an attempt to connect failed");
        (self.connector.on_failure)(&error);
        self.wait_or_end(context, Some(error), |backoff| backoff.after_failure(fastrand::u32(..)))
    }

    fn connection_ended(&mut self, context: &Context<'_>) -> io::Result<()> {
        let lasted = context.now().saturating_since(self.since);
        let error = self.service_error.take().or_else(|| {
            let message = format!("the connection ended after {lasted:?}");
            self.connector.backoff.is_some().then(|| io::Error::new(io::ErrorKind::ConnectionAborted, message))
        });
        self.wait_or_end(context, error, |backoff| backoff.after_end(lasted, fastrand::u32(..)))
    }

    /// Schedules the next attempt, or ends after a failure (`Some`) or a connection.
    fn wait_or_end(
        &mut self,
        context: &Context<'_>,
        error: Option<io::Error>,
        wait: impl FnOnce(&mut Backoff) -> Option<Duration>,
    ) -> io::Result<()> {
        if !context.contains(context.id()) {
            return Ok(()); // the client was closed during this call
        }
        match self.connector.backoff.as_mut().and_then(wait) {
            Some(wait) => match context.schedule(wait, None, RETRY) {
                Ok(timer) => self.timer = Some(timer),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {} // as above
                Err(error) => return Err(error),
            },
            None => {
                context.close();
                if let Some(error) = error {
                    self.report_end(error);
                }
            }
        }
        Ok(())
    }

    /// Reports that no further attempt will be made.
    fn report_end(&mut self, last_error: io::Error) {
        let attempts = self.connector.backoff.as_ref().map_or(1, Backoff::failed);
        if let Some(call) = self.connector.on_give_up.take() {
            call(GaveUp { attempts, last_error });
        }
    }

    /// Handles the result of the attempt, if there is one.
    fn attempt_ended(&mut self, context: &Context<'_>) -> io::Result<()> {
        let Some(outcome) = self.attempt.as_ref().and_then(|(_, outcome)| outcome.lock().take()) else { return Ok(()) };
        self.attempt = None;
        self.cancel_timer(context);
        let stream = match outcome {
            Ok(stream) => stream,
            Err(error) => return self.attempt_failed(context, error),
        };
        self.since = context.now();
        // On an error or a panic its entry has been dropped, which arrives as `CONNECTION_ENDED`.
        let error = match catch_unwind(AssertUnwindSafe(|| self.connected(context, stream))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(panic) => io::Error::other(crate::dispatch::message(panic)),
        };
        tracing::warn!(addr = %self.addr, %error, "a connection cannot be served");
        self.since = Time::MAX; // it has not lasted
        (self.connector.on_failure)(&error);
        self.service_error = Some(error);
        Ok(())
    }

    fn connected(&mut self, context: &Context<'_>, stream: F::Stream) -> io::Result<()> {
        let stream = Arc::new(stream);
        let Some(mut entry) = self.open_connections.admit() else {
            context.close();
            return Ok(());
        };
        let (registry, id) = (Registry::clone(context), context.id());
        entry.on_remove(move || notify(&registry, id, CONNECTION_ENDED));
        let handler = self.connector.creation.make(&self.addr)?;
        self.connector.concurrency.activate(context, Service::new(stream, self.addr.clone(), handler, entry))
    }

    fn attempt_timed_out(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.attempt.as_ref().is_some_and(|(_, outcome)| outcome.lock().is_some()) {
            return self.attempt_ended(context); // it has just ended
        }
        self.cancel_attempt(context);
        let message = format!("no connection after {:?}, the time limit of an attempt", self.connector.timeout);
        self.attempt_failed(context, io::Error::new(io::ErrorKind::TimedOut, message))
    }

    fn cancel_attempt(&mut self, context: &Context<'_>) {
        if let Some((attempt, _)) = self.attempt.take() {
            context.remove(attempt);
        }
    }

    fn cancel_timer(&mut self, context: &Context<'_>) {
        if let Some(timer) = self.timer.take() {
            context.cancel(timer);
        }
    }
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> EventHandler for Supervisor<F, C, K> {
    fn pollable(&self) -> Option<&dyn Pollable> {
        None
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.start(context)
    }

    fn handle_notice(&mut self, context: &Context<'_>, notice: u64) -> io::Result<()> {
        match notice {
            CONNECTION_ENDED => self.connection_ended(context),
            _ => self.attempt_ended(context),
        }
    }

    fn handle_timeout(&mut self, context: &Context<'_>, timer: Expired) -> io::Result<()> {
        if matches!(timer.argument, ATTEMPT_ENDED | CONNECTION_ENDED) {
            return self.handle_notice(context, timer.argument);
        }
        if self.timer != Some(timer.id) {
            return Ok(()); // it had expired before it was cancelled
        }
        self.timer = None;
        match timer.argument {
            RETRY => self.start(context),
            _ => self.attempt_timed_out(context),
        }
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = reason {
            tracing::error!(addr = %self.addr, %reason, "no longer connecting");
        }
        self.cancel_attempt(context);
        self.cancel_timer(context);
        match reason {
            CloseReason::Failed(error) => self.report_end(error),
            CloseReason::Panicked(message) => self.report_end(io::Error::other(message)),
            _ => {}
        }
    }
}
