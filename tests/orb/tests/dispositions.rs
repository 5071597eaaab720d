//! How requests say whom they are for: by key, by profile, by reference (CORBA 3.3 Part 2, 9.4.2.1).

use std::{
    io::Write,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use spandrel::{
    AddressingDisposition, ByteOrder, CompletionStatus, GiopVersion, IiopProfile, Ior, Located, ObjectRef, Orb,
    SystemException, SystemExceptionKind,
    interception::{
        self, ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, OrbInitInfo, OrbInitializer,
        ServerRequestInfo, ServerRequestInterceptor,
    },
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
    scripted::{Heard, ior_at, scripted},
    support::{PATIENCE, block_on, kind_and_completion, read_message},
    wiretap::Wiretap,
};

const MODES: [AddressingDisposition; 3] =
    [AddressingDisposition::Key, AddressingDisposition::Profile, AddressingDisposition::Reference];

/// What the request's or question's target begins with when it prints.
fn beginning(mode: AddressingDisposition) -> &'static str {
    match mode {
        AddressingDisposition::Key => "key ",
        AddressingDisposition::Profile => "profile 0 with key ",
        AddressingDisposition::Reference => "profile 0 of \"IDL:Probe/Target:1.0\" with key ",
    }
}

#[test]
fn a_server_understands_all_of_them() {
    let server = Server::start();
    for mode in MODES {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let tap = Wiretap::before(&server);
            let orb = Orb::builder().target_addressing(mode).giop_version(version).build().unwrap();
            let object = orb.string_to_object(&tap.ior()).unwrap();
            let target: Target = object.unchecked_narrow();
            assert_eq!(target.add(1, 2).unwrap(), 3);
            assert_eq!(target.add(1, 3).unwrap(), 4, "with the header that was kept");
            assert_eq!(block_on(target.add_async(2, 2)).unwrap(), 4);
            assert_eq!(object.locate().unwrap(), Located::Here);
            let expected = if version == GiopVersion::V1_2 { beginning(mode) } else { "key " };
            for message in tap.take_requests() {
                let Heard { target, .. } = Heard::read(&message);
                assert!(target.starts_with(expected), "{target} for {mode}, GIOP {version}");
            }
        }
    }
}

/// A server that wants to be addressed in one way only.
fn particular(wanted: AddressingDisposition) -> impl Fn(&Heard) -> Option<Vec<u8>> {
    move |heard| {
        let is_wanted = heard.target.starts_with(beginning(wanted));
        Some(match (heard.operation.is_empty(), is_wanted) {
            (true, true) => heard.located(LocateStatus::ObjectHere, |_| {}),
            (true, false) => heard.located(LocateStatus::LocNeedsAddressingMode, |out| wanted.encode(out)),
            (false, true) => heard.reply(ReplyStatus::NoException, |out| out.i32(7)),
            (false, false) => heard.reply(ReplyStatus::NeedsAddressingMode, |out| wanted.encode(out)),
        })
    }
}

#[test]
fn a_client_addresses_as_it_is_asked_to_and_remembers_it() {
    for first in MODES {
        for wanted in MODES {
            let (port, said) = scripted(particular(wanted));
            let orb = Orb::builder().target_addressing(first).build().unwrap();
            let object = orb.reference(ior_at(port, GiopVersion::V1_2, "key"));
            let target: Target = object.unchecked_narrow();
            let asked_again = usize::from(first != wanted);
            for _ in 0..3 {
                assert_eq!(target.add(3, 4).unwrap(), 7);
                assert_eq!(block_on(target.add_async(3, 4)).unwrap(), 7);
                assert_eq!(object.locate().unwrap(), Located::Here);
            }
            assert_eq!(said.lock().unwrap().len(), 9 + asked_again, "{first}, then {wanted}");
        }
    }
}

/// Sees all that goes and comes, on both sides.
#[derive(Clone, Default)]
struct Watcher(Arc<AtomicUsize>);

impl Interceptor for Watcher {}

impl ClientRequestInterceptor for Watcher {
    fn send_request(&self, _info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn receive_other(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        // To be addressed otherwise is to be sent again, and no forwarding (16.3.14.7).
        assert!(matches!(
            info.reply_status()?,
            interception::ReplyStatus::TransportRetry | interception::ReplyStatus::Successful
        ));
        Ok(())
    }
}

impl ServerRequestInterceptor for Watcher {
    fn receive_request_service_contexts(&self, _info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl OrbInitializer for Watcher {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.add_client_request_interceptor(self.clone())?;
        info.add_server_request_interceptor(self.clone())?;
        Ok(())
    }
}

#[test]
fn interceptors_see_that_a_request_is_sent_again() {
    let (port, _) = scripted(particular(AddressingDisposition::Reference));
    for is_async in [false, true] {
        let watcher = Watcher::default();
        let orb = Orb::builder().initializer(watcher.clone()).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        for sent in [2, 3] {
            let sum = if is_async { block_on(target.add_async(3, 4)) } else { target.add(3, 4) };
            assert_eq!((sum.unwrap(), watcher.0.load(Ordering::SeqCst)), (7, sent));
        }
    }
}

#[test]
fn questions_and_asynchronous_calls_are_asked_again_too() {
    for wanted in [AddressingDisposition::Profile, AddressingDisposition::Reference] {
        let (port, said) = scripted(particular(wanted));
        let fresh = || Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key"));
        assert_eq!(fresh().locate().unwrap(), Located::Here);
        assert_eq!(block_on(Target::unchecked_narrow(&fresh()).add_async(3, 4)).unwrap(), 7);
        assert_eq!(said.lock().unwrap().len(), 4);
    }
}

/// Never content: asks for the next one, or for the one that was used.
fn fickle(heard: &Heard, step: usize) -> Option<Vec<u8>> {
    let used = MODES.iter().rposition(|mode| heard.target.starts_with(beginning(*mode))).unwrap();
    let next = MODES[(used + step) % 3];
    Some(match heard.operation.is_empty() {
        true => heard.located(LocateStatus::LocNeedsAddressingMode, |out| next.encode(out)),
        false => heard.reply(ReplyStatus::NeedsAddressingMode, |out| next.encode(out)),
    })
}

#[test]
fn a_server_that_is_never_content_is_given_up() {
    for step in 0..3 {
        let (port, said) = scripted(move |heard| fickle(heard, step));
        let object = Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key"));
        let target: Target = object.unchecked_narrow();
        for error in
            [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err(), object.locate().unwrap_err()]
        {
            let expected = (SystemExceptionKind::CommFailure, CompletionStatus::No);
            assert_eq!(kind_and_completion(&error), expected, "{error}");
            assert!(error.to_string().contains("again and again"), "{error}");
        }
        assert!(said.lock().unwrap().len() <= 12);
    }
}

#[test]
fn an_unreadable_wish_is_a_marshaling_fault() {
    for octets in [&[][..], &[0], &[0, 3], &[0xff, 0xff]] {
        let (port, _) =
            scripted(move |heard| Some(heard.reply(ReplyStatus::NeedsAddressingMode, |out| out.octets(octets))));
        let orb = Orb::builder().byte_order(ByteOrder::Big).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        assert_eq!(target.ping().unwrap_err().kind(), SystemExceptionKind::Marshal, "{octets:?}");
    }
}

/// A raw client's conversation: one message, one answer.
fn ask(server: &Server, message: &[u8]) -> Message {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
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

/// The status of the reply, and what the server wants instead, if it does.
fn replied(reply: &Message) -> (ReplyStatus, Option<AddressingDisposition>) {
    let mut input = reply.decoder(Limits::default());
    let status = ReplyHeader::decode(&mut input).unwrap().status;
    let wants = status == ReplyStatus::NeedsAddressingMode;
    (status, wants.then(|| AddressingDisposition::decode(&mut input).unwrap()))
}

fn located(reply: &Message) -> (LocateStatus, Option<AddressingDisposition>) {
    let mut input = reply.decoder(Limits::default());
    let status = LocateReplyHeader::decode(&mut input).unwrap().status;
    let wants = status == LocateStatus::LocNeedsAddressingMode;
    (status, wants.then(|| AddressingDisposition::decode(&mut input).unwrap()))
}

#[test]
fn a_profile_without_a_key_that_can_be_read_is_asked_for_the_key() {
    let watcher = Watcher::default();
    for builder in [Orb::builder(), Orb::builder().initializer(watcher.clone())] {
        ask_by_what_has_no_key(&Server::with(builder));
    }
    assert_eq!(watcher.0.load(Ordering::SeqCst), 6, "all but questions where it is");
}

fn ask_by_what_has_no_key(server: &Server) {
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
        assert_eq!(replied(&ask(server, &ping(target.clone()))), (ReplyStatus::NeedsAddressingMode, key));
        assert_eq!(located(&ask(server, &locate(target))), (LocateStatus::LocNeedsAddressingMode, key));
    }
    let target = Addressed::Reference { ior: reference(vec![foreign, known]), selected: 1 };
    assert_eq!(replied(&ask(server, &ping(target.clone()))), (ReplyStatus::NoException, None));
    assert_eq!(located(&ask(server, &locate(target))), (LocateStatus::ObjectHere, None));
}

/// A profile that is nothing but components has its key in one of them (7.6.6).
#[test]
fn a_key_that_stands_in_a_component_is_found() {
    let server = Server::start();
    let key = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let mut data = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_2));
    data.u8(0);
    data.len(1).unwrap();
    data.u32(TAG_COMPLETE_OBJECT_KEY);
    data.octet_sequence(&key).unwrap();
    let target = Addressed::Profile(TaggedProfile { tag: 1, data: data.to_vec() });
    assert_eq!(replied(&ask(&server, &ping(target.clone()))), (ReplyStatus::NoException, None));
    assert_eq!(located(&ask(&server, &locate(target))), (LocateStatus::ObjectHere, None));
}

#[test]
fn a_key_that_nobody_has_is_no_matter_of_addressing() {
    let server = Server::start();
    let orb = Orb::builder().target_addressing(AddressingDisposition::Profile).build().unwrap();
    let object: ObjectRef = orb.reference(ior_at(server.port(), GiopVersion::V1_2, "nobody"));
    let error = Target::unchecked_narrow(&object).ping().unwrap_err();
    assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist, "{error}");
    assert_eq!(object.locate().unwrap(), Located::Unknown);
}
