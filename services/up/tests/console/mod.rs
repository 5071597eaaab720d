//! The web console.

mod browser;
mod http;
mod numbers;
mod probe;
mod process;
mod views;
