//! The implementation repository: starting, failures, restarts of both sides, limits, and hostile input.
#![cfg(unix)]

mod administration;
mod disk;
mod executable;
mod failures;
mod fixture;
mod hostile;
mod limits;
mod server;
mod starting;
mod tls;
