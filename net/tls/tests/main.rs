//! TLS as a family of endpoints.

mod families;
mod faults;
mod handshake;
mod pem;
mod support;
