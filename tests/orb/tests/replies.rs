//! Replies: one for each request, of the right kind, readable, and with the reason of a failure.

use std::{io::Write, net::TcpStream};

use spandrel::generated::{Replied, Servant, ServerCall};
use spandrel::{CompletionStatus, Orb, SystemException, SystemExceptionKind};
use spandrel_cdr::{Encoder, Wire};
use spandrel_giop::{LocateStatus, ReplyStatus, RequestTemplate, ResponseFlags, begin_reply};
use spandrel_orb_tests::{
    Server,
    probe::Target,
    support::{PATIENCE, kind_and_completion, pretend, read_message},
};

fn url(port: u16) -> String {
    format!("corbaloc:iiop:1.2@127.0.0.1:{port}/nobody")
}

fn target_with(orb: &Orb, url: &str) -> Target {
    Target::unchecked_narrow(&orb.string_to_object(url).unwrap())
}

fn request_to(server: &Server, operation: &str, id: u32, object: &spandrel::ObjectRef) -> Vec<u8> {
    let _ = server;
    let profile = spandrel_orb_tests::support::iiop_alone(&object.ior().profiles[0]);
    let template = RequestTemplate::new(Wire::default(), &profile.object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, id, ResponseFlags::TWO_WAY, operation, &[]);
    body.end(&mut out).unwrap();
    out.to_vec()
}

/// Answers, and then fails all the same.
struct Fickle {
    panics: bool,
}

impl Servant for Fickle {
    fn repository_id(&self) -> &'static str {
        "IDL:Fickle:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _operation: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let replied = call.reply(|_| Ok(()))?;
        assert!(!self.panics, "after the answer");
        let _ = replied;
        Err(SystemException::internal(0, CompletionStatus::Yes))
    }
}

#[test]
fn a_request_is_answered_once() {
    for panics in [false, true] {
        let server = Server::start();
        let fickle = server.poa.activate(Fickle { panics }).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&request_to(&server, "any", 1, &fickle)).unwrap();
        stream.write_all(&request_to(&server, "ping", 2, &server.object)).unwrap();
        let mut ids: Vec<u32> = (0..2)
            .map(|_| {
                let reply = read_message(&mut stream).unwrap();
                u32::from_ne_bytes(reply[12..16].try_into().unwrap())
            })
            .collect();
        // Where several threads run them, in whatever order.
        ids.sort_unstable();
        assert_eq!(ids, [1, 2], "one reply each (panics: {panics})");
    }
}

#[test]
fn an_unreadable_forwarding_is_not_said_to_have_completed() {
    let port = pretend(|_, mut stream| {
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

/// A LocateReply where a Reply is due is no user exception.
#[test]
fn an_answer_to_another_question_is_a_protocol_error() {
    let port = pretend(|_, mut stream| {
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

// A request that the server finds too long: the reason must reach the caller.
#[test]
fn a_request_that_is_too_long_for_the_server_is_said_to_be() {
    let server = Server::with(Orb::builder().max_message(1 << 20));
    let target = server.client();
    target.ping().unwrap();
    let error = target.note(&vec![7; 1 << 21]).err();
    let two_way = target.echo_octets(&vec![7; 1 << 23]).unwrap_err();
    println!("{error:?}\n{two_way:?}");
    assert_eq!(two_way.kind(), SystemExceptionKind::ImpLimit, "{two_way}");
}
