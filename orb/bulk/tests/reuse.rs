//! Connections that carry several transfers, one after the other.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use spandrel_bulk::{
    BulkClient, BulkLimits, BulkServer, FileSource,
    bulk::Offer,
    wire::{ANSWER_OCTETS, Answer, END_OCTETS, End, FrameHeader, FrameKind, Greeting, HEADER_OCTETS, Role, Token},
};
use spandrel_ipc::inet;
use spandrel_poa::Poa;
use spandrel_test_support::{TEST_TIMEOUT, eventually, pattern};

use crate::{
    parties::{Parties, address_in, parties, parties_with},
    transfers::Shared,
};

fn receive(parties: &Parties, client: &BulkClient, length: usize) {
    let data = pattern(length);
    let mut received = Vec::new();
    let outcome = client.receive(&parties.download(data.clone()).0, &mut received).unwrap();
    assert!(outcome.is_verified && received == data, "{length}");
}

fn limited(limits: BulkLimits) -> Parties {
    parties_with(|builder| builder.tcp(inet::Addr::loopback(0)).limits(limits))
}

#[test]
fn transfers_of_one_client_follow_each_other_over_one_connection() {
    let parties = parties();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, pattern(3_000_000)).unwrap();
    let client = BulkClient::default().calls(false).resumptions(0);
    for length in [0, 1, 300_000, 12 << 20, 5] {
        receive(&parties, &client, length);
        let sink = Shared::default();
        client.clone().send(&parties.upload(sink.clone()).0, &pattern(length)).unwrap();
        assert!(sink.whole().unwrap() == pattern(length), "{length}");
        let mut received = Vec::new();
        client.receive(&parties.download(FileSource::open(&path).unwrap()).0, &mut received).unwrap();
        assert!(received == pattern(3_000_000));
    }
    let statistics = parties.bulk.statistics();
    assert_eq!((statistics.accepted, statistics.reused, statistics.refused_tokens), (1, 14, 0));

    let single = BulkClient::default().calls(false).reuse(false);
    receive(&parties, &single, 10);
    receive(&parties, &single, 10);
    assert_eq!(parties.bulk.statistics().accepted, 3);
}

#[test]
fn a_connection_that_the_other_party_has_ended_is_replaced() {
    for reuse in [Duration::ZERO, Duration::from_millis(1)] {
        let parties = limited(BulkLimits { reuse, ..BulkLimits::default() });
        let client = BulkClient::default().calls(false).resumptions(1);
        receive(&parties, &client, 1_000);
        // It ends at a time that may be that of the next transfer.
        eventually(|| {
            receive(&parties, &client, 1_000);
            parties.bulk.statistics().accepted >= 5
        });
    }
}

#[test]
fn connections_that_wait_for_a_transfer_make_room_and_are_charged_to_nobody() {
    let reuse = Duration::from_secs(600);
    let parties = limited(BulkLimits { connections: 2, connections_per_party: 1, reuse, ..BulkLimits::default() });
    // A server that is still busy with the end of a transfer may refuse the next connection, which is then tried again.
    let clients = [(); 5].map(|()| BulkClient::default().calls(false).resumptions(10));
    for client in &clients {
        receive(&parties, client, 1_000);
    }
    assert!(parties.bulk.statistics().accepted >= 5);
}

/// A connection whose first transfer is complete, by a party that uses it again.
fn reusable(parties: &Parties) -> TcpStream {
    let (offer, transfer) = parties.download(vec![7; 3]);
    let mut stream = TcpStream::connect(address_in(&offer)).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    greet(&mut stream, &offer);
    let mut octets = [0; ANSWER_OCTETS + HEADER_OCTETS + 3 + HEADER_OCTETS + END_OCTETS];
    stream.read_exact(&mut octets).unwrap();
    let header = FrameHeader::new(FrameKind::Done, END_OCTETS as u32).unwrap();
    let end = End { length: 3, checksum: Some(crc32fast::hash(&[7; 3])) };
    stream.write_all(&[&header.encode()[..], &end.encode()].concat()).unwrap();
    transfer.wait(TEST_TIMEOUT).unwrap().unwrap();
    stream
}

fn greet(stream: &mut TcpStream, offer: &Offer) {
    let (role, token) = (Role::Receives, Token(offer.secret));
    let greeting = Greeting { role, takes_files: false, reuses: true, token, offset: 0 };
    stream.write_all(&greeting.encode()).unwrap();
}

#[test]
fn each_transfer_of_a_connection_needs_its_own_token() {
    let parties = parties();
    let mut stream = reusable(&parties);
    let (mut offer, _) = parties.download(vec![1]);
    offer.secret[0] ^= 1;
    greet(&mut stream, &offer);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let (answer, frame) = rest.split_first_chunk::<ANSWER_OCTETS>().unwrap();
    assert_eq!(Answer::decode(answer).unwrap().status, 1);
    let header = FrameHeader::decode(frame.first_chunk().unwrap()).unwrap();
    assert_eq!((header.kind(), parties.bulk.statistics().refused_tokens), (FrameKind::Error, 1));
}

#[test]
fn connections_that_wait_end_with_the_offering_side() {
    let mut parties = limited(BulkLimits { reuse: Duration::from_secs(600), ..BulkLimits::default() });
    let mut stream = reusable(&parties);
    let other = BulkServer::builder(&Poa::root(&parties.offering).unwrap()).open().unwrap();
    drop(std::mem::replace(&mut parties.bulk, other));
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
}
