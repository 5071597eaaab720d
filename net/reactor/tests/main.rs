//! The reactor, its timers, and the strategies over it.

mod acceptor;
mod batch_sender;
mod connector;
mod decoding;
mod framing;
mod job_pool;
mod limits;
#[cfg(proactor)]
mod proactor;
mod quiet;
mod reconnecting;
mod scripted;
mod senders;
mod services;
mod shards;
mod spans;
mod suite;
mod support;
mod threads;
mod timers;
mod timers_memory;
mod tls;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts allocations for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
