//! Writes what clients send to standard output: `data-stream-server inet|unix|spipe|shm ADDRESS`.
//!
//! The server of paper 000, figures 13 and 15; the family of endpoints is a type parameter.

use std::error::Error;
use std::io::{self, Write as _};
use std::str::FromStr;
use std::thread;

use spandrel::net::ipc::{self, Accept as _, Family, Transfer};

fn serve<F: Family<Addr: FromStr<Err: Error + 'static>>>(family: &F, address: &str) -> Result<(), Box<dyn Error>> {
    let acceptor = family.open(&address.parse()?)?;
    eprintln!("listening at {}", acceptor.local_addr()?);
    loop {
        let (stream, from) = acceptor.accept()?;
        let from = Some(from.to_string()).filter(|from| !from.is_empty()).unwrap_or("a client".to_owned());
        eprintln!("{from} connected");
        thread::spawn(move || match print(&stream) {
            Ok(octets) => eprintln!("{from} sent {octets} octets"),
            Err(error) => eprintln!("{from}: {error}"),
        });
    }
}

/// Prints all data of a connection; returns its length.
fn print(stream: &impl Transfer) -> io::Result<u64> {
    let (mut buffer, mut octets) = ([0; 8 << 10], 0);
    loop {
        let count = stream.recv(&mut buffer)?;
        if count == 0 {
            return Ok(octets);
        }
        io::stdout().write_all(&buffer[..count])?;
        octets += count as u64;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["inet", address] => serve(&ipc::inet::Inet::default(), address),
        #[cfg(unix)]
        ["unix", path] => serve(&ipc::unix::Unix::default(), path),
        #[cfg(unix)]
        ["spipe", path] => serve(&ipc::spipe::Spipe::default(), path),
        #[cfg(target_os = "linux")]
        ["shm", path] => serve(&ipc::shm::Shm::default(), path),
        _ => Err("usage: data-stream-server inet|unix|spipe|shm ADDRESS".into()),
    }
}
