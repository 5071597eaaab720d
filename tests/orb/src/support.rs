//! What the tests of the ORB have in common besides their server.

use std::{
    io::{self, Read},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use spandrel::{CompletionStatus, SystemException, SystemExceptionKind};

/// Far more than anything here takes; a test that would hang fails instead.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `call` on a thread of its own; the receiver gets its result.
pub fn in_background<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> mpsc::Receiver<T> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || send.send(call()));
    receive
}

/// A server that is none: each connection is handed to `behave`. Its port.
pub fn pretend(mut behave: impl FnMut(usize, TcpStream) + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            behave(count, stream.unwrap());
        }
    });
    port
}

/// Reads one whole GIOP message.
pub fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 12];
    stream.read_exact(&mut message)?;
    let size: [u8; 4] = message[8..12].try_into().unwrap();
    let size = if message[6] & 1 == 1 { u32::from_le_bytes(size) } else { u32::from_be_bytes(size) };
    message.resize(12 + size as usize, 0);
    stream.read_exact(&mut message[12..])?;
    Ok(message)
}

/// What an exception is judged by.
pub fn kind_and_completion(error: &SystemException) -> (SystemExceptionKind, CompletionStatus) {
    (error.kind(), error.completed())
}
