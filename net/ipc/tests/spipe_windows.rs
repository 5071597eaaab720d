//! STREAM pipes on Windows: instances of a named pipe.
#![cfg(windows)]

use std::env;
use std::fs::File;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Write};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::is_timeout;
use spandrel_ipc::spipe::{Acceptor, AcceptorOptions, Addr, Connector, Stream, pair};
use spandrel_test_support::{ChildProcess, TEST_TIMEOUT, pattern, within_time};

const SHORT: Duration = Duration::from_millis(30);

/// Wine ignores `FILE_FLAG_FIRST_PIPE_INSTANCE` (up to release 8 at least).
fn is_wine() -> bool {
    Path::new(r"C:\windows\system32\winecfg.exe").exists()
}

/// A name that no other test has.
fn fresh() -> Addr {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    Addr::name(&format!("spandrel-test-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))).unwrap()
}

/// Both ends of an accepted pipe, and the acceptor.
fn accepted_pair() -> (Acceptor, Stream, Stream) {
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    let client = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
    (acceptor, client, server)
}

/// Sends until the queue to the peer, which does not receive, is full; returns the number of octets.
fn fill(stream: &Stream) -> usize {
    let data = pattern(50_000);
    let mut sent = 0;
    loop {
        match stream.try_send(&data[sent % 50_000..]) {
            Ok(n) => sent += n,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                return sent;
            }
        }
    }
}

/// Receives that many octets, which must be those of [`fill`].
fn drain(stream: &Stream, octets: usize) {
    let mut received = vec![0; octets];
    stream.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
    assert!(received.chunks(50_000).all(|chunk| chunk == &pattern(50_000)[..chunk.len()]));
}

#[test]
fn an_address_is_the_path_of_a_pipe() {
    let addr = Addr::path(r"\\.\PIPE\Some name").unwrap();
    assert_eq!(addr.to_string(), r"\\.\pipe\Some name");
    assert_eq!(addr, Addr::name("Some name").unwrap());
    assert_eq!(r"\\.\pipe\Some name".parse::<Addr>().unwrap(), addr);
    assert_eq!(addr.as_path().unwrap().to_str(), Some(r"\\.\pipe\Some name"));
    let long = r"\\.\pipe\".to_owned() + &"x".repeat(248);
    for wrong in
        ["", "name", r"\\.\pipe\", r"\\other\pipe\name", r"C:\pipe", "\\\\.\\pipe\\a\0b", r"\\.\pipe\a\b", &long]
    {
        assert_eq!(Addr::path(wrong).unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
    Addr::name(&"x".repeat(247)).unwrap();
    assert!(Addr::unnamed().as_path().is_none());
    assert_eq!(Acceptor::open(&Addr::unnamed()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Connector::connect(&Addr::unnamed()).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn each_client_gets_a_pipe() {
    let addr = fresh();
    let acceptor = Arc::new(Acceptor::open(&addr).unwrap());
    assert_eq!(acceptor.local_addr().unwrap(), addr);
    let clients: Vec<_> = (0..12)
        .map(|i| {
            let addr = addr.clone();
            thread::spawn(move || {
                let client = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
                client.send_n(&[i]).unwrap();
                let mut reply = [0];
                client.recv_n_within(&mut reply, TEST_TIMEOUT).unwrap();
                assert_eq!(reply[0], i + 100);
            })
        })
        .collect();
    let servers: Vec<_> = (0..3)
        .map(|_| {
            let acceptor = Arc::clone(&acceptor);
            thread::spawn(move || {
                for _ in 0..4 {
                    let (server, from) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
                    assert_eq!(from, Addr::unnamed());
                    let mut octet = [0];
                    server.recv_n_within(&mut octet, TEST_TIMEOUT).unwrap();
                    server.send_n(&[octet[0] + 100]).unwrap();
                }
            })
        })
        .collect();
    clients.into_iter().chain(servers).for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_name_belongs_to_one_acceptor() {
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    match Acceptor::open(&addr) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
        Ok(_) => assert!(is_wine(), "two acceptors have one name"),
    }
    drop(acceptor);
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::NotFound);
    Acceptor::open(&addr).unwrap();
}

#[test]
fn the_number_of_accepted_streams_is_limited() {
    let addr = fresh();
    let acceptor = Acceptor::open_with(&addr, &AcceptorOptions::default().connections(2)).unwrap();
    let clients = [(); 3].map(|()| {
        let client = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
        (client, acceptor.try_accept())
    });
    let [(_, Ok((first, _))), (_, Ok(_second)), (third, Err(refused))] = clients else { panic!("two are accepted") };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert_eq!(acceptor.accept_within(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    // All instances are taken, and still no other process can take the name.
    assert_eq!(Acceptor::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    assert_eq!(Connector::connect_timeout(&addr, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(first);
    let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
    third.send_n(b"third").unwrap();
    server.recv_n_within(&mut [0; 5], TEST_TIMEOUT).unwrap();
    for number in [0, 254] {
        let options = AcceptorOptions::default().connections(number);
        assert_eq!(Acceptor::open_with(&fresh(), &options).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn an_acceptor_respects_its_time_limits() {
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    assert_eq!(acceptor.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(acceptor.accept_within(SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    acceptor.set_nonblocking(true).unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    acceptor.set_nonblocking(false).unwrap();
    let client = thread::spawn(move || Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap());
    within_time(move || acceptor.accept().unwrap());
    client.join().unwrap();
}

#[test]
fn shutting_down_an_acceptor_ends_its_waits() {
    let addr = fresh();
    let acceptor = Arc::new(Acceptor::open(&addr).unwrap());
    let early = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    acceptor.accept_within(TEST_TIMEOUT).unwrap();
    let unaccepted = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    drop(acceptor.accept_within(TEST_TIMEOUT).unwrap());
    let (outcome_sender, outcome) = mpsc::channel();
    for _ in 0..3 {
        let (acceptor, outcome_sender) = (Arc::clone(&acceptor), outcome_sender.clone());
        thread::spawn(move || outcome_sender.send(acceptor.accept().map(drop).unwrap_err().kind()).unwrap());
    }
    outcome.recv_timeout(SHORT).unwrap_err(); // likely they wait by now; either way they end
    acceptor.shutdown().unwrap();
    acceptor.shutdown().unwrap();
    assert!(acceptor.is_shut_down());
    for _ in 0..3 {
        assert_eq!(outcome.recv_timeout(TEST_TIMEOUT).unwrap(), ErrorKind::NotConnected);
    }
    assert_eq!(acceptor.try_accept().unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::NotFound);
    for stream in [early, unaccepted] {
        assert_eq!(stream.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(), 0);
    }
}

#[test]
fn a_closed_client_is_accepted_with_its_octets() {
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    for words in ["first", "again"] {
        let client = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
        client.send_n(words.as_bytes()).unwrap();
        drop(client);
        let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
        let mut received = [0; 5];
        server.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
        assert_eq!(&received, words.as_bytes());
        assert_eq!(server.recv_within(&mut received, TEST_TIMEOUT).unwrap(), 0);
    }
}

#[test]
fn the_end_of_an_accepting_thread_loses_no_connection() {
    let addr = fresh();
    let acceptor = Arc::new(
        thread::spawn({
            let addr = addr.clone();
            move || Acceptor::open(&addr).unwrap()
        })
        .join()
        .unwrap(),
    );
    let other = Arc::clone(&acceptor);
    thread::spawn(move || other.accept_within(SHORT).unwrap_err()).join().unwrap();
    let _client = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    acceptor.accept_within(TEST_TIMEOUT).unwrap();
}

#[test]
fn every_form_of_transfer_brings_the_same_octets() {
    let (_acceptor, client, server) = accepted_pair();
    let mut octets = [0; 6];
    for (one, other) in [(&client, &server), (&server, &client)] {
        assert_eq!(one.send(b"abcdef").unwrap(), 6);
        other.recv_n(&mut octets).unwrap();
        assert_eq!(&octets, b"abcdef");
        assert_eq!(one.send_v(&[IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cdef")]).unwrap(), 6);
        let (mut first, mut second) = ([0; 4], [0; 9]);
        let mut slices = [IoSliceMut::new(&mut []), IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(other.recv_v(&mut slices).unwrap(), 6);
        assert_eq!((&first, &second[..2]), (b"abcd", &b"ef"[..]));
        one.send_n_v(&mut [IoSlice::new(b"abc"), IoSlice::new(b"def")]).unwrap();
        other.recv_n_v(&mut [IoSliceMut::new(&mut octets[..1]), IoSliceMut::new(&mut [0; 5])]).unwrap();
        one.send_n_within(b"abc", TEST_TIMEOUT).unwrap();
        one.send_n_v_within(&mut [IoSlice::new(b"def")], TEST_TIMEOUT).unwrap();
        other.recv_n_v_within(&mut [IoSliceMut::new(&mut octets)], TEST_TIMEOUT).unwrap();
        assert_eq!(&octets, b"abcdef");
        assert_eq!(one.try_send_v(&[IoSlice::new(b"abc")]).unwrap(), 3);
        assert_eq!(one.send_v_within(&[IoSlice::new(b"def")], TEST_TIMEOUT).unwrap(), 3);
        other.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(one.send_within(b"x", TEST_TIMEOUT).unwrap(), 1);
        assert_eq!(other.recv_v_within(&mut [IoSliceMut::new(&mut octets)], TEST_TIMEOUT).unwrap(), 1);
        assert_eq!((one.send(b"").unwrap(), other.recv(&mut []).unwrap()), (0, 0));
        let nothing = other.try_recv_v(&mut [IoSliceMut::new(&mut octets)]).unwrap_err();
        assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn large_transfers_run_both_ways_at_once() {
    let (_acceptor, client, server) = accepted_pair();
    let data = Arc::new(pattern(3_000_000));
    let ends: Vec<_> = [client, server]
        .into_iter()
        .map(Arc::new)
        .flat_map(|end| {
            let (sender, data) = (Arc::clone(&end), Arc::clone(&data));
            let send = thread::spawn(move || data.chunks(70_001).for_each(|chunk| sender.send_n(chunk).unwrap()));
            let receive = thread::spawn(move || {
                let mut received = vec![0; 3_000_000];
                end.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
                assert!(received == pattern(3_000_000));
            });
            [send, receive]
        })
        .collect();
    within_time(move || ends.into_iter().for_each(|end| end.join().unwrap()));
}

#[test]
fn receiving_respects_its_time_limits() {
    let (_acceptor, client, server) = accepted_pair();
    let mut octet = [0];
    assert_eq!(client.try_recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    let start = Instant::now();
    assert_eq!(client.recv_within(&mut octet, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= SHORT);
    client.set_recv_timeout(Some(SHORT)).unwrap();
    assert_eq!(client.recv_timeout().unwrap(), Some(SHORT));
    assert!(is_timeout(&client.recv(&mut octet).unwrap_err()));
    server.send_n(b"ab").unwrap();
    let stopped = client.recv_n_within(&mut [0; 3], SHORT).unwrap_err();
    assert_eq!((stopped.transferred, stopped.kind()), (2, ErrorKind::TimedOut));
    client.set_nonblocking(true).unwrap();
    assert_eq!(client.recv(&mut octet).unwrap_err().kind(), ErrorKind::WouldBlock);
    client.set_nonblocking(false).unwrap();
    client.set_recv_timeout(None).unwrap();
    // None of the waits that ended early consumed an octet.
    let reader = thread::spawn(move || client.recv(&mut octet).map(|n| (n, octet[0])).unwrap());
    server.send_n(b"z").unwrap();
    assert_eq!(within_time(|| reader.join().unwrap()), (1, b'z'));
    assert_eq!(server.set_recv_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(server.set_send_timeout(Some(Duration::ZERO)).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_send_timeout_reports_the_octets_sent() {
    let (_acceptor, client, server) = accepted_pair();
    let sent = fill(&client);
    assert!(sent > 0);
    assert_eq!(client.send_within(b"more", SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    client.set_send_timeout(Some(SHORT)).unwrap();
    assert_eq!(client.send_timeout().unwrap(), Some(SHORT));
    assert!(is_timeout(&client.send(b"more").unwrap_err()));
    client.set_nonblocking(true).unwrap();
    assert_eq!(client.send(b"more").unwrap_err().kind(), ErrorKind::WouldBlock);
    client.set_nonblocking(false).unwrap();
    drain(&server, sent);

    client.send_n_within(b"again", TEST_TIMEOUT).unwrap();
    server.recv_n_within(&mut [0; 5], TEST_TIMEOUT).unwrap();
    let data = pattern(1_000_000);
    let stopped = client.send_n_within(&data, SHORT).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::TimedOut);
    assert!(stopped.transferred > 0);
    let rest = thread::spawn({
        let data = data.clone();
        move || client.send_n_within(&data[stopped.transferred..], TEST_TIMEOUT).unwrap()
    });
    let mut received = vec![0; 1_000_000];
    server.recv_n_within(&mut received, TEST_TIMEOUT).unwrap();
    assert!(received == data);
    rest.join().unwrap();
    assert_eq!(server.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(), 0, "and nothing twice");
}

#[test]
fn sent_octets_survive_their_thread_and_their_end() {
    let (_acceptor, client, server) = accepted_pair();
    let sent = thread::spawn(move || fill(&client)).join().unwrap(); // and with it the end is closed
    drain(&server, sent);
    assert_eq!(server.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(), 0);
}

#[test]
fn a_silent_peer_delays_closing_for_a_limited_time() {
    let addr = fresh();
    let acceptor = Acceptor::open_with(&addr, &AcceptorOptions::default().connections(1)).unwrap();
    let idle = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
    fill(&server);
    drop(server);
    let _next = Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap();
    assert_eq!(acceptor.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock, "the end goes on");
    acceptor.accept_within(TEST_TIMEOUT).unwrap();
    assert_eq!(idle.send_within(b"x", TEST_TIMEOUT).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn shutting_down_an_end_ends_all_waits_and_keeps_sent_octets() {
    let (_acceptor, client, server) = accepted_pair();
    let client = Arc::new(client);
    let sent = fill(&client);
    let (outcome_sender, outcome) = mpsc::channel();
    for _ in 0..2 {
        let (receiver, sender) = (client.try_clone().unwrap(), Arc::clone(&client));
        let (one, other) = (outcome_sender.clone(), outcome_sender.clone());
        thread::spawn(move || one.send(receiver.recv(&mut [0; 9])).unwrap());
        thread::spawn(move || other.send(sender.send(b"more")).unwrap());
    }
    outcome.recv_timeout(SHORT).unwrap_err(); // likely they wait by now
    client.shutdown().unwrap();
    let mut ends: Vec<_> =
        (0..4).map(|_| outcome.recv_timeout(TEST_TIMEOUT).unwrap().map_err(|error| error.kind())).collect();
    ends.sort_by_key(Result::is_err);
    assert_eq!(ends, [Ok(0), Ok(0), Err(ErrorKind::BrokenPipe), Err(ErrorKind::BrokenPipe)]);
    assert_eq!(client.recv(&mut [0; 9]).unwrap(), 0);
    assert_eq!(client.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    drain(&server, sent);
    assert_eq!(
        server.recv_within(&mut [0; 1], TEST_TIMEOUT).unwrap(),
        0,
        "the end, though the other side is not dropped"
    );
    client.shutdown().unwrap();
}

#[test]
fn a_closed_peer_is_the_end_and_then_a_broken_pipe() {
    let (_acceptor, client, server) = accepted_pair();
    server.send_n(b"last").unwrap();
    drop(server);
    client.recv_n_within(&mut [0; 4], TEST_TIMEOUT).unwrap();
    for _ in 0..2 {
        assert_eq!(client.recv_within(&mut [0; 4], TEST_TIMEOUT).unwrap(), 0);
    }
    let stopped = client.recv_n(&mut [0; 4]).unwrap_err();
    assert_eq!((stopped.transferred, stopped.kind()), (0, ErrorKind::UnexpectedEof));
    assert_eq!(client.send(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);

    // Also in a waiting thread.
    let (_acceptor, client, server) = accepted_pair();
    let client = Arc::new(client);
    fill(&client);
    let (outcome_sender, outcome) = mpsc::channel();
    let (other, told_other) = (Arc::clone(&client), outcome_sender.clone());
    thread::spawn(move || outcome_sender.send(client.send(b"more").map_err(|error| error.kind())).unwrap());
    thread::spawn(move || told_other.send(other.recv(&mut [0; 1]).map_err(|error| error.kind())).unwrap());
    outcome.recv_timeout(SHORT).unwrap_err();
    drop(server);
    let ends = [outcome.recv_timeout(TEST_TIMEOUT).unwrap(), outcome.recv_timeout(TEST_TIMEOUT).unwrap()];
    assert!(ends.contains(&Ok(0)) && ends.contains(&Err(ErrorKind::BrokenPipe)), "{ends:?}");
}

#[test]
fn a_write_of_zero_octets_is_not_the_end() {
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    let mut client = File::options().read(true).write(true).open(addr.as_path().unwrap()).unwrap();
    let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
    assert_eq!(client.write(b"").unwrap(), 0);
    client.write_all(b"x").unwrap();
    let mut octet = [0];
    assert_eq!((server.recv_within(&mut octet, TEST_TIMEOUT).unwrap(), octet), (1, *b"x"));
}

#[test]
fn waits_that_end_early_neither_lose_nor_repeat_octets() {
    const MOMENT: Duration = Duration::from_micros(200);
    const ALL: usize = 2_000_000;
    let (_acceptor, client, server) = accepted_pair();
    let data = pattern(ALL);
    let sender = thread::spawn(move || {
        let mut sent = 0;
        while sent < ALL {
            match client.send_within(&data[sent..ALL.min(sent + 30_000)], MOMENT) {
                Ok(n) => sent += n,
                Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
            }
        }
        client
    });
    let mut received = Vec::new();
    let mut buffer = [0; 1000];
    while received.len() < ALL {
        match server.recv_within(&mut buffer, MOMENT) {
            Ok(0) => break,
            Ok(n) => received.extend_from_slice(&buffer[..n]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        }
        if received.len() % 7 == 0 {
            thread::yield_now(); // varies which side is quicker
        }
    }
    assert!(received == pattern(ALL));
    let client = sender.join().unwrap();
    assert_eq!(server.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    drop(client);
    assert_eq!(server.recv_within(&mut buffer, TEST_TIMEOUT).unwrap(), 0);
}

#[test]
fn killing_the_peer_process_closes_the_connection() {
    const ROLE: &str = "SPANDREL_TEST_PIPE";
    if let Ok(addr) = env::var(ROLE) {
        let client = Connector::connect_timeout(&addr.parse().unwrap(), TEST_TIMEOUT).unwrap();
        client.send_n(&process::id().to_le_bytes()).unwrap();
        thread::sleep(TEST_TIMEOUT); // receives nothing for as long as it lives
        return;
    }
    let addr = fresh();
    let acceptor = Acceptor::open(&addr).unwrap();
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "spipe_windows::killing_the_peer_process_closes_the_connection"]);
    let mut child = ChildProcess::start(program.env(ROLE, addr.to_string()).stdout(Stdio::null()));
    let (server, _) = acceptor.accept_within(TEST_TIMEOUT).unwrap();
    let mut id = [0; 4];
    server.recv_n_within(&mut id, TEST_TIMEOUT).unwrap();
    assert_eq!((u32::from_le_bytes(id), server.peer_process_id()), (child.id(), Some(child.id())));
    fill(&server);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(server.recv_within(&mut id, TEST_TIMEOUT).unwrap(), 0);
    assert_eq!(server.send_within(b"x", TEST_TIMEOUT).unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn several_threads_may_send_and_receive_at_one_end() {
    let (one, other) = pair().unwrap();
    let (one, other) = (Arc::new(one), Arc::new(other));
    let senders: Vec<_> = (1..=4_u8)
        .map(|mark| {
            let one = Arc::clone(&one);
            thread::spawn(move || (0..500).for_each(|_| one.send_n(&[mark; 100]).unwrap()))
        })
        .collect();
    let receivers: Vec<_> = (0..4)
        .map(|_| {
            let other = Arc::clone(&other);
            thread::spawn(move || {
                let mut counts = [0_usize; 5];
                let mut buffer = [0; 3000];
                loop {
                    match other.recv_within(&mut buffer, TEST_TIMEOUT).unwrap() {
                        0 => return counts,
                        n => buffer[..n].iter().for_each(|mark| counts[usize::from(*mark)] += 1),
                    }
                }
            })
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    one.shutdown().unwrap();
    let counts: Vec<_> = receivers.into_iter().map(|receiver| receiver.join().unwrap()).collect();
    let sum = |mark: usize| counts.iter().map(|counts| counts[mark]).sum::<usize>();
    assert_eq!([0, 1, 2, 3, 4].map(sum), [0, 50_000, 50_000, 50_000, 50_000]);
}

#[test]
fn the_peers_credentials_are_known() {
    let (_acceptor, client, server) = accepted_pair();
    let (one, other) = pair().unwrap();
    for stream in [client, server, one, other] {
        assert_eq!(stream.peer_process_id(), Some(process::id()));
    }
}

#[test]
fn the_ends_of_a_pair_are_one_pipe() {
    let pairs: Vec<_> = (0..20).map(|_| pair().unwrap()).collect();
    for (i, (one, other)) in pairs.iter().enumerate() {
        one.send_n(&[i as u8; 4]).unwrap();
        other.send_n(&[i as u8 + 100; 4]).unwrap();
    }
    for (i, (one, other)) in pairs.iter().enumerate() {
        let mut octets = [0; 4];
        other.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(octets, [i as u8; 4]);
        one.recv_n_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(octets, [i as u8 + 100; 4]);
    }
}
