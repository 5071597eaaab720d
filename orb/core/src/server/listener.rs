//! Accepting connections, and ending them all.

use std::{io, time::Duration};

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::{MessageType, bare_message};
use spandrel_ipc::inet;
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{ServerConnection, ServerSettings, connection::Farewell, threads};
use crate::{Endpoint, Orb, reader::Deadline, transport::send_octets};

/// How long peers have to close their side at shutdown, once they were told. Those that do not look at their idle
/// connections find CloseConnection when they do.
const GOODBYE: Duration = Duration::from_millis(200);
/// How long to wait when the process has no descriptor left for a new connection.
const BREATH: Duration = Duration::from_millis(20);

/// Tells a client that its requests were and will not be acted on here.
fn refuse(stream: &inet::Stream, order: ByteOrder) {
    // In the oldest version, which everybody reads. A client that is gone needs no telling.
    let _ = send_octets(stream, &bare_message(GiopVersion::V1_0, order, MessageType::CloseConnection));
    let _ = stream.close_writer();
}

/// All listeners and accepted connections of one ORB.
#[derive(Debug)]
pub(crate) struct Server {
    settings: Arc<ServerSettings>,
    listeners: Mutex<Vec<Arc<Listener>>>,
    connections: Mutex<Vec<Arc<ServerConnection>>>,
    closing: AtomicBool,
}

/// One address that is listened on.
#[derive(Debug)]
pub(crate) struct Listener {
    acceptor: inet::Acceptor,
    /// What references say.
    pub(crate) published: (String, u16),
}

impl Server {
    pub(crate) fn new(settings: ServerSettings) -> Self {
        Self {
            settings: Arc::new(settings),
            listeners: Mutex::default(),
            connections: Mutex::default(),
            closing: AtomicBool::new(false),
        }
    }

    /// Listens on all endpoints, or on none, and says what to publish.
    pub(crate) fn listen(self: &Arc<Self>, orb: &Orb, endpoints: &[Endpoint]) -> io::Result<Vec<(String, u16)>> {
        let mut opened = Vec::new();
        for endpoint in endpoints {
            let (acceptor, published) = endpoint.listen(self.settings.send_queue, self.settings.recv_queue)?;
            opened.push(Arc::new(Listener { acceptor, published }));
        }
        let mut listeners = self.listeners.lock();
        if self.closing.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the ORB is shutting down"));
        }
        for listener in &opened {
            tracing::info!(host = %listener.published.0, port = listener.published.1, "listening");
            let (server, orb, accepting) = (Arc::clone(self), orb.clone(), Arc::clone(listener));
            threads::spawn("spandrel-accept", move || server.accept_all(&accepting, &orb))?;
            listeners.push(Arc::clone(listener));
        }
        Ok(opened.iter().map(|listener| listener.published.clone()).collect())
    }

    fn accept_all(self: &Arc<Self>, listener: &Listener, orb: &Orb) {
        loop {
            match listener.acceptor.accept() {
                Ok((stream, addr)) => self.welcome(stream, addr, orb),
                Err(_) if self.closing.load(Ordering::Acquire) => return,
                Err(error) => {
                    // No descriptors or memory: existing connections go on, new ones wait in the backlog.
                    tracing::warn!(%error, "cannot accept");
                    std::thread::sleep(BREATH);
                }
            }
        }
    }

    fn welcome(self: &Arc<Self>, stream: inet::Stream, addr: inet::Addr, orb: &Orb) {
        if let Err(error) = stream.set_no_delay(true).and_then(|()| stream.set_keep_alive(true)) {
            tracing::debug!(%addr, %error, "the client was gone at once");
            return;
        }
        let connection = {
            let mut connections = self.connections.lock();
            if self.closing.load(Ordering::Acquire) || connections.len() >= self.settings.max_connections {
                tracing::warn!(%addr, limit = self.settings.max_connections, "refused: too many connections");
                refuse(&stream, self.settings.order);
                return;
            }
            let connection =
                ServerConnection::new(orb.clone(), addr.to_string(), Box::new(stream), Arc::clone(&self.settings));
            let connection = Arc::new(connection);
            connections.push(Arc::clone(&connection));
            connection
        };
        tracing::debug!(%addr, "accepted");
        orb.watcher().watch(&connection);
        let (server, served) = (Arc::clone(self), Arc::clone(&connection));
        if let Err(error) = threads::spawn("spandrel-serve", move || served.serve()) {
            tracing::error!(%error, "no thread for a connection");
            orb.watcher().forget(&connection);
            server.forget(&connection);
        }
    }

    /// Lets go of a connection that has ended.
    pub(super) fn forget(&self, connection: &ServerConnection) {
        self.connections.lock().retain(|known| !std::ptr::eq(&raw const **known, connection));
    }

    /// Stops accepting, lets running requests end, says goodbye to every client, and waits for them, a bounded time.
    ///
    /// `patience`: the longest time for requests that run.
    pub(crate) fn shutdown(&self, patience: Duration) {
        self.closing.store(true, Ordering::Release);
        for listener in self.listeners.lock().drain(..) {
            if let Err(error) = listener.acceptor.shutdown() {
                tracing::warn!(%error, "a listener did not end");
            }
        }
        let connections = self.connections.lock().clone();
        connections.iter().for_each(|connection| connection.begin_close());
        for (stage, time) in [(Farewell::Said, patience), (Farewell::Ended, GOODBYE)] {
            let deadline = Deadline::after(time);
            connections.iter().for_each(|connection| connection.await_farewell(stage, &deadline));
        }
    }
}
