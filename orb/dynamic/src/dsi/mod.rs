//! The dynamic skeleton interface: servants that learn the operation and its arguments at run time (CORBA 3.3
//! Part 1, clause 12).

mod request;
mod servant;

pub use request::{DeferredRequest, ServerRequest};
pub use servant::{DynamicImplementation, DynamicServant};
