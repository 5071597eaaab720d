//! The choice of the route: UNIX-domain sockets, the other party's connection, calls.

use std::fs;

use spandrel_bulk::{
    BulkClient, BulkError, FileSource, Route, Source,
    bulk::{Chunk, Endpoints, FailedError, FailureCode, Offer, Part, Progress, StreamEnd, StreamEndServant, Ticket},
    wire::WireError,
};
use spandrel_ipc::inet;
use spandrel_orb::{CompletionStatus, SystemException};
use spandrel_poa::Poa;
use spandrel_test_support::{TEST_TIMEOUT, pattern};

use crate::{
    parties::{Parties, loopback, parties_with, patiently},
    transfers::Shared,
};

/// Transfers in both directions, and the route of them.
fn route_of(parties: &Parties, client: &BulkClient, octets: usize) -> Route {
    let data = pattern(octets);
    let (mut received, mut transfers) = (Vec::new(), Vec::new());
    let download = || {
        let (offer, transfer) = parties.download(data.clone());
        transfers.push(transfer);
        client.receive(&offer, &mut received)
    };
    let down = patiently(download).unwrap();
    assert!(received == data && down.is_verified);
    let downloads = transfers.len();
    let sink = Shared::default();
    let upload = || {
        let (offer, transfer) = parties.upload(sink.clone());
        transfers.push(transfer);
        client.send(&offer, &data)
    };
    let up = patiently(upload).unwrap();
    assert!(sink.whole().unwrap() == data);
    for transfer in [&transfers[downloads - 1], transfers.last().unwrap()] {
        assert!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap().octets == octets as u64);
    }
    assert_eq!((down.route, down.checksum), (up.route, up.checksum));
    up.route
}

#[test]
fn calls_carry_the_octets_if_neither_party_reaches_the_other() {
    let parties = parties_with(|builder| builder);
    for octets in [0, 1, 10_000, 10_001] {
        assert_eq!(route_of(&parties, &BulkClient::default().part(1_000), octets), Route::Calls);
    }
    let (offer, _) = parties.download(vec![1]);
    let error = BulkClient::default().calls(false).receive(&offer, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, BulkError::Unreachable(_)), "{error:?}");

    // An endpoint that cannot be reached is the same.
    let (offer, _) = parties.download(pattern(5));
    let closed = format!("tcp://127.0.0.1:{}", spandrel_test_support::free_port());
    let at = vec!["quic://127.0.0.1:1".to_owned(), "unix:/nonexistent/socket".to_owned(), closed].try_into().unwrap();
    let mut received = Vec::new();
    let outcome = BulkClient::default().receive(&Offer { at, ..offer }, &mut received).unwrap();
    assert_eq!((outcome.route, received), (Route::Calls, pattern(5)));
}

#[test]
fn parts_are_read_and_written_where_the_octets_go_on() {
    let parties = parties_with(|builder| builder);
    let data = pattern(100);
    let control = |offer: Offer| -> StreamEnd { offer.control.unwrap() };
    let down = control(parties.download(data.clone()).0);
    let first = down.read(0, 40).unwrap();
    assert_eq!((&first.data[..], first.is_last, first.has_checksum), (&data[..40], false, false));
    assert_eq!(down.read(40, 40).unwrap().data[..], data[40..80]);
    let again = down.read(40, 90).unwrap();
    assert_eq!(&again.data[..], &data[40..], "a part whose reply was lost is read again");
    assert_eq!((again.is_last, again.checksum), (true, crc32fast::hash(&data)));
    let code =
        |error: FailedError| if let FailedError::Failed(failed) = error { failed.code } else { panic!("{error:?}") };
    assert_eq!(code(down.read(101, 1).unwrap_err()), FailureCode::BadOffset);
    assert_eq!(code(down.write(0, &Default::default()).unwrap_err()), FailureCode::WrongDirection);
    assert!(!down.read(50, 100).unwrap().has_checksum, "not all octets before it were read");
    assert_eq!(code(down.finish(99, 0).unwrap_err()), FailureCode::Corrupt);

    // Only octets that were read in order have a checksum at the offering side.
    for (begin, is_verified) in [(0, true), (50, false)] {
        let (offer, transfer) = parties.download(data.clone());
        let down = control(offer);
        down.read(begin, 100).unwrap();
        down.finish(100, crc32fast::hash(&data)).unwrap();
        assert_eq!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap().is_verified, is_verified);
    }

    let sink = Shared::default();
    let (offer, transfer) = parties.upload(sink.clone());
    let up = control(offer);
    up.write(0, &data[..60].to_vec().try_into().unwrap()).unwrap();
    assert_eq!(code(up.write(0, &data[..60].to_vec().try_into().unwrap()).unwrap_err()), FailureCode::BadOffset);
    assert_eq!(code(up.read(0, 1).unwrap_err()), FailureCode::WrongDirection);
    assert_eq!(up.state().unwrap().octets, 60);
    assert_eq!(code(up.finish(60, 1).unwrap_err()), FailureCode::Corrupt);
    assert!(transfer.wait(TEST_TIMEOUT).unwrap().is_err() && sink.whole().is_none());
    assert_eq!(code(up.write(60, &Default::default()).unwrap_err()), FailureCode::Corrupt);
}

/// A stream end whose only part is said to be the last one.
struct OnePart(usize);

impl StreamEndServant for OnePart {
    fn state(&self) -> Result<Progress, SystemException> {
        Ok(Progress::default())
    }

    fn renew(&self) -> Result<Ticket, FailedError> {
        Err(unused())
    }

    fn dial(&self, _: &Endpoints, _: &[u8; 32]) -> Result<(), FailedError> {
        Err(unused())
    }

    fn read(&self, _: u64, _: u32) -> Result<Part, FailedError> {
        Ok(Part { data: vec![7; self.0].try_into().unwrap(), is_last: true, ..Part::default() })
    }

    fn write(&self, _: u64, _: &Chunk) -> Result<(), FailedError> {
        Err(unused())
    }

    fn finish(&self, _: u64, _: u32) -> Result<(), FailedError> {
        Ok(())
    }

    fn cancel(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }
}

fn unused() -> FailedError {
    SystemException::no_implement(0, CompletionStatus::No).into()
}

#[test]
fn parts_have_the_length_that_the_offer_has_said() {
    let parties = parties_with(|builder| builder);
    let root = Poa::root(&parties.offering).unwrap();
    root.the_poa_manager().activate().unwrap();
    let received = |octets: usize| {
        let control: StreamEnd = root.serve(OnePart(octets)).unwrap();
        let control = parties.taking.string_to_object(&control.to_string()).unwrap().narrow().unwrap();
        let offer = Offer { length: 100, control: Some(control), ..Offer::default() };
        BulkClient::default().receive(&offer, &mut Vec::new())
    };
    assert_eq!(received(100).unwrap().octets, 100);
    let short = received(99).unwrap_err();
    assert!(matches!(short, BulkError::Wire(WireError::Contradiction { what: "length", .. })), "{short:?}");
    let long = received(101).unwrap_err();
    assert!(matches!(long, BulkError::Wire(WireError::TooLong { limit: 100 })), "{long:?}");
}

#[test]
fn the_offering_party_opens_the_connection_if_the_other_one_listens() {
    let parties = parties_with(|builder| builder);
    let listening = BulkClient::default().listen(inet::Addr::loopback(0)).calls(false);
    assert_eq!(route_of(&parties, &listening, 3 << 20), Route::Tcp);
    let calls = BulkClient::default().dials(false);
    assert_eq!(route_of(&parties, &calls, 10), Route::Calls);

    // It connects to the caller alone.
    let (offer, _) = parties.download(vec![1]);
    let control = offer.control.unwrap();
    for at in
        ["tcp://203.0.113.5:80", "tcp://127.0.0.2:80", "tcp://localhost:80", "unix:/run/docker.sock", "http://a:1"]
    {
        let at = vec![at.to_owned()].try_into().unwrap();
        let FailedError::Failed(failed) = control.dial(&at, &[0; 32]).unwrap_err() else { panic!() };
        assert_eq!(failed.code, FailureCode::Unreachable, "{at:?}: {}", failed.reason);
        assert!(failed.reason.contains("127.0.0.1"), "{}", failed.reason);
    }
}

#[cfg(unix)]
#[test]
fn a_file_is_passed_open_over_a_unix_domain_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bulk");
    let parties = parties_with(|builder| builder.unix(&path).tcp(inet::Addr::loopback(0)));
    assert_eq!(route_of(&parties, &BulkClient::default().calls(false), 3 << 20), Route::Unix);

    let data = pattern(2 << 20);
    fs::write(folder.path().join("file"), &data).unwrap();
    for (takes_files, route) in [(true, Route::PassedFile), (false, Route::Unix)] {
        let source = FileSource::open(folder.path().join("file")).unwrap().with_checksum(crc32fast::hash(&data));
        assert_eq!(source.length(), Some(2 << 20));
        let (offer, transfer) = parties.download(source);
        assert_eq!(offer.at[0], format!("unix:{}", path.display()));
        let mut received = Vec::new();
        let client = BulkClient::default().calls(false).takes_files(takes_files);
        let outcome = client.receive(&offer, &mut received).unwrap();
        assert!(received == data);
        assert_eq!((outcome.route, outcome.is_verified), (route, true));
        assert_eq!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap(), outcome);
    }
    // A party on another machine is not offered the socket.
    let far = parties.bulk.offer_source(vec![1], &spandrel_bulk::OfferedTo::Host([203, 0, 113, 5].into())).unwrap().0;
    assert!(far.at.iter().all(|text| text.starts_with("tcp://")), "{:?}", far.at);
}

#[cfg(target_os = "linux")]
#[test]
fn octets_flow_through_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let [memory, socket] = ["memory", "socket"].map(|name| folder.path().join(name));
    let parties = parties_with(|builder| builder.shm(&memory).unix(&socket).tcp(inet::Addr::loopback(0)));
    let client = BulkClient::default().calls(false);
    for octets in [0, 1, 12 << 20] {
        assert_eq!(route_of(&parties, &client, octets), Route::SharedMemory);
    }
    // A file goes from the disk in chunks as well, where it cannot be passed.
    let (file, data) = (folder.path().join("file"), pattern(2 << 20));
    fs::write(&file, &data).unwrap();
    let (offer, _) = parties.download(FileSource::open(&file).unwrap());
    let schemes =
        |offer: &Offer| offer.at.iter().map(|at| at.split_once(':').unwrap().0.to_owned()).collect::<Vec<_>>();
    assert_eq!(schemes(&offer), ["unix", "shm", "tcp"], "an open file needs no copy");
    let at: Vec<String> = offer.at.iter().filter(|at| at.starts_with("shm:")).cloned().collect();
    let mut received = Vec::new();
    let offer = Offer { at: at.try_into().unwrap(), ..offer };
    assert_eq!(client.receive(&offer, &mut received).unwrap().route, Route::SharedMemory);
    assert!(received == data);

    // Each party cancels, and the other one gets the reason.
    let stop = client.clone().stop_when(|| Some("the viewer was closed".to_owned()));
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    assert!(matches!(stop.receive(&offer, &mut Vec::new()), Err(BulkError::Cancelled { .. })));
    assert!(transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err().to_string().contains("the viewer was closed"));
    let (offer, transfer) = parties.upload(Shared::default());
    let canceller = transfer.clone();
    let slow = client.clone().on_progress(move |_| canceller.cancel("the archive closes"));
    let error = slow.send(&offer, &vec![7; 64 << 20]).unwrap_err();
    assert!(error.to_string().contains("the archive closes"), "{error:?}");

    // A process that dies leaves a transfer that can be resumed, and one that stops is not waited for.
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    let stream = spandrel_ipc::shm::Connector::connect(&spandrel_ipc::shm::Addr::path(&memory).unwrap()).unwrap();
    let token = spandrel_bulk::wire::Token(offer.secret);
    let role = spandrel_bulk::wire::Role::Receives;
    let greeting = spandrel_bulk::wire::Greeting { role, takes_files: false, reuses: false, token, offset: 0 };
    stream.send_n(&greeting.encode()).unwrap();
    stream.recv_n(&mut [0; 1000]).unwrap();
    drop(stream);
    let ticket = offer.control.as_ref().unwrap().renew().unwrap();
    assert!(transfer.wait(std::time::Duration::ZERO).is_none());
    let mut received = Vec::new();
    let offer = Offer { secret: ticket.secret, ..offer };
    assert_eq!(client.receive(&offer, &mut received).unwrap().octets, 64 << 20);

    let far = parties.bulk.offer_source(vec![1], &spandrel_bulk::OfferedTo::Host([203, 0, 113, 5].into())).unwrap().0;
    assert_eq!(schemes(&far), ["tcp"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_party_that_stops_in_shared_memory_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory");
    let parties = parties_with(|builder| builder.shm(&memory).limits(crate::parties::short_limits()));
    let (offer, transfer) = parties.download(vec![7; 64 << 20]);
    let stream = spandrel_ipc::shm::Connector::connect(&spandrel_ipc::shm::Addr::path(&memory).unwrap()).unwrap();
    let token = spandrel_bulk::wire::Token(offer.secret);
    let role = spandrel_bulk::wire::Role::Receives;
    let greeting = spandrel_bulk::wire::Greeting { role, takes_files: false, reuses: false, token, offset: 0 };
    stream.send_n(&greeting.encode()).unwrap();
    let error = transfer.wait(TEST_TIMEOUT).unwrap().unwrap_err();
    assert!(matches!(*error, BulkError::TimedOut { action: "sending", .. }), "{error:?}");
    drop(stream);
}

#[test]
fn a_wildcard_address_is_not_offered_as_it_is() {
    let parties = parties_with(|builder| builder.tcp("0.0.0.0:0".parse().unwrap()).host("archive.example"));
    let at = parties.bulk.offer_source(vec![1], &loopback()).unwrap().0.at;
    assert!(at[0].starts_with("tcp://archive.example:"), "{at:?}");
    let parties = parties_with(|builder| builder.tcp("0.0.0.0:0".parse().unwrap()));
    let at = parties.bulk.offer_source(vec![1], &loopback()).unwrap().0.at;
    assert!(!at[0].starts_with("tcp://0.0.0.0:"), "{at:?}");
}
