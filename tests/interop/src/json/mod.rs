//! Calls in JSON: through the command line, the HTTP proxy and the web console, which know the interface from IDL at
//! run time.

mod cases;
pub mod client;
mod tools;

pub use cases::{JsonCase, json_cases};
