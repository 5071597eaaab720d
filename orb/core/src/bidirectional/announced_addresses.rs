//! Which addresses are reached over connections that the peers there have opened themselves.

use std::collections::HashMap;

use spandrel_giop::ServiceContext;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::Address;

use crate::client::ClientConnection;

/// Places that one connection may stand for.
const MAX_PLACES: usize = 64;
/// Connections that may stand for one place; further ones of the same client are not needed.
const MAX_CONNECTIONS: usize = 16;

/// The addresses, and for each the connections that lead there, in the order in which they were announced.
#[derive(Debug, Default)]
pub(super) struct AnnouncedAddresses(Mutex<HashMap<Address, Vec<AnnouncedEntry>>>);

#[derive(Debug)]
struct AnnouncedEntry {
    connection: Arc<ClientConnection>,
    /// Whose connection it is: an address, or a description of one that is none.
    owner: String,
}

impl AnnouncedAddresses {
    /// Remembers that a connection leads to a place.
    ///
    /// # Errors
    /// Why not: somebody else's connection does already, and has not ended; or there are too many.
    pub(super) fn enter(
        &self,
        address: &Address,
        connection: &Arc<ClientConnection>,
        from: &Address,
    ) -> Result<(), &'static str> {
        let owner = owner(from);
        let mut addresses = self.0.lock();
        if addresses.get(address).is_some_and(|entries| entries.iter().any(|entry| entry.is(connection))) {
            return Ok(());
        }
        let count = addresses.values().flatten().filter(|entry| entry.is(connection)).count();
        if count >= MAX_PLACES {
            return Err("too many listen points of one connection");
        }
        let entries = addresses.entry(address.clone()).or_default();
        let ended: Vec<_> = entries.extract_if(.., |entry| entry.connection.is_retired()).collect();
        let is_taken = entries.iter().any(|entry| entry.owner != owner);
        if !is_taken && entries.len() < MAX_CONNECTIONS {
            entries.push(AnnouncedEntry { connection: Arc::clone(connection), owner });
        }
        drop(addresses);
        // Dropped outside of the lock.
        drop(ended);
        if is_taken {
            return Err("it was announced from elsewhere, on a connection that is still open");
        }
        Ok(())
    }

    /// The connection by which requests to this place go. `code_sets`: those that the requests would agree on.
    pub(super) fn find(&self, address: &Address, code_sets: Option<&ServiceContext>) -> Option<Arc<ClientConnection>> {
        let addresses = self.0.lock();
        let mut open = addresses.get(address)?.iter().map(|entry| &entry.connection);
        open.find(|connection| !connection.is_retired() && connection.accepts_code_sets(code_sets)).cloned()
    }

    /// The connection leads nowhere any more.
    pub(super) fn forget(&self, connection: &Arc<ClientConnection>) {
        let mut ended = Vec::new();
        self.0.lock().retain(|_, entries| {
            ended.extend(entries.extract_if(.., |entry| entry.is(connection)));
            !entries.is_empty()
        });
        // Dropped outside of the lock.
        drop(ended);
    }
}

impl AnnouncedEntry {
    fn is(&self, connection: &Arc<ClientConnection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }
}

/// The part of an address that a client's connections have in common.
fn owner(from: &Address) -> String {
    from.host_and_port().map_or_else(|| from.to_string(), |(host, _)| host.to_owned())
}
