//! System calls that end by a signal.
//!
//! Signal handlers are not the only cause: after a stop of the process (SIGSTOP, a debugger, a frozen container), a
//! wait on a socket with a time limit fails with EINTR on Linux (`signal(7)`). `read_exact`, `read_to_end`,
//! `read_line` and `write_all` of the standard library continue by themselves; `read`, `peek` and `recv` do not.

use std::io::{self, ErrorKind, Read};

/// Makes a system call, again after each signal that interrupts it. A time limit of the socket begins anew.
///
/// # Errors
/// Those of the call, except `Interrupted`.
pub fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Reads once, as [`Read::read`] does, again after each signal that interrupts it.
///
/// # Errors
/// Those of the stream, except `Interrupted`.
pub fn read_some(mut stream: impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    retry_interrupted(|| stream.read(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupts every other read.
    struct Interrupting<R> {
        stream: R,
        is_next: bool,
    }

    impl<R: Read> Read for Interrupting<R> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.is_next = !self.is_next;
            if self.is_next { Err(ErrorKind::Interrupted.into()) } else { self.stream.read(buffer) }
        }
    }

    #[test]
    fn an_interrupted_read_is_repeated() {
        let mut stream = Interrupting { stream: &b"ab"[..], is_next: false };
        let mut octet = [0];
        for expected in [Some(b'a'), Some(b'b'), None] {
            let count = read_some(&mut stream, &mut octet).unwrap();
            assert_eq!((count == 1).then_some(octet[0]), expected);
        }
    }

    #[test]
    fn other_errors_are_returned() {
        let refused = retry_interrupted::<()>(|| Err(ErrorKind::ConnectionRefused.into()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    }
}
