//! The listen points that clients announce on their connections (CORBA 3.3 Part 2, 9.8): calls to these
//! addresses use the connections that the clients have opened.
//!
//! Requests for one host must not be sent to another that claims its address. So an announced address is
//! checked before it is used.
//!
//! The addresses that this server publishes are in `inet_endpoint` and `listener` of `spandrel-transport`;
//! `references` of `spandrel-orb` writes them into profiles.

use std::{collections::HashMap, net::IpAddr};

use spandrel_giop::{ListenPoint, ServiceContext};
use spandrel_orb::internal::ClientConnection;
use spandrel_reactor::{LogLimit, Unlogged};
use spandrel_sync::{Arc, Mutex};
use spandrel_transport::{Address, PublishedAddresses, is_bidirectional_only, is_own_host};

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
    /// Records the points that a client has announced on a connection from `from`. Requests to trusted ones
    /// use the connection that `adopt` returns. `own`: the addresses of this ORB. With `trusts_all`, the
    /// points may have any host.
    pub(crate) fn record(
        &self,
        points: &[ListenPoint],
        from: &Address,
        own: Option<&PublishedAddresses>,
        adopt: impl Fn() -> Arc<ClientConnection>,
        trusts_all: bool,
        log_limit: &LogLimit,
    ) {
        for point in points {
            let distrust_reason = if trusts_all { None } else { distrust_reason(&point.host, from) };
            for address in addresses(point, from) {
                let is_own = own.is_some_and(|own| own.addresses.contains(&address));
                let distrust_reason = distrust_reason.or(is_own.then_some("it is an address of this ORB"));
                let entered = match distrust_reason {
                    Some(distrust_reason) => Err(distrust_reason),
                    None => self.insert(&address, &adopt(), from),
                };
                match entered {
                    Ok(()) => {
                        tracing::debug!(%address, %from, "a listen point is reached over its client's connection")
                    }
                    Err(reason) => {
                        if let Some(Unlogged(unlogged)) = log_limit.admit("listen point") {
                            tracing::warn!(unlogged, %address, %from, reason, "a listen point is not trusted");
                        }
                    }
                }
            }
        }
    }

    /// Adds a connection for an address.
    ///
    /// # Errors
    /// The reason: another host's connection is open for it, or there are too many.
    fn insert(
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

/// The addresses in references that the point may stand for.
fn addresses(point: &ListenPoint, from: &Address) -> Vec<Address> {
    let mut addresses = vec![Address::at_port(spandrel_transport::IIOP, &point.host, point.port)];
    if from.host_and_port().is_some() && from.scheme() != spandrel_transport::IIOP {
        // The context does not name the protocol (9.8.1.1).
        addresses.push(Address::at_port(from.scheme().to_owned(), &point.host, point.port));
    }
    addresses
}

/// Returns the reason why a host that the client announces is not trusted; `None` if it is.
///
/// Trusted are the address that the client's connection comes from; all addresses of this machine, if the
/// connection comes from it; and names that exist only for bidirectional use. Other names are not resolved:
/// the reading thread would wait.
fn distrust_reason(host: &str, from: &Address) -> Option<&'static str> {
    let is_credible = is_bidirectional_only(host)
        || match (address(host), origin(from)) {
            (None, _) => return Some("host names are not trusted (-ORBTrustListenPoints)"),
            (Some(announced), None) => is_own_host(announced),
            (Some(announced), Some(origin)) => announced == origin || is_own_host(announced) && is_own_host(origin),
        };
    (!is_credible).then_some("it is the address of another host (-ORBTrustListenPoints)")
}

fn address(host: &str) -> Option<IpAddr> {
    match host {
        "localhost" => Some(std::net::Ipv4Addr::LOCALHOST.into()),
        host => host.parse().ok().map(|address: IpAddr| address.to_canonical()),
    }
}

/// The address of the connection; `None` for one within this machine.
fn origin(from: &Address) -> Option<IpAddr> {
    from.host_and_port().and_then(|(host, _)| address(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_points_on_the_clients_own_host_are_trusted() {
        let remote = Address::at_port("iiop", "192.0.2.7", 40_000);
        assert_eq!(distrust_reason("192.0.2.7", &remote), None);
        assert_eq!(distrust_reason("::ffff:192.0.2.7", &remote), None);
        assert_eq!(distrust_reason("spandrel-1.bidir.invalid", &remote), None);
        for others in ["192.0.2.8", "127.0.0.1", "localhost", "bank.example", "", "2001:db8::1"] {
            assert!(distrust_reason(others, &remote).is_some(), "{others}");
        }
    }

    #[test]
    fn listen_points_with_any_address_of_this_machine_are_trusted() {
        let own = if_addrs::get_if_addrs().unwrap();
        for from in
            [Address::at_port("iiop", "127.0.0.1", 40_000), Address::new("uds", "/run/x"), Address::new("uds", "")]
        {
            assert_eq!(distrust_reason("localhost", &from), None);
            assert_eq!(distrust_reason("::1", &from), None);
            for interface in &own {
                assert_eq!(distrust_reason(&interface.ip().to_string(), &from), None);
            }
            assert!(distrust_reason("192.0.2.8", &from).is_some());
        }
    }
}
