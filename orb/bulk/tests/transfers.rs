//! Transfers over TCP: their results, their progress, and the ways in which they end early.

use std::{
    env, fs,
    io::Write,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use spandrel_bulk::{
    BulkClient, BulkError, BulkLimits, FileSink, FileSource, OfferedTo, Party, Route, Sink, Source,
    bulk::{Direction, FailedError, FailureCode, UNKNOWN_LENGTH},
};
use spandrel_ipc::inet;
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, eventually, in_background, pattern, this_program};

use crate::parties::{Parties, loopback, parties, parties_with, relayed};

/// More than the queues of a connection take.
const LARGE: usize = 12 << 20;

/// A destination that its test can look at.
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<(Vec<u8>, bool)>>);

impl Sink for Shared {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<()> {
        self.0.lock().unwrap().0.extend_from_slice(octets);
        Ok(())
    }

    fn finish(&mut self) -> std::io::Result<()> {
        self.0.lock().unwrap().1 = true;
        Ok(())
    }
}

impl Shared {
    pub(crate) fn whole(&self) -> Option<Vec<u8>> {
        let data = self.0.lock().unwrap();
        data.1.then(|| data.0.clone())
    }
}

/// Octets whose number is not known before their end.
struct Endless(Vec<u8>);

impl Source for Endless {
    fn length(&self) -> Option<u64> {
        None
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(buffer, offset)
    }
}

#[test]
fn octets_flow_in_both_directions() {
    let parties = parties();
    for length in [0, 1, LARGE] {
        let data = pattern(length);
        let (offer, transfer) = parties.download(data.clone());
        assert_eq!((offer.way, offer.length), (Direction::Download, length as u64));
        let mut received = Vec::new();
        let outcome = BulkClient::default().calls(false).receive(&offer, &mut received).unwrap();
        assert!(received == data);
        assert_eq!((outcome.octets, outcome.checksum), (length as u64, crc32fast::hash(&data)));
        assert_eq!((outcome.is_verified, outcome.route), (true, Route::Tcp));
        assert_eq!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap(), outcome);
        let state = offer.control.unwrap().state().unwrap();
        assert!(state.is_complete && state.octets == length as u64);

        let sink = Shared::default();
        let (offer, transfer) = parties.upload(sink.clone());
        assert_eq!((offer.way, offer.length), (Direction::Upload, UNKNOWN_LENGTH));
        let outcome = BulkClient::default().calls(false).send(&offer, &data).unwrap();
        assert_eq!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap(), outcome);
        assert!(sink.whole().unwrap() == data);
    }
    let statistics = parties.bulk.statistics();
    assert_eq!((statistics.offered, statistics.accepted, statistics.refused_tokens), (6, 6, 0));
}

#[test]
fn data_of_unknown_length_ends_where_its_source_ends() {
    let parties = parties();
    let data = pattern(700_000);
    let (offer, _) = parties.download(Endless(data.clone()));
    assert_eq!(offer.length, UNKNOWN_LENGTH);
    let mut received = Vec::new();
    BulkClient::default().calls(false).receive(&offer, &mut received).unwrap();
    assert!(received == data);
    let sink = Shared::default();
    BulkClient::default().calls(false).send(&parties.upload(sink.clone()).0, &Endless(data.clone())).unwrap();
    assert!(sink.whole().unwrap() == data);
}

#[test]
fn a_file_has_its_name_once_it_is_whole() {
    let parties = parties();
    let folder = tempfile::tempdir().unwrap();
    let data = pattern(LARGE);
    fs::write(folder.path().join("from"), &data).unwrap();
    let source = FileSource::open(folder.path().join("from")).unwrap().with_checksum(crc32fast::hash(&data));
    let (offer, _) = parties.download(source);
    let to = folder.path().join("to");
    let mut sink = FileSink::create(&to).unwrap();
    let outcome = BulkClient::default().calls(false).receive(&offer, &mut sink).unwrap();
    assert!(outcome.is_verified);
    assert!(fs::read(&to).unwrap() == data);
    drop(sink);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no partial file is left");

    let wrong = FileSource::open(folder.path().join("from")).unwrap().with_checksum(7);
    let (offer, transfer) = parties.download(wrong);
    let mut sink = FileSink::create(folder.path().join("wrong")).unwrap();
    let error = BulkClient::default().calls(false).receive(&offer, &mut sink).unwrap_err();
    assert!(matches!(error, BulkError::Checksum { sent: 7, .. }), "{error:?}");
    let ended = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*ended, BulkError::GaveUp { code: 5, .. }), "{ended:?}");
    drop(sink);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no half file");
}

/// The variable by which the traced process gets the file that it serves.
const SERVED: &str = "SPANDREL_BULK_SERVED";

#[test]
fn the_kernel_sends_a_file_without_octets_in_user_space() {
    if let Ok(path) = env::var(SERVED) {
        // The traced process offers the file; the test takes it.
        let parties = parties();
        let (offer, transfer) = parties.download(FileSource::open(path).unwrap());
        let [token, control] = [hex(&offer.secret), offer.control.unwrap().to_string()];
        println!("\n{} {token} {control}", offer.at[0]);
        std::io::stdout().flush().unwrap();
        transfer.wait(TEST_TIMEOUT).unwrap().unwrap();
        return;
    }
    let there = Command::new("strace").arg("-V").output();
    assert!(there.is_ok_and(|output| output.status.success()), "this test needs strace: apt-get install strace");
    let folder = tempfile::tempdir().unwrap();
    let (log, file) = (folder.path().join("log"), folder.path().join("file"));
    let data = pattern(LARGE);
    fs::write(&file, &data).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=sendfile,read,pread64,recvfrom,sendto,sendmsg,write,writev,mmap", "-o"]).arg(&log);
    command.arg(this_program().get_program()).args(["--nocapture", "--exact"]);
    command.arg("transfers::the_kernel_sends_a_file_without_octets_in_user_space");
    let child = ChildProcess::start(command.env(SERVED, &file).stdout(Stdio::piped()));
    let (received, output) = crate::parties::take_from(child);
    assert!(output.success() && received == data);

    let log = fs::read_to_string(log).unwrap();
    let results = |call: &str| -> u64 {
        let lines =
            log.lines().filter(|line| line.contains(&format!(" {call}(")) || line.contains(&format!("<... {call} ")));
        lines.filter_map(|line| line.rsplit_once("= ")?.1.split(' ').next()?.parse::<u64>().ok()).sum()
    };
    assert_eq!(results("sendfile"), LARGE as u64, "the kernel has sent all octets");
    let descriptors: Vec<&str> =
        log.lines().filter_map(|line| line.split_once(" sendfile(")?.1.split(", ").nth(1)).collect();
    for descriptor in descriptors {
        let reads = [format!("read({descriptor},"), format!("pread64({descriptor},")];
        // The number may have been that of another file before; such a file is small.
        let of_file = log.lines().filter(|line| reads.iter().any(|read| line.contains(read.as_str())));
        let octets: u64 = of_file.filter_map(|line| line.rsplit_once("= ")?.1.parse::<u64>().ok()).sum();
        assert!(octets < 100_000, "{octets} octets were read");
        assert!(!log.contains(&format!("MAP_SHARED, {descriptor},")), "the file was mapped");
    }
    for call in ["sendto", "sendmsg", "write", "writev"] {
        assert!(results(call) < 100_000, "{call} has sent {} octets", results(call));
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn a_broken_transfer_goes_on_where_it_ended() {
    let parties = parties();
    let data = pattern(LARGE);
    let (offer, transfer) = parties.download(data.clone());
    let mut received = Vec::new();
    let outcome = BulkClient::default().calls(false).receive(&relayed(&offer, 2, 3 << 20), &mut received).unwrap();
    assert!(received == data && outcome.is_verified);
    assert_eq!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap().octets, LARGE as u64);
    assert_eq!(parties.bulk.statistics().accepted, 3, "two connections broke");

    let sink = Shared::default();
    let (offer, _) = parties.upload(sink.clone());
    BulkClient::default().calls(false).send(&relayed(&offer, 2, 3 << 20), &data).unwrap();
    assert!(sink.whole().unwrap() == data);
    assert_eq!(parties.bulk.statistics().accepted, 6);

    let (offer, transfer) = parties.download(data);
    let client = BulkClient::default().calls(false).resumptions(1);
    let error = client.receive(&relayed(&offer, 9, 1 << 20), &mut Vec::new()).unwrap_err();
    assert!(matches!(error, BulkError::Broken { .. }), "{error:?}");
    let ended = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(ended.to_string().contains("broke"), "the other party is told of it: {ended:?}");
}

/// A client that stops in the middle of its transfer until the sender is dropped. The receiver gets a message once it has
/// stopped.
fn held_client() -> (BulkClient, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (start, started) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let client = BulkClient::default().calls(false).on_progress(move |_| {
        _ = start.send(());
        assert!(released.lock().unwrap().recv().is_err());
    });
    (client, started, release)
}

#[test]
fn either_party_cancels_and_the_other_gets_the_reason() {
    let parties = parties();
    let reached = Arc::new(AtomicU64::new(0));
    let client = || {
        let (set, get) = (Arc::clone(&reached), Arc::clone(&reached));
        set.store(0, Ordering::Relaxed);
        let client = BulkClient::default().calls(false).on_progress(move |octets| set.store(octets, Ordering::Relaxed));
        client.stop_when(move || (get.load(Ordering::Relaxed) > 1 << 20).then(|| "the viewer was closed".to_owned()))
    };
    let check = |error: BulkError, ended: &BulkError| {
        assert!(matches!(&error, BulkError::Cancelled { by: Party::Own, .. }), "{error:?}");
        assert!(matches!(ended, BulkError::Cancelled { by: Party::Peer, .. }), "{ended:?}");
        assert!(ended.to_string().contains("the viewer was closed"), "{ended:?}");
    };
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    let error = client().receive(&offer, &mut Vec::new()).unwrap_err();
    check(error, &transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err());
    let (offer, transfer) = parties.upload(Vec::new());
    let error = client().send(&offer, &vec![7; 64 << 20]).unwrap_err();
    check(error, &transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err());

    // The offering party cancels a transfer whose other party is slow.
    for is_download in [true, false] {
        let (offer, transfer) =
            if is_download { parties.download(vec![7; 64 << 20]) } else { parties.upload(Vec::new()) };
        let (held, started, release) = held_client();
        let data = vec![7; 64 << 20];
        let ended = in_background(move || match is_download {
            true => held.receive(&offer, &mut Vec::new()),
            false => held.send(&offer, &data),
        });
        started.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(transfer.wait(Duration::ZERO).is_none());
        transfer.cancel("the archive closes");
        drop(release);
        let error = ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err();
        assert!(error.to_string().contains("the archive closes"), "{error:?}");
        assert!(matches!(error, BulkError::Cancelled { by: Party::Peer, .. }), "{error:?}");
    }
}

#[test]
fn a_transfer_has_an_end_in_time() {
    let parties = parties();
    let has_begun = Arc::new(AtomicBool::new(false));
    // On a loaded machine, the time may end before the connection is open.
    eventually(|| {
        let (offer, transfer) = parties.download(vec![7; 64 << 20]);
        let slow = BulkClient::default().calls(false).time_limit(Duration::from_millis(200));
        let begun = Arc::clone(&has_begun);
        let slow = slow.on_progress(move |_| {
            begun.store(true, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(20));
        });
        let error = slow.receive(&offer, &mut Vec::new()).unwrap_err();
        assert!(matches!(error, BulkError::TimedOut { .. }), "{error:?}");
        if has_begun.load(Ordering::Relaxed) {
            assert!(transfer.wait(TEST_TIMEOUT).unwrap().is_err());
        } else {
            transfer.cancel("another attempt");
        }
        has_begun.load(Ordering::Relaxed)
    });
}

#[test]
fn an_offer_expires_and_the_number_of_offers_is_bounded() {
    let limits = BulkLimits { offers: 2, ..BulkLimits::default() };
    let lasting = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let offered = |parties: &Parties| parties.bulk.offer_source(vec![1], &loopback());
    let _two = [(); 2].map(|()| offered(&lasting).unwrap());
    assert!(matches!(offered(&lasting), Err(BulkError::TooMany(2))));

    // Offers that have expired make room for others.
    let limits = BulkLimits { valid_for: Duration::from_millis(100), ..limits };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let (offer, transfer) = offered(&parties).unwrap();
    let (_, _second) = offered(&parties).unwrap();
    eventually(|| offered(&parties).is_ok());
    assert!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err().to_string().contains("expired"));
    let error = BulkClient::default().calls(false).receive(&offer, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, BulkError::GaveUp { code: 1, .. }), "{error:?}");
    assert_eq!(parties.bulk.statistics().refused_tokens, 1);
    let error = offer.control.unwrap().renew().unwrap_err();
    assert!(matches!(error, FailedError::System(_)), "its object is gone: {error:?}");
}

/// A party that takes up no offer keeps others from none.
#[test]
fn the_offers_of_one_party_are_bounded() {
    let limits = BulkLimits { offers: 4, offers_per_party: 2, ..BulkLimits::default() };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let offered = |party: &OfferedTo| parties.bulk.offer_source(vec![1], party);
    let (_, first) = offered(&loopback()).unwrap();
    offered(&loopback()).unwrap();
    assert!(matches!(offered(&loopback()), Err(BulkError::TooMany(2))));
    let other = OfferedTo::Host([203, 0, 113, 5].into());
    offered(&other).unwrap();
    // Offers that have ended do not count.
    first.cancel("it is not needed");
    offered(&loopback()).unwrap();
    assert!(matches!(offered(&loopback()), Err(BulkError::TooMany(2))));
}

#[test]
fn a_file_that_is_cut_fails_its_transfer_at_both_parties() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, pattern(LARGE)).unwrap();
    let parties = parties();
    let (offer, transfer) = parties.download(FileSource::open(&path).unwrap());
    fs::File::options().write(true).open(&path).unwrap().set_len(1_000).unwrap();
    let error = BulkClient::default().receive(&offer, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, BulkError::Failed { code: FailureCode::Storage, .. }), "{error:?}");
    let ended = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*ended, BulkError::Storage("source", _)), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_a_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let opened = spandrel_test_support::within_time(move || FileSource::open(pipe));
    assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn a_complete_transfer_cannot_be_renewed() {
    let parties = parties();
    let (offer, transfer) = parties.download(vec![1]);
    BulkClient::default().receive(&offer, &mut Vec::new()).unwrap();
    transfer.wait(TEST_TIMEOUT).unwrap().unwrap();
    let FailedError::Failed(failed) = offer.control.as_ref().unwrap().renew().unwrap_err() else { panic!() };
    assert_eq!(failed.code, FailureCode::Complete);
    let wrong = BulkClient::default().send(&offer, &vec![1]).unwrap_err();
    assert!(matches!(wrong, BulkError::Direction), "{wrong:?}");
}

#[test]
fn the_end_of_the_offering_side_ends_its_transfers() {
    let mut parties = parties();
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    let (held, started, release) = held_client();
    let ended = in_background(move || held.receive(&offer, &mut Vec::new()));
    started.recv_timeout(TEST_TIMEOUT).unwrap();
    let other =
        spandrel_bulk::BulkServer::builder(&spandrel_poa::Poa::root(&parties.offering).unwrap()).open().unwrap();
    drop(std::mem::replace(&mut parties.bulk, other));
    drop(release);
    assert!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err().to_string().contains("has ended"));
    assert!(ended.recv_timeout(TEST_TIMEOUT).unwrap().unwrap_err().to_string().contains("has ended"));
}

#[test]
fn transfers_that_have_ended_make_room_for_offers() {
    let limits = BulkLimits { offers: 2, ..BulkLimits::default() };
    let parties = parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits));
    let (_waiting, _) = parties.download(vec![7]);
    for octet in 0..5 {
        let (offer, _) = parties.download(vec![octet]);
        let mut received = Vec::new();
        BulkClient::default().receive(&offer, &mut received).unwrap();
        assert_eq!(received, [octet]);
        // The offering side takes note of its end after the confirmation.
        eventually(|| offer.control.as_ref().unwrap().state().unwrap().is_complete);
    }
}

#[cfg(unix)]
#[test]
fn the_socket_of_a_killed_process_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bulk");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let parties = parties_with(|builder| builder.unix(&path));
    let (offer, _) = parties.download(vec![1]);
    BulkClient::default().calls(false).receive(&offer, &mut Vec::new()).unwrap();
}
