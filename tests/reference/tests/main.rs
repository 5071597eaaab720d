//! The reference encoder and decoder.

mod engines;
mod omniorb;
