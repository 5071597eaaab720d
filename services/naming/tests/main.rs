//! The naming service: its store under failures, and its executable.

mod executable;
mod federation;
mod files;
mod name;
mod naming_client;
mod redo_log;
mod service;
mod store;
