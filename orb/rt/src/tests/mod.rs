//! Real-time CORBA without sockets: priorities, octets, mutexes and thread pools.

mod contexts;
mod pools;
mod priorities;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
