//! The Spandrel side of the interoperability suite: a servant for each interface of `idl/interop.idl`, and a
//! client that calls each operation and checks each reply.
//!
//! The values come from [`values`], which uses the algorithm of `peers/omniorb/generated_values.hh`; README.md
//! describes it. `cargo xtask interop` runs the programs `interop-server` and `interop-client` against those
//! of omniORB and JacORB; the tests of this crate run both sides in one process.
#![forbid(unsafe_code)]

pub mod anything;
pub mod bridge;
pub mod callbacks;
mod cases;
pub mod client;
pub mod features;
pub mod json;
pub mod names;
pub mod patterns;
pub mod program;
pub mod server;
pub mod suite;
pub mod values;
pub mod valuetypes;

pub use json::{JsonCase, json_cases};

/// The builder of an ORB with TLS available, for the programs that the suite also runs over TLS.
#[must_use]
pub fn builder() -> spandrel::OrbBuilder {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    spandrel::Orb::builder().protocol(spandrel::ssliop::Ssliop::new(provider))
}

/// The code generated from `idl/interop.idl`.
#[allow(missing_docs)]
pub mod idl {
    spandrel::include_idl!("interop");
    pub use interop::*;
}

/// The code generated from `idl/values.idl`.
#[allow(missing_docs)]
pub mod values_idl {
    spandrel::include_idl!("values");
    pub use values::*;
}

/// The code generated from `idl/more_values.idl`.
#[allow(missing_docs)]
pub mod more_values_idl {
    spandrel::include_idl!("more_values");
    pub use values::*;
}

/// The code generated from `idl/naming.idl`.
#[allow(missing_docs)]
pub mod naming_idl {
    spandrel::include_idl!("naming");
    pub use cos_naming::*;
}

/// The code generated from `idl/anything.idl`.
#[allow(missing_docs)]
pub mod anything_idl {
    spandrel::include_idl!("anything");
    pub use anything::*;
}

/// The code generated from `idl/callbacks.idl`.
#[allow(missing_docs)]
pub mod callbacks_idl {
    spandrel::include_idl!("callbacks");
    pub use callbacks::*;
}

/// The code generated from `idl/features.idl`.
#[allow(missing_docs)]
pub mod features_idl {
    spandrel::include_idl!("features");
    pub use features::*;
}
