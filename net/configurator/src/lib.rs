//! The Service Configurator: links services into a running process and out of it (paper 002, section 2.5).
//!
//! A service implements [`ServiceObject`]. A [`Configurator`] applies the directives of files in ACE's language
//! ([`svc_conf`]) to the services of a process: those that the program contains (its [`Catalogue`]), and those of shared
//! libraries ([`plugin`]).
//!
//! ```
//! use spandrel_configurator::{Catalogue, Configurator, ServiceContext, ServiceObject, ServiceResult, SharedObject};
//! use spandrel_ipc::inet::{Addr, Inet};
//! use spandrel_reactor::{Acceptor, Family, Peer, Reactor, Server, ServiceHandler};
//! use spandrel_sync::Mutex;
//!
//! struct Echo;
//!
//! impl<F: Family> ServiceHandler<F> for Echo {
//!     fn handle_input(&mut self, peer: &mut Peer<'_, F>) -> std::io::Result<()> {
//!         let mut octets = [0; 4096];
//!         match peer.recv(&mut octets)? {
//!             0 => peer.close(),
//!             count => peer.put(&octets[..count])?,
//!         }
//!         Ok(())
//!     }
//! }
//!
//! #[derive(Default)]
//! struct EchoService(Mutex<Option<Server<Inet>>>);
//!
//! impl SharedObject for EchoService {
//!     fn init(&self, context: &ServiceContext<'_>, arguments: &[String]) -> ServiceResult {
//!         let port = arguments.first().map_or(Ok(0), |port| port.parse())?;
//!         let server = Acceptor::new(Inet::default(), || Echo).open(context.registry(), &Addr::loopback(port))?;
//!         *self.0.lock() = Some(server);
//!         Ok(())
//!     }
//!     fn info(&self) -> String {
//!         self.0.lock().as_ref().map(|server| format!("{}/tcp # echo", server.addr())).unwrap_or_default()
//!     }
//! }
//!
//! impl ServiceObject for EchoService {}
//!
//! let reactor = Reactor::new()?;
//! let catalogue = Catalogue::new().service("Echo", EchoService::default);
//! let configurator = Configurator::new(reactor.registry(), catalogue);
//! configurator.process_text("static Echo")?;
//! assert!(configurator.repository().info("Echo").unwrap().ends_with("/tcp # echo"));
//! configurator.process_text("remove Echo")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod catalogue;
mod changes;
mod configurator;
mod lifecycle;
mod options;
mod plan;
#[allow(unsafe_code, reason = "the functions and structures of shared libraries; see there")]
pub mod plugin;
mod reload;
mod repository;
mod service_object;
mod shared;
mod stream_object;
pub mod svc_conf;
#[cfg(test)]
mod tests;

pub use catalogue::Catalogue;
pub use changes::{Changes, ConfigureError, Problem};
pub use configurator::Configurator;
pub use options::{OptionError, Options};
pub use plugin::ForeignModule;
pub use reload::Reload;
pub use repository::{KeptLibrary, ServiceRepository, ServiceRepositoryIterator, ServiceStatus};
pub use service_object::{ServiceContext, ServiceObject, ServiceResult, SharedObject};
pub use stream_object::{StreamObject, StreamSupport};
pub use svc_conf::ServiceKind;
