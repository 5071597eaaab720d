//! The runtime of the stubs in this package.

pub(crate) use spandrel_orb::generated::*;
pub(crate) use spandrel_server::generated::*;
