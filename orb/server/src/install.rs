//! The installation of the server side in an ORB: its protocols, and the functions by which the core finds it.

use spandrel_orb::{
    Orb, WaitStrategy,
    internal::{
        ServerSettings,
        cancellation::{self, RequestOfThread},
    },
};
use spandrel_sync::Arc;
use spandrel_transport::{BidirectionalOnly, Diop, Iiop, ServerProtocols};

use crate::{ObjectAdapter, current, request_server::RequestServer};

/// Installs an object adapter in an ORB, and with it the server side. Returns the installed adapter: the one
/// from the first such call.
pub fn install_adapter(orb: &Orb, adapter: Arc<dyn ObjectAdapter>) -> Arc<dyn ObjectAdapter> {
    cancellation::set_request_of_thread(RequestOfThread {
        served: current::served_request,
        current: current::cancellation,
    });
    orb.install_server_side(|| {
        let mut settings = orb.server_settings();
        settings.protocols = protocols(&settings);
        settings.nests = orb.settings().wait == WaitStrategy::OnReactor;
        Arc::new(RequestServer::new(settings, adapter))
    });
    let installed = RequestServer::of(orb).unwrap_or_else(|| unreachable!("it was installed"));
    Arc::clone(installed.adapter())
}

/// The protocols of the server: the standard ones, and those of the settings.
fn protocols(settings: &ServerSettings) -> ServerProtocols {
    let mut protocols = ServerProtocols::default();
    protocols.register(Arc::new(Iiop));
    protocols.register(Arc::new(BidirectionalOnly));
    protocols.register(Arc::new(Diop));
    if settings.has_local_transports {
        #[cfg(unix)]
        protocols.register(Arc::new(spandrel_transport::Uds));
        #[cfg(target_os = "linux")]
        protocols.register(Arc::new(spandrel_transport::Shm));
    }
    protocols.extend(settings.protocols.clone());
    protocols
}
