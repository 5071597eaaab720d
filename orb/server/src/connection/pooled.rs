//! The registrations of connections with the pool's reactor, and their handlers.
//!
//! The handlers call the connection when its handle is ready. Reading, and the thread that reads, are decided
//! by the connection.

use std::{io, time::Duration};

use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{CloseReason, Context, EventHandler, Expired, HandlerId, Registry};
use spandrel_sync::{Arc, Mutex, Weak};

use super::{ServerConnection, reading::VisitOutcome, registration::ReactorRegistration};
use crate::{
    reactor_pool::Pool,
    worker_counts::{WorkerCounts, WorkerVisit},
};

/// A connection without a thread of its own.
struct PooledConnection {
    connection: Arc<ServerConnection>,
    worker_counts: Arc<WorkerCounts>,
    /// The number of registrations that were replaced before this one.
    renewals: u32,
}

/// Registers this connection with the pool's reactor, whose threads then serve it. `is_ready`: there is input that the
/// handle does not show.
pub(crate) fn serve_in(pool: &Pool, connection: &Arc<ServerConnection>, is_ready: bool) -> io::Result<()> {
    let (registry, worker_counts) = pool.visited_registry()?;
    let pooled = PooledConnection::new(Arc::clone(connection), Arc::clone(worker_counts));
    let id = registry.register(pooled, Interest::INPUT)?;
    if is_ready {
        registry.mark_ready(id, Interest::INPUT);
    }
    Ok(())
}

/// Registers a connection that has a thread of its own, so that the reactor's threads write its waiting
/// replies.
pub(super) fn write_in(pool: &Pool, connection: Arc<ServerConnection>) -> io::Result<()> {
    pool.registry()?.register(ReplyWriter(connection), Interest::OUTPUT).map(drop)
}

impl PooledConnection {
    fn new(connection: Arc<ServerConnection>, worker_counts: Arc<WorkerCounts>) -> Self {
        let renewals = connection.registration.renewals();
        Self { connection, worker_counts, renewals }
    }

    /// Whether another registration serves the connection. This one only ends its call.
    #[inline]
    fn is_replaced(&self) -> bool {
        self.connection.registration.renewals() != self.renewals
    }
}

impl EventHandler for PooledConnection {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.connection.pollable()
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        let registration = PooledHandler {
            connection: Arc::downgrade(&self.connection),
            registry: Registry::clone(context),
            id: context.id(),
            wanted: Mutex::new(WantedEvents { input: true, output: false }),
            worker_counts: Arc::clone(&self.worker_counts),
        };
        self.connection.register_with(Arc::new(registration));
        Ok(())
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        let _visit = WorkerVisit::begin(&self.worker_counts);
        let is_one_of_several = context.is_one_of_several();
        // A single reply is sent sooner by itself.
        let batch = self.connection.resources.pool.reply_batch();
        let _collecting = batch.map(|batch| batch.begin_visit(is_one_of_several));
        match self.connection.serve_ready(|| self.is_replaced(), is_one_of_several) {
            VisitOutcome::Idle => {}
            VisitOutcome::Ended => context.close(),
        }
        Ok(())
    }

    fn handle_output(&mut self, _context: &Context<'_>) -> io::Result<()> {
        let _visit = WorkerVisit::begin(&self.worker_counts);
        self.connection.write_ready();
        Ok(())
    }

    /// Closes the connection at the end of the time to [linger](ReactorRegistration::linger).
    fn handle_timeout(&mut self, context: &Context<'_>, _timer: Expired) -> io::Result<()> {
        context.close();
        Ok(())
    }

    fn handle_close(&mut self, _context: &Context<'_>, reason: CloseReason) {
        if !matches!(reason, CloseReason::Removed) {
            tracing::debug!(?reason, "the reactor no longer serves a connection");
        }
        if !self.is_replaced() {
            self.connection.registration_closed();
        }
    }
}

/// The handler that writes the waiting replies of a connection with a thread of its own, and then leaves the
/// reactor.
struct ReplyWriter(Arc<ServerConnection>);

impl EventHandler for ReplyWriter {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.0.pollable()
    }

    fn handle_output(&mut self, context: &Context<'_>) -> io::Result<()> {
        if self.0.write_ready() {
            // Detached at once, because another writer may have to be registered before this call has
            // returned.
            context.detach(context.id());
            self.0.writer_left();
        }
        Ok(())
    }
}

/// A connection's registration with the pool's reactor.
#[derive(Debug)]
struct PooledHandler {
    /// Weak, because the connection keeps its registration.
    connection: Weak<ServerConnection>,
    registry: Registry,
    id: HandlerId,
    wanted: Mutex<WantedEvents>,
    worker_counts: Arc<WorkerCounts>,
}

/// The events that a connection waits for. While output is wanted, only output is waited for.
#[derive(Clone, Copy, Debug)]
struct WantedEvents {
    input: bool,
    output: bool,
}

impl PooledHandler {
    fn want_input(&self, input: bool) -> bool {
        let mut interest = self.wanted.lock();
        interest.input = input;
        match *interest {
            WantedEvents { output: true, .. } => self.registry.contains(self.id),
            WantedEvents { input: true, .. } => self.registry.resume(self.id),
            WantedEvents { input: false, .. } => self.registry.suspend(self.id),
        }
    }
}

impl ReactorRegistration for PooledHandler {
    fn suspend(&self) {
        self.want_input(false);
    }

    fn resume(&self) -> bool {
        self.want_input(true)
    }

    fn resume_marked(&self) -> bool {
        self.want_input(true) && self.registry.mark_ready(self.id, Interest::INPUT)
    }

    fn mark_ready(&self) {
        self.registry.mark_ready(self.id, Interest::INPUT | Interest::OUTPUT);
    }

    fn want_output(&self, is_wanted: bool) {
        let mut interest = self.wanted.lock();
        if interest.output == is_wanted {
            return;
        }
        interest.output = is_wanted;
        let input = interest.input;
        // An error means that the handler is gone; its `handle_close` deals with that.
        let _ = self.registry.set_interest(self.id, if is_wanted { Interest::OUTPUT } else { Interest::INPUT });
        match is_wanted || input {
            true => self.registry.resume(self.id),
            false => self.registry.suspend(self.id),
        };
        drop(interest);
        if !is_wanted && input {
            // Input that is already in memory has not been looked at.
            self.registry.mark_ready(self.id, Interest::INPUT);
        }
    }

    fn linger(&self, time: Duration) -> bool {
        self.registry.schedule(self.id, time, None, 0).is_ok() && self.want_input(true)
    }

    fn leave(&self) {
        self.registry.remove(self.id);
    }

    fn renew(&self, is_ready: bool) -> io::Result<()> {
        let connection = self.connection.upgrade().ok_or(io::ErrorKind::NotConnected)?;
        connection.registration.count_renewal();
        if !self.registry.detach(self.id) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let pooled = PooledConnection::new(connection, Arc::clone(&self.worker_counts));
        let id = self.registry.register(pooled, Interest::INPUT)?;
        if is_ready {
            self.registry.mark_ready(id, Interest::INPUT);
        }
        Ok(())
    }
}
