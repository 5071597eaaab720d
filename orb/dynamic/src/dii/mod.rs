//! The dynamic invocation interface: requests created at run time, without a stub (CORBA 3.3 Part 1, clause
//! 11).

mod body;
#[cfg(feature = "asynchronous")]
mod deferred;
mod exception;
mod request;
mod results;
mod returned;

#[cfg(feature = "asynchronous")]
pub use deferred::{MultipleRequests, Responses};
pub use exception::{RequestError, UnknownUserException};
pub use request::{CreateRequest, Request};
pub use results::Results;
