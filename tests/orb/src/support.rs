//! What the tests of the ORB have in common besides their server.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    pin::{Pin, pin},
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

use spandrel::{CompletionStatus, IiopProfile, SystemException, SystemExceptionKind};

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

/// Waits for a future in this thread.
///
/// # Panics
/// If it takes for ever.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let end = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = end.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "the future was not ready in time");
        thread::park_timeout(left);
    }
}

/// Polls a future once; true if it is ready.
pub fn is_ready<F: Future + Unpin>(future: &mut F) -> bool {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// A client that sends a request with so many octets, which the reply repeats, and has not read any of it.
pub fn one_that_never_reads(server: &crate::Server, octets: usize) -> TcpStream {
    let profile = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap();
    let (order, version) = (0x01, [1, 2]);
    // A GIOP 1.2 Request in little-endian order, by hand: id 1, a response is wanted, the object by its key.
    let mut body = vec![1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
    put_octets(&mut body, &profile.object_key);
    put_octets(&mut body, b"echo_octets\0");
    body.extend([0; 4]);
    body.resize((body.len() + 12).next_multiple_of(8) - 12, 0);
    put_octets(&mut body, &vec![7; octets]);
    let mut message = [&b"GIOP"[..], &version, &[order, 0]].concat();
    message.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    message.extend(body);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&message).unwrap();
    stream
}

/// A sequence of octets, aligned after a header of twelve.
fn put_octets(body: &mut Vec<u8>, octets: &[u8]) {
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(u32::try_from(octets.len()).unwrap().to_le_bytes());
    body.extend(octets);
}
