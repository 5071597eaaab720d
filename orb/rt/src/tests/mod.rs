//! Priorities, octets, mutexes, thread pools, and adapters that use them.

mod contexts;
mod execution;
#[cfg(target_os = "linux")]
mod memory;
mod operations;
mod pools;
mod priorities;
mod reservations;
mod sentences;
mod server;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
