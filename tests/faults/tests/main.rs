//! Processes and connections that fail at any point of a call.

mod connection_faults;
mod process_kills;
mod silent_hosts;
