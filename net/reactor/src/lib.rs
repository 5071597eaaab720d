//! Demultiplexing of input and output, timers, signals and notifications, and dispatch to handlers.

pub mod timer;
