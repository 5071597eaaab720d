//! Files over plain sockets, as a C program sends them with `sendfile`: the base of comparisons with bulk streams.
//!
//! A request is the number of a file (8 octets, little-endian). The answer is its length (8 octets) and its octets, and
//! then the connection ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use crate::raw::{self, Socket};

/// The octets of one `recv`.
const BUFFER: usize = 256 << 10;
/// The connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// Serves files by number at an address with this IP, with a thread for each connection, until the process ends. Returns
/// the address.
///
/// # Errors
/// Those of sockets.
pub fn serve(ip: IpAddr, files: BTreeMap<u64, PathBuf>) -> io::Result<SocketAddr> {
    let addr = SocketAddr::new(ip, 0);
    let listener = raw::socket(&addr)?;
    raw::bind(&listener, &addr)?;
    raw::listen(&listener, BACKLOG)?;
    let bound = raw::local_addr(&listener)?;
    let files = Arc::new(files);
    thread::Builder::new().name("plain-files".into()).spawn(move || {
        while let Ok(connection) = raw::accept(&listener) {
            let files = Arc::clone(&files);
            thread::spawn(move || _ = send(&connection, &files)); // the client tells of a failure
        }
    })?;
    Ok(bound)
}

fn send(connection: &Socket, files: &BTreeMap<u64, PathBuf>) -> io::Result<()> {
    let mut number = [0; 8];
    receive_exactly(connection, &mut number)?;
    let path = files.get(&u64::from_le_bytes(number)).ok_or(io::ErrorKind::NotFound)?;
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    raw::send(connection, &length.to_le_bytes())?;
    let mut offset = 0;
    while offset < length {
        let left = usize::try_from(length - offset).map_err(io::Error::other)?;
        match raw::send_file(connection, &file, offset, left)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => offset += count as u64,
        }
    }
    raw::close_writer(connection)
}

/// Receives a file over a connection of its own, and returns its length.
///
/// # Errors
/// Those of sockets; a connection that ends too early.
pub fn receive(addr: &SocketAddr, number: u64) -> io::Result<u64> {
    let connection = raw::socket(addr)?;
    raw::connect(&connection, addr)?;
    raw::send(&connection, &number.to_le_bytes())?;
    let mut length = [0; 8];
    receive_exactly(&connection, &mut length)?;
    let length = u64::from_le_bytes(length);
    let mut buffer = vec![0; BUFFER];
    let mut received = 0;
    while received < length {
        match raw::recv(&connection, &mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => received += count as u64,
        }
    }
    Ok(received)
}

fn receive_exactly(connection: &Socket, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match raw::recv(connection, buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => buffer = &mut buffer[count..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_comes_whole_and_another_number_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 3_000_000]).unwrap();
        let addr = serve([127, 0, 0, 1].into(), BTreeMap::from([(5, path)])).unwrap();
        assert_eq!(receive(&addr, 5).unwrap(), 3_000_000);
        receive(&addr, 6).unwrap_err();
    }
}
