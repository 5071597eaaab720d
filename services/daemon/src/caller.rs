//! The peer that calls an operation, as limits for each client count it.

use spandrel::authorization::ReceivedCredentials;

/// The peer that calls: its verified name, or else its address. `None` outside of requests.
#[must_use]
pub fn caller() -> Option<String> {
    let credentials = ReceivedCredentials::current()?;
    let address = || credentials.ip().map(|ip| ip.to_string());
    let name = credentials.identity().common_name.clone().or_else(address);
    // The peers by transports of one machine are one client.
    Some(name.unwrap_or_else(|| credentials.address().scheme().to_owned()))
}
