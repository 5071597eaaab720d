//! The Connector pattern: makes a connection without waiting for it, turns it into a service that runs, and makes it again when it is lost.

mod attempt;
mod backoff;
mod cache;

use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::{Family, Interest, Pollable};
use spandrel_sync::Arc;

pub use backoff::Backoff;
pub use cache::{CacheLimits, Cached, ConnectionCache};

use crate::service::Service;
use crate::service::population::Population;
use crate::strategy::{Concurrency, Creation, Reactive};
use crate::timer::TimerId;
use crate::{CloseReason, Context, EventHandler, Expired, HandlerId, Registry};
use attempt::{Attempt, Outcome};

/// How long an attempt may take unless it is set otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Notice: the attempt has ended, see its outcome.
const DONE: u64 = 0;
/// Notice: the connection has ended.
const ENDED: u64 = 1;
/// Timer: the attempt takes too long.
const LATE: u64 = 0;
/// Timer: the wait before the next attempt is over.
const RETRY: u64 = 1;

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
            outcome: Arc::default(),
            attempt: None,
            timer: None,
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
    outcome: Outcome<F>,
    attempt: Option<HandlerId>,
    /// Of the attempt, or of the wait before the next.
    timer: Option<TimerId>,
}

impl<F: Family, C: Creation<F>, K: Concurrency<F, C::Handler>> Supervisor<F, C, K> {
    fn start(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.connector.family.start(&self.addr) {
            Ok(connecting) => {
                let attempt = Attempt::<F>::new(connecting, Arc::clone(&self.outcome), context.id(), DONE);
                self.attempt = Some(context.register(attempt, Interest::OUTPUT)?);
                self.timer = Some(context.schedule(self.connector.timeout, None, LATE)?);
                Ok(())
            }
            Err(error) => self.failed(context, &error),
        }
    }

    fn failed(&mut self, context: &Context<'_>, error: &io::Error) -> io::Result<()> {
        tracing::debug!(addr = %self.addr, %error, "an attempt to connect failed");
        (self.connector.on_failure)(error);
        self.wait_or_end(context)
    }

    fn wait_or_end(&mut self, context: &Context<'_>) -> io::Result<()> {
        let wait = self.connector.backoff.as_mut().and_then(|backoff| backoff.after_failure(fastrand::u32(..)));
        match wait {
            Some(wait) => self.timer = Some(context.schedule(wait, None, RETRY)?),
            None => context.close(),
        }
        Ok(())
    }

    fn connected(&mut self, context: &Context<'_>, stream: F::Stream) -> io::Result<()> {
        if let Some(backoff) = &mut self.connector.backoff {
            backoff.reset();
        }
        let stream = Arc::new(stream);
        let Some(mut guest) = self.population.enter(Arc::downgrade(&stream)) else {
            context.close();
            return Ok(());
        };
        let (registry, id) = (Registry::clone(context), context.id());
        guest.on_leave(move || drop(registry.notify(id, ENDED)));
        let handler = self.connector.creation.make(&self.addr)?;
        self.connector.concurrency.activate(context, Service::new(stream, self.addr.clone(), handler, guest))
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
        if notice == ENDED {
            return self.wait_or_end(context);
        }
        let Some(outcome) = self.outcome.lock().take() else { return Ok(()) };
        self.attempt = None;
        self.cancel_timer(context);
        match outcome {
            Ok(stream) => match self.connected(context, stream) {
                Err(error) => {
                    tracing::warn!(addr = %self.addr, %error, "a connection cannot be served");
                    (self.connector.on_failure)(&error);
                    Ok(()) // its guest has left, which is heard as `ENDED`
                }
                Ok(()) => Ok(()),
            },
            Err(error) => self.failed(context, &error),
        }
    }

    fn handle_timeout(&mut self, context: &Context<'_>, timer: Expired) -> io::Result<()> {
        self.timer = None;
        if timer.argument == RETRY {
            return self.start(context);
        }
        if let Some(attempt) = self.attempt.take() {
            context.remove(attempt);
        }
        if self.outcome.lock().is_some() {
            return Ok(()); // it has ended just now, and its notice comes next
        }
        self.failed(context, &io::ErrorKind::TimedOut.into())
    }

    fn handle_close(&mut self, context: &Context<'_>, reason: CloseReason) {
        if let CloseReason::Failed(error) = reason {
            tracing::error!(addr = %self.addr, %error, "no longer connecting");
        }
        if let Some(attempt) = self.attempt.take() {
            context.remove(attempt);
        }
    }
}
