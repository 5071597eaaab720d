//! Asynchronous: one thread starts operations, and the system reports their completions (io_uring).
//!
//! In the event-driven architecture the system tells that a transfer is possible, and the server makes it. Here the
//! system makes it, and all transfers that are started between two waits cost one system call.

use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use spandrel_ipc::Shutdown;
use spandrel_ipc::inet::Stream;
use spandrel_reactor::{Completion, ConnectionEntry, OperationKind, Proactor};
use spandrel_sync::Arc;
use spandrel_sync::time::Instant;

use crate::session::{Phase, Protocol, Session};
use crate::threads::{Shared, ThreadedServer};
use crate::{Port, Server, Settings};

/// The room for octets of one receive.
const ROOM: usize = 8 << 10;
/// The operations besides those of connections.
const OTHER_OPERATIONS: usize = 8;
/// The interval in which time limits are checked.
const CHECK: Duration = Duration::from_secs(1);
/// The pause after a failed accept.
const FAILURE_PAUSE: Duration = Duration::from_millis(20);

/// The key of accepting.
const ACCEPT: u64 = 0;
/// The key of the wait for the end.
const STOP: u64 = 1;
/// The key of the first connection.
const FIRST: u64 = 2;

/// Starts an asynchronous server.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] or [`io::ErrorKind::PermissionDenied`] where the system has no io_uring or forbids
/// it; otherwise any error of the operating system.
pub fn start<P: Protocol>(port: &Port, protocol: P, settings: &Settings) -> io::Result<impl Server + use<P>> {
    let limit = settings.max_connections.saturating_add(OTHER_OPERATIONS);
    let missing = |error: io::Error| io::Error::new(error.kind(), format!("there is no io_uring: {error}"));
    drop(Proactor::new(limit).map_err(missing)?); // that of the server belongs to its thread
    let server = ThreadedServer::new(port, protocol, settings, 1)?;
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
    connections: HashMap<u64, Connection<P::Session>>,
    next: u64,
    now: Instant,
    is_accepting: bool,
    is_stopped: bool,
}

/// A connection, which has one operation at a time.
struct Connection<S> {
    stream: Arc<Stream>,
    session: S,
    /// The time of the last transfer.
    active: Instant,
    /// The time at which a part of the present request had arrived.
    request_began: Option<Instant>,
    is_sending: bool,
    is_timed_out: bool,
    _entry: ConnectionEntry,
}

impl<'a, P: Protocol> Driver<'a, P> {
    fn new(shared: &'a Shared<P>, proactor: Proactor) -> Self {
        let (connections, now) = (HashMap::new(), Instant::now());
        Self { shared, proactor, connections, next: FIRST, now, is_accepting: false, is_stopped: false }
    }

    /// Starts operations and takes their completions, until the server is stopped and all connections have ended.
    fn run(mut self) -> io::Result<()> {
        self.proactor.wait_readable(self.shared.accepting.stop_handle(), STOP)?;
        let mut completions = Vec::new();
        let mut checked = self.now;
        while !self.is_stopped || !self.connections.is_empty() {
            self.accept()?;
            self.proactor.wait(Some(CHECK), &mut completions)?;
            self.now = Instant::now();
            for completion in completions.drain(..) {
                self.complete(completion)?;
            }
            if self.now.saturating_duration_since(checked) >= CHECK {
                checked = self.now;
                self.check_limits();
            }
        }
        Ok(())
    }

    /// Accepts the next connection, if there is room for it.
    fn accept(&mut self) -> io::Result<()> {
        if self.is_accepting || self.is_stopped || self.connections.len() >= self.shared.settings.max_connections {
            return Ok(());
        }
        self.is_accepting = true;
        self.proactor.accept(self.shared.accepting.acceptor(), ACCEPT)
    }

    fn complete(&mut self, completion: Completion) -> io::Result<()> {
        match completion {
            Completion { key: STOP, .. } => {
                self.is_stopped = true;
                self.proactor.cancel(ACCEPT)
            }
            Completion { kind: OperationKind::Accept, accepted: Some(stream), .. } => {
                self.is_accepting = false;
                match self.shared.accepting.acceptor().adopt(stream) {
                    Ok(stream) => self.open(stream),
                    Err(error) => tracing::debug!(%error, "a connection cannot be served"),
                }
                Ok(())
            }
            // A nonblocking socket, which several servers share, has no connection now.
            Completion { kind: OperationKind::Accept, result: Err(error), .. }
                if error.kind() == io::ErrorKind::WouldBlock && !self.is_stopped =>
            {
                self.proactor.wait_readable(self.shared.accepting.acceptor(), ACCEPT)
            }
            Completion { key: ACCEPT, result, .. } => {
                self.is_accepting = false;
                if let Err(error) = result
                    && !self.is_stopped
                {
                    tracing::warn!(%error, "cannot accept");
                    spandrel_sync::thread::park_timeout(FAILURE_PAUSE); // must not become a busy loop
                }
                Ok(())
            }
            Completion { key, kind, result, buffer, .. } => {
                self.transferred(key, kind, result, buffer);
                Ok(())
            }
        }
    }

    /// Begins to serve a connection.
    fn open(&mut self, stream: Stream) {
        let stream = Arc::new(stream);
        let Some(entry) = self.shared.open.add_stream(&stream) else { return };
        let Ok(session) = catch_unwind(AssertUnwindSafe(|| self.shared.protocol.open())) else { return };
        let connection = Connection {
            stream,
            session,
            active: self.now,
            request_began: None,
            is_sending: false,
            is_timed_out: false,
            _entry: entry,
        };
        let key = self.next;
        self.next += 1;
        self.connections.insert(key, connection);
        self.advance(key, Vec::new(), |_, _| {});
    }

    /// Takes the result of a transfer.
    fn transferred(&mut self, key: u64, kind: OperationKind, result: io::Result<usize>, buffer: Vec<u8>) {
        let count = match result {
            Ok(count) => count,
            Err(error) => {
                tracing::debug!(%error, "a connection ends");
                self.connections.remove(&key);
                return;
            }
        };
        // Octets of a piece that are sent one by one do not extend the time for it.
        let is_partial = kind == OperationKind::Send && count < buffer.len();
        let active = self.connections.get(&key).filter(|_| is_partial).map(|connection| connection.active);
        let is_timed_out = self.connections.get(&key).is_some_and(|connection| connection.is_timed_out);
        self.advance(key, buffer, |session, buffer| match kind {
            OperationKind::Send => session.sent(count),
            _ if count > 0 => session.receive(&buffer[..count]),
            _ if is_timed_out => session.time_out(),
            _ => session.end_input(),
        });
        if let (Some(active), Some(connection)) = (active, self.connections.get_mut(&key)) {
            connection.active = active;
        }
    }

    // ANCHOR: advance
    /// Calls the session, and starts the next transfer with this buffer. An error or a panic ends the connection.
    fn advance(&mut self, key: u64, mut buffer: Vec<u8>, call: impl FnOnce(&mut P::Session, &[u8])) {
        let Some(connection) = self.connections.get_mut(&key) else { return };
        let Connection { stream, session, active, request_began, is_sending, .. } = connection;
        *active = self.now;
        let called = AssertUnwindSafe(|| {
            call(session, &buffer);
            *is_sending = !session.output().is_empty();
            if *is_sending {
                buffer.clear();
                buffer.extend_from_slice(session.output());
            }
            session.phase()
        });
        let started = match catch_unwind(called) {
            Ok(_) if *is_sending => self.proactor.send(Arc::clone(stream) as _, buffer, key),
            Ok(Phase::Closing) => Err(io::ErrorKind::NotConnected.into()),
            Ok(phase) => {
                *request_began = (phase == Phase::InRequest).then(|| request_began.unwrap_or(self.now));
                buffer.resize(ROOM.max(buffer.len()), 0);
                self.proactor.receive(Arc::clone(stream) as _, buffer, key)
            }
            Err(_) => Err(io::Error::other("a session panicked")),
        };
        if let Err(error) = started {
            tracing::trace!(%error, "a connection ends");
            self.connections.remove(&key);
        }
    }
    // ANCHOR_END: advance

    /// Ends the transfers of clients that have exceeded a time limit.
    fn check_limits(&mut self) {
        let Settings { idle, request, .. } = self.shared.settings;
        for connection in self.connections.values_mut() {
            let since = |time: Instant| self.now.saturating_duration_since(time);
            let is_idle = since(connection.active) >= idle;
            if is_idle || connection.request_began.is_some_and(|began| since(began) >= request) {
                // Completes the pending transfer: a receive with the end, a send with an error.
                let how = if connection.is_sending { Shutdown::Both } else { Shutdown::Read };
                connection.is_timed_out = true;
                let _ = connection.stream.shutdown(how);
            }
        }
    }
}
