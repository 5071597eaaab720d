//! Stubs of the OMG's object services, generated from their standard IDL, and of the implementation repository.
//!
//! A program that uses a naming service needs no IDL file and no build script for it:
//!
//! ```no_run
//! # mod spandrel { pub use spandrel_orb::*; pub use spandrel_cos as services; }
//! use spandrel::{ObjectRef, Orb};
//! use spandrel::services::NamingClient;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let orb = Orb::init(std::env::args().skip(1))?; // -ORBInitRef NameService=corbaloc::host:2809/NameService
//!     let names = NamingClient::new(&orb)?;
//!     let account: ObjectRef = names.resolve("bank/grace.account")?; // or a reference type of generated code
//!     println!("{account}");
//!     Ok(())
//! }
//! ```
//!
//! The skeletons beside the references serve programs that implement a service themselves. The IDL is in the folder
//! `idl` of this package.
#![forbid(unsafe_code)]

/// The IDL of the services, each a whole file: the event service, the naming service, the property service,
/// the trading service, the implementation repository, and what Spandrel's interface repository adds to that
/// of the standard. Programs describe these interfaces by it where there is no repository.
pub const IDL_FILES: [&str; 6] = [
    include_str!("../idl/CosEvent.idl"),
    include_str!("../idl/CosNaming.idl"),
    include_str!("../idl/CosPropertyService.idl"),
    include_str!("../idl/CosTrading.idl"),
    include_str!("../idl/ImplementationRepository.idl"),
    include_str!("../idl/InterfaceRepository.idl"),
];

/// The IDL of the notification service. It includes `CosEvent.idl`, the first of [`IDL_FILES`].
pub const NOTIFICATION_IDL: &str = include_str!("../idl/CosNotification.idl");

/// The IDL of the audio and video streams. It includes `CosPropertyService.idl`, the third of [`IDL_FILES`].
pub const AV_STREAMS_IDL: &str = include_str!("../idl/AVStreams.idl");

pub mod activation;
mod generated;
pub mod name;
mod naming_client;
#[cfg(feature = "interface-repository")]
pub mod repository;

pub use naming_client::{MAX_PUBLISHED, NamingClient, NamingError};

#[cfg(feature = "av-streams")]
include!("av_streams.rs");
include!("cos_naming.rs");
#[cfg(feature = "event")]
include!("event_stubs.rs");
#[cfg(feature = "notification")]
include!("notification_stubs.rs");
#[cfg(feature = "property")]
include!("cos_property_service.rs");
#[cfg(feature = "trading")]
include!("trading_stubs.rs");
include!("implementation_repository.rs");
