//! The Orchestrator: load, agents, plans, reports and scripts.
#![cfg(unix)]

mod agents;
mod load;
mod packets;
mod plan;
mod report;
mod running;
mod script;
mod security;
mod server;
mod slices;
