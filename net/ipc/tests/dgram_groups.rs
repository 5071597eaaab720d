//! Multicast and broadcast, on the loopback interface.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use spandrel_ipc::dgram::SendError;
use spandrel_ipc::inet::{Addr, Broadcast, Dgram, DgramOptions, Interface, Multicast};
use spandrel_test_support::TEST_TIMEOUT;

fn loopback() -> Interface {
    Interface::with_addr(Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// A group that no other test, in this process or another, is likely to use.
fn group(number: u8) -> Ipv4Addr {
    let id = std::process::id();
    Ipv4Addr::new(239, 128 | number, (id >> 8) as u8, id as u8)
}

fn member(port: u16, group: Ipv4Addr) -> Multicast {
    let member = Multicast::open(&Addr::any(port)).unwrap();
    member.join(group.into(), Some(&loopback())).unwrap();
    member
}

/// A sender over the loopback interface from `host`, and its destination.
fn sender(host: &str) -> Multicast {
    let sender = Multicast::open(&Addr::new(host, 0).unwrap()).unwrap();
    sender.set_interface(Some(&loopback())).unwrap();
    sender
}

fn at(group: impl Into<IpAddr>, port: u16) -> Addr {
    SocketAddr::new(group.into(), port).into()
}

#[track_caller]
fn next(endpoint: &Multicast) -> (Vec<u8>, Addr) {
    let mut octets = [0; 64];
    let (received, from) = endpoint.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
    (octets[..received.len()].to_vec(), from)
}

#[test]
fn exactly_the_members_of_a_group_receive() {
    let (joined, other) = (group(1), group(2));
    let first = member(0, joined);
    let port = first.local_addr().unwrap().port();
    let (second, outsider) = (member(port, joined), member(port, other));
    let sender = sender("127.0.0.1");
    sender.send_to(b"to members", &at(joined, port)).unwrap();
    sender.send_to(b"to the other group", &at(other, port)).unwrap();
    for member in [&first, &second] {
        assert_eq!(next(member), (b"to members".to_vec(), sender.local_addr().unwrap()));
    }
    if cfg!(windows) {
        return; // Wine delivers to an endpoint the datagrams of all groups that the host has joined
    }
    for member in [&first, &second] {
        assert_eq!(member.try_recv_from(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }
    assert_eq!(next(&outsider).0, b"to the other group");
}

#[test]
fn a_left_group_is_not_received() {
    let (left, kept) = (group(3), group(4));
    let endpoint = member(0, left);
    let port = endpoint.local_addr().unwrap().port();
    endpoint.join(kept.into(), Some(&loopback())).unwrap();
    let sender = sender("127.0.0.1");
    sender.send_to(b"before", &at(left, port)).unwrap();
    assert_eq!(next(&endpoint).0, b"before");
    endpoint.leave(left.into(), Some(&loopback())).unwrap();
    sender.send_to(b"after", &at(left, port)).unwrap();
    sender.send_to(b"to the group that was kept", &at(kept, port)).unwrap();
    assert_eq!(next(&endpoint).0, b"to the group that was kept");
}

#[test]
fn a_source_specific_member_receives_from_its_source_alone() {
    let group = group(5);
    let endpoint = Multicast::open(&Addr::any(0)).unwrap();
    let port = endpoint.local_addr().unwrap().port();
    let source = Ipv4Addr::new(127, 0, 0, 9);
    if !cfg!(target_os = "linux") {
        return; // elsewhere 127.0.0.9 is not an address of this host
    }
    endpoint.join_source(group, source, Some(&loopback())).unwrap();
    let (wanted, unwanted) = (sender("127.0.0.9"), sender("127.0.0.1"));
    unwanted.send_to(b"not heard", &at(group, port)).unwrap();
    wanted.send_to(b"heard", &at(group, port)).unwrap();
    assert_eq!(next(&endpoint), (b"heard".to_vec(), wanted.local_addr().unwrap()));
    endpoint.leave_source(group, source, Some(&loopback())).unwrap();
    endpoint.leave_source(group, source, Some(&loopback())).unwrap_err();
}

/// An interface over which IPv6 groups can be reached: many systems have no route to them over the loopback
/// interface.
fn interface_for_v6(group: Ipv6Addr) -> Option<Interface> {
    let probe = Multicast::open(&Addr::any_v6(0)).ok()?;
    probe.set_multicast_ttl(0).unwrap();
    Interface::all().unwrap().into_iter().find(|interface| {
        let to = SocketAddrV6::new(group, 9, 0, interface.index());
        let has_v6 = interface.addrs().iter().any(IpAddr::is_ipv6);
        has_v6 && probe.set_interface(Some(interface)).is_ok() && probe.send_to(b"", &SocketAddr::V6(to).into()).is_ok()
    })
}

#[test]
fn ipv6_groups_work_alike() {
    let group = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0x5a4d, std::process::id() as u16);
    let Some(interface) = interface_for_v6(group) else {
        eprintln!("left out, as no interface of this machine leads to groups of IPv6");
        return;
    };
    let endpoint = Multicast::open(&Addr::any_v6(0)).unwrap();
    endpoint.join(group.into(), Some(&interface)).unwrap();
    let sender = Multicast::open(&Addr::any_v6(0)).unwrap();
    sender.set_interface(Some(&interface)).unwrap();
    sender.set_multicast_ttl(0).unwrap(); // nothing leaves this host
    let port = endpoint.local_addr().unwrap().port();
    let to = Addr::from(SocketAddr::V6(SocketAddrV6::new(group, port, 0, interface.index())));
    sender.send_to(b"hello", &to).unwrap();
    let (hello, from) = next(&endpoint);
    assert_eq!((hello, from.port()), (b"hello".to_vec(), sender.local_addr().unwrap().port()));
    endpoint.leave(group.into(), Some(&interface)).unwrap();

    #[cfg(target_os = "linux")]
    {
        let IpAddr::V6(source) = from.ip() else { panic!("{from}") };
        endpoint.join_source_v6(group, source, Some(&interface)).unwrap();
        sender.send_to(b"from the source", &to).unwrap();
        assert_eq!(next(&endpoint).0, b"from the source");
        endpoint.leave_source_v6(group, source, Some(&interface)).unwrap();
        endpoint.join_source_v6(group, "fd00::77".parse().unwrap(), Some(&interface)).unwrap();
        sender.send_to(b"not from the source", &to).unwrap();
        let other = Dgram::open(&Addr::loopback_v6(0)).unwrap();
        other.send_to(b"sentinel", &Addr::loopback_v6(port)).unwrap();
        assert_eq!(next(&endpoint).0, b"sentinel");
    }

    sender.set_multicast_ttl(7).unwrap();
    assert_eq!(sender.multicast_ttl().unwrap(), 7);
    sender.set_loopback(false).unwrap();
    assert!(!sender.loopback().unwrap());
}

#[test]
fn joining_an_address_that_is_not_a_group_fails() {
    let endpoint = Multicast::open(&Addr::any(0)).unwrap();
    for wrong in ["127.0.0.1", "ff02::1"] {
        let error = endpoint.join(wrong.parse().unwrap(), Some(&loopback())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let error = endpoint.leave(group(6).into(), Some(&loopback())).unwrap_err();
    assert!(cfg!(windows) || error.kind() == ErrorKind::AddrNotAvailable, "{error}");
    endpoint.join(group(6).into(), Some(&loopback())).unwrap();
    let twice = endpoint.join(group(6).into(), Some(&loopback())).unwrap_err();
    assert!(cfg!(windows) || twice.kind() == ErrorKind::AddrInUse, "{twice}");
}

#[test]
fn multicast_options_are_stored() {
    let endpoint = Multicast::open(&Addr::any(0)).unwrap();
    assert_eq!((endpoint.multicast_ttl().unwrap(), endpoint.loopback().unwrap()), (1, true));
    endpoint.set_multicast_ttl(5).unwrap();
    endpoint.set_loopback(false).unwrap();
    endpoint.set_ttl(33).unwrap();
    assert_eq!((endpoint.multicast_ttl().unwrap(), endpoint.loopback().unwrap()), (5, false));
    assert_eq!(endpoint.ttl().unwrap(), 33, "one for groups, one for others");
}

#[test]
fn a_broadcast_reaches_every_listener() {
    let shared = DgramOptions::default().reuse_address(true);
    let first = Dgram::open_with(&Addr::any(0), &shared).unwrap();
    let port = first.local_addr().unwrap().port();
    let second = Dgram::open_with(&Addr::any(port), &shared).unwrap();
    let endpoint = Broadcast::open_on(&Addr::any(0), &loopback()).unwrap();
    if cfg!(windows) && endpoint.networks() == [Ipv4Addr::BROADCAST] {
        eprintln!("left out, as this system does not tell the loopback's network");
        return;
    }
    assert_eq!(endpoint.networks(), [Ipv4Addr::new(127, 255, 255, 255)]);
    let mut octets = [0; 16];
    for (form, word) in ["one", "two", "three", "four", "five"].into_iter().enumerate() {
        let word = word.as_bytes();
        let pieces = [std::io::IoSlice::new(&word[..1]), std::io::IoSlice::new(&word[1..])];
        let networks = match form {
            0 => endpoint.send(word, port),
            1 => endpoint.try_send(word, port),
            2 => endpoint.send_within(word, port, TEST_TIMEOUT),
            3 => endpoint.send_v(&pieces, port),
            _ => endpoint.try_send_v(&pieces, port),
        };
        assert_eq!(networks.unwrap(), 1);
        for listener in [&first, &second] {
            let (received, from) = listener.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
            assert_eq!(&octets[..received.len()], word);
            listener.send_to(b"here", &from.with_port(endpoint.local_addr().unwrap().port())).unwrap();
            let (_, answering) = endpoint.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
            assert_eq!(answering.port(), port);
        }
    }
}

#[test]
fn only_a_broadcast_endpoint_broadcasts() {
    let endpoint = Dgram::open(&Addr::any(0)).unwrap();
    let error = endpoint.send_to(b"to all", &Addr::new("127.255.255.255", 9).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

#[test]
fn sending_without_a_broadcast_interface_fails() {
    assert_eq!(Broadcast::open(&Addr::any_v6(0)).unwrap_err().kind(), ErrorKind::InvalidInput);
    let none = Broadcast::open_with(&Addr::any(0), Vec::new(), &DgramOptions::default());
    assert_eq!(none.unwrap_err().kind(), ErrorKind::AddrNotAvailable);
    let endpoint = Broadcast::open_on(&Addr::any(0), &loopback()).unwrap();
    let error = endpoint.send(&vec![0; 65_508], 9).unwrap_err();
    assert!(matches!(error, SendError::TooLong { len: 65_508, .. }), "{error:?}");
    assert_eq!(endpoint.try_recv_from(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_broadcast_uses_all_interfaces_but_the_loopback() {
    let expected = Interface::all().unwrap().iter().any(|one| !one.is_loopback() && !one.broadcast_addrs().is_empty());
    match Broadcast::open(&Addr::any(0)) {
        Ok(mut endpoint) => {
            assert!(expected && !endpoint.networks().is_empty());
            endpoint.refresh().unwrap();
            assert!(endpoint.networks().iter().all(|network| !network.is_loopback()));
        }
        Err(error) => assert!(!expected && error.kind() == ErrorKind::AddrNotAvailable, "{error}"),
    }
}

#[test]
fn interfaces_are_found_by_name_and_address() {
    let interface = loopback();
    assert!(interface.is_loopback() && interface.index() > 0);
    assert_eq!(interface.ipv4(), Some(Ipv4Addr::LOCALHOST));
    assert_eq!(Interface::named(interface.name()).unwrap(), interface);
    assert!(Interface::all().unwrap().contains(&interface));
    assert_eq!(Interface::named("no such interface").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(Interface::with_addr([203, 0, 113, 77].into()).unwrap_err().kind(), ErrorKind::NotFound);
}
