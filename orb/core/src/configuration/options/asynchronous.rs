//! Options of asynchronous calls, of delegated waiting, and of the metrics endpoint.

use std::net::SocketAddr;

use spandrel_sync::Arc;

use crate::{
    OrbBuilder, WaitStrategy,
    configuration::metrics_endpoint::EndpointInitializer,
    diagnostics::{MAX_SERIES, Metrics},
};

impl OrbBuilder {
    /// The maximum number of requests that wait for replies on one connection (default 1,024, at least 1).
    /// Further asynchronous calls end in TRANSIENT.
    #[must_use]
    pub fn pending_requests(mut self, requests: usize) -> Self {
        self.client.write_limits.requests = requests.max(1);
        self
    }

    /// The maximum number of octets that wait to be written to one connection whose peer does not read
    /// (default 16 MiB; one request is always accepted). Beyond it, asynchronous calls end in TRANSIENT.
    /// One-ways with the sync scope NONE wait, and end in TIMEOUT when their time limit passes.
    #[must_use]
    pub fn buffer_limit(mut self, octets: usize) -> Self {
        self.client.write_limits.octets = octets;
        self
    }

    /// The strategy by which threads wait for replies (default [`WaitStrategy::OnRead`]).
    #[must_use]
    pub fn wait_strategy(mut self, strategy: WaitStrategy) -> Self {
        self.settings.wait = strategy;
        self.settings.parts.add_helped_attempts();
        self
    }

    /// Whether a call made by a servant ends when the servant's own request is
    /// [cancelled](crate::CancellationToken). Such a call ends in TRANSIENT, after a CancelRequest to the
    /// next server. Default: no; it ends at the inherited deadline. The thread waits as by
    /// [`WaitStrategy::OnWaker`], which costs a thread switch. Work that the next server has already done is
    /// not undone.
    #[must_use]
    pub fn cancel_nested(mut self, is_on: bool) -> Self {
        self.settings.cancels_nested = is_on;
        self.settings.parts.add_helped_attempts();
        self
    }

    /// Serves metrics over HTTP at this address: `/metrics` for Prometheus, and `/healthz`
    /// (`-ORBMetricsEndpoint`; default: none). With port zero the system chooses the port. This enables
    /// [metrics](Self::metrics). The endpoint answers every client that can connect to it; a loopback address
    /// suits most programs.
    #[must_use]
    pub fn metrics_endpoint(self, addr: SocketAddr) -> Self {
        let mut this = self.diagnostics();
        // Before other initialisers, and instead of an earlier address.
        this.initializers_mut().0.insert(0, Arc::new(EndpointInitializer(addr)));
        this.settings.diagnostics.metrics.get_or_insert((Metrics::make, MAX_SERIES));
        this
    }
}
