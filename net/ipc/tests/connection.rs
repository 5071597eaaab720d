//! Establishing, refusing and cancelling connections.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};
use spandrel_ipc::inet::{Acceptor, AcceptorOptions, Addr, Connector};
use spandrel_ipc::{Interest, wait_ready};
use spandrel_test_support::{TEST_TIMEOUT, within_time};

/// An address without a listener, reserved while the socket lives.
fn vacant() -> (Addr, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(Addr::loopback(0)).into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap().into(), socket)
}

#[test]
fn connecting_without_a_listener_is_refused() {
    let (addr, _kept) = vacant();
    assert_eq!(Connector::connect(&addr).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(Connector::connect_timeout(&addr, TEST_TIMEOUT).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_socket_connected_to_itself_is_a_refusal() {
    // Bound to the address that it connects to, as can happen by chance with an ephemeral port.
    let met_itself = (0..10).any(|_| {
        let (addr, socket) = vacant();
        drop(socket);
        let error = Connector::new().local(addr).open(&addr).unwrap_err();
        error.kind() == ErrorKind::ConnectionRefused // or another process has the address by now
    });
    assert!(met_itself);
}

#[cfg(target_os = "linux")] // others refuse what does not fit into the queue
#[test]
fn connecting_to_a_silent_peer_times_out() {
    let options = AcceptorOptions::default().backlog(1);
    let silent = Acceptor::open_with(&Addr::loopback(0), &options).unwrap();
    let addr = silent.local_addr().unwrap();
    let limit = Duration::from_millis(100);
    // A full listener queue answers no further attempt.
    let mut queued = Vec::new();
    let error = loop {
        match Connector::connect_timeout(&addr, limit) {
            Ok(stream) if queued.len() < 16 => queued.push(stream),
            Ok(_) => panic!("a backlog of 1 took {} connections", queued.len() + 1),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(!queued.is_empty());
}

#[test]
fn a_timeout_of_zero_ends_at_once() {
    let error = Connector::connect_timeout(&Addr::loopback(1), Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[test]
fn a_connector_binds_its_local_address() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let local = Addr::new("127.0.0.2", 0).unwrap();
    let client = Connector::new().local(local).open(&acceptor.local_addr().unwrap()).unwrap();
    assert_eq!(client.local_addr().unwrap().ip(), local.ip());
    assert_eq!(acceptor.accept().unwrap().1, client.local_addr().unwrap());
}

#[test]
fn opening_at_an_address_in_use_fails() {
    let first = Acceptor::open(&Addr::loopback(0)).unwrap();
    let error = Acceptor::open(&first.local_addr().unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[test]
fn an_address_can_be_used_again_while_old_connections_linger() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let addr = acceptor.local_addr().unwrap();
    let client = Connector::connect(&addr).unwrap();
    let (server, _) = acceptor.accept().unwrap();
    drop((server, acceptor)); // this side closes first and so keeps the connection in TIME_WAIT
    assert_eq!(client.recv(&mut [0; 1]).unwrap(), 0);
    drop(client);
    Acceptor::open(&addr).unwrap();
}

#[test]
fn a_foreign_address_is_not_available() {
    // TEST-NET-1 (RFC 5737) belongs to no machine.
    let error = Acceptor::open(&Addr::new("192.0.2.1", 0).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
}

#[test]
fn shutting_down_ends_every_waiting_accept() {
    for waiting in [0, 1, 3] {
        let acceptor = Arc::new(Acceptor::open(&Addr::loopback(0)).unwrap());
        let threads: Vec<_> = (0..waiting)
            .map(|_| {
                let acceptor = Arc::clone(&acceptor);
                thread::spawn(move || acceptor.accept().unwrap_err().kind())
            })
            .collect();
        assert!(!acceptor.is_shut_down());
        acceptor.shutdown().unwrap();
        acceptor.shutdown().unwrap();
        assert!(acceptor.is_shut_down());
        for thread in threads {
            assert_eq!(within_time(move || thread.join().unwrap()), ErrorKind::NotConnected);
        }
        assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::NotConnected);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn shutting_down_ends_a_blocked_accept() {
    let acceptor = Arc::new(Acceptor::open(&Addr::loopback(0)).unwrap());
    let (outcome_sender, outcome) = std::sync::mpsc::channel();
    let thread = thread::spawn({
        let acceptor = Arc::clone(&acceptor);
        move || {
            outcome_sender.send(rustix::thread::gettid().as_raw_nonzero()).unwrap();
            acceptor.accept().unwrap_err().kind()
        }
    });
    let state = format!("/proc/self/task/{}/stat", outcome.recv().unwrap());
    let sleeps = |stat: String| stat.rsplit_once(") ").unwrap().1.starts_with('S');
    while !sleeps(std::fs::read_to_string(&state).unwrap()) {
        thread::yield_now();
    }
    acceptor.shutdown().unwrap();
    assert_eq!(within_time(move || thread.join().unwrap()), ErrorKind::NotConnected);
}

#[test]
fn shutting_down_resets_connections_not_yet_accepted() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let client = Connector::connect(&acceptor.local_addr().unwrap()).unwrap();
    client.set_recv_timeout(Some(TEST_TIMEOUT)).unwrap();
    acceptor.shutdown().unwrap();
    drop(acceptor);
    assert_eq!(client.recv(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_acceptor_survives_two_thousand_dropped_connections() {
    let acceptor = Arc::new(Acceptor::open(&Addr::loopback(0)).unwrap());
    let addr = acceptor.local_addr().unwrap();
    let server = thread::spawn({
        let acceptor = Arc::clone(&acceptor);
        move || {
            loop {
                let (stream, _) = acceptor.accept().unwrap();
                let mut octet = [0];
                if let Ok(1) = stream.recv(&mut octet) {
                    return octet[0];
                }
            }
        }
    });
    for i in 0..2_000 {
        let stream = Connector::connect(&addr).unwrap();
        if i % 2 == 0 {
            stream.set_linger(Some(Duration::ZERO)).unwrap(); // reset, perhaps before it is accepted
        }
    }
    let good = Connector::connect(&addr).unwrap();
    good.send_n(&[42]).unwrap();
    assert_eq!(within_time(move || server.join().unwrap()), 42);
}

#[test]
fn an_ipv6_acceptor_takes_ipv4_only_if_dual_stack() {
    if let Err(e) = UdpSocket::bind("[::1]:0") {
        return eprintln!("left out, as this machine has no IPv6: {e}");
    }
    let dual = AcceptorOptions::default().dual_stack(true);
    let dual = Acceptor::open_with(&Addr::any_v6(0), &dual).unwrap();
    let port = dual.local_addr().unwrap().port();
    let client = Connector::connect(&Addr::loopback(port)).unwrap();
    assert_eq!(dual.accept().unwrap().1.port(), client.local_addr().unwrap().port());

    let ipv4_left_free = (0..10).any(|_| {
        let v6_only = Acceptor::open(&Addr::any_v6(0)).unwrap();
        let port = v6_only.local_addr().unwrap().port();
        Acceptor::open(&Addr::any(port)).is_ok() // unless another process has it by chance
    });
    assert!(ipv4_left_free);
}

#[test]
fn accepted_streams_wait_and_send_without_delay_if_the_acceptor_says_so() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    acceptor.set_no_delay(true).unwrap();
    let addr = acceptor.local_addr().unwrap();
    for is_nonblocking in [false, true] {
        let client = Connector::connect(&addr).unwrap();
        acceptor.set_nonblocking(is_nonblocking).unwrap();
        wait_ready(&acceptor, Interest::INPUT, None).unwrap();
        let server = acceptor.accept_unnamed().unwrap();
        if cfg!(any(target_os = "linux", windows)) {
            assert!(server.no_delay().unwrap());
        }
        let receiving = thread::spawn(move || {
            let mut octet = [0];
            server.recv_n(&mut octet).unwrap();
            octet
        });
        client.send_n(b"x").unwrap();
        assert_eq!(&receiving.join().unwrap(), b"x");
    }
}

#[test]
fn a_nonblocking_accept_would_block() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    acceptor.set_nonblocking(true).unwrap();
    assert_eq!(acceptor.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}
