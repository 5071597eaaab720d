//! The names of a daemon's objects in the naming service, and its endpoint of metrics.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use spandrel::ObjectRef;
use spandrel::net::sync::{Arc, Mutex};
use spandrel::services::NamingClient;
use spandrel_metrics::{Endpoint, Families};

use crate::{Daemon, Failure, FailureKind};

/// The longest time for which an end waits for the naming service.
const WITHDRAWAL_LIMIT: Duration = Duration::from_secs(5);

/// The names that a daemon has bound in the naming service, until its process is told to end.
#[derive(Debug)]
pub struct Publication {
    names: NamingClient,
    bound: Vec<String>,
}

impl Publication {
    /// Binds objects by their names, in place of other objects.
    ///
    /// # Errors
    /// No naming service (`-ORBInitRef NameService=…`), or a name that cannot be bound.
    pub fn new(daemon: &Daemon, objects: Vec<(String, ObjectRef)>) -> Result<Self, Failure> {
        let names = NamingClient::new(daemon.orb()).map_err(Failure::failed)?;
        for (name, object) in &objects {
            names.publish(name, object).map_err(|error| Failure::publication(name, error))?;
        }
        Ok(Self { names, bound: objects.into_iter().map(|(name, _)| name).collect() })
    }

    /// Unbinds the names, which a naming service that does not answer delays for a bounded time. The calls need the daemon's
    /// ORB: it still runs.
    fn withdraw(self) {
        let (sender, ends) = mpsc::channel::<()>();
        let unbind = move || {
            let _sender = sender; // dropped at the end
            for name in self.bound {
                if let Err(error) = self.names.withdraw(&name) {
                    tracing::debug!(%error, name, "a name was not withdrawn");
                }
            }
        };
        if thread::Builder::new().name("spandrel-unbind".to_owned()).spawn(unbind).is_err() {
            return tracing::warn!("the names are not withdrawn: there is no thread left");
        }
        _ = ends.recv_timeout(WITHDRAWAL_LIMIT);
    }
}

impl Daemon {
    /// As [`Daemon::serve`], and withdraws the names of a publication before the ORB shuts down.
    ///
    /// # Errors
    /// As [`Daemon::serve`].
    pub fn serve_published(&self, services: &[String], publication: Option<Publication>) -> Result<(), Failure> {
        let publication = Arc::new(Mutex::new(publication));
        self.serve_until(services, move |shutdown| {
            let publication = Arc::clone(&publication);
            // A second signal ends the process at once: this thread is free to receive it.
            let end = move || {
                if let Some(publication) = publication.lock().take() {
                    publication.withdraw();
                }
                shutdown();
            };
            thread::Builder::new().name("spandrel-end".to_owned()).spawn(end).expect("the system has a thread left");
        })
    }

    /// Opens an endpoint with the metrics of the service, which `render` writes, and of its ORB.
    ///
    /// # Errors
    /// An address that is in use or cannot be opened.
    pub fn open_metrics(
        &self,
        address: SocketAddr,
        render: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Endpoint, Failure> {
        let orb = self.orb().clone();
        let render_all = move || {
            let mut families = Families::default();
            families.add(&orb.render_metrics(), None);
            families.add(&render(), None);
            families.to_string()
        };
        Endpoint::open(address, render_all).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::AddrInUse => FailureKind::AddressInUse,
                _ => FailureKind::Failed,
            };
            Failure::new(kind, EndpointError { address, error })
        })
    }
}

/// The failure to open the endpoint of the metrics.
#[derive(Debug, thiserror::Error)]
#[error("cannot show metrics at {address} (--metrics)")]
struct EndpointError {
    address: SocketAddr,
    #[source]
    error: std::io::Error,
}
