//! Options of transports: the selection of transports, and rules by address.
//!
//! Endpoints and published addresses are in `options::server`, the time limit of connecting is in
//! `options::client`, and the queues of sockets are in the parent module. `command_line` and
//! `command_line::server` parse the `-ORB…` options. The syntax of endpoints is in `endpoint` of
//! `spandrel-transport`.

use spandrel_sync::Arc;
use spandrel_transport::AddressSelection;
use spandrel_transport::{TransportSelection, scheme_of};

use crate::OrbBuilder;

impl OrbBuilder {
    /// Selects the transports for calls and for listening, in order of preference: `iiop`, `uds`, `shm`, and
    /// those of other protocols. Default: all, the cheapest first (`shm`, `uds`, then those between hosts).
    #[must_use]
    pub fn transports<T: AsRef<str>>(mut self, schemes: impl IntoIterator<Item = T>) -> Self {
        let mut selection = self.selection();
        selection.schemes = Some(schemes.into_iter().map(|scheme| scheme_of(scheme.as_ref()).to_owned()).collect());
        self.select(selection);
        self
    }

    /// The selection so far.
    fn selection(&self) -> TransportSelection {
        self.selection.as_deref().cloned().unwrap_or_default()
    }

    fn select(&mut self, selection: TransportSelection) {
        let selection = Arc::new(selection);
        self.selection = Some(Arc::clone(&selection));
        self.server_mut().protocols.select(Arc::clone(&selection) as Arc<dyn AddressSelection>);
        self.protocols.select(selection);
    }

    /// Adds rules for the addresses of servers, separated by `;`. A rule names addresses and the transports
    /// by which they are called, in order of preference: `10.0.0.0/8 iiop,ssliop; * none`. The first rule
    /// that matches an address decides; addresses without a matching rule are not called.
    ///
    /// # Errors
    /// A description of the expected value.
    pub fn client_transport_rule(mut self, rules: &str) -> Result<Self, &'static str> {
        let mut selection = self.selection();
        selection.rules.add(rules)?;
        self.select(selection);
        Ok(self)
    }

    /// Adds rules for the addresses of clients, separated by `;`. A rule names addresses and the transports
    /// by which they may connect: `localhost iiop,uds,shm; * none`. The first rule that matches an address
    /// decides; a connection without a matching rule is rejected.
    ///
    /// # Errors
    /// A description of the expected value.
    pub fn server_transport_rule(mut self, rules: &str) -> Result<Self, &'static str> {
        self.server_mut().rules.add(rules)?;
        Ok(self)
    }
}
