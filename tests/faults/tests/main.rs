//! Processes and connections that end anywhere.

mod asleep;
mod killed;
mod relayed;
