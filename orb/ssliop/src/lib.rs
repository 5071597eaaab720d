//! SSLIOP: GIOP over TLS, as a pluggable protocol.
//!
//! A server that listens at `ssliop://host:port` publishes that in its references (`TAG_SSL_SEC_TRANS`), and
//! a client with this protocol prefers it. TLS itself is the family of `spandrel-tls`, over `rustls`; this
//! crate handles references, credentials and trust.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use spandrel_orb::Orb;
//! use spandrel_ssliop::{ClientVerification, Ssliop, pem};
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! let provider = Arc::new(rustls::crypto::ring::default_provider());
//! let ssliop = Ssliop::new(provider)
//!     .identity(pem::certificates(Path::new("bank.pem"))?, pem::private_key(Path::new("bank.key"))?)
//!     .trust(pem::authorities(Path::new("authority.pem"))?)
//!     .verify_clients(ClientVerification::Required);
//! let orb = Orb::builder().protocol(ssliop).listen("ssliop://:2810".parse()?).build()?;
//! # Ok(())
//! # }
//! ```
//!
//! The options `-ORBSSL…` of a command line are equivalent ([`Ssliop`] has the table). The files that they
//! name are checked for changes periodically, so that renewed certificates take effect without a new ORB.
//!
//! Source: CORBA Security Service 1.8, SSLIOP; CORBA 3.3 Part 2, 10 (the component's place in a profile).
#![forbid(unsafe_code)]

mod configurations;
#[cfg_attr(not(feature = "server"), allow(dead_code, reason = "names and signatures are of peers of a server"))]
mod der;
mod explanation;
mod files;
#[cfg(feature = "server")]
mod identity;
mod options;
mod protocol;
mod validity;

pub use files::FileError;
#[cfg(feature = "server")]
pub use identity::PeerIdentity;
pub use options::{ClientVerification, Plain, SetupError};
pub use protocol::Ssliop;
/// The TLS protocol family of the transport layer, without GIOP.
pub use spandrel_tls as tls;
pub use spandrel_tls::{ConfigError, pem};
