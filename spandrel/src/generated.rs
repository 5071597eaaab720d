//! The items that generated code uses, and nothing else. Not a public interface: it changes with the
//! compiler.

pub use spandrel_orb::generated::*;
#[cfg(feature = "server")]
pub use spandrel_server::generated::*;

/// The operations of the interpretive engine.
pub mod interpreted {
    pub use spandrel_orb::generated::interpreted::*;
    #[cfg(feature = "server")]
    pub use spandrel_server::interpreted::*;
}
