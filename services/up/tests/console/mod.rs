//! The web console.

mod http;
mod numbers;
mod probe;
mod process;
mod views;
