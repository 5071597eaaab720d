//! Helpers for the tests of several crates: bounded waiting, interrupted system calls, child processes and their output, ports, futures
//! without an executor, certificates, a disk that fails on command, programs of omniORB, an HTTP client, a browser, tables of
//! the sentences of specifications.
//!
//! This crate depends on no other crate of the workspace, so that the tests of every crate can use it.
//! `spandrel-orb-tests` has the helpers of the ORB's tests.
#![forbid(unsafe_code)]

#[cfg(feature = "browser")]
pub mod browser;
#[cfg(feature = "certificates")]
pub mod certificates;
mod child;
#[cfg(feature = "disk")]
pub mod disk;
mod futures;
#[cfg(feature = "http")]
mod http;
mod interruption;
mod omniorb;
mod output;
mod port;
mod process;
mod sentences;
#[cfg(target_os = "linux")]
pub mod threads;
mod waiting;

pub use child::{ChildProcess, exit_without};
pub use futures::{block_on, is_ready, ready_within, waker_that};
#[cfg(feature = "http")]
pub use http::{HttpResponse, http_exchange, http_request};
pub use interruption::{read_some, retry_interrupted};
pub use omniorb::omniorb_peer;
pub use output::check_output_errors;
pub use port::free_port;
pub use process::{alone, run_modules_with, this_program};
pub use sentences::check_sentences;
pub use waiting::{TEST_TIMEOUT, eventually, holds_within, in_background, wait_until, within_time};

/// Test data of `len` octets without short repetitions.
#[must_use]
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}
