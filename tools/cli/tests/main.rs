//! The command line, run as a program.

mod bench;
mod bulk;
mod call;
mod config;
mod dump;
mod events;
mod external;
mod help;
mod idl;
mod latency;
mod log;
mod naming;
mod references;
mod repository;
mod soak;
mod support;
mod syscalls;
mod trade;
mod ttcp;
