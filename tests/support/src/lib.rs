//! What the tests of several crates need: waiting that ends, futures without an executor, certificates.
//!
//! Nothing here knows anything of the product, so that the tests of every crate can use it. What only the tests of the ORB share is in
//! `spandrel-orb-tests`.
#![forbid(unsafe_code)]

#[cfg(feature = "certificates")]
pub mod certificates;
mod futures;
mod process;
mod waiting;

pub use futures::{block_on, is_ready, ready_within, waker_that};
pub use process::{alone, run_modules_with, this_program};
pub use waiting::{PATIENCE, comes, comes_within, eventually, in_background, within_time};

/// Octets that are not alike anywhere near each other.
#[must_use]
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i ^ (i >> 8) ^ (i >> 16)) as u8).collect()
}
