//! How an ORB is told which transports it uses.

use spandrel_transport::scheme_of;

use crate::OrbBuilder;

impl OrbBuilder {
    /// Which transports are used, the preferred one first: `iiop`, `uds`, `shm`, and those of other protocols; others are neither called nor
    /// listened at. Default: all, the cheapest first (`shm`, `uds`, then those between hosts).
    #[must_use]
    pub fn transports<T: AsRef<str>>(mut self, schemes: impl IntoIterator<Item = T>) -> Self {
        self.selection.schemes =
            Some(schemes.into_iter().map(|scheme| scheme_of(scheme.as_ref()).to_owned()).collect());
        self
    }

    /// Adds rules, separated by `;`, which addresses are called, by which transports, in order of preference:
    /// `10.0.0.0/8 iiop,ssliop; * none`. The first one that has an address decides, and what none has is not called.
    ///
    /// # Errors
    /// What is expected.
    pub fn client_transport_rule(mut self, rules: &str) -> Result<Self, &'static str> {
        self.selection.rules.add(rules)?;
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
