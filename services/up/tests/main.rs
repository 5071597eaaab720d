//! The executables of services: readiness, policies, bad input and their end.
#![cfg(unix)]

mod authorization;
mod bad_input;
mod executable;
mod running;
