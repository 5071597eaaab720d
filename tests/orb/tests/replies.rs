//! Replies: exactly one for each request, of the right kind, with the reason of a failure.

use std::{io::Write, net::TcpStream};

use spandrel::generated::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{LocateStatus, ReplyStatus, RequestTemplate, ResponseFlags, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{TEST_TIMEOUT, fake_server, kind_and_completion, read_message},
};

fn url(port: u16) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody")
}

fn target_with(orb: &Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

fn request_to(server: &Server, operation: &str, id: u32, object: &spandrel::ObjectRef) -> Vec<u8> {
    let _ = server;
    let profile = spandrel_orb_tests::support::without_local_addresses(&object.ior().profiles[0]);
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, operation, &[]);
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// A servant that replies and then fails.
struct FailingAfterReply {
    panics: bool,
}

impl Servant for FailingAfterReply {
    fn repository_id(&self) -> &'static str {
        "IDL:Fickle:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let replied = call.reply(|_| Ok(()))?;
        assert!(!self.panics, "after the reply");
        let _ = replied;
        Err(SystemException::internal(0, CompletionStatus::Yes))
    }
}

#[test]
fn a_servant_that_fails_after_its_reply_sends_no_second_one() {
    for panics in [false, true] {
        let server = Server::start();
        let failing = server.poa.activate(FailingAfterReply { panics }).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream.write_all(&request_to(&server, "any", 1, &failing)).unwrap();
        stream.write_all(&request_to(&server, "ping", 2, &server.object)).unwrap();
        let mut ids: Vec<u32> = (0..2)
            .map(|_| {
                let reply = read_message(&mut stream).unwrap();
                u32::from_ne_bytes(reply[12..16].try_into().unwrap())
            })
            .collect();
        // The order is undefined where several threads run the requests.
        ids.sort_unstable();
        assert_eq!(ids, [1, 2], "one reply each (panics: {panics})");
    }
}

#[test]
fn a_malformed_forwarding_is_not_reported_as_completed() {
    let port = fake_server(|_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        let mut out = Encoder::new(Wire::default());
        let body = begin_reply(&mut out, id, ReplyStatus::LocationForward, &[]);
        out.u32(u32::MAX);
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let error = target_with(&Orb::builder().build().unwrap(), &url(port)).ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::Marshal);
    assert_ne!(error.completed(), CompletionStatus::Yes, "{error}");
}

/// A LocateReply to a Request must not be decoded as a Reply.
#[test]
fn a_locate_reply_to_a_request_is_a_protocol_error() {
    let port = fake_server(|_, mut stream| {
        let request = read_message(&mut stream).unwrap();
        let id = u32::from_ne_bytes(request[12..16].try_into().unwrap());
        let mut out = Encoder::new(Wire::default());
        let body = spandrel_giop::begin_locate_reply(&mut out, id, LocateStatus::ObjectHere);
        body.end(&mut out).unwrap();
        stream.write_all(&out.to_vec()).unwrap();
        std::mem::forget(stream);
    });
    let error = target_with(&Orb::builder().build().unwrap(), &url(port)).ping().unwrap_err();
    assert_eq!(kind_and_completion(&error), (SystemExceptionKind::CommFailure, CompletionStatus::Maybe), "{error}");
}

// The client receives the reason if the server refuses a request for its length.
#[test]
fn a_request_beyond_the_servers_message_limit_raises_imp_limit() {
    let server = Server::with(Orb::builder().max_message(1 << 20));
    let target = server.client();
    target.ping().unwrap();
    let error = target.note(&vec![7; 1 << 21]).err();
    let two_way = target.echo_octets(&vec![7; 1 << 23]).unwrap_err();
    println!("{error:?}\n{two_way:?}");
    assert_eq!(two_way.kind(), SystemExceptionKind::ImpLimit, "{two_way}");
}
