//! How an ORB is told which transports it uses.

use spandrel_sync::Arc;
#[cfg(feature = "server")]
use spandrel_transport::AddressSelection;
use spandrel_transport::{TransportSelection, scheme_of};

use crate::OrbBuilder;

impl OrbBuilder {
    /// Which transports are used, the preferred one first: `iiop`, `uds`, `shm`, and those of other protocols; others are neither called nor
    /// listened at. Default: all, the cheapest first (`shm`, `uds`, then those between hosts).
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
        #[cfg(feature = "server")]
        self.server.protocols.select(Arc::clone(&selection) as Arc<dyn AddressSelection>);
        self.protocols.select(selection);
    }

    /// Adds rules, separated by `;`, which addresses are called, by which transports, in order of preference:
    /// `10.0.0.0/8 iiop,ssliop; * none`. The first one that has an address decides, and what none has is not called.
    ///
    /// # Errors
    /// What is expected.
    pub fn client_transport_rule(mut self, rules: &str) -> Result<Self, &'static str> {
        let mut selection = self.selection();
        selection.rules.add(rules)?;
        self.select(selection);
        Ok(self)
    }

    /// Adds rules, separated by `;`, who may connect, from where and how: `localhost iiop,uds,shm; * none`. The first one that has an
    /// address decides, and what none has is turned away.
    ///
    /// # Errors
    /// What is expected.
    #[cfg(feature = "server")]
    pub fn server_transport_rule(mut self, rules: &str) -> Result<Self, &'static str> {
        self.server.rules.add(rules)?;
        Ok(self)
    }
}
