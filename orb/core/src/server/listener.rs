//! Accepting connections, and ending them all.

use std::{collections::HashMap, io, time::Duration};

use spandrel_cdr::{ByteOrder, GiopVersion};
use spandrel_giop::{MessageType, bare_message};
use spandrel_ipc::{
    Interest,
    inet::{self, Inet},
};
use spandrel_reactor::{Context, HandlerId, Listening};
use spandrel_sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use super::{ServerConnection, ServerSettings, connection::Farewell, pool::Pool, threads};
use crate::{Endpoint, Orb, reader::Deadline, transport::send_octets};

/// How long peers have to close their side at shutdown, once they were told. Those that do not look at their idle
/// connections find CloseConnection when they do.
const GOODBYE: Duration = Duration::from_millis(200);
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
    /// In the reactor.
    listeners: Mutex<Vec<HandlerId>>,
    connections: Mutex<HashMap<usize, Arc<ServerConnection>>>,
    /// How many of them have a thread of their own.
    threaded: AtomicUsize,
    pool: Pool,
    closing: AtomicBool,
}

/// What a connection is found by: where it lies.
fn key(connection: &ServerConnection) -> usize {
    std::ptr::from_ref(connection).addr()
}

impl Server {
    pub(crate) fn new(settings: ServerSettings) -> Self {
        Self {
            pool: Pool::new(settings.max_connections, settings.pool_threads, settings.nests),
            settings: Arc::new(settings),
            listeners: Mutex::default(),
            connections: Mutex::default(),
            threaded: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        }
    }

    /// Listens on all endpoints, or on none, and says what to publish.
    pub(crate) fn listen(self: &Arc<Self>, orb: &Orb, endpoints: &[Endpoint]) -> io::Result<Vec<(String, u16)>> {
        let mut opened = Vec::new();
        for endpoint in endpoints {
            opened.push(endpoint.listen(self.settings.send_queue, self.settings.recv_queue)?);
        }
        let mut listeners = self.listeners.lock();
        if self.closing.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the ORB is shutting down"));
        }
        orb.watcher().attend(self);
        let registry = self.pool.registry()?;
        let mut published = Vec::new();
        for (acceptor, addr) in opened {
            tracing::info!(host = %addr.0, port = addr.1, "listening");
            acceptor.set_nonblocking(true)?;
            let (server, orb) = (Arc::clone(self), orb.clone());
            let welcome = move |_: &Context<'_>, stream, from| server.welcome(stream, from, &orb);
            listeners.push(registry.register(Listening::<Inet, _>::new(acceptor, welcome), Interest::INPUT)?);
            published.push(addr);
        }
        Ok(published)
    }

    fn welcome(self: &Arc<Self>, stream: inet::Stream, addr: inet::Addr, orb: &Orb) -> io::Result<()> {
        stream.set_no_delay(true)?;
        stream.set_keep_alive(true)?;
        let connection = {
            let mut connections = self.connections.lock();
            if self.closing.load(Ordering::Acquire) || connections.len() >= self.settings.max_connections {
                tracing::warn!(%addr, limit = self.settings.max_connections, "refused: too many connections");
                refuse(&stream, self.settings.order);
                return Ok(());
            }
            let is_threaded = self.threaded.load(Ordering::Relaxed) < self.settings.max_threaded;
            self.threaded.fetch_add(usize::from(is_threaded), Ordering::Relaxed);
            let (transport, settings) = (Box::new(stream), Arc::clone(&self.settings));
            let connection = ServerConnection::new(orb.clone(), addr.to_string(), transport, settings, is_threaded);
            connections.insert(key(&connection), Arc::clone(&connection));
            connection
        };
        tracing::debug!(%addr, "accepted");
        orb.watcher().watch(&connection);
        let serving = if connection.has_own_thread() {
            let served = Arc::clone(&connection);
            threads::spawn("spandrel-serve", move || served.serve())
        } else {
            self.pool.serve(&connection)
        };
        serving.inspect_err(|_| {
            // Nothing was acted on, and nothing will be.
            connection.begin_close();
            orb.watcher().forget(&connection);
            self.forget(&connection);
        })
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Lets go of a connection that has ended.
    pub(super) fn forget(&self, connection: &ServerConnection) {
        let known = self.connections.lock().remove(&key(connection));
        if known.is_some_and(|known| known.has_own_thread()) {
            self.threaded.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Stops accepting, lets running requests end, says goodbye to every client, and waits for them, a bounded time.
    ///
    /// `patience`: the longest time for requests that run.
    pub(crate) fn shutdown(&self, patience: Duration) {
        self.closing.store(true, Ordering::Release);
        let listeners = std::mem::take(&mut *self.listeners.lock());
        if let (false, Ok(registry)) = (listeners.is_empty(), self.pool.registry()) {
            for listener in listeners {
                registry.remove(listener);
            }
        }
        let connections: Vec<_> = self.connections.lock().values().cloned().collect();
        connections.iter().for_each(|connection| connection.begin_close());
        for (stage, time) in [(Farewell::Said, patience), (Farewell::Ended, GOODBYE)] {
            let deadline = Deadline::after(time);
            connections.iter().for_each(|connection| connection.await_farewell(stage, &deadline));
        }
        self.pool.close();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use spandrel_ipc::inet::{Acceptor, Addr, Connector};

    use super::*;

    #[test]
    fn a_connection_that_the_reactor_does_not_take_is_told_so_and_forgotten() {
        let orb = Orb::builder().threaded_connections(0).build();
        let server = orb.server();
        server.pool.registry().unwrap();
        server.pool.close();
        let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
        let client = Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
        let (stream, addr) = acceptor.accept().unwrap();
        let error = server.welcome(stream, addr, &orb).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotConnected);
        assert!(server.connections.lock().is_empty());
        let mut said = [0; 64];
        let goodbye = bare_message(GiopVersion::V1_0, ByteOrder::NATIVE, MessageType::CloseConnection);
        assert_eq!(client.recv(&mut said).unwrap(), goodbye.len());
        assert_eq!(said[..goodbye.len()], goodbye);
        assert_eq!(client.recv(&mut said).unwrap(), 0);
        orb.shutdown(true).unwrap();
    }
}
