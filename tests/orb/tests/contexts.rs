//! Service contexts: what services add is carried as it is, whoever knows it (CORBA 3.3 Part 2, 7.7).

use std::{
    io::Write,
    net::TcpStream,
    sync::{Arc, Mutex},
};

use spandrel::{
    ByteOrder, CompletionStatus, GiopVersion, IiopProfile, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    interception::{
        ClientRequestInfo, ClientRequestInterceptor, Interceptor, Interruption, OrbInitInfo, OrbInitializer,
        ServerRequestInfo, ServerRequestInterceptor,
    },
    statistics::Event,
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
    support::{PATIENCE, block_on, read_message},
};

/// Ids that are nobody's, and those of services that we do not have.
const UNKNOWN: [u32; 4] = [0x1234_5678, 0, 9, 15];

type Seen = Arc<Mutex<Vec<(u32, Vec<u8>)>>>;

/// Notes what comes along with requests and replies, and adds to requests.
#[derive(Clone, Default)]
struct Witness {
    seen: Seen,
    adds: Vec<ServiceContext>,
}

impl Witness {
    fn note(&self, context: Result<ServiceContext, SystemException>) {
        let Ok(ServiceContext { id, data }) = context else { return };
        self.seen.lock().unwrap().push((id, data));
    }

    fn take(&self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Interceptor for Witness {}

impl ClientRequestInterceptor for Witness {
    fn send_request(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), Interruption> {
        for context in &self.adds {
            info.add_request_service_context(context.clone(), false)?;
        }
        Ok(())
    }

    fn receive_reply(&self, info: &mut ClientRequestInfo<'_>) -> Result<(), SystemException> {
        UNKNOWN.iter().for_each(|id| self.note(info.reply_service_context(*id)));
        Ok(())
    }
}

impl ServerRequestInterceptor for Witness {
    fn receive_request_service_contexts(&self, info: &mut ServerRequestInfo<'_>) -> Result<(), Interruption> {
        UNKNOWN.iter().for_each(|id| self.note(info.request_service_context(*id)));
        Ok(())
    }
}

struct Both(Witness);

impl OrbInitializer for Both {
    fn pre_init(&self, info: &mut OrbInitInfo<'_>) -> Result<(), SystemException> {
        info.add_client_request_interceptor(self.0.clone())?;
        info.add_server_request_interceptor(self.0.clone())?;
        Ok(())
    }
}

fn watched(builder: OrbBuilder, witness: &Witness) -> OrbBuilder {
    builder.initializer(Both(witness.clone()))
}

fn context(id: u32, data: &[u8]) -> ServiceContext {
    ServiceContext { id, data: data.to_vec() }
}

/// A raw client: one request with these contexts, and the reply to it.
fn ask(server: &Server, version: GiopVersion, contexts: &[ServiceContext]) -> Message {
    let key = IiopProfile::decode(&server.object.ior().profiles[0]).unwrap().unwrap().object_key;
    let wire = Wire::new(ByteOrder::Big, version);
    let mut out = Encoder::new(wire);
    let body = RequestTemplate::new(wire, &key).begin(&mut out, 5, ResponseFlags::TWO_WAY, "ping", contexts);
    body.end(&mut out).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
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
fn what_nobody_knows_reaches_interceptors_as_it_was_sent() {
    let witness = Witness::default();
    let server = Server::with(watched(Orb::builder(), &witness));
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let sent = [
            context(15, b"sas"),
            context(0x1234_5678, b""),
            context(9, &[0xff; 1000]),
            context(15, b"another"),
            context(9, b""),
        ];
        assert_eq!(exception(&ask(&server, version, &sent)).0, ReplyStatus::NoException);
        // Of several with one id the first counts.
        let expected = [(0x1234_5678, vec![]), (9, vec![0xff; 1000]), (15, b"sas".to_vec())];
        assert_eq!(witness.take(), expected, "GIOP {version}");
    }
}

#[test]
fn what_a_server_adds_reaches_interceptors_of_the_client() {
    let (port, _) = scripted(|heard| {
        let wire = Wire::new(heard.message.header.order, heard.message.header.version);
        let mut out = Encoder::new(wire);
        let contexts = [context(0, b"first"), context(0x1234_5678, b"who"), context(0, b"second")];
        let body = spandrel_giop::begin_reply(&mut out, heard.request_id, ReplyStatus::NoException, &contexts);
        out.i32(3);
        body.end(&mut out).unwrap();
        Some(out.to_vec())
    });
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let witness = Witness::default();
        let orb = watched(Orb::builder(), &witness).build().unwrap();
        let target: Target = orb.reference(ior_at(port, version, "key")).unchecked_narrow();
        assert_eq!(target.add(1, 2).unwrap(), 3);
        assert_eq!(block_on(target.add_async(1, 2)).unwrap(), 3);
        let each = [(0x1234_5678, b"who".to_vec()), (0, b"first".to_vec())];
        assert_eq!(witness.take(), [&each[..], &each].concat(), "GIOP {version}");
    }
}

#[test]
fn what_was_added_goes_along_wherever_the_request_goes() {
    let server = Server::start();
    let there = server.object.ior().clone();
    let (port, said) = scripted(move |heard| Some(heard.forward(ReplyStatus::LocationForward, &there)));
    let witness = Witness { adds: vec![context(0x77, b"one"), context(0x78, b"two")], ..Witness::default() };
    for is_async in [false, true] {
        let orb = watched(Orb::builder(), &witness).build().unwrap();
        let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        let sum = if is_async { block_on(target.add_async(1, 2)) } else { target.add(1, 2) };
        assert_eq!(sum.unwrap(), 3);
        let heard = said.lock().unwrap().pop().unwrap();
        let added: Vec<_> = heard.contexts.iter().filter(|(id, _)| (0x77..=0x78).contains(id)).cloned().collect();
        assert_eq!(added, [(0x77, b"one".to_vec()), (0x78, b"two".to_vec())]);
    }
    // And when its connection is closed under it, once it has been used.
    let (port, said) = scripted(|heard| {
        let MessageHeader { version, order, .. } = heard.message.header;
        Some(match &*heard.operation {
            "ping" => heard.reply(ReplyStatus::NoException, |_| {}),
            _ if heard.request_id > 1 => bare_message(version, order, MessageType::CloseConnection).to_vec(),
            _ => heard.reply(ReplyStatus::NoException, |out| out.i32(3)),
        })
    });
    let orb = watched(Orb::builder(), &witness).build().unwrap();
    let target: Target = orb.reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
    target.ping().unwrap();
    assert_eq!(target.add(1, 2).unwrap(), 3);
    let heard = said.lock().unwrap();
    assert_eq!(heard.iter().map(|heard| &*heard.operation).collect::<Vec<_>>(), ["ping", "add", "add"]);
    for heard in &*heard {
        let added = heard.contexts.iter().filter(|(id, _)| (0x77..=0x78).contains(id));
        assert_eq!(added.count(), 2, "{heard:?}");
    }
}

#[test]
fn too_many_are_refused_in_words_and_nothing_else_suffers() {
    let server =
        Server::with(Orb::builder().max_service_contexts(3).max_service_context_octets(100).exception_details(true));
    for (contexts, words) in [
        (vec![context(0x55, b""); 4], "4 service contexts are more than the limit of 3 (`-ORBMaxServiceContexts`)"),
        (
            vec![context(0x55, &[1; 51]); 2],
            "102 octets of service contexts are more than the limit of 100 (`-ORBMaxServiceContextOctets`)",
        ),
    ] {
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let reply = ask(&server, version, &contexts);
            let raised = exception(&reply).1.unwrap();
            assert_eq!((raised.kind(), raised.minor()), (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_CONTEXTS));
            assert_eq!(raised.completed(), CompletionStatus::No);
            let header = ReplyHeader::decode(&mut reply.decoder(Limits::default())).unwrap();
            let said = header.service_contexts.find(CONTEXT_EXCEPTION_DETAIL).unwrap();
            assert_eq!(read_exception_detail(said).unwrap(), words);
        }
    }
    for contexts in [vec![], vec![context(0x55, b""); 3], vec![context(0x55, &[1; 50]); 2]] {
        assert_eq!(exception(&ask(&server, GiopVersion::V1_2, &contexts)).0, ReplyStatus::NoException);
    }
    server.client().ping().unwrap();
}

#[test]
fn replies_with_too_many_end_their_calls_and_nothing_else() {
    for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
        let (port, said) = scripted(|heard| {
            let contexts = match &*heard.operation {
                "ping" => vec![context(0x55, b""); 4],
                "count" => vec![context(0x55, &[1; 51]); 2],
                _ => vec![context(0x55, &[1; 33]); 3],
            };
            Some(heard.reply_with(ReplyStatus::NoException, &contexts, |out| out.u32(42)))
        });
        let orb = Orb::builder().max_service_contexts(3).max_service_context_octets(100).build().unwrap();
        let target = Target::unchecked_narrow(&orb.reference(ior_at(port, version, "there")));
        let too_long = "102 octets of service contexts are more than the limit of 100";
        for (refused, words) in [
            (target.ping().unwrap_err(), "4 service contexts are more than the limit of 3"),
            (block_on(target.ping_async()).unwrap_err(), "4 service contexts are more than the limit of 3"),
            (target.count().unwrap_err(), too_long),
        ] {
            assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::ImpLimit, ids::IMP_LIMIT_CONTEXTS));
            assert_eq!(refused.completed(), CompletionStatus::Yes);
            assert!(refused.to_string().contains(words), "{refused}");
        }
        assert_eq!(target.add(20, 22).unwrap(), 42);
        assert_eq!(said.lock().unwrap().len(), 4);
        assert_eq!(orb.statistics().count(Event::ConnectionOpened), 1, "it goes on");
    }
}

#[test]
fn an_exception_says_its_cause_where_servers_let_it() {
    let witness = Witness::default();
    for builder in [Orb::builder(), watched(Orb::builder(), &witness)] {
        let says = Server::with(builder.clone().exception_details(true));
        let is_silent = Server::with(builder);
        for version in [GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2] {
            let client = |server: &Server| server.client_with(Orb::builder().giop_version(version));
            let error = client(&says).panic().unwrap_err();
            assert!(
                error.to_string().contains("the server says: the servant panicked in `panic`: as asked"),
                "{error}"
            );
            let error = block_on(client(&says).panic_async()).unwrap_err();
            assert!(error.to_string().contains("as asked"), "{error}");
            assert_eq!(client(&is_silent).panic().unwrap_err().detail(), None);
            assert_eq!(client(&says).fail(3).unwrap_err().detail(), None, "nothing is known of it");
        }
    }
}

#[test]
fn what_other_servers_say_of_their_exceptions_is_read() {
    type Body = fn(&mut Encoder<'_>);
    let raised = || SystemException::no_permission(7, CompletionStatus::No);
    let contexts = |data: &[u8]| vec![context(CONTEXT_EXCEPTION_DETAIL, data)];
    let standard = exception_detail(&raised().with_detail("who are you?")).unwrap();
    let nothing: Body = |_| {};
    for (contexts, behind, expected) in [
        (vec![standard], nothing, Some("the server says: who are you?")),
        (vec![], |out| out.str("as JacORB says it").unwrap(), Some("the server says: as JacORB says it")),
        (vec![], |out| out.str("line\nbreak\u{7}").unwrap(), Some("the server says: line break")),
        (contexts(b"\0"), nothing, None),
        (contexts(b"\0\0\0\0\xff\xff\xff\xff"), nothing, None),
        (vec![], |out| out.u32(u32::MAX), None),
        (vec![], nothing, None),
    ] {
        let (port, _) = scripted(move |heard| {
            let wire = Wire::new(heard.message.header.order, heard.message.header.version);
            let mut out = Encoder::new(wire);
            let body = spandrel_giop::begin_reply(&mut out, heard.request_id, ReplyStatus::SystemException, &contexts);
            raised().encode(&mut out).unwrap();
            behind(&mut out);
            body.end(&mut out).unwrap();
            Some(out.to_vec())
        });
        let target: Target =
            Orb::builder().build().unwrap().reference(ior_at(port, GiopVersion::V1_2, "key")).unchecked_narrow();
        for error in [target.ping().unwrap_err(), block_on(target.ping_async()).unwrap_err()] {
            assert_eq!((&error, error.detail()), (&raised(), expected));
        }
    }
}
