//! The items of the server that generated code uses, and nothing else. Not a public interface: it changes
//! with the compiler.

pub use spandrel_demux::Operations;

pub use crate::{
    DeferredCall, Replied, Servant, ServerCall,
    collocated::direct::{Facet, direct, offer},
    interpreted,
};
