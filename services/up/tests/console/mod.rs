//! The web console of a running process.

mod channels;
mod http;
mod images;
mod numbers;
mod offers;
mod probe;
mod process;
mod views;
