//! The eight errors in the echo server of figure 7 (paper 000, section 3.1.1), shown to be prevented.
//!
//! ```text
//! int echo_server (u_short port_num)
//! {
//!     struct sockaddr_in s_addr;
//!     int length;                                     // (1) uninitialized variable
//!     char buf[BUFSIZ];
//!     int s_sd, n_sd;
//!     s_sd = socket (PF_UNIX, SOCK_DGRAM, 0);
//!                                                     // (2) forgot to "zero out" the structure
//!     s_addr.sin_family = AF_INET;                    // (3) the wrong address family
//!     s_addr.sin_port = port_num;                     // (4) forgot htons()
//!     s_addr.sin_addr.s_addr = INADDR_ANY;
//!     bind (s_sd, (struct sockaddr *) &s_addr, sizeof s_addr) == -1)
//!     if (n_sd = accept (s_sd, (struct sockaddr *) &s_addr, &length) == -1) {
//!                                                     // (5) accept() on a SOCK_DGRAM; (6) omitted parentheses
//!         int n;
//!         while (n = read (s_sd, buf, sizeof buf) > 0) // (6) again; (7) read from the passive s_sd
//!             write (n_sd, buf, n);                   // (8) forgot to check for short writes
//!     }
//! }
//! ```
//!
//! | error | why it cannot be written here | shown by |
//! | --- | --- | --- |
//! | (1) a length not initialised for `accept` | `accept` takes no argument and returns the address | `figure_7/error_1.rs` |
//! | (2) an address not zeroed | an address is made whole or not at all | `figure_7/error_2.rs` |
//! | (3) an address of another family | each family has an address type of its own | `figure_7/error_3.rs` |
//! | (4) `htons` forgotten | ports are numbers; the library handles the octet order | `error_4` below |
//! | (5) `accept` on datagrams | datagram endpoints have no such method | `figure_7/error_5.rs` |
//! | (6) parentheses omitted in a condition | assignments have no value, and results are not numbers | `figure_7/error_6.rs` |
//! | (7) reading from a passive endpoint | acceptors have no such method | `figure_7/error_7.rs` |
//! | (8) short writes | `send_n` sends all, or returns how much was sent | `error_8` below |
//!
//! The section names two more: forgetting `listen`, and counting a path's NUL. They are `error_9` and
//! `error_10` below. `figure_7/right.rs` is the server without errors, as figure 18 has it.

#[expect(dead_code, reason = "it is compiled, not called")]
mod right;

use crate::support;

use std::net::TcpStream;
use std::thread;

use spandrel_ipc::inet::{Acceptor, AcceptorOptions, Addr, Connector};
use spandrel_test_support::{pattern, read_some};
use support::pair_from;

/// The errors that a type prevents.
#[cfg(not(windows))] // where the tests are run on another machine than the one that built them, without a compiler
#[test]
fn errors_1_2_3_5_6_and_7_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/figure_7/error_*.rs");
}

/// Ports are numbers, the same on both sides and in other programs.
#[test]
fn error_4_ports_need_no_conversion() {
    // A port that would be another one in the other order.
    let acceptor = (0..10)
        .map(|_| Acceptor::open(&Addr::loopback(0)).unwrap())
        .find(|acceptor| acceptor.local_addr().unwrap().port().swap_bytes() != acceptor.local_addr().unwrap().port())
        .unwrap();
    let port = acceptor.local_addr().unwrap().port();
    let other_program = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let (server, from) = acceptor.accept().unwrap();
    assert_eq!(from.port(), other_program.local_addr().unwrap().port());
    assert_eq!(server.local_addr().unwrap().port(), port);
    assert_eq!(Addr::loopback(port).to_string(), format!("127.0.0.1:{port}"));
    assert_eq!(Addr::new("127.0.0.1", port).unwrap(), format!("127.0.0.1:{port}").parse().unwrap());
}

/// The plain call does write short when the peer is slow; the exact one sends all.
#[test]
fn error_8_short_writes_are_completed() {
    let acceptor = Acceptor::open_with(&Addr::loopback(0), &AcceptorOptions::default().recv_queue(8_192)).unwrap();
    let (client, server) = pair_from(&acceptor, &Connector::new().send_queue(8_192));
    let data = pattern(4 << 20);
    let first = client.try_send(&data).unwrap();
    assert!(first < data.len(), "a short write");
    let expected = data.clone();
    let receiver = thread::spawn(move || {
        let mut received = vec![0; expected.len()];
        server.recv_n(&mut received).unwrap();
        assert!(received == expected);
        server
    });
    client.send_n(&data[first..]).unwrap();
    drop(receiver.join().unwrap());

    // If it cannot, it returns the number of octets sent.
    let (client, server) = pair_from(&acceptor, &Connector::new());
    let error = client.send_n_within(&data.repeat(8), std::time::Duration::from_millis(30)).unwrap_err();
    client.close_writer().unwrap();
    let mut received = vec![0; error.transferred];
    server.recv_n(&mut received).unwrap();
    assert_eq!(server.recv(&mut [0; 1]).unwrap(), 0);
}

/// An acceptor listens from the first; a socket that does not listen is none.
#[test]
fn error_9_listening_is_not_forgotten() {
    let acceptor = Acceptor::open(&Addr::loopback(0)).unwrap();
    let client = TcpStream::connect(std::net::SocketAddr::from(acceptor.local_addr().unwrap())).unwrap();
    drop(acceptor.accept().unwrap());
    assert_eq!(read_some(&client, &mut [0]).unwrap(), 0);
    #[cfg(unix)]
    {
        let bound = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        bound.bind(&std::net::SocketAddr::from(Addr::loopback(0)).into()).unwrap();
        let error = Acceptor::try_from(std::os::fd::OwnedFd::from(bound)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
}

/// A path comes back as it was given, up to the longest that fits.
#[cfg(unix)]
#[test]
fn error_10_the_length_of_a_path_is_right() {
    use spandrel_ipc::unix;
    let folder = tempfile::tempdir().unwrap();
    let room = 103_usize.checked_sub(folder.path().as_os_str().len() + 1).expect("a short folder");
    for len in [1, 2, room] {
        let path = folder.path().join("x".repeat(len));
        let addr = unix::Addr::path(&path).unwrap();
        let acceptor = unix::Acceptor::open(&addr).unwrap();
        assert_eq!(acceptor.local_addr().unwrap().as_path(), Some(&*path));
        assert!(std::fs::exists(&path).unwrap());
        let client = unix::Connector::connect(&addr).unwrap();
        assert_eq!(client.remote_addr().unwrap(), addr);
    }
}
