//! Partially written messages: no further octets follow them on their connection.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

use spandrel::{CompletionStatus, Orb, SystemException};
use spandrel_orb_tests::{
    probe::Target,
    support::{TEST_TIMEOUT, in_background, retry_with_longer_timeout},
};

/// A peer that reads the beginning of its first client's data, pauses until released, and then reads the
/// rest.
struct PausingPeer {
    port: u16,
    begun: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    read: mpsc::Receiver<Vec<u8>>,
}

impl PausingPeer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((send_begun, begun), (go_on, wait), (send_octets, read)) =
            (mpsc::channel(), mpsc::channel(), mpsc::channel());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut octets = vec![0; 64];
            stream.read_exact(&mut octets).unwrap();
            send_begun.send(()).unwrap();
            wait.recv().unwrap();
            read_to_silence(&mut stream, &mut octets);
            send_octets.send(octets).unwrap();
        });
        Self { port, begun, go_on, read }
    }
}

/// Reads until the end, or until nothing arrives for two seconds.
fn read_to_silence(stream: &mut TcpStream, octets: &mut Vec<u8>) {
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    // The way in which reading ends does not matter.
    let _ = stream.read_to_end(octets);
}

/// A caller that got COMPLETED_NO may resend: the peer must never receive the complete request.
fn assert_nothing_follows_a_partial_message(call: fn(&Target) -> SystemException) {
    retry_with_longer_timeout(Duration::from_millis(300), |time| attempt_with_timeout(call, time));
}

/// One attempt with this timeout; `None` if it expires before anything is sent.
fn attempt_with_timeout(call: fn(&Target) -> SystemException, time: Duration) -> Option<()> {
    let peer = PausingPeer::start();
    let orb = Orb::builder().connections_per_peer(1).socket_queues(Some(64 << 10), None).build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{}/unknown", peer.port)).unwrap();
    let with_timeout = |timeout| Target::unchecked_narrow(&object.with_timeout(Some(timeout)));
    let first = with_timeout(time);
    let first = in_background(move || call(&first));
    peer.begun.recv_timeout(TEST_TIMEOUT).ok()?;
    // Over the same connection, behind the first call; the octets of the calls differ in their value.
    // On the same connection, after the first; its octets have another value.
    let second = with_timeout(Duration::from_secs(5));
    let second = in_background(move || second.note(&vec![9; 8 << 20]));
    let error = first.recv_timeout(TEST_TIMEOUT).unwrap();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    peer.go_on.send(()).unwrap();
    let octets = peer.read.recv_timeout(TEST_TIMEOUT).unwrap();
    let announced = 12 + u32::from_ne_bytes(octets[8..12].try_into().unwrap()) as usize;
    assert!(octets.len() < announced, "the peer received all {announced} octets");
    assert!(!octets[200..].contains(&9), "octets of call 2 are within call 1");
    assert!(second.recv_timeout(TEST_TIMEOUT).unwrap().is_err());
    Some(())
}

#[test]
fn nothing_is_written_after_a_partial_one_way() {
    assert_nothing_follows_a_partial_message(|target| target.note(&vec![7; 16 << 20]).unwrap_err());
}

#[test]
fn nothing_is_written_after_a_partial_two_way() {
    assert_nothing_follows_a_partial_message(|target| target.echo_octets(&vec![7; 16 << 20]).unwrap_err());
}
