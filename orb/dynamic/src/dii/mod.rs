//! The dynamic invocation interface: requests created at run time, without a stub (CORBA 3.3 Part 1, clause
//! 11).

mod body;
#[cfg(feature = "asynchronous")]
mod deferred;
mod exception;
#[cfg(feature = "asynchronous")]
mod multiple;
#[cfg(feature = "asynchronous")]
mod pending;
mod request;
mod results;
mod returned;

pub use exception::{RequestError, UnknownUserException};
#[cfg(feature = "asynchronous")]
pub use multiple::{MultipleRequests, Responses};
pub use request::{CreateRequest, Request};
pub use results::Results;
