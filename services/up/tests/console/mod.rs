//! The web console.

mod browser;
mod http;
mod probe;
mod process;
mod views;
