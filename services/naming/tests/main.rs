//! The naming service: its store under failures, and its executable.

mod executable;
mod service;
mod store;
