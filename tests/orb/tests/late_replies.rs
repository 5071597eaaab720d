//! One-ways that wait for the socket while the reply to a request that was given up arrives: the client takes that reply,
//! because the server reads nothing before.

use std::{
    io::Write as _,
    net::TcpStream,
    sync::mpsc::{self, Receiver, Sender},
    task::{Context, Waker},
};

use spandrel::{Orb, Poa, server::CancelReason, types::IiopProfile};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{CancelRequest, ReplyStatus, begin_reply};
use spandrel_orb_tests::{
    pipelined::request_to,
    probe::Target,
    support::{TEST_TIMEOUT, fake_server, in_background, read_message, servant},
};

/// More than the sockets of both sides hold.
const OCTETS: usize = 32 << 20;

/// A server that reads nothing while it writes its long reply to the first request.
struct SlowServer {
    ior: String,
    has_request: Receiver<()>,
    reply: Sender<()>,
    /// Gets the lengths of the messages that were read afterwards, and their types.
    messages: Receiver<(usize, u8)>,
}

impl SlowServer {
    fn start() -> Self {
        let (has_request_sender, has_request) = mpsc::channel();
        let (reply, reply_now) = mpsc::channel();
        let (sender, messages) = mpsc::channel();
        let port = fake_server(move |_, mut stream| {
            let Ok(request) = read_message(&mut stream) else { return };
            has_request_sender.send(()).unwrap();
            let Ok(()) = reply_now.recv() else { return };
            let mut out = Encoder::new(Wire::default());
            let request_id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
            let body = begin_reply(&mut out, request_id, ReplyStatus::NoException, &[]);
            out.octet_sequence(&vec![7; OCTETS]).unwrap();
            body.end(&mut out).unwrap();
            stream.write_all(&out.to_vec()).unwrap();
            while let Ok(message) = read_message(&mut stream) {
                let _ = sender.send((message.len(), message[7]));
            }
        });
        Self { ior: format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key"), has_request, reply, messages }
    }

    fn expect_request(&self) {
        self.has_request.recv_timeout(TEST_TIMEOUT).unwrap();
    }

    /// Sends the late reply while `target` sends a long one-way.
    fn expect_one_way_beside_reply(&self, target: Target) {
        let sent = in_background(move || target.note(&vec![1; OCTETS]).unwrap());
        self.reply.send(()).unwrap();
        sent.recv_timeout(TEST_TIMEOUT).unwrap();
        loop {
            let (len, message_type) = self.messages.recv_timeout(TEST_TIMEOUT).unwrap();
            // A CancelRequest may come before it.
            if message_type == 0 {
                assert!(len > OCTETS);
                return;
            }
        }
    }
}

/// A client with at most one connection to the server.
fn client(server: &SlowServer) -> Target {
    let orb = Orb::builder().connections_per_peer(1).build().unwrap();
    Target::unchecked_narrow(&orb.string_to_object(&server.ior).unwrap())
}

#[test]
fn a_one_way_is_sent_beside_the_late_reply_to_a_dropped_future() {
    let server = SlowServer::start();
    let target = client(&server);
    let mut call = Box::pin(target.echo_octets_async(&[1]));
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    server.expect_request();
    drop(call);
    server.expect_one_way_beside_reply(target);
}

#[test]
fn a_one_way_is_sent_beside_the_late_reply_to_a_cancelled_call() {
    let server = SlowServer::start();
    let relay = Orb::builder().cancel_nested(true).connections_per_peer(1).build().unwrap();
    let target = Target::unchecked_narrow(&relay.string_to_object(&server.ior).unwrap());
    let (ended, failure) = mpsc::channel();
    let of_servant = target.clone();
    let object = Poa::root(&relay).unwrap().activate(servant(move |_, call| {
        let token = call.cancellation();
        let outcome = of_servant.echo_octets(&[1]);
        ended.send((outcome.is_err(), token.reason())).unwrap();
        call.reply(|_| Ok(()))
    }));
    let object = object.unwrap();
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", profile.port)).unwrap();
    stream.write_all(&request_to(&object, 4, "call", |_| {})).unwrap();
    server.expect_request();
    let mut out = Encoder::new(Wire::default());
    CancelRequest { request_id: 4 }.encode(&mut out).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    assert_eq!(failure.recv_timeout(TEST_TIMEOUT), Ok((true, Some(CancelReason::ClientCancelled))));
    server.expect_one_way_beside_reply(target);
    relay.shutdown().unwrap();
}
