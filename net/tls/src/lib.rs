//! TLS as one more family of endpoints: over the streams of any other family, through `rustls`.
//!
//! [`Tls`] is a [`Family`](spandrel_ipc::Family), so code that is generic over families runs over it. Its
//! [`Stream`] is used like any other. Its documentation lists the differences: the time of the handshake, the
//! octets that a nonblocking transfer may leave in the stream, and input that may be buffered while the
//! handle shows none.
//!
//! The crate selects no cryptography provider. Programs do: they depend on `rustls` with the feature `ring`
//! or `aws_lc_rs`, and pass the provider in.
//!
//! ```
//! use spandrel_ipc::inet::{Addr, Inet};
//! use spandrel_ipc::Family;
//! use spandrel_sync::{Arc, thread};
//! use spandrel_tls::{ClientOptions, ServerOptions, Tls, pem};
//! # let authority = spandrel_test_support::certificates::Authority::new("an authority");
//! # let identity = authority.issue("bank.example");
//! # let (certificate, key, authority) = (identity.chain, identity.key, authority.pem());
//! # let (certificate, key, authority) = (certificate.as_bytes(), key.as_bytes(), authority.as_bytes());
//!
//! let provider = Arc::new(rustls::crypto::ring::default_provider());
//! let server = ServerOptions::new(Arc::clone(&provider), pem::certificates(certificate)?, pem::private_key(key)?);
//! let client = ClientOptions::new(provider, pem::authorities(authority)?);
//! let family = Tls::new(Inet::default())
//!     .server(server.build()?)
//!     .client(client.build()?, "bank.example".try_into()?);
//!
//! let acceptor = family.open(&Addr::loopback(0))?;
//! let addr = acceptor.local_addr()?;
//! let teller = thread::spawn(move || {
//!     let (stream, _from) = acceptor.accept()?;
//!     Ok::<_, std::io::Error>(stream.send_n(b"welcome")?)
//! });
//! let stream = family.connect(&addr, None)?;
//! let mut octets = [0; 7];
//! stream.recv_n(&mut octets)?;
//! assert_eq!(&octets, b"welcome");
//! # teller.join().unwrap()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as spandrel_tls; // for the code that the crate's tests share with those of others

mod acceptor;
mod config;
mod connecting;
mod drive;
mod family;
mod fault;
#[cfg(all(test, shuttle))]
mod models;
pub mod pem;
mod pollable;
mod scratch;
mod session;
mod stream;
#[cfg(all(test, not(shuttle)))]
mod tests;
mod transfers;
mod wait;

pub use acceptor::Acceptor;
pub use config::{ClientOptions, ConfigError, ServerOptions};
pub use connecting::Connecting;
pub use family::Tls;
pub use fault::{Explain, tls_error};
pub use rustls_pki_types::ServerName;
pub use stream::Stream;
