//! Service contexts: unknown ones are passed through unchanged, and limits apply to all (CORBA 3.3 Part 2,
//! 7.7).

use spandrel::interception::IfPresent;
use std::{
    io::Write,
    net::TcpStream,
    sync::{Arc, Mutex},
};

use spandrel::{
    CompletionStatus, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    cdr::{ByteOrder, GiopVersion},
    diagnostics::statistics::Event,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, OrbInitInfo, OrbInitializer,
        ServerRequestInfo, ServerRequestInterceptor,
    },
    types::IiopProfile,
};
use spandrel_cdr::{Encoder, Limits, Wire};
use spandrel_giop::{
    CONTEXT_EXCEPTION_DETAIL, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestTemplate,
    ResponseFlags, ServiceContext, bare_message, exception_detail, ids, read_exception_detail,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    probe::Target,
    scripted::{ior_at, scripted},
    support::{TEST_TIMEOUT, block_on, read_message},
};

/// Unassigned context ids, and those of services that Spandrel does not implement.
const UNKNOWN: [u32; 4] = [0x1234_5678, 0, 9, 15];

type ContextLog = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

/// Records the contexts of requests and replies, and adds contexts to requests.
#[derive(Clone, Default)]
struct ContextRecorder {
    log: ContextLog,
    added: Vec<ServiceContext>,
}

impl ContextRecorder {
    fn record(&self, context: Result<ServiceContext, SystemException>) {
        let Ok(ServiceContext { id, data }) = context else { return };
        self.log.lock().unwrap().push((id, data));
    }

    fn take(&self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

impl Interceptor for ContextRecorder {}

impl ClientRequestInterceptor for ContextRecorder {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        for context in &self.added {
            info.add_request_service_context(context.clone(), IfPresent::Fail)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        UNKNOWN.iter().for_each(|id| self.record(info.reply_service_context(*id)));
        Ok(())
    }
}

impl ServerRequestInterceptor for ContextRecorder {
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        UNKNOWN.iter().for_each(|id| self.record(info.request_service_context(*id)));
        Ok(())
    }
}

struct BothSides(ContextRecorder);

impl OrbInitializer for BothSides {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.add_client_request_interceptor(self.0.clone())?;
        info.add_server_request_interceptor(self.0.clone())?;
        Ok(())
    }
}

fn recorded(builder: OrbBuilder, recorder: &ContextRecorder) -> OrbBuilder {
    builder.initializer(BothSides(recorder.clone()))
}

fn context(id: u32, data: &[u8]) -> ServiceContext {
    ServiceContext { id, data: data.to_vec() }
}

/// Sends one request with these contexts over its own connection; returns the reply.
fn exchange(server: &Server, version: GiopVersion, contexts: &[ServiceContext]) -> Message {
    let key = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let wire = Wire::new(ByteOrder::Big, version);
    let mut out = Encoder::new(wire);
    let body = RequestTemplate::new(wire, &key).begin(&mut out, 5, ResponseFlags::TWO_WAY, "ping", contexts);
    body.end(&mut out).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    Message::whole(MessageBlock::from(read_message(&mut stream).unwrap().as_slice())).unwrap()
}

fn exception(reply: &Message) -> (ReplyStatus, Option<SystemException>) {
    let mut input = reply.decoder(Limits::default());
    let status = ReplyHeader::decode(&mut input).unwrap().status;
    let raised = (status == ReplyStatus::SystemException).then(|| {
        let id = input.str().unwrap();
        SystemException::decode(&id, &mut input).unwrap()
    });
    (status, raised)
}

#[test]
fn unknown_request_contexts_reach_server_interceptors_unchanged() {
    let recorder = ContextRecorder::default();
    let server = Server::with(recorded(Orb::builder(), &recorder));
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let sent = [
            context(15, b"sas"),
            context(0x1234_5678, b""),
            context(9, &[0xff; 1000]),
            context(15, b"another"),
            context(9, b""),
        ];
        assert_eq!(exception(&exchange(&server, version, &sent)).0, ReplyStatus::NoException);
        // Of several contexts with the same id, the first counts.
        let expected = [(0x1234_5678, vec![]), (9, vec![0xff; 1000]), (15, b"sas".to_vec())];
        assert_eq!(recorder.take(), expected, "GIOP {version}");
    }
}

#[test]
fn unknown_reply_contexts_reach_client_interceptors_unchanged() {
    let (port, _) = scripted(|request| {
        let wire = Wire::new(request.message.header.order, request.message.header.version);
        let mut out = Encoder::new(wire);
        let contexts = [context(0, b"first"), context(0x1234_5678, b"other"), context(0, b"second")];
        let body = spandrel_giop::begin_reply(&mut out, request.request_id, ReplyStatus::NoException, &contexts);
        out.i32(3);
        body.end(&mut out).unwrap();
        Some(out.to_vec())
    });
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let recorder = ContextRecorder::default();
        let orb = recorded(Orb::builder(), &recorder).build().unwrap();
        let target: Target = orb.reference(ior_at(port, version, "key")).unchecked_narrow();
        assert_eq!(target.add(1, 2).unwrap(), 3);
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
        let each = [(0x1234_5678, b"other".to_vec()), (0, b"first".to_vec())];
        assert_eq!(recorder.take(), [&each[..], &each].concat(), "GIOP {version}");
    }
}

#[test]
fn added_contexts_are_resent_after_forwarding_and_close_connection() {
    let server = Server::start();
    let there = server.object.ior().clone();
    let (port, received) = scripted(move |request| Some(request.forward(ReplyStatus::LocationForward, &there)));
    let recorder =
        ContextRecorder { added: vec![context(0x77, b"one"), context(0x78, b"two")], ..ContextRecorder::default() };
    for is_async in [false, true] {
        let orb = recorded(Orb::builder(), &recorder).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        let sum = if is_async { block_on(target.add_async(1, 2)) } else { target.add(1, 2) };
        assert_eq!(sum.unwrap(), 3);
        let request = received.lock().unwrap().pop().unwrap();
        let added: Vec<_> = request.contexts.iter().filter(|(id, _)| (0x77..=0x78).contains(id)).cloned().collect();
        assert_eq!(added, [(0x77, b"one".to_vec()), (0x78, b"two".to_vec())]);
    }
    // The contexts are sent again when a used connection is closed before the reply.
    let (port, received) = scripted(|request| {
        let MessageHeader { version, order, .. } = request.message.header;
        Some(match &*request.operation {
            "ping" => request.reply(ReplyStatus::NoException, |_| {}),
            _ if request.request_id > 1 => bare_message(version, order, MessageType::CloseConnection).to_vec(),
            _ => request.reply(ReplyStatus::NoException, |out| out.i32(3)),
        })
    });
    let orb = recorded(Orb::builder(), &recorder).build().unwrap();
    let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
    target.ping().unwrap();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    let request = received.lock().unwrap();
    assert_eq!(request.iter().map(|request| &*request.operation).collect::<Vec<_>>(), ["ping", "add", "add"]);
    for request in &*request {
        let added = request.contexts.iter().filter(|(id, _)| (0x77..=0x78).contains(id));
        assert_eq!(added.count(), 2, "{request:?}");
    }
}

#[test]
fn request_contexts_beyond_the_limits_raise_imp_limit_with_the_option() {
    let server =
        Server::with(Orb::builder().max_service_contexts(3).max_service_context_octets(100).exception_details(true));
    for (contexts, expected) in [
        (vec![context(0x55, b""); 4], "4 service contexts are more than the limit of 3 (`-ORBMaxServiceContexts`)"),
        (
            vec![context(0x55, &[1; 51]); 2],
            "102 octets of service contexts are more than the limit of 100 (`-ORBMaxServiceContextOctets`)",
        ),
    ] {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let reply = exchange(&server, version, &contexts);
            let raised = exception(&reply).1.unwrap();
            assert_eq!((raised.kind(), raised.minor()), (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_CONTEXTS));
            assert_eq!(raised.completed(), CompletionStatus::No);
            let header = ReplyHeader::decode(&mut reply.decoder(Limits::default())).unwrap();
            let detail = header.service_contexts.find(CONTEXT_EXCEPTION_DETAIL).unwrap();
            assert_eq!(read_exception_detail(detail).unwrap(), expected);
        }
    }
    for contexts in [vec![], vec![context(0x55, b""); 3], vec![context(0x55, &[1; 50]); 2]] {
        assert_eq!(exception(&exchange(&server, GiopVersion::V1_2, &contexts)).0, ReplyStatus::NoException);
    }
    server.client().ping().unwrap();
}

#[test]
fn reply_contexts_beyond_the_limits_end_their_call_only() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let (port, received) = scripted(|request| {
            let contexts = match &*request.operation {
                "ping" => vec![context(0x55, b""); 4],
                "count" => vec![context(0x55, &[1; 51]); 2],
                _ => vec![context(0x55, &[1; 33]); 3],
            };
            Some(request.reply_with(ReplyStatus::NoException, &contexts, |out| out.u32(42)))
        });
        let orb = Orb::builder().max_service_contexts(3).max_service_context_octets(100).build().unwrap();
        let target = Target::unchecked_narrow(&orb.reference(ior_at(port, version, "there")));
        let too_long = "102 octets of service contexts are more than the limit of 100";
        for (refused, expected) in [
            (target.ping().unwrap_err(), "4 service contexts are more than the limit of 3"),
            (block_on(target.ping_async()).unwrap_err(), "4 service contexts are more than the limit of 3"),
            (target.count().unwrap_err(), too_long),
        ] {
            assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_CONTEXTS));
            assert_eq!(refused.completed(), CompletionStatus::Yes);
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        assert_eq!(target.add(20, 22).unwrap(), 42);
        assert_eq!(received.lock().unwrap().len(), 4);
        assert_eq!(orb.statistics().count(Event::ConnectionOpened), 1, "the connection stays open");
    }
}

#[test]
fn whole_exception_details_are_sent_only_if_enabled() {
    let recorder = ContextRecorder::default();
    for builder in [Orb::builder(), recorded(Orb::builder(), &recorder)] {
        let detailing = Server::with(builder.clone().exception_details(true));
        let plain = Server::with(builder);
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let client = |server: &Server| server.client_with(Orb::builder().giop_version(version));
            let error = client(&detailing).panic().unwrap_err();
            assert!(
                error.to_string().contains("the server says: the servant panicked in `panic`: intended"),
                "{error}"
            );
            let error = block_on(client(&detailing).panic_async()).unwrap_err();
            assert!(error.to_string().contains("intended"), "{error}");
            let error = client(&plain).panic().unwrap_err().to_string();
            assert!(error.ends_with("the server says: the servant panicked in `panic`"), "{error}");
            let error = client(&detailing).fail(3).unwrap_err().to_string();
            assert!(!error.contains("the server says"), "the exception has no detail: {error}");
        }
    }
}

#[test]
fn exception_details_of_other_orbs_are_decoded() {
    type Body = fn(&mut Encoder<'_>);
    let raised = || SystemException::no_permission(7, CompletionStatus::No);
    let contexts = |data: &[u8]| vec![context(CONTEXT_EXCEPTION_DETAIL, data)];
    let standard = exception_detail(&raised().with_detail("who are you?")).unwrap();
    let nothing: Body = |_| {};
    for (contexts, behind, expected) in [
        (vec![standard], nothing, Some("the server says: who are you?")),
        (vec![], |out| out.str("as JacORB says it").unwrap(), Some("the server says: as JacORB says it")),
        (vec![], |out| out.str("line\nbreak\u{7}").unwrap(), Some(r"the server says: line\nbreak\u0007")),
        (contexts(b"\0"), nothing, None),
        (contexts(b"\0\0\0\0\xff\xff\xff\xff"), nothing, None),
        (vec![], |out| out.u32(u32::MAX), None),
        (vec![], nothing, None),
    ] {
        let (port, _) = scripted(move |request| {
            let wire = Wire::new(request.message.header.order, request.message.header.version);
            let mut out = Encoder::new(wire);
            let body =
                spandrel_giop::begin_reply(&mut out, request.request_id, ReplyStatus::SystemException, &contexts);
            raised().encode(&mut out).unwrap();
            behind(&mut out);
            body.end(&mut out).unwrap();
            Some(out.to_vec())
        });
        let target: Target =
            Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
            assert_eq!(error, raised());
            let place = format!("`ping` of 127.0.0.1:{port}/key");
            let text = expected.map_or(place.clone(), |said| format!("{place}; {said}"));
            assert_eq!(error.detail(), Some(&*text));
        }
    }
}
