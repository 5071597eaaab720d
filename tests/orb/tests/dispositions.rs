//! Addressing dispositions: requests that name their target by key, by profile or by reference (CORBA 3.3
//! Part 2, 9.4.2.1).

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    interception::{
        self, ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, OrbInitInfo, OrbInitializer,
        ServerRequestInfo, ServerRequestInterceptor,
    },
    options::AddressingDisposition,
    types::{IiopProfile, Ior, Located},
};
use spandrel_cdr::{Encoder, Limits, TaggedProfile, Wire};
use spandrel_giop::{
    LocateReplyHeader, LocateRequestHeader, LocateStatus, Message, ReplyHeader, ReplyStatus, RequestHeader,
    ResponseFlags, ServiceContexts, Target as Addressed, component::TAG_COMPLETE_OBJECT_KEY,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    scripted::{ReceivedRequest, ior_at, scripted},
    support::{TEST_TIMEOUT, block_on, kind_and_completion, read_message},
    wiretap::Wiretap,
};

const MODES: [AddressingDisposition; 3] =
    [AddressingDisposition::Key, AddressingDisposition::Profile, AddressingDisposition::Reference];

/// The beginning of a target's `Display` form for this disposition.
fn target_prefix(mode: AddressingDisposition) -> &'static str {
    match mode {
        AddressingDisposition::Key => "key ",
        AddressingDisposition::Profile => "profile 0 with key ",
        AddressingDisposition::Reference => "profile 0 of \"IDL:Probe/Target:1.0\" with key ",
    }
}

#[test]
fn a_server_accepts_every_addressing_disposition() {
    let server = Server::start();
    for mode in MODES {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let tap = Wiretap::before(&server);
            let orb = Orb::builder().target_addressing(mode).giop_version(version).build().unwrap();
            let object = orb.string_to_object(&tap.ior()).unwrap();
            let target: Target = object.unchecked_narrow();
            assert_eq!(target.add(1, 2).unwrap(), 3);
            assert_eq!(target.add(1, 3).unwrap(), 4, "with the cached request header");
            assert_eq!(block_on(target.add_async(2, 2)).unwrap(), 4);
            assert_eq!(object.locate().unwrap(), Located::Here);
            let expected = if version == GiopVersion::V1_2 { target_prefix(mode) } else { "key " };
            for message in tap.take_requests() {
                let ReceivedRequest { target, .. } = ReceivedRequest::read(&message);
                assert!(target.starts_with(expected), "{target} for {mode}, GIOP {version}");
            }
        }
    }
}

/// A script of a server that accepts one disposition only.
fn accepting_only(wanted: AddressingDisposition) -> impl Fn(&ReceivedRequest) -> Option<Vec<u8>> {
    move |request| {
        let is_wanted = request.target.starts_with(target_prefix(wanted));
        Some(match (request.operation.is_empty(), is_wanted) {
            (true, true) => request.located(LocateStatus::ObjectHere, |_| {}),
            (true, false) => request.located(LocateStatus::LocNeedsAddressingMode, |out| wanted.encode(out)),
            (false, true) => request.reply(ReplyStatus::NoException, |out| out.i32(7)),
            (false, false) => request.reply(ReplyStatus::NeedsAddressingMode, |out| wanted.encode(out)),
        })
    }
}

#[test]
fn a_client_resends_with_the_requested_disposition_and_caches_it() {
    for first in MODES {
        for wanted in MODES {
            let (port, received) = scripted(accepting_only(wanted));
            let orb = Orb::builder().target_addressing(first).build().unwrap();
            let object = orb.reference(ior_at(port, GiopVersion::V1_2, "key"));
            let target: Target = object.unchecked_narrow();
            let resent = usize::from(first != wanted);
            for _ in 0..3 {
                assert_eq!(target.add(3, 4).unwrap(), 7);
                assert_eq!(block_on(target.add_async(3, 4)).unwrap(), 7);
                assert_eq!(object.locate().unwrap(), Located::Here);
            }
            assert_eq!(received.lock().unwrap().len(), 9 + resent, "{first}, then {wanted}");
        }
    }
}

/// Counts the requests at interception points of both sides.
#[derive(Clone, Default)]
struct RequestCounter(Arc<AtomicUsize>);

impl Interceptor for RequestCounter {}

impl ClientRequestInterceptor for RequestCounter {
    fn send_request(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        // A resend with another disposition is a retry, not a forwarding (16.3.14.7).
        assert!(matches!(
            info.reply_status()?,
            interception::ReplyStatus::TransportRetry | interception::ReplyStatus::Successful
        ));
        Ok(())
    }
}

impl ServerRequestInterceptor for RequestCounter {
    fn receive_request_service_contexts(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl OrbInitializer for RequestCounter {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.add_client_request_interceptor(self.clone())?;
        info.add_server_request_interceptor(self.clone())?;
        Ok(())
    }
}

#[test]
fn interceptors_see_a_resend_as_transport_retry() {
    let (port, _) = scripted(accepting_only(AddressingDisposition::Reference));
    for is_async in [false, true] {
        let counter = RequestCounter::default();
        let orb = Orb::builder().initializer(counter.clone()).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        for sent in [2, 3] {
            let sum = if is_async { block_on(target.add_async(3, 4)) } else { target.add(3, 4) };
            assert_eq!((sum.unwrap(), counter.0.load(Ordering::SeqCst)), (7, sent));
        }
    }
}

#[test]
fn locate_requests_and_asynchronous_calls_are_resent_with_the_requested_disposition() {
    for wanted in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let (port, received) = scripted(accepting_only(wanted));
        let fresh = || Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key"));
        assert_eq!(fresh().locate().unwrap(), Located::Here);
        assert_eq!(block_on(Target::unchecked_narrow(&fresh()).add_async(3, 4)).unwrap(), 7);
        assert_eq!(received.lock().unwrap().len(), 4);
    }
}

/// A script that never accepts a disposition: it requests the one `step` further on, or the same one again.
fn never_accepting(request: &ReceivedRequest, step: usize) -> Option<Vec<u8>> {
    let index = MODES.iter().rposition(|mode| request.target.starts_with(target_prefix(*mode))).unwrap();
    let next = MODES[(index + step) % 3];
    Some(match request.operation.is_empty() {
        true => request.located(LocateStatus::LocNeedsAddressingMode, |out| next.encode(out)),
        false => request.reply(ReplyStatus::NeedsAddressingMode, |out| next.encode(out)),
    })
}

#[test]
fn repeated_requests_for_other_dispositions_end_in_comm_failure() {
    for step in 0..3 {
        let (port, received) = scripted(move |request| never_accepting(request, step));
        let object = Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key"));
        let target: Target = object.unchecked_narrow();
        for error in
            [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err(), object.locate().unwrap_err()]
        {
            let expected = (SystemExceptionKind::CommFailure, CompletionStatus::No);
            assert_eq!(kind_and_completion(&error), expected, "{error}");
            assert!(error.to_string().contains("repeatedly"), "{error}");
        }
        assert!(received.lock().unwrap().len() <= 12);
    }
}

#[test]
fn a_malformed_needs_addressing_mode_reply_raises_marshal() {
    for octets in [&[][..], &[0], &[0, 3], &[0xff, 0xff]] {
        let (port, _) =
            scripted(move |request| Some(request.reply(ReplyStatus::NeedsAddressingMode, |out| out.octets(octets))));
        let orb = Orb::builder().byte_order(ByteOrder::Big).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Marshal, "{octets:?}");
    }
}

/// Sends one message over a connection of its own and returns the answer.
fn exchange(server: &Server, message: &[u8]) -> Message {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(message).unwrap();
    Message::whole(MessageBlock::from(read_message(&mut stream).unwrap().as_slice())).unwrap()
}

fn ping(target: Addressed<'_>) -> Vec<u8> {
    let mut out = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_2));
    let header = RequestHeader {
        request_id: 9,
        response: ResponseFlags::TWO_WAY,
        target,
        operation: "ping".into(),
        service_contexts: ServiceContexts::NONE,
    };
    let body = header.encode(&mut out).unwrap();
    body.end(&mut out).unwrap();
    out.to_vec()
}

fn locate(target: Addressed<'_>) -> Vec<u8> {
    let mut out = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_2));
    LocateRequestHeader { request_id: 9, target }.encode(&mut out).unwrap();
    out.to_vec()
}

/// The status of a Reply, and the disposition that it requests.
fn reply_status(reply: &Message) -> (ReplyStatus, Option<AddressingDisposition>) {
    let mut input = reply.decoder(Limits::default());
    let status = ReplyHeader::decode(&mut input).unwrap().status;
    let requests_other = status == ReplyStatus::NeedsAddressingMode;
    (status, requests_other.then(|| AddressingDisposition::decode(&mut input).unwrap()))
}

fn locate_status(reply: &Message) -> (LocateStatus, Option<AddressingDisposition>) {
    let mut input = reply.decoder(Limits::default());
    let status = LocateReplyHeader::decode(&mut input).unwrap().status;
    let requests_other = status == LocateStatus::LocNeedsAddressingMode;
    (status, requests_other.then(|| AddressingDisposition::decode(&mut input).unwrap()))
}

#[test]
fn a_target_without_a_readable_key_is_answered_with_needs_addressing_mode() {
    let counter = RequestCounter::default();
    for builder in [Orb::builder(), Orb::builder().initializer(counter.clone())] {
        assert_targets_without_key_are_refused(&Server::with(builder));
    }
    assert_eq!(counter.0.load(Ordering::SeqCst), 6, "all except LocateRequests");
}

fn assert_targets_without_key_are_refused(server: &Server) {
    let foreign = TaggedProfile { tag: 0x1234, data: vec![1, 2, 3] };
    let broken = TaggedProfile { tag: 0, data: vec![1] };
    let known = server.object.ior().profiles[0].clone();
    let reference = |profiles: Vec<TaggedProfile>| Ior { type_id: String::new(), profiles };
    for target in [
        Addressed::Profile(foreign.clone()),
        Addressed::Profile(broken),
        Addressed::Reference { ior: reference(vec![foreign.clone(), known.clone()]), selected: 0 },
        Addressed::Reference { ior: reference(vec![known.clone()]), selected: 1 },
        Addressed::Reference { ior: reference(vec![]), selected: u32::MAX },
    ] {
        let key = Some(AddressingDisposition::Key);
        assert_eq!(reply_status(&exchange(server, &ping(target.clone()))), (ReplyStatus::NeedsAddressingMode, key));
        assert_eq!(locate_status(&exchange(server, &locate(target))), (LocateStatus::LocNeedsAddressingMode, key));
    }
    let target = Addressed::Reference { ior: reference(vec![foreign, known]), selected: 1 };
    assert_eq!(reply_status(&exchange(server, &ping(target.clone()))), (ReplyStatus::NoException, None));
    assert_eq!(locate_status(&exchange(server, &locate(target))), (LocateStatus::ObjectHere, None));
}

/// A profile of components alone has the object key in one of them (7.6.6).
#[test]
fn an_object_key_in_a_component_is_found() {
    let server = Server::start();
    let key = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let mut data = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_2));
    data.u8(0);
    data.len(1).unwrap();
    data.u32(TAG_COMPLETE_OBJECT_KEY);
    data.octet_sequence(&key).unwrap();
    let target = Addressed::Profile(TaggedProfile { tag: 1, data: data.to_vec() });
    assert_eq!(reply_status(&exchange(&server, &ping(target.clone()))), (ReplyStatus::NoException, None));
    assert_eq!(locate_status(&exchange(&server, &locate(target))), (LocateStatus::ObjectHere, None));
}

#[test]
fn an_unknown_key_raises_object_not_exist_with_every_disposition() {
    let server = Server::start();
    let orb = Orb::builder().target_addressing(AddressingDisposition::Profile).build().unwrap();
    let object: ObjectRef = orb.reference(ior_at(server.port(), GiopVersion::V1_2, "nobody"));
    let error = Target::unchecked_narrow(&object).ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "{error}");
    assert_eq!(object.locate().unwrap(), Located::Unknown);
}
