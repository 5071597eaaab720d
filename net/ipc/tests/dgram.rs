//! Datagrams of both roles, over every family.

use std::fmt::Debug;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use spandrel_ipc::dgram::{Batch, Connected, SendError, Unconnected};
use spandrel_ipc::inet::{self, Addr, ConnectedDgram, Dgram, DgramOptions};
use spandrel_ipc::{Interest, is_timeout, wait_ready};
use spandrel_test_support::TEST_TIMEOUT;

const SHORT: Duration = Duration::from_millis(30);

/// The loopback addresses that this machine has.
fn loopbacks() -> Vec<Addr> {
    let mut addrs = vec![Addr::loopback(0)];
    match UdpSocket::bind("[::1]:0") {
        Ok(_) => addrs.push(Addr::loopback_v6(0)),
        Err(e) => eprintln!("IPv6 is left out, as this machine has none: {e}"),
    }
    addrs
}

/// The behaviour of every unconnected endpoint; `open` returns one with its own name.
fn unconnected<D: Unconnected>(open: impl Fn() -> D) {
    let (here, there) = (open(), open());
    let (our_name, their_name) = (here.local_addr().unwrap(), there.local_addr().unwrap());
    let mut octets = [0; 64];

    // Boundaries are kept, also of datagrams of zero octets, and senders are reported.
    for data in [&b"first"[..], b"", b"the third, and longer"] {
        here.send_to(data, &their_name).unwrap();
    }
    for data in [&b"first"[..], b"", b"the third, and longer"] {
        let (received, from) = there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!((&octets[..received.len()], &from), (data, &our_name));
        assert!(!received.is_truncated());
        assert_eq!(received.datagram_len(), Some(data.len()));
    }

    // A datagram longer than the buffer is truncated, and reported so.
    here.try_send_to(b"eleven octs", &their_name).unwrap();
    assert_eq!(wait_ready(&there, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
    let (received, from) = there.recv_from(&mut octets[..4]).unwrap();
    assert_eq!((received.len(), received.is_truncated(), from), (4, true, our_name.clone()));
    if cfg!(target_os = "linux") {
        assert_eq!(received.datagram_len(), Some(11));
    }
    assert_eq!(&octets[..4], b"elev");

    // The queue is empty now.
    assert_eq!(there.try_recv_from(&mut octets).unwrap_err().kind(), ErrorKind::WouldBlock);
    let start = Instant::now();
    assert_eq!(there.recv_from_within(&mut octets, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= SHORT);
    assert!(wait_ready(&there, Interest::INPUT, Some(Duration::ZERO)).unwrap().is_none());

    // A received batch returns to its senders.
    let mut batch = Batch::new(8, 16);
    for word in ["some", "go", "together"] {
        batch.push_to(word.as_bytes(), &their_name).unwrap();
    }
    assert_eq!((here.send_batch(&mut batch).unwrap(), batch.len()), (3, 0));
    let mut answered = 0;
    while answered < 3 {
        assert_eq!(wait_ready(&there, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
        let came = there.recv_batch(&mut batch).unwrap();
        assert!((1..=3).contains(&came) && batch.len() == came);
        assert!(batch.iter().all(|datagram| datagram.addr().unwrap() == our_name));
        (0..came).for_each(|index| batch.octets_mut(index).unwrap().make_ascii_uppercase());
        answered += there.send_batch(&mut batch).unwrap();
    }
    for word in ["SOME", "GO", "TOGETHER"] {
        let (received, from) = here.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!((&octets[..received.len()], from), (word.as_bytes(), their_name.clone()));
    }
}

/// The behaviour of both ends of a connected pair.
fn connected<D: Connected>((here, there): (D, D)) {
    let mut octets = [0; 64];
    for data in [&b"first"[..], b"", b"the third, and longer"] {
        here.send(data).unwrap();
        let received = there.recv_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!((&octets[..received.len()], received.is_truncated()), (data, false));
    }
    there.send_within(b"eleven octs", TEST_TIMEOUT).unwrap();
    let received = here.recv(&mut octets[..4]).unwrap();
    assert_eq!((received.len(), received.is_truncated()), (4, true));

    assert_eq!(here.try_recv(&mut octets).unwrap_err().kind(), ErrorKind::WouldBlock);
    let start = Instant::now();
    assert_eq!(here.recv_within(&mut octets, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= SHORT);

    let mut batch = Batch::new(3, 8);
    batch.push(b"one").unwrap();
    batch.push_with(|room| room.iter_mut().zip(b"two").map(|(to, octet)| *to = *octet).count()).unwrap();
    assert_eq!(here.send_batch(&mut batch).unwrap(), 2);
    let mut words = Vec::new();
    while words.len() < 2 {
        assert_eq!(wait_ready(&there, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
        there.recv_batch(&mut batch).unwrap();
        words.extend(batch.iter().map(|datagram| datagram.octets().to_vec()));
    }
    assert_eq!(words, [b"one", b"two"]);
}

fn inet_pair(loopback: &Addr) -> (ConnectedDgram, ConnectedDgram) {
    let (here, there) = (Dgram::open(loopback).unwrap(), Dgram::open(loopback).unwrap());
    let (our_name, their_name) = (here.local_addr().unwrap(), there.local_addr().unwrap());
    let (here, there) = (here.connect(&their_name).unwrap(), there.connect(&our_name).unwrap());
    assert_eq!((here.local_addr().unwrap(), here.remote_addr().unwrap()), (our_name, their_name));
    (here, there)
}

#[test]
fn internet_datagrams_meet_the_contract() {
    for loopback in loopbacks() {
        unconnected(|| Dgram::open(&loopback).unwrap());
        connected(inet_pair(&loopback));
        unconnected(|| inet::Multicast::open(&loopback).unwrap());
    }
}

#[cfg(unix)]
#[test]
fn unix_domain_datagrams_meet_the_contract() {
    use spandrel_ipc::unix;
    let folder = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    let name = |_: &str| {
        count.set(count.get() + 1);
        unix::Addr::path(folder.path().join(count.get().to_string())).unwrap()
    };
    unconnected(|| unix::Dgram::open(&name("dgram")).unwrap());
    connected(unix::ConnectedDgram::pair().unwrap());
    let (here, there) = (name("here"), name("there"));
    let (ours, theirs) = (unix::Dgram::open(&here).unwrap(), unix::Dgram::open(&there).unwrap());
    connected((ours.connect(&there).unwrap(), theirs.connect(&here).unwrap()));
    #[cfg(target_os = "linux")]
    unconnected(|| unix::Dgram::open(&unix::Addr::unnamed()).unwrap());
}

#[test]
fn datagrams_are_gathered_and_scattered() {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    let pieces = [IoSlice::new(b"ga"), IoSlice::new(b""), IoSlice::new(b"thered")];
    here.send_to_v(&pieces, &to).unwrap();
    here.try_send_to_v(&pieces, &to).unwrap();
    here.send_to_v_within(&pieces, &to, TEST_TIMEOUT).unwrap();
    let (mut head, mut tail) = ([0; 3], [0; 20]);
    for form in 0..3 {
        let slices = &mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(wait_ready(&there, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
        let (received, _) = match form {
            0 => there.recv_from_v(slices).unwrap(),
            1 => there.try_recv_from_v(slices).unwrap(),
            _ => there.recv_from_v_within(slices, TEST_TIMEOUT).unwrap(),
        };
        assert_eq!((received.len(), received.is_truncated()), (8, false));
        assert_eq!((&head, &tail[..5]), (b"gat", &b"hered"[..]));
    }
    here.send_to(b"twenty-four octets long!", &to).unwrap();
    let (received, _) = there.recv_from_v(&mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail[..4])]).unwrap();
    assert_eq!((received.len(), received.is_truncated()), (7, true));

    let (one, other) = inet_pair(&Addr::loopback(0));
    one.send_v(&pieces).unwrap();
    one.try_send_v(&pieces).unwrap();
    one.send_v_within(&pieces, TEST_TIMEOUT).unwrap();
    for form in 0..3 {
        let slices = &mut [IoSliceMut::new(&mut head), IoSliceMut::new(&mut tail)];
        assert_eq!(wait_ready(&other, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap(), Interest::INPUT);
        let received = match form {
            0 => other.recv_v(slices).unwrap(),
            1 => other.try_recv_v(slices).unwrap(),
            _ => other.recv_v_within(slices, TEST_TIMEOUT).unwrap(),
        };
        assert_eq!(received.len(), 8);
    }
}

#[test]
fn more_slices_than_one_call_takes_are_refused() {
    let (here, _there) = inet_pair(&Addr::loopback(0));
    let error = here.send_v(&vec![IoSlice::new(b"x"); 1025]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    here.send_v(&vec![IoSlice::new(b"x"); 1024]).unwrap();
}

#[test]
fn a_connected_endpoint_receives_from_its_peer_alone() {
    let (here, there) = inet_pair(&Addr::loopback(0));
    let stranger = Dgram::open(&Addr::loopback(0)).unwrap();
    stranger.send_to(b"psst", &here.local_addr().unwrap()).unwrap();
    there.send(b"hello").unwrap();
    let mut octets = [0; 16];
    let received = here.recv_within(&mut octets, TEST_TIMEOUT).unwrap();
    assert_eq!(&octets[..received.len()], b"hello");
    assert_eq!(here.try_recv(&mut octets).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[cfg(unix)]
#[test]
fn a_peer_can_be_disconnected() {
    for loopback in loopbacks() {
        let (here, there) = inet_pair(&loopback);
        let addr = here.local_addr().unwrap();
        let here = here.disconnect().unwrap();
        assert_eq!(here.local_addr().unwrap(), addr);
        let stranger = Dgram::open(&loopback).unwrap();
        stranger.send_to(b"now you hear me", &addr).unwrap();
        let mut octets = [0; 16];
        let (_, from) = here.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(from, stranger.local_addr().unwrap());
        drop(there);
    }
    // Also an endpoint with an address chosen by the system.
    let there = Dgram::open(&Addr::loopback(0)).unwrap();
    let here = ConnectedDgram::connect(&there.local_addr().unwrap()).unwrap();
    let port = here.local_addr().unwrap().port();
    assert_eq!(here.disconnect().unwrap().local_addr().unwrap().port(), port);
}

/// UDP reports a missing receiver in only one way, and stops when a receiver opens.
#[test]
fn an_absent_peer_is_reported_once_and_later() {
    // An address of this host that no other test uses, so that its port stays free.
    let host = if cfg!(target_os = "linux") { "127.7.7.7" } else { "127.0.0.1" };
    let taken = Dgram::open(&Addr::new(host, 0).unwrap()).unwrap();
    let addr = taken.local_addr().unwrap();
    drop(taken);
    let here = ConnectedDgram::connect(&addr).unwrap();

    let mut octets = [0; 16];
    if cfg!(unix) {
        here.send(b"anybody?").unwrap();
        assert_eq!(here.recv_within(&mut octets, TEST_TIMEOUT).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(here.recv_within(&mut octets, SHORT).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    if cfg!(target_os = "linux") {
        here.send(b"anybody?").unwrap();
        wait_ready(&here, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap();
        let error = here.send(b"not sent").unwrap_err();
        assert!(matches!(error, SendError::Refused(_)), "{error:?}");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(std::io::Error::from(error).kind(), ErrorKind::ConnectionRefused);
        here.send(b"anybody?").unwrap();
        wait_ready(&here, Interest::INPUT, Some(TEST_TIMEOUT)).unwrap();
        assert_eq!(here.take_error().unwrap().unwrap().kind(), ErrorKind::ConnectionRefused);
    }

    let there = Dgram::open(&addr).unwrap();
    here.send(b"at last").unwrap();
    let (received, from) = there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
    assert_eq!((&octets[..received.len()], from), (&b"at last"[..], here.local_addr().unwrap()));
}

/// An unconnected endpoint continues whether or not its datagrams were received.
#[test]
fn an_unconnected_endpoint_ignores_absent_receivers() {
    let host = if cfg!(target_os = "linux") { "127.7.7.8" } else { "127.0.0.1" };
    let taken = Dgram::open(&Addr::new(host, 0).unwrap()).unwrap();
    let absent = taken.local_addr().unwrap();
    drop(taken);
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    here.send_to(b"anybody?", &absent).unwrap();
    here.send_to(b"anybody?", &absent).unwrap();
    there.send_to(b"somebody", &here.local_addr().unwrap()).unwrap();
    let mut octets = [0; 16];
    let (received, _) = here.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
    assert_eq!(&octets[..received.len()], b"somebody");
}

#[test]
fn a_datagram_too_long_is_reported_with_its_length() {
    let (here, there) = inet_pair(&Addr::loopback(0));
    let data = vec![7; 65_508];
    for error in [
        here.send(&data).unwrap_err(),
        here.try_send(&data).unwrap_err(),
        here.send_v(&[IoSlice::new(&data[..60_000]), IoSlice::new(&data[60_000..])]).unwrap_err(),
        Dgram::open(&Addr::loopback(0)).unwrap().send_to(&data, &there.local_addr().unwrap()).unwrap_err(),
    ] {
        assert!(matches!(error, SendError::TooLong { len: 65_508, .. }), "{error:?}");
        assert_eq!((error.kind(), error.is_timeout()), (ErrorKind::InvalidInput, false));
        assert_eq!(error.to_string(), "a datagram of 65508 octets is too long to be sent in one piece");
    }
    here.send(&data[..65_507]).unwrap();
    let mut room = vec![0; 70_000];
    assert_eq!(there.recv_within(&mut room, TEST_TIMEOUT).unwrap().len(), 65_507);
}

#[test]
fn plain_forms_respect_timeouts_and_nonblocking_mode() {
    let (here, _there) = inet_pair(&Addr::loopback(0));
    let mut octets = [0; 4];
    here.set_recv_timeout(Some(SHORT)).unwrap();
    assert!(here.recv_timeout().unwrap().is_some());
    let start = Instant::now();
    let error = here.recv(&mut octets).unwrap_err();
    assert!(is_timeout(&error), "{error}");
    assert!(start.elapsed() >= SHORT);
    assert!(is_timeout(&here.recv_batch(&mut Batch::new(4, 4)).unwrap_err()));
    here.set_recv_timeout(None).unwrap();
    here.set_nonblocking(true).unwrap();
    assert_eq!(here.recv(&mut octets).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(here.recv_v(&mut [IoSliceMut::new(&mut octets)]).unwrap_err().kind(), ErrorKind::WouldBlock);
    for zero in [here.set_recv_timeout(Some(Duration::ZERO)), here.set_send_timeout(Some(Duration::ZERO))] {
        assert_eq!(zero.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    here.set_send_timeout(Some(TEST_TIMEOUT)).unwrap();
    assert_eq!(here.send_timeout().unwrap(), Some(TEST_TIMEOUT));
}

#[test]
fn a_wait_ends_when_a_datagram_comes() {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    let receiver = thread::spawn(move || {
        let mut octets = [0; 8];
        let mut batch = Batch::new(4, 8);
        assert_eq!(there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap().0.len(), 5);
        there.recv_batch_within(&mut batch, TEST_TIMEOUT).unwrap();
        batch.get(0).unwrap().octets().to_vec()
    });
    here.send_to(b"first", &to).unwrap();
    here.send_to(b"second", &to).unwrap();
    assert_eq!(receiver.join().unwrap(), b"second");
}

#[test]
fn options_are_stored() {
    for loopback in loopbacks() {
        let endpoint = Dgram::open(&loopback).unwrap();
        endpoint.set_ttl(17).unwrap();
        assert_eq!(endpoint.ttl().unwrap(), 17);
        endpoint.set_send_queue(30_000).unwrap();
        endpoint.set_recv_queue(30_000).unwrap();
        assert!(endpoint.send_queue().unwrap() >= 30_000 && endpoint.recv_queue().unwrap() >= 30_000);
        #[cfg(unix)]
        {
            endpoint.set_tos(0xb8).unwrap();
            assert_eq!(endpoint.tos().unwrap(), 0xb8);
        }
        #[cfg(target_os = "linux")]
        for on in [true, false] {
            endpoint.set_dont_fragment(on).unwrap();
            assert_eq!(endpoint.dont_fragment().unwrap(), on);
        }
    }
    let options = DgramOptions::default().send_queue(20_000).recv_queue(20_000);
    let endpoint = Dgram::open_with(&Addr::loopback(0), &options).unwrap();
    assert!(endpoint.send_queue().unwrap() >= 20_000 && endpoint.recv_queue().unwrap() >= 20_000);
}

#[test]
fn an_address_is_shared_only_with_reuse_address() {
    let first = Dgram::open(&Addr::loopback(0)).unwrap();
    let addr = first.local_addr().unwrap();
    assert_eq!(Dgram::open(&addr).unwrap_err().kind(), ErrorKind::AddrInUse);
    #[cfg(unix)]
    {
        let shared = DgramOptions::default().reuse_port(true);
        let first = Dgram::open_with(&Addr::loopback(0), &shared).unwrap();
        Dgram::open_with(&first.local_addr().unwrap(), &shared).unwrap();
    }
}

#[test]
fn a_dual_stack_endpoint_receives_from_both_versions() {
    if loopbacks().len() < 2 {
        return;
    }
    let both = Dgram::open_with(&Addr::any_v6(0), &DgramOptions::default().dual_stack(true)).unwrap();
    let port = both.local_addr().unwrap().port();
    let mut octets = [0; 8];
    for loopback in loopbacks() {
        let client = Dgram::open(&loopback).unwrap();
        client.send_to(b"hello", &loopback.with_port(port)).unwrap();
        let (_, from) = both.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
        both.send_to(b"answer", &from).unwrap();
        assert_eq!(client.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap().0.len(), 6);
    }
}

#[test]
fn endpoints_are_shared_between_threads() {
    fn check<T: Send + Sync + Debug>(_: &T) {}
    let (here, there) = inet_pair(&Addr::loopback(0));
    check(&here);
    check(&Batch::<Addr>::new(1, 1));
    let other = here.try_clone().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (0..50).for_each(|_| here.send(b"octets").unwrap()));
        scope.spawn(|| (0..50).for_each(|_| other.send(b"octets").unwrap()));
        let mut octets = [0; 8];
        for _ in 0..100 {
            assert_eq!(there.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 6);
        }
    });
}
