//! Datagrams of the UNIX-domain family: names, files, and full queues.

#![cfg(unix)]

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use spandrel_ipc::dgram::SendError;
use spandrel_ipc::unix::{Addr, ConnectedDgram, Dgram, DgramOptions};
use spandrel_ipc::{Interest, wait_ready};
use spandrel_test_support::TEST_TIMEOUT;
use tempfile::TempDir;

fn name_in(folder: &TempDir, name: &str) -> Addr {
    Addr::path(folder.path().join(name)).unwrap()
}

#[test]
fn a_full_queue_makes_a_connected_sender_wait() {
    let (here, there) = ConnectedDgram::pair().unwrap();
    let mut sent = 0;
    let error = loop {
        match here.try_send(b"octets") {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(sent > 0);
    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
    assert!(error.is_timeout());
    assert!(wait_ready(&here, Interest::OUTPUT, Some(Duration::ZERO)).unwrap().is_none());
    let error = here.send_within(b"octets", Duration::from_millis(20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    here.set_send_timeout(Some(Duration::from_millis(20))).unwrap();
    assert!(here.send(b"octets").unwrap_err().is_timeout());

    let sender = thread::spawn(move || {
        here.send_within(b"at last", TEST_TIMEOUT).unwrap();
        here
    });
    let mut octets = [0; 8];
    for _ in 0..sent {
        assert_eq!(there.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 6);
    }
    assert_eq!(there.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 7);
    let here = sender.join().unwrap();
    assert_eq!(wait_ready(&here, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::OUTPUT);
}

/// An unconnected socket is always ready for output: a wait must neither spin nor miss the moment at which
/// the receiver's queue has room.
#[test]
fn a_full_queue_makes_an_unconnected_sender_wait_without_spinning() {
    let folder = tempfile::tempdir().unwrap();
    let to = name_in(&folder, "receiver");
    let there = Dgram::open(&to).unwrap();
    let here = Dgram::unnamed().unwrap();
    let mut sent = 0;
    while here.try_send_to(b"octets", &to).is_ok() {
        sent += 1;
    }
    assert!(sent > 0);

    #[cfg(target_os = "linux")]
    {
        let used = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::try_from(time).unwrap()
        };
        let (before, waited) = (used(), Duration::from_millis(300));
        assert_eq!(here.send_to_within(b"octets", &to, waited).unwrap_err().kind(), ErrorKind::TimedOut);
        let spent = used() - before;
        assert!(spent < waited / 4, "{spent:?} of processor time were spent in waiting");
    }

    let name = to.clone();
    let sender = thread::spawn(move || here.send_to_within(b"at last", &name, TEST_TIMEOUT));
    let mut octets = [0; 8];
    for _ in 0..sent {
        assert_eq!(there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap().0.len(), 6);
    }
    sender.join().unwrap().unwrap();
    assert_eq!(there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap().0.len(), 7);
}

#[test]
fn closing_the_receiver_ends_a_send_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let to = name_in(&folder, "receiver");
    let there = Dgram::open_with(&to, &DgramOptions::default().keep_file(true)).unwrap();
    let here = Dgram::unnamed().unwrap();
    while here.try_send_to(b"octets", &to).is_ok() {}
    let sender = thread::spawn(move || here.send_to_within(b"unsent", &to, TEST_TIMEOUT));
    drop(there);
    let error = sender.join().unwrap().unwrap_err();
    assert!(matches!(error, SendError::Refused(_)), "{error:?}");
}

#[test]
fn sending_to_a_closed_peer_is_refused() {
    let (here, there) = ConnectedDgram::pair().unwrap();
    here.send(b"last words").unwrap();
    drop(here);
    let mut octets = [0; 16];
    assert_eq!(there.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 10, "what was sent before is still there");
    for _ in 0..2 {
        let error = there.send(b"hello?").unwrap_err();
        assert!(matches!(error, SendError::Refused(_)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn sending_to_an_absent_name_fails() {
    let folder = tempfile::tempdir().unwrap();
    let absent = name_in(&folder, "absent");
    let here = Dgram::unnamed().unwrap();
    assert_eq!(here.send_to(b"hello?", &absent).unwrap_err().kind(), ErrorKind::NotFound);
    drop(Dgram::open_with(&absent, &DgramOptions::default().keep_file(true)).unwrap());
    assert!(matches!(here.send_to(b"hello?", &absent).unwrap_err(), SendError::Refused(_)));
    assert_eq!(ConnectedDgram::connect(&absent).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let error = here.send_to(b"hello?", &Addr::unnamed()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn sending_to_a_peer_connected_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (name_in(&folder, "one"), name_in(&folder, "other"));
    let _friend = Dgram::open(&other).unwrap();
    let _pair = ConnectedDgram::connect_from(&other, &one).unwrap();
    let stranger = Dgram::unnamed().unwrap();
    assert_eq!(stranger.send_to(b"psst", &one).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(stranger.connect(&one).unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_datagram_longer_than_the_send_queue_is_too_long() {
    let (here, _there) = ConnectedDgram::pair().unwrap();
    let len = 2 * here.send_queue().unwrap();
    let error = here.send(&vec![0; len]).unwrap_err();
    assert!(matches!(error, SendError::TooLong { len: outcome, .. } if outcome == len), "{error:?}");
}

#[test]
fn socket_files_live_as_long_as_their_endpoints() {
    let folder = tempfile::tempdir().unwrap();
    let addr = name_in(&folder, "socket");
    let path = addr.as_path().unwrap();
    let endpoint = Dgram::open(&addr).unwrap();
    assert_eq!(endpoint.local_addr().unwrap(), addr);
    let replace = DgramOptions::default().replace_stale(true);
    for options in [DgramOptions::default(), replace] {
        let error = Dgram::open_with(&addr, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "the endpoint has a receiver");
    }
    let connected = endpoint.connect(&addr).unwrap();
    assert!(path.exists(), "it goes on under another type");
    drop(connected);
    assert!(!path.exists());

    drop(Dgram::open_with(&addr, &DgramOptions::default().keep_file(true).mode(0o600)).unwrap());
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions()) & 0o777, 0o600);
    assert_eq!(Dgram::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    let endpoint = Dgram::open_with(&addr, &replace).unwrap();
    let handle = OwnedFd::from(endpoint);
    assert!(path.exists(), "it goes on under another owner");
    let again = Dgram::try_from(handle).unwrap();
    assert_eq!(again.local_addr().unwrap(), addr);
}

#[cfg(target_os = "linux")]
#[test]
fn abstract_names_of_senders_can_be_answered() {
    let there = Dgram::open(&Addr::unnamed()).unwrap(); // the system chooses
    let to = there.local_addr().unwrap();
    assert!(to.as_abstract_name().is_some(), "{to}");
    let ours = Addr::abstract_name(format!("spandrel test {} \0 with a NUL", std::process::id())).unwrap();
    let here = Dgram::open(&ours).unwrap();
    here.send_to(b"question", &to).unwrap();
    let mut octets = [0; 16];
    let (_, from) = there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
    assert_eq!(from, ours);
    there.send_to(b"answer", &from).unwrap();
    let (received, from) = here.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
    assert_eq!((&octets[..received.len()], from), (&b"answer"[..], to));
}

#[test]
fn unnamed_senders_have_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let to = name_in(&folder, "receiver");
    let there = Dgram::open(&to).unwrap();
    let nameless = Dgram::unnamed().unwrap();
    nameless.send_to(b"one", &to).unwrap();
    nameless.connect(&to).unwrap().send(b"two").unwrap();
    for _ in 0..2 {
        let (received, from) = there.recv_from_within(&mut [0; 4], TEST_TIMEOUT).unwrap();
        assert_eq!((received.len(), from), (3, Addr::unnamed()));
    }
}

/// A name of 108 octets fills the system's structure, without room for the NUL that others end with.
#[cfg(target_os = "linux")]
#[test]
fn a_sender_with_the_longest_name_counts_as_unnamed() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
    let folder = tempfile::tempdir().unwrap();
    let to = name_in(&folder, "receiver");
    let there = Dgram::open(&to).unwrap();
    let len = 108 - 1 - folder.path().as_os_str().len();
    let name = SocketAddrUnix::new(folder.path().join("n".repeat(len))).unwrap();
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None).unwrap();
    rustix::net::bind(&socket, &name).unwrap();
    let sender = Dgram::try_from(socket).unwrap();
    sender.send_to(b"hello", &to).unwrap();
    let (received, from) = there.recv_from_within(&mut [0; 8], TEST_TIMEOUT).unwrap();
    assert_eq!((received.len(), from), (5, Addr::unnamed()));
}

#[test]
fn handles_are_taken_over_only_if_they_match() {
    let stream: OwnedFd = std::os::unix::net::UnixStream::pair().unwrap().0.into();
    let inet: OwnedFd = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
    for wrong in [stream, inet] {
        let copy = wrong.try_clone().unwrap();
        assert_eq!(Dgram::try_from(wrong).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(ConnectedDgram::try_from(copy).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let (one, other) = ConnectedDgram::pair().unwrap();
    assert_eq!(Dgram::try_from(OwnedFd::from(one)).unwrap_err().kind(), ErrorKind::InvalidInput);
    ConnectedDgram::try_from(OwnedFd::from(other)).unwrap();
    let unnamed = OwnedFd::from(Dgram::unnamed().unwrap());
    assert_eq!(ConnectedDgram::try_from(unnamed).unwrap_err().kind(), ErrorKind::InvalidInput);
}
