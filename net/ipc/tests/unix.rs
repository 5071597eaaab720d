//! The UNIX-domain family: addresses, socket files, peer credentials.
#![cfg(unix)]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use spandrel_ipc::unix::{Acceptor, AcceptorOptions, Addr, Connector, pair};
use spandrel_ipc::{Connecting as _, Interest, Pollable, wait_ready};
use spandrel_test_support::TEST_TIMEOUT;
use tempfile::TempDir;

fn folder_and_addr() -> (TempDir, Addr) {
    let folder = TempDir::new().unwrap();
    let addr = Addr::path(folder.path().join("socket")).unwrap();
    (folder, addr)
}

#[test]
fn octets_go_both_ways() {
    let (_folder, addr) = folder_and_addr();
    let acceptor = Acceptor::open(&addr).unwrap();
    assert_eq!(acceptor.local_addr().unwrap(), addr);
    let client = Connector::connect(&addr).unwrap();
    let (server, from) = acceptor.accept().unwrap();
    assert!(from.is_unnamed() && client.local_addr().unwrap().is_unnamed());
    assert_eq!(client.remote_addr().unwrap(), addr);
    client.send_n(b"question").unwrap();
    let mut octets = [0; 8];
    server.recv_n(&mut octets).unwrap();
    server.send_n(b"answer").unwrap();
    assert_eq!(client.recv(&mut octets).unwrap(), 6);
    assert_eq!(&octets[..6], b"answer");
}

#[test]
fn the_ends_of_a_pair_are_connected() {
    let (one, other) = pair().unwrap();
    one.send_n(b"x").unwrap();
    assert_eq!(other.recv(&mut [0; 4]).unwrap(), 1);
    assert!(one.local_addr().unwrap().is_unnamed() && one.remote_addr().unwrap().is_unnamed());
    drop(one);
    assert_eq!(other.recv(&mut [0; 4]).unwrap(), 0);
}

#[test]
fn the_socket_file_lives_as_long_as_the_acceptor() {
    let (_folder, addr) = folder_and_addr();
    let path = addr.as_path().unwrap();
    let acceptor = Acceptor::open_with(&addr, &AcceptorOptions::default().mode(0o600)).unwrap();
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Acceptor::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    drop(acceptor);
    assert!(!path.exists());
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::NotFound);

    // A file that was put there meanwhile by another program is not removed.
    let acceptor = Acceptor::open(&addr).unwrap();
    fs::remove_file(path).unwrap();
    fs::write(path, "somebody else's").unwrap();
    drop(acceptor);
    assert!(path.exists());
}

#[test]
fn only_a_stale_file_is_replaced_and_only_on_request() {
    let (_folder, addr) = folder_and_addr();
    let replacing = AcceptorOptions::default().replace_stale(true);
    drop(Acceptor::open_with(&addr, &AcceptorOptions::default().keep_file(true)).unwrap());
    assert!(addr.as_path().unwrap().exists());
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(Acceptor::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    let alive = Acceptor::open_with(&addr, &replacing).unwrap();
    assert_eq!(Acceptor::open_with(&addr, &replacing).unwrap_err().kind(), ErrorKind::AddrInUse);
    Connector::connect(&addr).unwrap();
    drop(alive);

    fs::write(addr.as_path().unwrap(), "no socket").unwrap();
    assert_eq!(Acceptor::open_with(&addr, &replacing).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(fs::read(addr.as_path().unwrap()).unwrap(), b"no socket");
}

#[test]
fn concurrent_replacement_of_a_stale_file_leaves_one_listener() {
    let (_folder, addr) = folder_and_addr();
    for _ in 0..20 {
        drop(Acceptor::open_with(&addr, &AcceptorOptions::default().keep_file(true)).unwrap());
        let results: Vec<_> = std::thread::scope(|scope| {
            let open = || Acceptor::open_with(&addr, &AcceptorOptions::default().replace_stale(true));
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        Connector::connect(&addr).unwrap();
    }
}

#[test]
fn an_invalid_address_is_refused() {
    let long = "x".repeat(200);
    for text in ["", "nul\0inside", &long] {
        assert_eq!(Addr::path(text).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!("/tmp/x".parse::<Addr>().unwrap(), Addr::path("/tmp/x").unwrap());
    assert!("".parse::<Addr>().unwrap().is_unnamed());
    let marked = Addr::path("@not-abstract").unwrap();
    assert_eq!(marked.to_string(), "./@not-abstract");
    assert_eq!(marked.to_string().parse::<Addr>().unwrap().as_path().unwrap().to_str(), Some("./@not-abstract"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_name_needs_no_file() {
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let addr = acceptor.local_addr().unwrap();
    assert!(addr.as_abstract_name().is_some_and(|name| !name.is_empty()), "{addr:?}");
    assert_eq!(addr.to_string().parse::<Addr>().unwrap(), addr);
    let client = Connector::connect(&addr).unwrap();
    assert_eq!(client.remote_addr().unwrap(), addr);
    assert!(Addr::abstract_name([0; 108]).is_err());
    drop(acceptor);
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_reports_peer_credentials() {
    use spandrel_ipc::unix::Credentials;
    let acceptor = Acceptor::open(&Addr::unnamed()).unwrap();
    let client = Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    for stream in [client, server] {
        let peer = stream.peer_credentials().unwrap();
        assert_eq!(peer, Credentials::own());
        assert_eq!(peer.pid, std::process::id());
    }
}

#[cfg(target_os = "linux")] // others refuse what does not fit into the queue
#[test]
fn connecting_waits_for_a_full_queue() {
    let acceptor = Acceptor::open_with(&Addr::unnamed(), &AcceptorOptions::default().backlog(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let queued = Connector::connect(&addr).unwrap();
    let error = Connector::connect_timeout(&addr, Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);

    let mut waiting = Connector::new().start(&addr).unwrap();
    assert!(!waiting.is_plain() && waiting.try_complete().unwrap().is_none());
    assert!(
        wait_ready(&waiting, Interest::OUTPUT, Some(TEST_TIMEOUT)).unwrap().contains(Interest::OUTPUT),
        "time to try again"
    );
    drop((acceptor.accept().unwrap(), queued));
    let client = waiting.complete(Some(TEST_TIMEOUT)).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    client.send_n(b"in").unwrap();
    server.recv_n(&mut [0; 2]).unwrap();
}

#[test]
fn a_handle_converts_back_only_to_its_type() {
    use spandrel_ipc::{inet, unix};
    use std::os::fd::OwnedFd;
    let (one, other) = pair().unwrap();
    let one = unix::Stream::try_from(OwnedFd::from(one)).unwrap();
    one.send_n(b"still there").unwrap();
    other.recv_n(&mut [0; 11]).unwrap();
    let wrong = |result: Result<(), std::io::Error>| assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidInput);
    wrong(inet::Stream::try_from(OwnedFd::from(one)).map(drop));
    wrong(Acceptor::try_from(OwnedFd::from(other)).map(drop));
    let listening = || OwnedFd::from(inet::Acceptor::open(&inet::Addr::loopback(0)).unwrap());
    wrong(inet::Stream::try_from(listening()).map(drop));
    wrong(Acceptor::try_from(listening()).map(drop));
    inet::Acceptor::try_from(listening()).unwrap();
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    wrong(inet::Stream::try_from(OwnedFd::from(datagrams)).map(drop));
}
