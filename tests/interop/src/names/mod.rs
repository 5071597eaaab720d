//! Objects by names: `corbaname:`, plain object keys, and the operations that every object has.
//!
//! The server has an object bound under two names in a naming service: omniORB's, or a small one of the
//! server's own, whose context has a plain object key. The client, ours or omniORB's, receives only the port.

pub mod client;
pub mod server;

/// The repository id of the bound object.
pub const NAMED: &str = "IDL:Interop/Named:1.0";
