//! Options of TCP connections, urgent data, sending of files, and connecting to several addresses.

use crate::support;

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
#[cfg(target_os = "linux")]
use spandrel_ipc::inet::AcceptorOptions;
use spandrel_ipc::inet::{Acceptor, Addr, Connector, KeepAlive};
use spandrel_ipc::{Interest, wait_ready};
use spandrel_test_support::{TEST_TIMEOUT, in_background, pattern, within_time};
use support::{pair, pair_over};

fn loopbacks() -> Vec<Addr> {
    let mut addrs = vec![Addr::loopback(0)];
    match UdpSocket::bind("[::1]:0") {
        Ok(_) => addrs.push(Addr::loopback_v6(0)),
        Err(e) => eprintln!("IPv6 is left out, as this machine has none: {e}"),
    }
    addrs
}

#[test]
fn options_of_both_ip_versions_are_stored() {
    for addr in loopbacks() {
        let (client, _server) = pair_over(&addr);
        client.set_ttl(33).unwrap();
        assert_eq!(client.ttl().unwrap(), 33);
        #[cfg(unix)]
        {
            client.set_tos(0xb8).unwrap(); // DSCP "expedited forwarding", RFC 3246
            assert_eq!(client.tos().unwrap(), 0xb8);
            assert!(client.max_segment().unwrap() > 500);
        }
        for on in [true, false] {
            client.set_urgent_inline(on).unwrap();
            assert_eq!(client.urgent_inline().unwrap(), on);
        }
        // The number of probes is ignored where the system cannot set it, such as under Wine.
        let probes = KeepAlive { idle: Some(Duration::from_secs(50)), count: Some(4), ..KeepAlive::default() };
        client.set_keep_alive_probes(&probes).unwrap();
        assert!(client.keep_alive().unwrap());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn options_of_linux_are_stored() {
    let (client, _server) = pair();
    let seconds = Duration::from_secs;
    let probes = KeepAlive { idle: Some(seconds(50)), interval: Some(seconds(5)), count: Some(4) };
    client.set_keep_alive_probes(&probes).unwrap();
    assert_eq!(client.keep_alive_probes().unwrap(), probes);
    for on in [true, false] {
        client.set_cork(on).unwrap();
        assert_eq!(client.cork().unwrap(), on);
        client.set_quick_ack(on).unwrap();
        assert_eq!(client.quick_ack().unwrap(), on);
    }
    client.set_user_timeout(Some(seconds(7))).unwrap();
    assert_eq!(client.user_timeout().unwrap(), Some(seconds(7)));
    client.set_unsent_low_water(16_384).unwrap();
    assert_eq!(client.unsent_low_water().unwrap(), 16_384);
    client.set_congestion_control("reno").unwrap(); // always there
    assert_eq!(client.congestion_control().unwrap(), "reno");
    assert_eq!(client.set_congestion_control("no-such").unwrap_err().kind(), ErrorKind::NotFound);
    client.set_priority(5).unwrap();
    assert_eq!(client.priority().unwrap(), 5);
    assert!(client.incoming_cpu().is_ok());
    client.set_busy_poll(Duration::ZERO).unwrap();
    assert_eq!(client.busy_poll().unwrap(), Duration::ZERO);
    assert_eq!(client.device().unwrap(), None);
    // Privileges may be missing.
    match client.set_mark(7) {
        Ok(()) => assert_eq!(client.mark().unwrap(), 7),
        Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_connector_sets_options_before_the_first_packet() {
    let lo = spandrel_ipc::inet::Interface::with_addr("127.0.0.1".parse().unwrap()).unwrap();
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let client = Connector::new().device(&lo).tos(0x20).open(&acceptor.local_addr().unwrap()).unwrap();
    assert_eq!((client.device().unwrap().as_deref(), client.tos().unwrap()), (Some(lo.name()), 0x20));
    acceptor.accept().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn acceptors_share_a_port_with_reuse_port() {
    let sharing = AcceptorOptions::default().reuse_port(true);
    let one = Acceptor::open_with(&Addr::loopback(0), &sharing).unwrap();
    let addr = one.local_addr().unwrap();
    let other = Acceptor::open_with(&addr, &sharing).unwrap();
    assert_eq!(Acceptor::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    one.set_incoming_cpu(0).unwrap();
    let clients: Vec<_> = (0..64).map(|_| Connector::connect(&addr).unwrap()).collect();
    let mut taken = [0, 0];
    for (acceptor, taken) in [&one, &other].into_iter().zip(&mut taken) {
        acceptor.set_nonblocking(true).unwrap();
        while acceptor.accept().is_ok() {
            *taken += 1;
        }
    }
    assert_eq!(taken.iter().sum::<usize>(), clients.len());
}

#[cfg(unix)]
#[test]
fn an_urgent_octet_overtakes_earlier_ones() {
    let (client, server) = pair();
    assert_eq!(server.recv_urgent().unwrap_err().kind(), ErrorKind::WouldBlock);
    client.send_n(b"before").unwrap();
    client.send_urgent(b'!').unwrap();
    client.send_n(b"after").unwrap();
    assert_eq!(wait_ready(&server, Interest::EXCEPTION, Some(TEST_TIMEOUT)).unwrap(), Interest::EXCEPTION);
    assert_eq!(server.recv_urgent().unwrap(), b'!');
    assert_eq!(server.recv_urgent().unwrap_err().kind(), ErrorKind::WouldBlock);
    let mut skipped = Vec::new();
    while !server.at_mark().unwrap() {
        let mut octets = [0; 64];
        let received = server.recv(&mut octets).unwrap();
        skipped.extend_from_slice(&octets[..received]);
    }
    assert_eq!(skipped, b"before");
    let mut octets = [0; 5];
    server.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"after");

    server.set_urgent_inline(true).unwrap();
    client.send_n(b"a").unwrap();
    client.send_urgent(b'b').unwrap();
    let mut octets = [0; 2];
    server.recv_n(&mut octets).unwrap();
    assert_eq!(&octets, b"ab");
}

#[test]
fn a_part_of_a_file_is_sent() {
    let data = pattern(3_000_000);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&data).unwrap();
    let (client, server) = pair();
    let receiver = std::thread::spawn(move || {
        let mut received = vec![0; 2_900_000];
        server.recv_n(&mut received).unwrap();
        (received, server)
    });
    client.send_file(&file, 50_000..2_950_000).unwrap();
    let (received, server) = receiver.join().unwrap();
    assert!(received == data[50_000..2_950_000]);

    client.send_file(&file, 7..7).unwrap();
    let error = client.send_file(&file, 2_999_990..3_000_010).unwrap_err();
    assert_eq!((error.kind(), error.transferred), (ErrorKind::UnexpectedEof, 10));
    server.recv_n(&mut [0; 10]).unwrap();
    drop(server);
    let error = std::iter::repeat_with(|| client.send_file(&file, 0..100_000)).find_map(Result::err).unwrap();
    assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error:?}");
}

#[test]
fn connecting_continues_during_other_work() {
    use spandrel_ipc::Connecting as _;
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let local = Addr::new("127.0.0.3", 0).unwrap();
    let attempt = Connector::new().local(local).no_delay(true).start(&addr).unwrap();
    assert_eq!(attempt.target(), addr);
    let client = attempt.complete(Some(TEST_TIMEOUT)).unwrap();
    let (server, from) = acceptor.accept().unwrap();
    assert_eq!((from.ip(), client.no_delay().unwrap()), (local.ip(), true));
    server.send_n(b"x").unwrap();
    client.recv_n(&mut [0; 1]).unwrap(); // it waits again

    let mut attempt = Connector::new().start(&addr).unwrap();
    let taken = within_time(move || {
        loop {
            if let Some(stream) = attempt.try_complete().unwrap() {
                break (stream, attempt);
            }
            wait_ready(&attempt, Interest::OUTPUT, None).unwrap();
        }
    });
    let (_stream, mut attempt) = taken;
    assert_eq!(attempt.try_complete().unwrap_err().kind(), ErrorKind::Other, "only once");
}

/// An address without a listener, reserved while the socket lives.
fn vacant() -> (Addr, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(Addr::loopback(0)).into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap().into(), socket)
}

#[test]
fn the_address_that_answers_is_connected() {
    let (deaf, _kept) = vacant();
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let start = Instant::now();
    // A refusal does not use up the time between two attempts.
    let client = Connector::new().stagger(TEST_TIMEOUT).open_any(&[deaf, deaf, addr]).unwrap();
    assert_eq!(client.remote_addr().unwrap(), addr);
    assert!(start.elapsed() < TEST_TIMEOUT);
    acceptor.accept().unwrap();
    assert_eq!(Connector::new().open_any(&[deaf, deaf]).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(Connector::new().open_any(&[]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let client = Connector::new().timeout(TEST_TIMEOUT).open_host("localhost", addr.port()).unwrap();
    assert_eq!(client.remote_addr().unwrap().port(), addr.port());
    let error = Connector::new().timeout(Duration::ZERO).open_any(&[addr]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[cfg(target_os = "linux")] // others refuse what does not fit into the queue
#[test]
fn a_silent_address_does_not_hold_up_the_next() {
    let silent = Acceptor::open_with(&Addr::loopback(0), &AcceptorOptions::default().backlog(0)).unwrap();
    let deaf = silent.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = Connector::connect_timeout(&deaf, Duration::from_millis(500)) {
        queued.push(stream);
        assert!(queued.len() < 16, "the queue fills");
    }
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let client =
        Connector::new().timeout(TEST_TIMEOUT).stagger(Duration::from_millis(10)).open_any(&[deaf, addr]).unwrap();
    assert_eq!(client.remote_addr().unwrap(), addr);
    // The number of concurrent attempts is bounded, even if many addresses are silent.
    let to_deaf = format!(":{:04X} 02 ", deaf.port()); // in the state SYN_SENT
    let under_way = || std::fs::read_to_string("/proc/net/tcp").unwrap().matches(&to_deaf).count();
    let most_at_once = |time: Duration| {
        let attempts = in_background(move || {
            let connector = Connector::new().timeout(time).stagger(Duration::from_micros(1));
            connector.open_any(&[deaf; 1_000]).unwrap_err().kind()
        });
        let mut most = 0;
        loop {
            match attempts.try_recv() {
                Ok(kind) => {
                    assert_eq!(kind, ErrorKind::TimedOut);
                    break most;
                }
                // The system returns the table by pages: attempts that end during one reading may stand beside their
                // successors. The lower of two readings in succession does not have both.
                Err(_) => most = most.max(under_way().min(under_way())),
            }
        }
    };
    // On a loaded machine, this thread may not run in a second.
    let most = [1, 5, 25].into_iter().map(|seconds| most_at_once(Duration::from_secs(seconds))).find(|most| *most >= 2);
    assert!(most.is_some_and(|most| most <= 16), "{most:?} attempts at once");

    let limit = Duration::from_millis(50);
    let error = Connector::new().timeout(limit).stagger(limit / 10).open_any(&[deaf, deaf]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
