//! Objects by names: `corbaname:`, plain object keys, and the operations that every object has.
//!
//! The server has an object that is known by two names to a naming service: omniORB's, or a small one of ours whose context is
//! known by a plain key. The client, ours or omniORB's, knows nothing but the port.

pub mod client;
pub mod server;

/// The type of the object that has names.
pub const NAMED: &str = "IDL:Interop/Named:1.0";
