//! Asynchronous: one thread starts operations, and the system reports their completions (the Proactor pattern, over
//! `io_uring` on Linux and a completion port on Windows).
//!
//! In the event-driven architecture the system tells that a transfer is possible, and the server makes it. Here the
//! system makes it. On Linux, all transfers that are started between two waits cost one system call; a reply and the
//! wait for the next request are one operation.

mod connections;

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use spandrel_reactor::{Completion, ConnectionHandle, OperationId, OperationKind, Proactor};
use spandrel_sync::Arc;
use spandrel_sync::atomic::Ordering;
use spandrel_sync::time::Instant;

use self::connections::{Connection, Connections, TimeLimit};
use crate::listening::FAILURE_PAUSE;
use crate::session::{Phase, Protocol, Session};
use crate::threads::{Shared, ThreadedServer};
use crate::{Port, Server, Settings};

/// The room for octets of one receive.
const ROOM: usize = 8 << 10;
/// The longest piece that is sent together with the next receive: the send queue of a client that reads has room for
/// it. For longer ones, the idle time begins when they are sent.
const MAX_EXCHANGE: usize = 16 << 10;
/// While there is room for more connections than this, one operation accepts them all. Otherwise each is accepted by
/// itself, so that the others stay in the backlog.
const AMPLE_ROOM: usize = 64;
/// The key of accepting; other keys are those of connections.
const ACCEPT: u64 = u64::MAX;

/// Starts a server whose one thread starts operations and takes their completions.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] or [`io::ErrorKind::PermissionDenied`] where the system has no io_uring or forbids
/// it; otherwise any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let limit = settings.max_connections.saturating_add(1);
    let missing = |error: io::Error| io::Error::new(error.kind(), format!("there is no proactor: {error}"));
    drop(Proactor::new(limit).map_err(missing)?); // that of the server belongs to its thread
    let server = ThreadedServer::new(port, protocol, settings, 1)?;
    // A thread tells the time: so neither the clock is read nor a timer started for each wait.
    server.watch(settings.idle.min(settings.request), |shared| {
        shared.is_check_due.store(true, Ordering::Release);
        shared.accepting.wake();
    })?;
    server.spawn("asynchronous", 1, move |shared| {
        if let Err(error) = Proactor::new(limit).and_then(|proactor| Driver::new(shared, proactor).run()) {
            tracing::error!(%error, "the asynchronous server has failed");
        }
    })?;
    Ok(server)
}

/// The thread of the server: its connections and their operations.
struct Driver<'a, P: Protocol> {
    shared: &'a Shared<P>,
    proactor: Proactor,
    connections: Connections<P::Session, Counted<'a, P>>,
    accepting: Accepting,
    /// Accepted connections beyond the limit: several may be accepted at a time.
    waiting: VecDeque<ConnectionHandle>,
    has_accept_failed: bool,
    /// The time of the last check of time limits.
    now: Instant,
    is_stopped: bool,
    is_draining: bool,
    is_cut: bool,
}

/// A connection that counts as open.
struct Counted<'a, P: Protocol>(&'a Shared<P>);

impl<'a, P: Protocol> Counted<'a, P> {
    fn new(shared: &'a Shared<P>) -> Self {
        shared.open.enter();
        Self(shared)
    }
}

impl<P: Protocol> Drop for Counted<'_, P> {
    fn drop(&mut self) {
        self.0.open.leave();
    }
}

/// The pending operation that accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    /// No operation accepts connections.
    Not,
    /// An operation that accepts one connection.
    One(OperationId),
    /// An operation that accepts connections until it is cancelled.
    Each(OperationId),
    /// It is cancelled, and ends with a completion.
    Cancelled,
}

impl<'a, P: Protocol> Driver<'a, P> {
    fn new(shared: &'a Shared<P>, proactor: Proactor) -> Self {
        shared.accepting.set_waker(proactor.waker());
        Self {
            shared,
            proactor,
            connections: Connections::default(),
            accepting: Accepting::Not,
            waiting: VecDeque::new(),
            has_accept_failed: false,
            now: Instant::now(),
            is_stopped: false,
            is_draining: false,
            is_cut: false,
        }
    }

    /// Starts operations and takes their completions, until the server is stopped and all connections have ended.
    fn run(mut self) -> io::Result<()> {
        let mut completions = Vec::new();
        loop {
            self.check_end()?;
            self.accept()?;
            if self.is_stopped && self.accepting == Accepting::Not && self.connections.is_empty() {
                return Ok(());
            }
            self.proactor.wait(None, &mut completions)?;
            for completion in completions.drain(..) {
                self.complete(completion);
            }
            if self.shared.is_check_due.load(Ordering::Relaxed) {
                self.check_limits()?;
            }
        }
    }

    /// Accepts connections while there is room for them.
    fn accept(&mut self) -> io::Result<()> {
        let limit = self.shared.accepting.room();
        while self.connections.len() < limit
            && let Some(accepted) = self.waiting.pop_front()
        {
            self.open(accepted);
        }
        if std::mem::take(&mut self.has_accept_failed) && !self.is_stopped {
            spandrel_sync::thread::park_timeout(FAILURE_PAUSE); // must not become a busy loop
        }
        let room = limit.saturating_sub(self.connections.len() + self.waiting.len());
        let acceptor = || Arc::clone(self.shared.accepting.acceptor());
        let started = match self.accepting {
            Accepting::Each(_) if room <= AMPLE_ROOM => return self.cancel_accept(),
            Accepting::Not if self.is_stopped || room == 0 => return Ok(()),
            Accepting::Not if room > AMPLE_ROOM => self.proactor.accept_each(acceptor(), ACCEPT).map(Accepting::Each),
            Accepting::Not => self.proactor.accept(acceptor(), ACCEPT).map(Accepting::One),
            _ => return Ok(()),
        };
        match started {
            Ok(accepting) => self.accepting = accepting,
            Err(error) => self.accept_failed(&error),
        }
        Ok(())
    }

    fn cancel_accept(&mut self) -> io::Result<()> {
        if let Accepting::One(id) | Accepting::Each(id) = self.accepting {
            self.accepting = Accepting::Cancelled;
            self.proactor.cancel(id)?;
        }
        Ok(())
    }

    fn accept_failed(&mut self, error: &io::Error) {
        if !self.is_stopped {
            tracing::warn!(%error, "cannot accept");
            self.has_accept_failed = true;
        }
    }

    fn complete(&mut self, completion: Completion) {
        let Completion { key, kind, goes_on, result, data, buffer, connection, .. } = completion;
        if kind == OperationKind::Accept {
            return self.accepted(goes_on, result.map(|_| connection));
        }
        let mut is_timed_out = false;
        if let Some(ended) = self.connections.get_mut(key) {
            ended.handle = connection;
            is_timed_out = match ended.exceeded.take() {
                // A client that never stops sending completes each receive before it can be cancelled.
                Some(TimeLimit::Request) => true,
                Some(TimeLimit::Idle) => !matches!(result, Ok(1..)),
                None => false,
            };
            if is_timed_out {
                ended.end_request(); // what remains of it has a time of its own
            }
        }
        match (kind, result) {
            (OperationKind::Accept, _) => {}
            (OperationKind::Send, Ok(_)) => self.advance(key, data, buffer, |_, _| {}),
            (OperationKind::Receive, Ok(count)) if count > 0 => {
                self.advance(key, data, buffer, |session, buffer| {
                    session.receive(&buffer[..count]);
                    if is_timed_out && session.phase() == Phase::InRequest && session.output().is_empty() {
                        session.time_out();
                    }
                });
            }
            (OperationKind::Receive, _) if is_timed_out => {
                self.advance(key, data, buffer, |session, _| session.time_out());
            }
            (OperationKind::Receive, Ok(_)) => self.advance(key, data, buffer, |session, _| session.end_input()),
            (_, Err(error)) => {
                tracing::debug!(%error, "a connection ends");
                self.close(key, data, buffer);
            }
        }
    }

    /// Takes a connection, or the end of the operation that accepts.
    fn accepted(&mut self, goes_on: bool, result: io::Result<Option<ConnectionHandle>>) {
        let before = self.accepting;
        if !goes_on {
            self.accepting = Accepting::Not;
        }
        match result {
            Ok(connection) => self.waiting.extend(connection),
            Err(_) if before == Accepting::Cancelled => {}
            Err(error) => self.accept_failed(&error),
        }
    }

    /// Begins to serve a connection.
    fn open(&mut self, accepted: ConnectionHandle) {
        if self.shared.accepting.acceptor().is_shut_down() {
            return; // its last connections are reset
        }
        let handle = match self.shared.accepting.prepare(accepted) {
            Ok(handle) => handle,
            Err(error) => return tracing::debug!(%error, "a connection cannot be served"),
        };
        if self.is_draining {
            return;
        }
        let entry = Counted::new(self.shared);
        let Ok(session) = catch_unwind(AssertUnwindSafe(|| self.shared.protocol.open())) else { return };
        let (key, data, buffer) = self.connections.insert(Connection::new(handle, session, entry, self.now));
        self.advance(key, data, buffer, |_, _| {});
    }

    // ANCHOR: advance
    /// Calls the session, and starts the next operation with these buffers. An error or a panic ends the connection.
    fn advance(&mut self, key: u64, mut data: Vec<u8>, mut buffer: Vec<u8>, call: impl FnOnce(&mut P::Session, &[u8])) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let session = &mut connection.session;
        let called = AssertUnwindSafe(|| {
            call(session, &buffer);
            data.clear();
            data.extend_from_slice(session.output());
            if !data.is_empty() {
                session.sent(data.len());
            }
            let has_more = !data.is_empty() && !session.output().is_empty();
            (has_more, !has_more && session.has_ended_output(), session.phase())
        });
        let Ok((has_more, has_ended, phase)) = catch_unwind(called) else { return self.close(key, data, buffer) };
        connection.set_active(self.now, !has_more && phase == Phase::InRequest);
        let is_last = !has_more && phase == Phase::Closing;
        if self.is_cut || (data.is_empty() && is_last) {
            return self.close(key, data, buffer);
        }
        let mut handle = connection.handle.take();
        if has_ended && data.is_empty() && connection.begin_end_output() {
            handle = handle.and_then(|handle| self.shared.accepting.end_output(handle).ok());
        }
        let Some(handle) = handle else { return self.close(key, data, buffer) };
        let started = if has_more || has_ended && !data.is_empty() || is_last || data.len() > MAX_EXCHANGE {
            self.proactor.send(handle, data, key)
        } else {
            buffer.resize(ROOM, 0);
            match data.is_empty() {
                true => self.proactor.receive(handle, buffer, key),
                false => self.proactor.exchange(handle, data, buffer, key),
            }
        };
        match started {
            Ok(operation) => {
                connection.operation = Some(operation);
                if self.is_draining {
                    let _ = self.proactor.end_input(operation);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a connection ends");
                self.close(key, Vec::new(), Vec::new());
            }
        }
    }
    // ANCHOR_END: advance

    /// Ends a connection without pending operations.
    fn close(&mut self, key: u64, data: Vec<u8>, buffer: Vec<u8>) {
        let session = self.connections.get_mut(key).map(|connection| &connection.session);
        let may_be_reset = session.is_some_and(|session| {
            catch_unwind(AssertUnwindSafe(|| session.may_be_reset())).unwrap_or(false) // it may have panicked before
        });
        let handle = self.connections.remove(key, data, buffer);
        let handle = if may_be_reset {
            handle.and_then(|handle| self.shared.accepting.reset_at_close(handle).ok())
        } else {
            handle
        };
        if let Some(handle) = handle {
            self.proactor.close(handle);
        }
    }

    /// Does what the server's end needs: accepts nothing more, ends the input of connections, closes them.
    fn check_end(&mut self) -> io::Result<()> {
        if !self.is_stopped && self.shared.accepting.is_stopped() {
            self.is_stopped = true;
            self.cancel_accept()?;
        }
        if self.is_stopped && !self.is_cut && self.shared.open.is_cut() {
            self.is_cut = true;
            self.connections.operations().try_for_each(|operation| self.proactor.cancel(operation))?;
        }
        if self.is_stopped && !self.is_draining && self.shared.open.is_draining() {
            self.is_draining = true;
            self.connections.operations().try_for_each(|operation| self.proactor.end_input(operation))?;
        }
        Ok(())
    }

    /// Ends the operations of clients that have exceeded a time limit. Times are those of the check before, so that a
    /// client has one interval more.
    fn check_limits(&mut self) -> io::Result<()> {
        self.shared.is_check_due.store(false, Ordering::Relaxed);
        let interval = Instant::now().saturating_duration_since(self.now);
        self.now += interval;
        let Settings { idle, request, .. } = self.shared.settings;
        let (idle, request) = (idle.saturating_add(interval), request.saturating_add(interval));
        for connection in self.connections.iter_mut() {
            connection.exceeded = connection.exceeded_limit(self.now, idle, request);
            if connection.exceeded.is_some() {
                connection.operation.map_or(Ok(()), |operation| self.proactor.cancel(operation))?;
            }
        }
        Ok(())
    }
}
