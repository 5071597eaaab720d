//! The reactor that accepts connections, and the threads that serve those connections that have none of their own.
//!
//! The threads are leader and followers: one waits for all connections, and serves the one that has something to say right away, by
//! which another comes to lead if that takes long. A connection costs no thread while it is idle, at the price of one more
//! system call for each request (design decision 3).

use std::{io, sync::OnceLock, thread::available_parallelism};

use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{CloseReason, Context, EventHandler, HandlerId, Reactor, Registry};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::{
    ServerConnection,
    connection::{Ready, Seat},
    threads,
};

/// Threads that run the reactor, besides one for each processor: a few may be held up for less time than is noticed.
const SPARE_THREADS: usize = 2;
/// Threads that run the reactor at most, whatever holds them up. Those that once were needed stay.
const MAX_THREADS: usize = 512;

/// A reactor and its threads. Both start when they are first needed.
#[derive(Debug, Default)]
pub(super) struct Pool {
    reactor: OnceLock<Reactor>,
    threads: Mutex<usize>,
    /// Threads that a slow servant keeps.
    held_up: AtomicUsize,
}

impl Pool {
    /// The reactor's registry; one thread runs the reactor at least.
    pub(super) fn registry(&self) -> io::Result<&Registry> {
        if self.reactor.get().is_none() {
            let reactor = Reactor::new()?;
            // If another was quicker, its reactor is the one, and this one was never run.
            let _ = self.reactor.set(reactor);
        }
        self.staff(1)?;
        Ok(self.reactor.get().expect("it was set").registry())
    }

    /// Has the reactor's threads serve this connection.
    pub(super) fn serve(&self, connection: &Arc<ServerConnection>) -> io::Result<()> {
        let registry = self.registry()?;
        self.staff(self.wanted())?;
        registry.register(Pooled { connection: Arc::clone(connection) }, Interest::INPUT).map(drop)
    }

    /// A slow servant keeps one of the threads: another has to do its work.
    pub(super) fn hold_up(&self) {
        self.held_up.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.staff(self.wanted()) {
            tracing::error!(%error, "no thread to serve on while servants are busy");
        }
    }

    /// It keeps the thread no longer.
    pub(super) fn let_go(&self) {
        self.held_up.fetch_sub(1, Ordering::Relaxed);
    }

    fn wanted(&self) -> usize {
        let free = available_parallelism().map_or(1, usize::from) + SPARE_THREADS;
        (free + self.held_up.load(Ordering::Relaxed)).min(MAX_THREADS)
    }

    /// Sees to it that at least so many threads run the reactor.
    fn staff(&self, wanted: usize) -> io::Result<()> {
        let mut threads = self.threads.lock();
        let Some(reactor) = self.reactor.get() else { return Ok(()) };
        while *threads < wanted {
            let reactor = reactor.clone();
            threads::spawn("spandrel-reactor", move || {
                if let Err(error) = reactor.run() {
                    tracing::error!(%error, "the reactor ended");
                }
            })?;
            *threads += 1;
        }
        Ok(())
    }

    /// Ends the threads.
    pub(super) fn stop(&self) {
        if let Some(reactor) = self.reactor.get() {
            reactor.stop();
        }
    }
}

/// A connection without a thread of its own.
struct Pooled {
    connection: Arc<ServerConnection>,
}

impl EventHandler for Pooled {
    fn pollable(&self) -> Option<&dyn Pollable> {
        self.connection.pollable()
    }

    fn handle_open(&mut self, context: &Context<'_>) -> io::Result<()> {
        self.connection.take_seat(Arc::new(Registered { registry: Registry::clone(context), id: context.id() }));
        Ok(())
    }

    fn handle_input(&mut self, context: &Context<'_>) -> io::Result<()> {
        match self.connection.serve_ready() {
            Ready::Idle => {}
            Ready::Ended => context.close(),
        }
        Ok(())
    }

    fn handle_close(&mut self, _context: &Context<'_>, reason: CloseReason) {
        if !matches!(reason, CloseReason::Removed) {
            tracing::debug!(?reason, "the reactor serves a connection no longer");
            self.connection.end_reading();
        }
    }
}

/// A connection's place in a reactor.
#[derive(Debug)]
struct Registered {
    registry: Registry,
    id: HandlerId,
}

impl Seat for Registered {
    fn suspend(&self) {
        self.registry.suspend(self.id);
    }

    fn resume(&self) -> bool {
        self.registry.resume(self.id)
    }

    fn leave(&self) {
        self.registry.remove(self.id);
    }
}
