//! Messages that were cut while they were written: nothing is written behind them, so that no octets of one request stand inside of another's.

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
    support::{PATIENCE, in_background, with_time_enough},
};

/// A peer that reads the beginning of what its first client sends, waits until it may go on, and then reads the rest.
struct Hesitant {
    port: u16,
    begun: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    read: mpsc::Receiver<Vec<u8>>,
}

impl Hesitant {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((tell_begun, begun), (go_on, wait), (tell, read)) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut octets = vec![0; 64];
            stream.read_exact(&mut octets).unwrap();
            tell_begun.send(()).unwrap();
            wait.recv().unwrap();
            read_to_silence(&mut stream, &mut octets);
            tell.send(octets).unwrap();
        });
        Self { port, begun, go_on, read }
    }
}

/// Until the end, or until nothing has come for a while.
fn read_to_silence(stream: &mut TcpStream, octets: &mut Vec<u8>) {
    stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    // How it ends is not the question.
    let _ = stream.read_to_end(octets);
}

/// Whoever was told COMPLETED_NO may send again: what the peer has must never become a whole request.
fn nothing_follows_a_cut(cut: fn(&Target) -> SystemException) {
    with_time_enough(Duration::from_millis(300), |time| nothing_follows(cut, time));
}

/// The same in so much time; none if that is up before anything is sent.
fn nothing_follows(cut: fn(&Target) -> SystemException, time: Duration) -> Option<()> {
    let peer = Hesitant::start();
    let orb = Orb::builder().connections_per_peer(1).socket_queues(Some(64 << 10), None).build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{}/nobody", peer.port)).unwrap();
    let with_timeout = |timeout| Target::unchecked_narrow(&object.with_timeout(Some(timeout)));
    let first = with_timeout(time);
    let first = in_background(move || cut(&first));
    peer.begun.recv_timeout(PATIENCE).ok()?;
    // On the same connection, behind the first: its octets are told from the first's by their value.
    let second = with_timeout(Duration::from_secs(5));
    let second = in_background(move || second.note(&vec![9; 8 << 20]));
    let error = first.recv_timeout(PATIENCE).unwrap();
    assert_eq!(error.completed(), CompletionStatus::No, "{error}");
    peer.go_on.send(()).unwrap();
    let octets = peer.read.recv_timeout(PATIENCE).unwrap();
    let announced = 12 + u32::from_ne_bytes(octets[8..12].try_into().unwrap()) as usize;
    assert!(octets.len() < announced, "the peer has all {announced} octets");
    assert!(!octets[200..].contains(&9), "octets of call 2 stand inside of call 1");
    assert!(second.recv_timeout(PATIENCE).unwrap().is_err());
    Some(())
}

#[test]
fn nothing_is_written_behind_a_one_way_that_was_cut() {
    nothing_follows_a_cut(|target| target.note(&vec![7; 16 << 20]).unwrap_err());
}

#[test]
fn nothing_is_written_behind_a_two_way_that_was_cut() {
    nothing_follows_a_cut(|target| target.echo_octets(&vec![7; 16 << 20]).unwrap_err());
}
