//! The settings of a service, and the reasons why it cannot serve.

use std::net::{IpAddr, Ipv4Addr};

use spandrel::SystemException;
use spandrel::poa::PoaError;
use spandrel::ssliop::Ssliop;

use crate::limits::AvLimits;

/// The address, the limits and the certificates of an [`AvStreams`](crate::AvStreams) service.
#[derive(Clone, Debug)]
pub struct AvOptions {
    /// The address at which flows listen, and by which other parties reach them (default 127.0.0.1).
    pub host: IpAddr,
    /// The most that the service holds.
    pub limits: AvLimits,
    /// The certificate and the authorities of flows by TLS, such as those of the ORB (default: none). The certificate of a
    /// receiver is valid for the address of `host`. Without it, flows do not go by TLS.
    pub tls: Option<Ssliop>,
}

impl Default for AvOptions {
    fn default() -> Self {
        Self { host: IpAddr::V4(Ipv4Addr::LOCALHOST), limits: AvLimits::default(), tls: None }
    }
}

/// The reason why a service or an object of it cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AvError {
    /// The adapter could not be created.
    #[error("cannot serve audio and video streams")]
    Adapter(#[from] PoaError),
    /// A system exception of the ORB while it created the adapter, or too many objects.
    #[error("cannot serve audio and video streams")]
    System(#[from] SystemException),
    /// The flow goes by TLS alone, which cannot be used.
    #[error("the flow `{flow}` goes by TLS alone, which cannot be used: {reason}")]
    Tls {
        /// The name of the flow.
        flow: String,
        /// The reason, such as a missing certificate.
        reason: String,
    },
}
