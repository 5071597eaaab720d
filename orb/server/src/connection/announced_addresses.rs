//! The addresses that clients have announced for bidirectional GIOP: calls to them use the connections that the
//! clients have opened.

use std::collections::HashMap;

use spandrel_giop::ServiceContext;
use spandrel_orb::client::ClientConnection;
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::Address;

/// The most addresses of one connection.
const MAX_ADDRESSES: usize = 64;
/// The most connections of one address; further ones of the same client are not needed.
const MAX_CONNECTIONS: usize = 16;

/// The connections to each address, in the order in which they were announced.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedAddresses(Mutex<HashMap<Address, Vec<AnnouncedEntry>>>);

#[derive(Debug)]
struct AnnouncedEntry {
    connection: Arc<ClientConnection>,
    /// The client's host, or a description of an address without one.
    owner: String,
}

impl AnnouncedAddresses {
    /// Adds a connection for an address.
    ///
    /// # Errors
    /// The reason: another host's connection is open for it, or there are too many.
    pub(crate) fn insert(
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
        if count >= MAX_ADDRESSES {
            return Err("the connection has too many listen points");
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
            return Err("another host has announced it on a connection that is still open");
        }
        Ok(())
    }

    /// Returns the connection for requests to this address. `code_sets`: those that the requests would agree
    /// on.
    pub(crate) fn find(&self, address: &Address, code_sets: Option<&ServiceContext>) -> Option<Arc<ClientConnection>> {
        let addresses = self.0.lock();
        let mut open = addresses.get(address)?.iter().map(|entry| &entry.connection);
        open.find(|connection| !connection.is_retired() && connection.accepts_code_sets(code_sets)).cloned()
    }

    /// Removes a connection that has ended.
    pub(crate) fn remove(&self, connection: &Arc<ClientConnection>) {
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

/// The part of an address that is common to a client's connections.
fn owner(from: &Address) -> String {
    from.host_and_port().map_or_else(|| from.to_string(), |(host, _)| host.to_owned())
}
