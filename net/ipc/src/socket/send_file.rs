//! Sending a part of a file.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::StreamSocket;
use super::calls;
use crate::TransferError;

/// Sends all octets of `range`: on Linux in the kernel (`sendfile(2)`), elsewhere, and for files without
/// support for it, by reading and sending.
pub(crate) fn send_file(socket: &StreamSocket, file: &File, range: Range<u64>) -> Result<(), TransferError> {
    let mut at = range.start;
    let transferred = |at: u64| usize::try_from(at - range.start).unwrap_or(usize::MAX);
    let mut by_copying = !cfg!(any(target_os = "linux", target_os = "android"));
    while at < range.end {
        let step =
            if by_copying { copy(socket, file, &mut at, range.end) } else { pass(socket, file, &mut at, range.end) };
        match step {
            Ok(0) => {
                return Err(TransferError { transferred: transferred(at), cause: io::ErrorKind::UnexpectedEof.into() });
            }
            Ok(_) => {}
            Err(error) if !by_copying && is_impossible(&error) => by_copying = true,
            Err(cause) => return Err(TransferError { transferred: transferred(at), cause }),
        }
    }
    Ok(())
}

/// The file or the system does not support `sendfile`.
fn is_impossible(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// One step in the kernel. Advances `at` by the number of octets sent.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn pass(socket: &StreamSocket, file: &File, at: &mut u64, end: u64) -> io::Result<usize> {
    let count = usize::try_from(end - *at).unwrap_or(usize::MAX).min(MOST_PASSED);
    Ok(rustix::io::retry_on_intr(|| rustix::fs::sendfile(socket, file, Some(&mut *at), count))?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn pass(socket: &StreamSocket, file: &File, at: &mut u64, end: u64) -> io::Result<usize> {
    copy(socket, file, at, end)
}

/// The maximum of one call on Linux.
#[cfg(any(target_os = "linux", target_os = "android"))]
const MOST_PASSED: usize = 0x7fff_f000;

/// One step by reading and sending. Advances `at` by the number of octets sent.
fn copy(socket: &StreamSocket, file: &File, at: &mut u64, end: u64) -> io::Result<usize> {
    let mut buffer = [0; 16_384];
    let piece_len = usize::try_from(end - *at).unwrap_or(usize::MAX).min(buffer.len());
    let read = loop {
        match read_at(file, &mut buffer[..piece_len], *at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    let mut data = &buffer[..read];
    while !data.is_empty() {
        let sent = calls::send(socket, data)?;
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        *at += sent as u64;
        data = &data[sent..];
    }
    Ok(read)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn copying_sends_the_same_as_sendfile() {
        let mut file = tempfile::tempfile().unwrap();
        let data: Vec<u8> = (0..100_000_u32).map(|i| (i ^ (i >> 8)) as u8).collect();
        file.write_all(&data).unwrap();
        for step in [copy, pass] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let receiver = std::thread::spawn(move || {
                let mut received = Vec::new();
                listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
                received
            });
            let socket = StreamSocket::adopt(client.into()).unwrap();
            let mut at = 1_000;
            while at < 99_000 {
                assert_ne!(step(&socket, &file, &mut at, 99_000).unwrap(), 0);
            }
            assert_eq!(at, 99_000);
            let mut past = 100_000;
            assert_eq!(step(&socket, &file, &mut past, 100_001).unwrap(), 0, "the end of the file");
            drop(socket);
            assert!(receiver.join().unwrap() == data[1_000..99_000]);
        }
    }
}
