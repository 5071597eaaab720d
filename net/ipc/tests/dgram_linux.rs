//! Datagram features of Linux: destinations of datagrams, segmentation, checked handles, and batches without
//! allocation.

#![cfg(target_os = "linux")]

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;

use spandrel_ipc::dgram::SendError;
use spandrel_ipc::inet::{Addr, Broadcast, ConnectedDgram, Dgram, DgramOptions, Interface, Multicast, Via};
use spandrel_test_support::TEST_TIMEOUT;

fn loopback() -> Interface {
    Interface::with_addr(Ipv4Addr::LOCALHOST.into()).unwrap()
}

#[test]
fn a_datagram_has_its_destination_and_is_answered_from_it() {
    let server = Dgram::open(&Addr::any(0)).unwrap();
    let port = server.local_addr().unwrap().port();
    let requested = Addr::new("127.1.2.3", port).unwrap();
    let client = ConnectedDgram::connect(&requested).unwrap(); // receives only answers from the address that it sent to
    let mut octets = [0; 16];

    client.send(b"untold").unwrap();
    let arrival = server.recv_arrival(&mut octets).unwrap();
    assert_eq!((arrival.to, arrival.interface, arrival.segment), (None, None, None));
    assert_eq!((arrival.from, arrival.received.len()), (client.local_addr().unwrap(), 6));

    server.set_recv_destination(true).unwrap();
    client.send(b"a question, cut").unwrap();
    let arrival = server.recv_arrival_within(&mut octets[..10], TEST_TIMEOUT).unwrap();
    assert_eq!((arrival.to, arrival.interface), (Some(requested.ip()), Some(loopback().index())));
    assert_eq!((arrival.received.len(), arrival.received.datagram_len()), (10, Some(15)));
    assert!(arrival.received.is_truncated());

    server.send_to(b"from elsewhere", &arrival.from).unwrap();
    server.send_to_via(b"answer", &arrival.from, &Via::from(requested.ip())).unwrap();
    assert_eq!(client.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 6);
    assert_eq!(&octets[..6], b"answer");
    assert_eq!(server.try_recv_arrival(&mut octets).unwrap_err().kind(), ErrorKind::WouldBlock);
    let short = Duration::from_millis(20);
    assert_eq!(server.recv_arrival_within(&mut octets, short).unwrap_err().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_foreign_source_address_is_refused() {
    let endpoint = Dgram::open(&Addr::any(0)).unwrap();
    let to = Addr::loopback(9);
    let foreign = Via::from(IpAddr::from([203, 0, 113, 5]));
    assert!(matches!(endpoint.send_to_via(b"x", &to, &foreign), Err(SendError::System(_))));
    let other_version = Via::from(Ipv6Addr::LOCALHOST.into()).interface(&loopback());
    assert_eq!(endpoint.send_to_via(b"x", &to, &other_version).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn destinations_over_ipv6_and_of_both_versions() {
    let options = DgramOptions::default().dual_stack(true);
    let Ok(server) = Dgram::open_with(&Addr::any_v6(0), &options) else {
        eprintln!("left out, as this machine has no IPv6");
        return;
    };
    server.set_recv_destination(true).unwrap();
    let port = server.local_addr().unwrap().port();
    let mut octets = [0; 16];
    for (requested, via) in
        [(Addr::loopback_v6(port), None), (Addr::new("127.4.5.6", port).unwrap(), Some(Ipv4Addr::new(127, 4, 5, 6)))]
    {
        let client = ConnectedDgram::connect(&requested).unwrap();
        client.send(b"question").unwrap();
        let arrival = server.recv_arrival_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!((arrival.to, arrival.interface), (Some(requested.ip()), Some(loopback().index())));
        let via = Via::from(via.map_or(requested.ip(), IpAddr::V4));
        server.send_to_via(b"answer", &arrival.from, &via).unwrap();
        assert_eq!(client.recv_within(&mut octets, TEST_TIMEOUT).unwrap().len(), 6);
    }
}

#[test]
fn a_member_gets_the_group_of_a_datagram() {
    let id = std::process::id();
    let groups = [60, 61].map(|last| Ipv4Addr::new(239, 200, id as u8, last));
    let member = Multicast::open(&Addr::any(0)).unwrap();
    member.set_recv_destination(true).unwrap();
    let sender = Multicast::open(&Addr::any(0)).unwrap();
    sender.set_interface(Some(&loopback())).unwrap();
    let port = member.local_addr().unwrap().port();
    for group in groups {
        member.join(group.into(), Some(&loopback())).unwrap();
        sender.send_to(b"hello", &Addr::new(&group.to_string(), port).unwrap()).unwrap();
        let arrival = member.recv_arrival_within(&mut [0; 8], TEST_TIMEOUT).unwrap();
        assert_eq!((arrival.to, arrival.interface), (Some(group.into()), Some(loopback().index())));
    }
}

#[test]
fn one_send_of_segments_is_many_datagrams() {
    let (here, there) = (Dgram::open(&Addr::loopback(0)).unwrap(), Dgram::open(&Addr::loopback(0)).unwrap());
    let to = there.local_addr().unwrap();
    let data: Vec<u8> = (0..1_050_u32).map(|i| (i % 251) as u8).collect();
    here.send_segments_to(&data, 100, &to).unwrap();
    let mut octets = [0; 200];
    for expected in data.chunks(100) {
        let (received, _) = there.recv_from_within(&mut octets, TEST_TIMEOUT).unwrap();
        assert_eq!(&octets[..received.len()], expected);
    }
    assert_eq!(here.send_segments_to(&data, 0, &to).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(here.send_segments_to(&data, 1, &to).unwrap_err().kind(), ErrorKind::InvalidInput);

    there.set_coalesce(true).unwrap();
    here.send_segments_to(&data, 100, &to).unwrap();
    let mut all = Vec::new();
    let mut room = vec![0; 65_535];
    while all.len() < data.len() {
        let arrival = there.recv_arrival_within(&mut room, TEST_TIMEOUT).unwrap();
        let len = arrival.received.len();
        assert!(len <= 100 || arrival.segment == Some(100), "{arrival:?}");
        all.extend_from_slice(&room[..len]);
    }
    assert_eq!(all, data);
}

#[test]
fn the_path_mtu_is_reported() {
    let mtu: u32 = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    let there = Dgram::open(&Addr::loopback(0)).unwrap();
    let here = ConnectedDgram::connect(&there.local_addr().unwrap()).unwrap();
    assert_eq!(here.path_mtu().unwrap(), mtu.min(65_535), "no IPv4 packet is longer than that");
}

#[test]
fn an_endpoint_bound_to_an_interface_receives_from_it_alone() {
    let endpoint = Dgram::open(&Addr::any(0)).unwrap();
    endpoint.set_device(Some(&loopback())).unwrap();
    let sender = Dgram::open(&Addr::loopback(0)).unwrap();
    let to = Addr::loopback(endpoint.local_addr().unwrap().port());
    sender.send_to(b"hello", &to).unwrap();
    assert_eq!(endpoint.recv_from_within(&mut [0; 8], TEST_TIMEOUT).unwrap().0.len(), 5);
}

#[test]
fn handles_are_taken_over_only_if_they_match() {
    let udp = || OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let connected = || {
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        here.connect(there.local_addr().unwrap()).unwrap();
        OwnedFd::from(here)
    };
    let wrong: [fn() -> OwnedFd; 3] = [
        || TcpListener::bind("127.0.0.1:0").unwrap().into(),
        || std::os::unix::net::UnixDatagram::unbound().unwrap().into(),
        || std::fs::File::open("/dev/null").unwrap().into(),
    ];
    for make in wrong {
        assert!(Dgram::try_from(make()).is_err() && ConnectedDgram::try_from(make()).is_err());
        assert!(Multicast::try_from(make()).is_err() && Broadcast::try_from(make()).is_err());
    }
    assert_eq!(Dgram::try_from(connected()).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(ConnectedDgram::try_from(udp()).unwrap_err().kind(), ErrorKind::InvalidInput);
    Multicast::try_from(udp()).unwrap();
    Broadcast::try_from(udp()).unwrap();
    ConnectedDgram::try_from(connected()).unwrap();
    let endpoint = Dgram::open(&Addr::loopback(0)).unwrap();
    let addr = endpoint.local_addr().unwrap();
    assert_eq!(Dgram::try_from(OwnedFd::from(endpoint)).unwrap().local_addr().unwrap(), addr);
}
