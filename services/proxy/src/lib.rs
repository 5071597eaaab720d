//! CORBA objects as HTTP and JSON.
#![forbid(unsafe_code)]

mod catalogue;
pub mod http;
pub mod openapi;
pub mod problem;
mod proxy;

pub use catalogue::{Catalogue, Exposure};
pub use proxy::{CallLimits, Proxy};
