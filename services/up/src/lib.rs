//! The services in one process.
#![forbid(unsafe_code)]
