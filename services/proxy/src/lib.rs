//! CORBA objects as HTTP and JSON.
//!
//! | module | contents |
//! | --- | --- |
//! | `proxy` | requests for objects: `POST /NAME/OPERATION` |
//! | `catalogue` | the objects that are served: names, references, interfaces |
//! | [`openapi`] | the OpenAPI document of objects |
//! | [`http`] | an HTTP server with limits, TLS and authentication |
//! | [`problem`] | errors as problem details (RFC 9457) |
#![forbid(unsafe_code)]

mod catalogue;
pub mod http;
pub mod openapi;
pub mod problem;
mod proxy;

pub use catalogue::{Catalogue, Exposure};
pub use proxy::{CallLimits, Proxy, is_looked_up};
