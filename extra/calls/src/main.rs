//! A call without parameters over tonic, for `spandrel bench inflight`.
//!
//! `calls-tonic server MICROSECONDS` prints its port, answers each line of its input with the number of calls so
//! far, and ends with its input; each call computes for that processor time. `calls-tonic client PORT` prints
//! `ready`, and answers each line `IN-FLIGHT MILLISECONDS` with a JSON object, times in nanoseconds: so many tasks
//! call one after the other on one connection; 0 are sequential calls of one task.

mod client;
mod server;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", micros] => server::run(micros.parse()?),
        ["client", port] => client::run(port.parse()?),
        _ => bail!("usage: calls-tonic server MICROSECONDS | client PORT"),
    }
}

/// The path of the call.
const PATH: &str = "/calls.Ping/Ping";
