//! Asynchronous operations. Where the system forbids io_uring, they cannot be tested.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use spandrel_reactor::{Completion, ConnectionHandle, OperationKind, Proactor, SharedHandle};
use spandrel_sync::Arc;
use spandrel_test_support::{TEST_TIMEOUT, pattern, read_some};

/// More octets than the queues of a connection hold.
const MANY: usize = 32 << 20;

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

fn listener() -> Arc<TcpListener> {
    Arc::new(TcpListener::bind("127.0.0.1:0").unwrap())
}

fn connect(listener: &TcpListener) -> TcpStream {
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream
}

/// A connection: the end for the proactor, and the other.
fn pair(proactor: &mut Proactor) -> (SharedHandle, TcpStream) {
    let listener = listener();
    let there = connect(&listener);
    let here: SharedHandle = Arc::new(listener.accept().unwrap().0);
    proactor.attach(&here).unwrap();
    (here, there)
}

/// Lets the system begin what was started, none of which can be completed.
fn begin(proactor: &mut Proactor) {
    let mut completions = Vec::new();
    proactor.wait(Some(Duration::from_millis(1)), &mut completions).unwrap();
    assert!(completions.is_empty(), "{completions:?}");
}

#[test]
fn a_connection_is_accepted_received_from_and_sent_to() {
    let Some(mut proactor) = proactor() else { return };
    let listener = listener();
    proactor.accept(Arc::clone(&listener) as _, 1).unwrap();
    let mut client = connect(&listener);
    let accepted = next(&mut proactor);
    assert_eq!((accepted.key, accepted.kind, accepted.result.unwrap()), (1, OperationKind::Accept, 0));
    let stream: Arc<ConnectionHandle> = Arc::new(accepted.connection.unwrap());

    proactor.receive(Arc::clone(&stream) as SharedHandle, vec![0; 16], 2).unwrap();
    client.write_all(b"request").unwrap();
    let received = next(&mut proactor);
    assert_eq!((received.key, received.kind, received.result.unwrap()), (2, OperationKind::Receive, 7));
    assert_eq!((&received.buffer[..7], received.buffer.len()), (&b"request"[..], 16));

    proactor.send(Arc::clone(&stream) as SharedHandle, b"reply".to_vec(), 3).unwrap();
    let sent = next(&mut proactor);
    assert_eq!((sent.key, sent.kind, sent.result.unwrap(), &*sent.data), (3, OperationKind::Send, 5, &b"reply"[..]));
    let mut reply = [0; 5];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"reply");

    proactor.receive(Arc::clone(&stream) as SharedHandle, received.buffer, 4).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&mut proactor).result.unwrap(), 0, "the end");
    assert!(proactor.is_empty());

    proactor.close(Arc::into_inner(stream).unwrap());
    begin(&mut proactor);
    assert_eq!(read_some(&client, &mut reply).unwrap(), 0, "closed");
}

#[test]
fn connections_are_waited_for_at_a_nonblocking_handle() {
    let Some(mut proactor) = proactor() else { return };
    let listener = listener();
    listener.set_nonblocking(true).unwrap();
    let ids = [1, 2].map(|key| proactor.accept(Arc::clone(&listener) as _, key).unwrap());
    begin(&mut proactor);
    let _client = connect(&listener);
    let accepted = next(&mut proactor);
    assert!(accepted.connection.is_some(), "{accepted:?}");
    let waiting = ids.into_iter().find(|id| *id != accepted.id).unwrap();
    proactor.cancel(waiting).unwrap();
    let cancelled = next(&mut proactor);
    assert!(cancelled.id == waiting && cancelled.result.is_err() && cancelled.connection.is_none());
    // None of them takes a connection any more.
    let client = connect(&listener);
    assert_eq!(listener.accept().unwrap().1, client.local_addr().unwrap());
}

#[test]
fn each_connection_is_accepted_until_that_is_cancelled() {
    let Some(mut proactor) = proactor() else { return };
    for is_nonblocking in [false, true] {
        let listener = listener();
        listener.set_nonblocking(is_nonblocking).unwrap();
        let id = proactor.accept_each(Arc::clone(&listener) as _, 1).unwrap();
        begin(&mut proactor);
        for _ in 0..3 {
            let clients = [connect(&listener), connect(&listener)];
            let mut completions = Vec::new();
            while completions.len() < clients.len() {
                proactor.wait(Some(TEST_TIMEOUT), &mut completions).unwrap();
            }
            assert!(completions.iter().all(|completion| completion.goes_on && completion.id == id), "{completions:?}");
            for (mut client, completion) in clients.into_iter().zip(completions) {
                client.write_all(b"text").unwrap();
                proactor.receive(completion.connection.unwrap(), vec![0; 4], 2).unwrap();
                let received = next(&mut proactor);
                assert_eq!(received.buffer, b"text");
                assert!(received.connection.is_some(), "the operation's own handle comes back");
            }
        }
        proactor.cancel(id).unwrap();
        let last = next(&mut proactor);
        assert!(last.id == id && !last.goes_on && last.result.is_err() && last.connection.is_none());
        assert!(proactor.is_empty());
    }
}

#[test]
fn several_proactors_accept_at_one_handle() {
    let listener = listener();
    for key in 0..3 {
        let Some(mut proactor) = proactor() else { return };
        proactor.accept(Arc::clone(&listener) as _, key).unwrap();
        begin(&mut proactor);
        let mut client = connect(&listener);
        let accepted = next(&mut proactor);
        assert_eq!((accepted.key, accepted.kind), (key, OperationKind::Accept));
        client.write_all(b"text").unwrap();
        proactor.receive(accepted.connection.unwrap(), vec![0; 4], 9).unwrap();
        assert_eq!(next(&mut proactor).buffer, b"text");
        // Another is pending when the proactor ends.
        proactor.accept_each(Arc::clone(&listener) as _, key).unwrap();
        let _client = connect(&listener);
        assert!(next(&mut proactor).goes_on);
        begin(&mut proactor);
    }
}

#[test]
fn an_exchange_sends_everything_and_then_receives() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = pair(&mut proactor);
    let octets = pattern(MANY);
    proactor.exchange(here, octets.clone(), vec![0; 16], 7).unwrap();
    begin(&mut proactor);
    let peer = std::thread::spawn(move || {
        let mut received = vec![0; MANY];
        there.read_exact(&mut received).unwrap();
        there.write_all(b"next").unwrap();
        (received, there)
    });
    let completion = next(&mut proactor);
    assert_eq!((completion.key, completion.kind, completion.result.unwrap()), (7, OperationKind::Receive, 4));
    assert!(&completion.buffer[..4] == b"next" && completion.data == octets);
    assert!(peer.join().unwrap().0 == octets);
    assert!(proactor.is_empty());
}

#[test]
fn an_exchange_whose_sending_fails_is_completed_once() {
    let Some(mut proactor) = proactor() else { return };
    let (here, there) = pair(&mut proactor);
    proactor.exchange(here, pattern(MANY), vec![0; 16], 7).unwrap();
    begin(&mut proactor);
    drop(there); // with octets that it has not received: a reset
    let completion = next(&mut proactor);
    assert_eq!((completion.key, completion.kind), (7, OperationKind::Send));
    assert!(completion.result.is_err());
    assert_eq!((completion.data.len(), completion.buffer.len()), (MANY, 16));
    assert!(proactor.is_empty());
    begin(&mut proactor);
}

#[test]
fn an_exchange_is_cancelled_in_either_half() {
    let Some(mut proactor) = proactor() else { return };
    let (here, _there) = pair(&mut proactor);
    let sending = proactor.exchange(here, pattern(MANY), vec![0; 16], 1).unwrap();
    begin(&mut proactor);
    proactor.cancel(sending).unwrap();
    let completion = next(&mut proactor);
    assert_eq!((completion.id, completion.kind), (sending, OperationKind::Send));
    assert!(completion.result.is_err());

    let (here, mut there) = pair(&mut proactor);
    let receiving = proactor.exchange(here, b"text".to_vec(), vec![0; 16], 2).unwrap();
    begin(&mut proactor);
    there.read_exact(&mut [0; 4]).unwrap();
    proactor.cancel(receiving).unwrap();
    let completion = next(&mut proactor);
    assert_eq!((completion.id, completion.kind), (receiving, OperationKind::Receive));
    assert!(completion.result.is_err());
    proactor.cancel(receiving).unwrap(); // too late
    begin(&mut proactor);
}

#[test]
fn the_end_of_input_leaves_what_is_sent_and_what_has_arrived() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = pair(&mut proactor);
    let receiving = proactor.receive(Arc::clone(&here), vec![0; 4], 1).unwrap();
    begin(&mut proactor);
    proactor.end_input(receiving).unwrap();
    let completion = next(&mut proactor);
    assert_eq!((completion.key, completion.result.unwrap()), (1, 0));
    proactor.send(here, b"text".to_vec(), 2).unwrap();
    assert_eq!(next(&mut proactor).result.unwrap(), 4);
    there.read_exact(&mut [0; 4]).unwrap();

    let (here, mut there) = pair(&mut proactor);
    there.write_all(b"early").unwrap();
    let octets = pattern(MANY);
    let sending = proactor.exchange(Arc::clone(&here), octets.clone(), vec![0; 16], 3).unwrap();
    begin(&mut proactor);
    proactor.end_input(sending).unwrap();
    let peer = std::thread::spawn(move || {
        let mut received = vec![0; MANY];
        there.read_exact(&mut received).unwrap();
        (received, there)
    });
    let completion = next(&mut proactor);
    assert_eq!((completion.kind, completion.result.unwrap()), (OperationKind::Receive, 5));
    assert_eq!(&completion.buffer[..5], b"early");
    let (received, _there) = peer.join().unwrap();
    assert!(received == octets);
    let last = proactor.receive(here, completion.buffer, 4).unwrap();
    proactor.end_input(last).unwrap();
    assert_eq!(next(&mut proactor).result.unwrap(), 0);
}

#[test]
fn an_operation_keeps_its_handle_open() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = pair(&mut proactor);
    proactor.receive(here, vec![0; 4], 1).unwrap(); // the only reference
    there.write_all(b"text").unwrap();
    assert_eq!(next(&mut proactor).buffer, b"text");
    assert_eq!(read_some(&there, &mut [0]).unwrap(), 0, "closed with the operation");
}

#[test]
fn a_cancelled_operation_is_completed_with_an_error() {
    let Some(mut proactor) = proactor() else { return };
    let (here, _there) = pair(&mut proactor);
    let (other, _there) = pair(&mut proactor);
    let id = proactor.receive(here, vec![0; 4], 1).unwrap();
    proactor.receive(other, vec![0; 4], 2).unwrap();
    proactor.cancel(id).unwrap();
    let completion = next(&mut proactor);
    assert_eq!((completion.key, completion.buffer.len()), (1, 4));
    assert!(completion.result.is_err());
    assert_eq!(proactor.len(), 1);
}

#[test]
fn a_wait_ends_with_its_timeout_and_with_its_waker() {
    let Some(mut proactor) = proactor() else { return };
    let (here, mut there) = pair(&mut proactor);
    proactor.receive(here, vec![0; 1], 1).unwrap();
    begin(&mut proactor);
    let waker = proactor.waker();
    waker.wake(); // before the wait
    waker.wake();
    let mut completions = Vec::new();
    proactor.wait(None, &mut completions).unwrap();
    let waking = std::thread::spawn(move || waker.wake());
    proactor.wait(None, &mut completions).unwrap();
    waking.join().unwrap();
    assert!(completions.is_empty());
    there.write_all(b"x").unwrap();
    assert_eq!(next(&mut proactor).kind, OperationKind::Receive);
}

#[test]
fn the_number_of_operations_is_bounded() {
    let Some(mut proactor) = proactor() else { return };
    let (here, _there) = pair(&mut proactor);
    for key in 0..8 {
        proactor.receive(Arc::clone(&here), vec![0; 4], key).unwrap();
    }
    let error = proactor.receive(here, vec![0; 4], 9).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
}

#[test]
fn pending_operations_end_with_their_proactor() {
    let Some(mut proactor) = proactor() else { return };
    let (receiving, there) = pair(&mut proactor);
    let (sending, mut other) = pair(&mut proactor);
    let listener = listener();
    listener.set_nonblocking(true).unwrap();
    proactor.receive(receiving, vec![0; 4096], 1).unwrap();
    proactor.exchange(sending, pattern(MANY), vec![0; 4096], 2).unwrap();
    proactor.accept(Arc::clone(&listener) as _, 3).unwrap();
    begin(&mut proactor);
    drop(proactor);
    // The handles are closed, and with them the operations have ended.
    assert_eq!(read_some(&there, &mut [0]).unwrap(), 0);
    let mut octets = Vec::new();
    assert!(other.read_to_end(&mut octets).is_err() || octets.len() < MANY);
    assert_eq!(Arc::strong_count(&listener), 1);
}

/// The packet of such an operation comes to the first port, where it must not be taken for an own one.
#[cfg(windows)]
#[test]
fn an_operation_of_another_proactor_is_not_taken_for_an_own_one() {
    let (mut first, mut second) = (proactor().unwrap(), proactor().unwrap());
    let (stream, mut there) = pair(&mut first);
    assert!(second.attach(&stream).is_err());
    second.receive(stream, vec![0; 4], 1).unwrap();
    there.write_all(b"text").unwrap();
    begin(&mut first);
    drop(second);
    begin(&mut first);
}
