//! The executables of services: readiness, policies, bad input, the console and their end.
#![cfg(unix)]

mod arguments;
mod authorization;
mod bad_input;
#[cfg(feature = "console")]
mod console;
mod executable;
mod running;
mod stores;
mod tls;
