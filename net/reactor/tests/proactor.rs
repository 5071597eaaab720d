//! Asynchronous operations. Where the system forbids io_uring, they cannot be tested.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use spandrel_reactor::{Completion, OperationKind, Proactor};
use spandrel_sync::Arc;
use spandrel_test_support::TEST_TIMEOUT;

/// A proactor of 8 operations; none where the system forbids it.
fn proactor() -> Option<Proactor> {
    match Proactor::new(8) {
        Ok(proactor) => Some(proactor),
        Err(error) => {
            assert!(matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported), "{error}");
            None
        }
    }
}

/// Waits for one completion.
fn next(proactor: &mut Proactor) -> Completion {
    let mut completions = Vec::new();
    while completions.is_empty() {
        proactor.wait(Some(TEST_TIMEOUT), &mut completions).unwrap();
    }
    assert_eq!(completions.len(), 1);
    completions.remove(0)
}

#[test]
fn a_connection_is_accepted_received_from_and_sent_to() {
    let Some(mut proactor) = proactor() else { return };
    let listener = Arc::new(TcpListener::bind("127.0.0.1:0").unwrap());
    proactor.accept(Arc::clone(&listener) as _, 1).unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = next(&mut proactor);
    assert_eq!((accepted.key, accepted.kind), (1, OperationKind::Accept));
    let stream: Arc<OwnedFd> = Arc::new(accepted.accepted.unwrap());

    proactor.receive(Arc::clone(&stream) as _, vec![0; 16], 2).unwrap();
    client.write_all(b"request").unwrap();
    let received = next(&mut proactor);
    assert_eq!((received.key, received.kind, received.result.unwrap()), (2, OperationKind::Receive, 7));
    assert_eq!((&received.buffer[..7], received.buffer.len()), (&b"request"[..], 16));

    proactor.send(Arc::clone(&stream) as _, b"reply".to_vec(), 3).unwrap();
    assert_eq!(next(&mut proactor).result.unwrap(), 5);
    let mut reply = [0; 5];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"reply");

    proactor.receive(stream, received.buffer, 4).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&mut proactor).result.unwrap(), 0, "the end");
    assert!(proactor.is_empty());
}

#[test]
fn an_operation_keeps_its_handle_open() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = UnixStream::pair().unwrap();
    proactor.receive(Arc::new(here), vec![0; 4], 1).unwrap(); // the only reference
    there.write_all(b"text").unwrap();
    assert_eq!(next(&mut proactor).buffer, b"text");
    assert!(there.write_all(b"more").is_err(), "closed with the operation");
}

#[test]
fn a_cancelled_operation_is_completed_with_an_error() {
    let Some(mut proactor) = proactor() else { return };
    let (here, _there) = UnixStream::pair().unwrap();
    let here = Arc::new(here);
    proactor.receive(Arc::clone(&here) as _, vec![0; 4], 1).unwrap();
    proactor.wait_readable(here, 2).unwrap();
    proactor.cancel(1).unwrap();
    let completion = next(&mut proactor);
    assert_eq!((completion.key, completion.buffer.len()), (1, 4));
    assert!(completion.result.is_err());
    assert_eq!(proactor.len(), 1);
}

#[test]
fn a_wait_ends_with_its_timeout() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = UnixStream::pair().unwrap();
    proactor.wait_readable(Arc::new(here), 1).unwrap();
    let mut completions = Vec::new();
    proactor.wait(Some(Duration::from_millis(1)), &mut completions).unwrap();
    assert!(completions.is_empty());
    there.write_all(b"x").unwrap();
    assert_eq!(next(&mut proactor).kind, OperationKind::Readable);
}

#[test]
fn the_number_of_operations_is_bounded() {
    let Some(mut proactor) = proactor() else { return };
    let (here, _there) = UnixStream::pair().unwrap();
    let here = Arc::new(here);
    for key in 0..8 {
        proactor.receive(Arc::clone(&here) as _, vec![0; 4], key).unwrap();
    }
    let error = proactor.receive(Arc::clone(&here) as _, vec![0; 4], 9).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
}

#[test]
fn pending_operations_end_with_their_proactor() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = UnixStream::pair().unwrap();
    proactor.receive(Arc::new(here), vec![0; 4096], 1).unwrap();
    let mut completions = Vec::new();
    proactor.wait(Some(Duration::from_millis(1)), &mut completions).unwrap(); // the kernel has it now
    drop(proactor);
    assert!(there.write_all(b"late").is_err(), "the handle is closed, and with it the operation has ended");
}
