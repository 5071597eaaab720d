//! Our side of the interoperability suite: a servant for every interface of `idl/interop.idl`, and a client that calls
//! all of them and checks every answer.
//!
//! The values are made by [`values`], in the same manner as in `peers/omniorb/values.hh`; README.md states it. The
//! programs `interop-server` and `interop-client` are what `cargo xtask interop` runs against omniORB's; the tests here
//! run both sides in one process.
#![forbid(unsafe_code)]

pub mod anything;
pub mod bridge;
pub mod callbacks;
mod cases;
pub mod client;
pub mod features;
pub mod names;
pub mod patterns;
pub mod program;
pub mod server;
pub mod suite;
pub mod values;
pub mod valuetypes;

/// An ORB that can use TLS where it is told to, as all programs here have it that are run so.
#[must_use]
pub fn builder() -> spandrel::OrbBuilder {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    spandrel::Orb::builder().protocol(spandrel::ssliop::Ssliop::new(provider))
}

/// What the IDL compiler made of `idl/interop.idl`.
#[allow(missing_docs)]
pub mod idl {
    spandrel::include_idl!("interop");
    pub use interop::*;
}

/// What the IDL compiler made of `idl/values.idl`.
#[allow(missing_docs)]
pub mod values_idl {
    spandrel::include_idl!("values");
    pub use values::*;
}

/// What the IDL compiler made of `idl/more_values.idl`.
#[allow(missing_docs)]
pub mod more_values_idl {
    spandrel::include_idl!("more_values");
    pub use values::*;
}

/// What the IDL compiler made of `idl/naming.idl`.
#[allow(missing_docs)]
pub mod naming_idl {
    spandrel::include_idl!("naming");
    pub use cos_naming::*;
}

/// What the IDL compiler made of `idl/anything.idl`.
#[allow(missing_docs)]
pub mod anything_idl {
    spandrel::include_idl!("anything");
    pub use anything::*;
}

/// What the IDL compiler made of `idl/callbacks.idl`.
#[allow(missing_docs)]
pub mod callbacks_idl {
    spandrel::include_idl!("callbacks");
    pub use callbacks::*;
}

/// What the IDL compiler made of `idl/features.idl`.
#[allow(missing_docs)]
pub mod features_idl {
    spandrel::include_idl!("features");
    pub use features::*;
}
