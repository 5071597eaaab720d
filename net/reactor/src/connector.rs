//! The Connector pattern: makes a connection without waiting for it, turns it into a service that runs, and makes it again when it is lost.

mod attempt;
mod backoff;
mod cache;

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::{Family, Interest, Pollable};
use spandrel_sync::Arc;

pub use backoff::Backoff;
pub use cache::{CacheLimits, Cached, ConnectionCache};

use crate::service::Service;
use crate::service::population::Population;
use crate::strategy::{Concurrency, Creation, Reactive};
use crate::timer::{Time, TimerId};
use crate::{CloseReason, Context, EventHandler, Expired, HandlerId, Registry};
use attempt::{Attempt, Outcome, tell};

/// How long an attempt may take unless it is set otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Notice: the attempt has ended, see its outcome.
const DONE: u64 = 0;
/// Notice: the connection has ended.
const ENDED: u64 = 1;
/// Timer: the attempt takes too long. (Timers may also stand for notices.)
const LATE: u64 = 2;
/// Timer: the wait before the next attempt is over.
const RETRY: u64 = 3;

/// Connects to an address and serves the connection: what an [`Acceptor`](crate::Acceptor) is on the other side.
///
/// How the handler is made (`C`) and who runs it (`K`) are strategies, as they are there.
#[must_use = "it does nothing until it connects"]
pub struct Connector<F, C, K = Reactive> {
    family: F,
    creation: C,
    concurrency: K,
    timeout: Duration,
    backoff: Option<Backoff>,
    on_failure: Box<dyn FnMut(&io::Error) + Send>,
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
        Self { family, creation, concurrency: Reactive, timeout: TIMEOUT, backoff: None, on_failure }
    }
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> Connector<F, C, K> {
    /// Has the service run by this strategy.
    pub fn concurrency<L: Concurrency<F, C::Handler>>(self, concurrency: L) -> Connector<F, C, L> {
        let Self { family, creation, timeout, backoff, on_failure, .. } = self;
        Connector { family, creation, concurrency, timeout, backoff, on_failure }
    }

    /// Gives an attempt up after this time. Default 30 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Tries again when an attempt fails and when the connection ends, until the [`Client`] is closed or the backoff gives up.
    pub fn reconnect(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Is told of each attempt that failed, in a reactor's thread.
    pub fn on_failure(mut self, call: impl FnMut(&io::Error) + Send + 'static) -> Self {
        self.on_failure = Box::new(call);
        self
    }

    /// Starts to connect to `addr`, without waiting.
    ///
    /// # Errors
    /// Those of [`Registry::register`]. Why an attempt failed is told to [`on_failure`](Self::on_failure).
    pub fn connect(self, registry: &Registry, addr: &F::Addr) -> io::Result<Client> {
        let population = Arc::new(Population::default());
        let connecting = Supervisor {
            connector: self,
            addr: addr.clone(),
            population: Arc::clone(&population),
            attempt: None,
            timer: None,
            since: Time::ZERO,
        };
        let id = registry.register(connecting, Interest::NONE)?;
        Ok(Client { id, registry: registry.clone(), population })
    }
}

/// What a [`Connector`] keeps connected. Dropping it changes nothing: it goes on as long as its reactor does.
#[derive(Clone, Debug)]
pub struct Client {
    id: HandlerId,
    registry: Registry,
    population: Arc<Population>,
}

impl Client {
    /// Whether the connection is there now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.population.len() != 0
    }

    /// Gives up an attempt that is under way, and connects no more. An open connection goes on.
    pub fn close(&self) {
        self.registry.remove(self.id);
    }

    /// Connects no more, and lets the service end what it has begun, without waiting: what [`drain`](Self::drain) does first.
    pub fn begin_drain(&self) {
        self.close();
        self.population.begin_drain();
    }

    /// Connects no more, lets the service end what it has begun, and waits for it, `timeout` at most; then cuts the connection and says
    /// so (1, otherwise 0). Not to be called in a reactor's thread.
    #[must_use = "how many connections were cut"]
    pub fn drain(&self, timeout: Duration) -> usize {
        self.close();
        self.population.drain(timeout)
    }
}

/// Sees to it that there is a connection. It has no handle: attempts and services have theirs.
struct Supervisor<F: Family, C, K> {
    connector: Connector<F, C, K>,
    addr: F::Addr,
    population: Arc<Population>,
    /// What is under way. Each has an outcome of its own, so that one that was given up and succeeds all the same is not heard.
    attempt: Option<(HandlerId, Outcome<F>)>,
    /// Of the attempt, or of the wait before the next.
    timer: Option<TimerId>,
    /// When the connection was made.
    since: Time,
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> Supervisor<F, C, K> {
    fn start(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.try_start(context) {
            Ok(()) => Ok(()),
            Err(error) => self.failed(context, &error),
        }
    }

    fn try_start(&mut self, context: &Context<'_>) -> io::Result<()> {
        let connecting = self.connector.family.start(&self.addr)?;
        let outcome = Outcome::<F>::default();
        let attempt = Attempt::<F>::new(connecting, Arc::clone(&outcome), context.id(), DONE);
        let timer = context.schedule(self.connector.timeout, None, LATE)?;
        match context.register(attempt, Interest::OUTPUT) {
            Ok(attempt) => (self.attempt, self.timer) = (Some((attempt, outcome)), Some(timer)),
            Err(error) => {
                context.cancel(timer);
                return Err(error);
            }
        }
        Ok(())
    }

    fn failed(&mut self, context: &Context<'_>, error: &io::Error) -> io::Result<()> {
        tracing::debug!(addr = %self.addr, %error, "an attempt to connect failed");
        (self.connector.on_failure)(error);
        self.wait_or_end(context, |backoff| backoff.after_failure(fastrand::u32(..)))
    }

    fn ended(&mut self, context: &Context<'_>) -> io::Result<()> {
        let lasted = context.now().saturating_since(self.since);
        self.wait_or_end(context, |backoff| backoff.after_end(lasted, fastrand::u32(..)))
    }

    fn wait_or_end(
        &mut self,
        context: &Context<'_>,
        wait: impl FnOnce(&mut Backoff) -> Option<Duration>,
    ) -> io::Result<()> {
        match self.connector.backoff.as_mut().and_then(wait) {
            Some(wait) => self.timer = Some(context.schedule(wait, None, RETRY)?),
            None => context.close(),
        }
        Ok(())
    }

    /// The attempt has ended, if it has an outcome.
    fn done(&mut self, context: &Context<'_>) -> io::Result<()> {
        let Some(outcome) = self.attempt.as_ref().and_then(|(_, outcome)| outcome.lock().take()) else { return Ok(()) };
        self.attempt = None;
        self.cancel_timer(context);
        let stream = match outcome {
            Ok(stream) => stream,
            Err(error) => return self.failed(context, &error),
        };
        self.since = context.now();
        // Whether it fails or panics, its guest has left then, which is heard as `ENDED`.
        let error = match catch_unwind(AssertUnwindSafe(|| self.connected(context, stream))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(panic) => io::Error::other(crate::dispatch::message(panic)),
        };
        tracing::warn!(addr = %self.addr, %error, "a connection cannot be served");
        self.since = Time::MAX; // it has not lasted
        (self.connector.on_failure)(&error);
        Ok(())
    }

    fn connected(&mut self, context: &Context<'_>, stream: F::Stream) -> io::Result<()> {
        let stream = Arc::new(stream);
        let Some(mut guest) = self.population.enter(Arc::downgrade(&stream)) else {
            context.close();
            return Ok(());
        };
        let (registry, id) = (Registry::clone(context), context.id());
        guest.on_leave(move || tell(&registry, id, ENDED));
        let handler = self.connector.creation.make(&self.addr)?;
        self.connector.concurrency.activate(context, Service::new(stream, self.addr.clone(), handler, guest))
    }

    fn late(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.attempt.as_ref().is_some_and(|(_, outcome)| outcome.lock().is_some()) {
            return self.done(context); // it has ended just now
        }
        self.give_up(context);
        self.failed(context, &io::ErrorKind::TimedOut.into())
    }

    fn give_up(&mut self, context: &Context<'_>) {
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
            ENDED => self.ended(context),
            _ => self.done(context),
        }
    }

    fn handle_timeout(&mut self, context: &Context<'_>, timer: Expired) -> io::Result<()> {
        if matches!(timer.argument, DONE | ENDED) {
            return self.handle_notice(context, timer.argument);
        }
        if self.timer != Some(timer.id) {
            return Ok(()); // it had expired already when it was cancelled
        }
        self.timer = None;
        match timer.argument {
            RETRY => self.start(context),
            _ => self.late(context),
        }
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(_) | CloseReason::Panicked(_) = reason {
            tracing::error!(addr = %self.addr, %reason, "no longer connecting");
        }
        self.give_up(context);
        self.cancel_timer(context);
    }
}
