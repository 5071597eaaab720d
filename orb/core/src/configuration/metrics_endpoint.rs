//! The HTTP endpoint of an ORB's metrics.

use std::net::SocketAddr;

use spandrel_giop::{CompletionStatus, SystemException};
use spandrel_metrics::Endpoint;

use crate::{
    diagnostics::MetricsEndpoint,
    interception::{OrbInitInfo, OrbInitializer},
    orb::WeakOrb,
};

/// Opens the metrics endpoint of an ORB at an address, when the ORB is created.
pub(crate) struct EndpointInitializer(pub(crate) SocketAddr);

impl OrbInitializer for EndpointInitializer {
    /// # Errors
    /// INITIALIZE if the address cannot be listened on.
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        let (addr, endpoint) = (self.0, info.orb.diagnostics().endpoint());
        if endpoint.get().is_some() {
            return Ok(());
        }
        // The endpoint keeps the ORB alive only during a request.
        let orb = WeakOrb::of(info.orb);
        let render = move || orb.upgrade().map(|orb| orb.render_metrics()).unwrap_or_default();
        let opened = Endpoint::open(addr, render).map_err(|error| {
            SystemException::initialize(0, CompletionStatus::No)
                .with_detail(|| format!("cannot open the metrics endpoint at {addr} (`-ORBMetricsEndpoint`)"))
                .with_source(error)
        })?;
        endpoint.get_or_init(|| Box::new(opened));
        Ok(())
    }
}

impl MetricsEndpoint for Endpoint {
    fn addr(&self) -> SocketAddr {
        self.addr()
    }

    fn begin_close(&self) {
        self.begin_close();
    }

    fn close(&self) {
        self.close();
    }
}
