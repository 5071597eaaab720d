//! Authorization: a policy file decides which peers may call which operations of which objects.
//!
//! An [`Authorizer`] has a [`Policy`], and an [`AuditLog`] if there is one. [Installed](Authorizer::install) in an ORB,
//! it decides about each request and LocateRequest of a peer. A request that the policy does not permit ends in
//! NO_PERMISSION (COMPLETED_NO) before its servant runs. Services ask it about paths, such as the names of a naming
//! service: [`Authorizer::permits_path`]. Servants that decide themselves use [`ReceivedCredentials`].
//!
//! ```
//! # mod spandrel { pub use spandrel_orb::*; pub use spandrel_authorization as authorization; }
//! use spandrel::Orb;
//! use spandrel::authorization::{Authorizer, Policy, WithAuthorizer};
//!
//! let policy: Policy = r#"
//!     [[rule]]
//!     action = "allow"
//!     identity = "cn:teller"
//!     interface = "IDL:Bank/Account:1.0"
//!     operation = ["deposit", "withdraw"]
//!
//!     [[rule]]
//!     action = "allow"
//!     address = "loopback"
//! "#
//! .parse()?;
//! let authorizer = Authorizer::new(policy);
//! let orb = Orb::builder().authorizer(&authorizer)?.build()?;
//! # orb.shutdown()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The policy
//! A policy is TOML: a list of `[[rule]]`. The first rule that matches decides. A request that no rule matches is
//! denied.
//!
//! | key of a rule | value | matches |
//! | --- | --- | --- |
//! | `action` | `allow` or `deny` | |
//! | `identity` | `anonymous` | peers without a verified certificate and without a user id |
//! | | `authenticated` | peers with either |
//! | | `cn:`, `dns:`, `uri:` and a pattern | the common name, a DNS name, a URI of the peer's certificate (TLS) |
//! | | `uid:` and a number | the user of the peer's process (UNIX-domain sockets, Linux) |
//! | | `token:` and a pattern | the name of the token of a caller by HTTP |
//! | `issuer` | a pattern | the common name of the authority that issued the certificate |
//! | | `file:` and a PEM file | the certificate is signed by the key of an authority in the file, beside the policy file |
//! | `address` | an IP address, or a prefix such as `10.0.0.0/8` | the address of the peer |
//! | | `loopback`, `uds`, `shm` | peers of this machine, by TCP, UNIX-domain sockets, shared memory |
//! | `key` | a plain object key | the object with this key ([`set_object_key_alias`](spandrel_orb::Orb::set_object_key_alias)) |
//! | `adapter` | a pattern | the names of the object's adapters below the root, separated by `/` |
//! | `interface` | a pattern | the repository id of the servant's most derived interface |
//! | `operation` | a pattern | the operation; attributes are `_get_` and `_set_` with their name |
//! | `path` | a path | it and all paths below, in services that [check paths](Authorizer::check_paths_of) |
//!
//! A value is one text or a list of texts, one of which must match. All keys of a rule must match. In a pattern, `*`
//! stands for any text and `?` for any character. Case counts, except in `dns:`. Keys and paths have no wildcards. A value
//! that can never match is an error.
//!
//! # Limits
//! - Calls from the same ORB (collocated calls) are always permitted: the process is trusted, and its servants have
//!   been authorized. They go through the adapter, since interceptors exclude direct calls.
//! - One-ways are decided like other requests. The client does not learn of a denial.
//! - Requests over connections of this side (bidirectional GIOP) are decided like all others. The identity is that of
//!   the server which calls back.
//! - The sender of a datagram can forge its address: rules that allow do not match a datagram by address.
//! - A LocateRequest has no operation. It is permitted where any operation of the object may be permitted.
//! - A plain key is an address of an object, and its real key another. A rule with `key` matches both.
#![forbid(unsafe_code)]

mod audit;
mod authorizer;
mod credentials;
mod issuer;
mod path_check;
mod policy;

pub use audit::{AuditError, AuditLog, AuditOptions};
pub use authorizer::{Authorizer, WithAuthorizer};
pub use credentials::{Identity, ReceivedCredentials};
pub use path_check::PathCheck;
pub use policy::{Policy, PolicyError};
