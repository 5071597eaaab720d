//! Sends its standard input to a server: `data-stream-client inet|unix|spipe|shm ADDRESS`.
//!
//! The client of paper 000, figures 12 and 14; the family of endpoints is a type parameter.

use std::error::Error;
use std::io::{self, Read as _};
use std::str::FromStr;
use std::time::Duration;

use spandrel::net::ipc::{self, Family, Transmit as _};

/// The time for a connection.
const CONNECTING: Duration = Duration::from_secs(5);

fn send<F: Family<Addr: FromStr<Err: Error + 'static>>>(family: &F, address: &str) -> Result<(), Box<dyn Error>> {
    let stream = family.connect(&address.parse()?, Some(CONNECTING))?;
    let mut buffer = [0; 8 << 10];
    loop {
        let count = io::stdin().read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        stream.send_n(&buffer[..count])?;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["inet", address] => send(&ipc::inet::Inet::default(), address),
        #[cfg(unix)]
        ["unix", path] => send(&ipc::unix::Unix::default(), path),
        #[cfg(unix)]
        ["spipe", path] => send(&ipc::spipe::Spipe::default(), path),
        #[cfg(target_os = "linux")]
        ["shm", path] => send(&ipc::shm::Shm::default(), path),
        _ => Err("usage: data-stream-client inet|unix|spipe|shm ADDRESS".into()),
    }
}
