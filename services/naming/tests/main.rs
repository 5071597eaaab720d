//! The naming service: its store under failures, and its executable.

mod executable;
mod name;
mod service;
mod store;
