//! Models of threads that share a stream, over a simulated underlying stream with little capacity.
//!
//! TLS is the real one. A sending or receiving flag that is not returned, or a missing notification of
//! received octets, leaves threads waiting, which the checker reports.

mod simulated;
#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{self, ErrorKind};
use std::time::Duration;

use spandrel_ipc::{Receive, Shutdown, Transfer, Transmit};
use spandrel_sync::models::{below, check};
use spandrel_sync::{Arc, thread};

use crate::Stream;
use crate::acceptor::{ServerConfigSource, served};
use crate::connecting::ClientSettings;
use crate::stream::StreamSettings;
use simulated::End;

type Side = Arc<Stream<End>>;

/// The client's side and the server's, before the handshake.
fn pair() -> (Side, Side) {
    // No limit: other tests measure the timeout of a handshake.
    let stream =
        StreamSettings { handshake_timeout: Duration::MAX, close_timeout: Duration::from_millis(1), explain: None };
    let (client, server) = End::pair(100 + below(2000));
    let settings = ClientSettings { config: support::client_config(), name: support::name(), stream };
    (
        Arc::new(settings.over(client).expect("the settings go together")),
        Arc::new(
            served(server, &ServerConfigSource::new(support::server_config), stream).expect("the settings go together"),
        ),
    )
}

fn spawn<T: Send + 'static>(
    side: &Side,
    work: impl FnOnce(&Stream<End>) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let side = Arc::clone(side);
    thread::spawn(move || work(&side))
}

fn receives(expected: &'static [u8]) -> impl FnOnce(&Stream<End>) + Send {
    move |side| {
        let mut received = vec![0; expected.len()];
        side.recv_n(&mut received).expect("it comes");
        assert!(received == expected);
    }
}

fn join_all(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("it holds"));
}

const DATA: &[u8] = &[7; 3000];

#[test]
fn concurrent_transfers_on_both_sides_complete_the_handshake() {
    check(300, || {
        let (client, server) = pair();
        let threads = [&client, &server]
            .map(|side| [spawn(side, |side| side.send_n(DATA).expect("it goes")), spawn(side, receives(DATA))]);
        join_all(threads.into_iter().flatten());
        assert!(!client.is_handshaking() && !client.has_unsent() && !server.has_unsent());
    });
}

#[test]
fn several_threads_share_one_direction() {
    check(300, || {
        let (client, server) = pair();
        let mut threads = vec![spawn(&client, |side| side.handshake().expect("it is made"))];
        for _ in 0..2 {
            threads.push(spawn(&client, |side| side.send_n(&[7; 900]).expect("it goes")));
            threads.push(spawn(&server, receives(&[7; 900])));
        }
        join_all(threads);
    });
}

#[test]
fn a_nonblocking_sender_succeeds_beside_a_waiting_receiver() {
    check(300, || {
        let (client, server) = pair();
        let receiving = spawn(&client, receives(b"thanks"));
        let sending = spawn(&client, |side| {
            let mut sent = 0;
            while sent < DATA.len() {
                match side.try_send(&DATA[sent..]) {
                    Ok(octets) => sent += octets,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        thread::yield_now();
                    }
                }
            }
        });
        // The octets reported as sent have left the stream: no further call of the sender is needed.
        receives(DATA)(&server);
        server.send_n(b"thanks").expect("it goes");
        join_all([receiving, sending]);
    });
}

#[test]
fn timeouts_leave_the_connection_usable() {
    check(300, || {
        let (client, server) = pair();
        let tries = |mut step: Box<dyn FnMut() -> io::Result<usize> + Send>, whole: usize| {
            move || {
                let mut steps = 0;
                while steps < whole {
                    match step() {
                        Ok(octets) => steps += octets,
                        Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
                    }
                }
            }
        };
        const TIME: Duration = Duration::from_millis(1);
        let sides = [(Arc::clone(&client), Arc::clone(&server)), (server, client)];
        let threads = sides.map(|(from, to)| {
            let send = Box::new(move || from.send_within(&[7; 500], TIME));
            let receive = Box::new(move || to.recv_within(&mut [0; 500], TIME));
            [thread::spawn(tries(send, 1000)), thread::spawn(tries(receive, 1000))]
        });
        join_all(threads.into_iter().flatten());
    });
}

#[test]
fn shutting_down_ends_all_waits() {
    check(300, || {
        let (client, server) = pair();
        let serving = spawn(&server, |side| {
            side.recv_n(&mut [0; 1]).expect("it comes");
            while side.recv(&mut [0; 64]).is_ok_and(|octets| octets > 0) {}
        });
        client.send_n(&[7]).expect("it goes");
        let threads = [
            spawn(&client, |side| drop(side.send_n(DATA))),
            spawn(&client, |side| assert!(!matches!(side.recv(&mut [0; 1]), Ok(1..)))),
            spawn(&client, |side| side.shutdown(Shutdown::Both).expect("it is connected")),
        ];
        join_all(threads);
        join_all([serving]);
        client.send(&[7]).expect_err("it is shut");
    });
}

#[test]
fn closing_during_sends_follows_them_or_cuts_the_connection() {
    check(300, || {
        let (client, server) = pair();
        let receiving = spawn(&server, |side| {
            let mut received = 0;
            loop {
                match side.recv(&mut [0; 500]) {
                    Ok(0) => return (received, true),
                    Ok(octets) => received += octets,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                        return (received, false);
                    }
                }
            }
        });
        client.send_n(&[7; 200]).expect("it goes");
        let sending = spawn(&client, |side| match side.send(&[7; 600]) {
            Ok(octets) => octets,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::BrokenPipe);
                0
            }
        });
        let closed = client.close_writer();
        let sent = 200 + sending.join().expect("it holds");
        drop(client);
        let (received, is_whole) = receiving.join().expect("it holds");
        // A sender that got an error may have sent all the same.
        assert!(received >= sent || !is_whole, "{received} of {sent}, {closed:?}");
        assert!(is_whole || closed.is_err(), "{received} of {sent} and no end");
    });
}
