//! TLS as a family of endpoints.

mod families;
mod faults;
mod handshake;
mod pem;
#[path = "../../tests/support/mod.rs"] // also used by other crates' tests
mod support;
