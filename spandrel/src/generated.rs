//! The items that generated code uses, and nothing else. Not a public interface: it changes with the
//! compiler.

pub use spandrel_orb::generated::*;
// The error enums of adapters, in place of those of the ORB.
#[cfg(feature = "server")]
pub use {
    spandrel_poa::generated::{errors, local_errors},
    spandrel_server::generated::*,
};

/// The operations of the interpretive engine.
pub mod interpreted {
    pub use spandrel_orb::generated::interpreted::*;
    #[cfg(feature = "server")]
    pub use spandrel_server::interpreted::*;
}
