//! GIOP messages over octets.

mod allocation;
mod code_sets;
mod cutting;
mod exceptions;
mod fragments;
mod golden;
mod headers;
mod references;
mod support;
mod texts;
mod typecodes;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts for the tests that run alone.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
