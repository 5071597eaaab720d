//! The implementation repository: starts servers on demand, and forwards their clients.
#![forbid(unsafe_code)]
