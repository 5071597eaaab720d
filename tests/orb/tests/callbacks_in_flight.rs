//! Callbacks whose replies share writes: they wait neither for slow callbacks nor for nested calls.

use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
};

use spandrel::{Endpoint, Orb, cdr::GiopVersion, types::Ior};
use spandrel_giop::{MessageType, ReplyStatus};
use spandrel_orb_tests::{
    Server,
    pipelined::{echo, hold, read_reply, request},
    probe::Target,
    scripted::{ReceivedRequest, ior_at, write_ior},
    support::{TEST_TIMEOUT, in_background, read_message},
};

/// Calls that make an operation quick, unless the machine is busy.
const QUICK_CALLS: u32 = 50;

/// A client, and the end of its connection to a peer of octets, whose object this is.
fn connected() -> (Server, TcpStream, Ior) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ior = ior_at(listener.local_addr().unwrap().port(), GiopVersion::V1_2, "key");
    let builder = Orb::builder().bidirectional(true).connections_per_peer(1);
    let client = Server::with(builder.listen(Endpoint::nowhere()));
    let target = Target::unchecked_narrow(&client.orb.reference(ior.clone()));
    let ping = in_background(move || target.ping());
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let request = read_message(&mut stream).unwrap();
    answer(&mut stream, &request);
    ping.recv_timeout(TEST_TIMEOUT).unwrap().unwrap();
    (client, stream, ior)
}

/// Answers a request without results.
fn answer(stream: &mut TcpStream, request: &[u8]) {
    stream.write_all(&ReceivedRequest::read(request).reply(ReplyStatus::NoException, |_| {})).unwrap();
}

#[test]
fn replies_and_callbacks_pass_one_that_is_slow_for_the_first_time() {
    let (client, mut stream, _) = connected();
    client.probe.open(1);
    for _ in 0..QUICK_CALLS {
        stream.write_all(&[echo(&client, 2, &[1]), hold(&client, 1)].concat()).unwrap();
        let replies = [(); 2].map(|()| read_reply(&mut stream).0);
        assert!(replies == [1, 2] || replies == [2, 1], "{replies:?}");
    }
    stream.write_all(&[echo(&client, 10, &[1]), hold(&client, 7), echo(&client, 12, &[1])].concat()).unwrap();
    let mut replies = [(); 2].map(|()| read_reply(&mut stream).0);
    replies.sort_unstable();
    assert_eq!(replies, [10, 12]);
    client.probe.await_held(1);
    client.probe.open(7);
    assert_eq!(read_reply(&mut stream).0, 7);
}

#[test]
fn replies_and_callbacks_pass_one_that_calls_the_peer() {
    let (client, mut stream, ior) = connected();
    // Without an object it fails at once.
    let call_back = |id, ior: &Ior| request(&client, id, "call_back", |out| write_ior(ior, out));
    let nil = Ior { type_id: String::new(), profiles: Vec::new() };
    for _ in 0..QUICK_CALLS {
        stream.write_all(&[call_back(1, &nil), echo(&client, 2, &[1])].concat()).unwrap();
        (0..2).for_each(|_| drop(read_message(&mut stream).unwrap()));
    }
    stream.write_all(&[echo(&client, 10, &[1]), call_back(11, &ior), echo(&client, 12, &[1])].concat()).unwrap();
    // The nested call has its reply only after both others.
    let messages = [(); 3].map(|()| read_message(&mut stream).unwrap());
    let is_request = |message: &&Vec<u8>| message[7] == MessageType::Request as u8;
    let nested: Vec<_> = messages.iter().filter(is_request).collect();
    assert_eq!(nested.len(), 1, "{messages:?}");
    answer(&mut stream, nested[0]);
    assert_eq!(read_reply(&mut stream).0, 11);
}
