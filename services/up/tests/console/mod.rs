//! The web console.

mod browser;
mod http;
mod process;
mod probe;
mod views;
