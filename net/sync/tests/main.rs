//! Locks, threads and processes.

mod compile_fail;
mod held;
mod native;
mod order;
mod priorities;
mod processes;
mod strategies;
mod threads;
