//! The connections of a TCP module, with the locks that its process architecture needs.

use spandrel_stream::MapManager;
use spandrel_sync::{Arc, Guarded, Monitor, NullMutex};

use crate::transport::{Connection, TcpAddr};

/// The connections of a TCP module: the locks around their control blocks.
pub(crate) trait Connections: Send + Sync + 'static {
    /// Calls `act` with a connection, which `create` may make.
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R>;
    fn for_each(&self, act: impl FnMut(TcpAddr, &mut Connection));
    fn remove(&self, address: TcpAddr);
}

/// Connections for any number of threads: a map with a lock, and a lock for each control block (the `MP_Map_Manager` of
/// paper 002, 3.4).
pub(crate) struct Shared<L: Monitor>(MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>);

impl<L: Monitor> Shared<L> {
    pub(crate) fn new() -> Self {
        Self(MapManager::new())
    }
}

impl<L: Monitor> Connections for Shared<L>
where
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let connection = self.0.find(&address).or_else(|| {
            let created = Arc::new(Guarded::new(create()?));
            match self.0.bind(address, Arc::clone(&created)) {
                Ok(()) => Some(created),
                Err(_) => self.0.find(&address), // another thread was faster
            }
        })?;
        Some(act(&mut connection.lock()))
    }

    fn for_each(&self, mut act: impl FnMut(TcpAddr, &mut Connection)) {
        for (address, connection) in self.0.bindings() {
            act(address, &mut connection.lock());
        }
    }

    fn remove(&self, address: TcpAddr) {
        self.0.unbind(&address);
    }
}

/// Connections of one thread, without locks (the `LP_Map_Manager` of paper 002, 3.4): each thread has its own.
pub(crate) struct OwnedByThread;

spandrel_sync::thread_local! {
    static OWNED: MapManager<TcpAddr, Connection, NullMutex> = MapManager::new();
}

impl Connections for OwnedByThread {
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        OWNED.with(|connections| {
            let mut act = Some(act);
            let mut once = |connection: &mut Connection| act.take().map(|act| act(connection));
            if let Some(result) = connections.find_with(&address, &mut once) {
                return result;
            }
            connections.bind(address, create()?).ok()?;
            connections.find_with(&address, once)?
        })
    }

    fn for_each(&self, mut act: impl FnMut(TcpAddr, &mut Connection)) {
        OWNED.with(|connections| {
            connections.retain(|address, connection| {
                act(*address, connection);
                true
            });
        });
    }

    fn remove(&self, address: TcpAddr) {
        OWNED.with(|connections| _ = connections.unbind(&address));
    }
}
