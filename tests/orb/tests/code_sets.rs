//! Code sets: negotiation, the CodeSets service context, and text that is refused without an agreement.

use std::{net::TcpStream, sync::mpsc, time::Duration};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, SystemException, SystemExceptionKind,
    cdr::{CharSet, GiopVersion, WcharSet},
    generated::{Replied, Servant, ServerCall},
    minor,
    types::{IiopProfile, WString, ior_to_string},
};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Encode, Encoder, Ior, Wide, Wire};
use spandrel_giop::{
    CONTEXT_CODE_SETS, Message, MessageHeader, OwnCodeSets, ReplyHeader, RequestHeader, RequestTemplate, ResponseFlags,
    ServiceContext, TransmissionCodeSets,
    component::{CodeSets, Component},
    ids,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    support::{TEST_TIMEOUT, block_on, fake_server, read_message},
};

const UTF8_AND_UTF16: TransmissionCodeSets =
    TransmissionCodeSets { char_set: CharSet::Utf8, wchar_set: WcharSet::Utf16 };

/// A servant that echoes its arguments.
struct EchoServant;

impl Servant for EchoServant {
    fn repository_id(&self) -> &'static str {
        "IDL:tests/Mirror:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let mut arguments = call.arguments()?;
        match operation {
            "narrow" => {
                let text = String::decode(&mut arguments)?;
                call.reply(|out| out.short_str(&text))
            }
            "wide" => {
                let (text, letter) = (WString::decode(&mut arguments)?, char::decode(&mut arguments)?);
                call.reply(|out| {
                    out.wstr(&text)?;
                    out.wchar(letter)
                })
            }
            _ => call.implicit(self),
        }
    }
}

fn narrow(object: &ObjectRef, text: &str) -> Result<String, SystemException> {
    object.invoke("narrow", |out| out.short_str(text), |input| input.str().map(Into::into))
}

fn wide_arguments(text: &str, letter: char) -> impl Fn(&mut Encoder<'_>) -> Result<(), CdrError> {
    move |out| {
        out.wstr(text)?;
        out.wchar(letter)
    }
}

fn wide(object: &ObjectRef, text: &str, letter: char) -> Result<(WString, char), SystemException> {
    object.invoke("wide", wide_arguments(text, letter), |input| Ok((WString::decode(input)?, char::decode(input)?)))
}

fn activate_echo(server: &Server) -> String {
    server.poa.activate(EchoServant).unwrap().to_string()
}

#[test]
fn two_spandrel_orbs_exchange_all_of_unicode() {
    let server = Server::start();
    let ior = activate_echo(&server);
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let object = Orb::builder().byte_order(order).build().unwrap().string_to_object(&ior).unwrap();
        for text in ["", "plain", "caf\u{e9}", "5 \u{20ac}", "\u{1f600}"] {
            assert_eq!(narrow(&object, text).unwrap(), text);
            let (back, letter) = wide(&object, text, '\u{1f600}').unwrap();
            assert_eq!((&*back, letter), (text, '\u{1f600}'));
        }
    }
}

#[test]
fn asynchronous_calls_exchange_wide_text() {
    let server = Server::start();
    let ior = activate_echo(&server);
    for version in [GiopVersion::V1_1, GiopVersion::V1_2] {
        let object = Orb::builder().giop_version(version).build().unwrap().string_to_object(&ior).unwrap();
        for text in ["5 \u{20ac}", "again"] {
            let call = object.invoke_async("wide", wide_arguments(text, 'x'), |input| {
                Ok((WString::decode(input)?, char::decode(input)?))
            });
            let (back, letter): (WString, char) = block_on(call).map_err(|error: SystemException| error).unwrap();
            assert_eq!((&*back, letter), (text, 'x'), "GIOP {version}");
        }
    }
}

#[test]
fn calls_follow_a_forwarding_to_other_code_sets() {
    let server = Server::start();
    let there = spandrel_cdr::Reference::ior(&server.orb.string_to_object(&activate_echo(&server)).unwrap()).clone();
    let port = fake_server(move |_, mut stream| {
        while let Ok(octets) = read_message(&mut stream) {
            let request = message(&octets);
            let mut input = request.decoder(spandrel_cdr::Limits::default());
            let id = RequestHeader::decode(&mut input).unwrap().request_id;
            let mut out = Encoder::new(Wire::default());
            let body = spandrel_giop::begin_reply(&mut out, id, spandrel_giop::ReplyStatus::LocationForward, &[]);
            there.encode(&mut out).unwrap();
            body.end(&mut out).unwrap();
            std::io::Write::write_all(&mut stream, &out.to_vec()).unwrap();
        }
    });
    let here = |orb: &Orb| orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key")).unwrap();
    let orb = Orb::builder().build().unwrap();
    // A synchronous call encodes its arguments again; an asynchronous one has a second form for a server with this
    // ORB's code sets.
    assert_eq!(narrow(&here(&orb), "caf\u{e9}").unwrap(), "caf\u{e9}");
    let invoke_async = |text: &'static str| {
        let read = |input: &mut spandrel_cdr::Decoder<'_>| input.str().map(Into::into);
        block_on(here(&orb).invoke_async::<String, SystemException>("narrow", move |out| out.short_str(text), read))
    };
    assert_eq!(invoke_async("plain").unwrap(), "plain");
    assert_eq!(invoke_async("caf\u{e9}").unwrap(), "caf\u{e9}");
}

#[test]
fn text_that_needs_code_sets_is_sent_where_a_plain_key_is_forwarded_to() {
    let server = Server::start();
    let echo = server.orb.string_to_object(&activate_echo(&server)).unwrap();
    server.orb.set_object_key_alias("Echo", &echo).unwrap();
    let orb = Orb::builder().build().unwrap();
    for version in ["", "iiop:1.1@", "iiop:1.2@"] {
        let protocol = if version.is_empty() { ":" } else { version };
        let url = format!("corbaloc:{protocol}127.0.0.1:{}/Echo", server.port());
        for orb in [&orb, &server.orb] {
            let object = || orb.string_to_object(&url).unwrap();
            assert_eq!(narrow(&object(), "\u{6771}\u{4eac}").unwrap(), "\u{6771}\u{4eac}", "{url}");
            let (back, letter) = wide(&object(), "\u{6771}", 'x').unwrap();
            assert_eq!((&*back, letter), ("\u{6771}", 'x'), "{url}");
            let forwarded = object();
            assert_eq!(narrow(&forwarded, "caf\u{e9}").unwrap(), "caf\u{e9}");
            assert_eq!(narrow(&forwarded, "\u{6771}").unwrap(), "\u{6771}");
            for text in ["caf\u{e9}", "\u{6771}\u{4eac}"] {
                let read = |input: &mut spandrel_cdr::Decoder<'_>| input.str().map(Into::into);
                let call = object().invoke_async::<String, SystemException>("narrow", |out| out.short_str(text), read);
                assert_eq!(block_on(call).unwrap(), text, "{url}");
            }
        }
    }
}

#[test]
fn text_that_needs_code_sets_fails_where_nothing_is_forwarded() {
    let server = Server::start();
    let unknown = format!("corbaloc::127.0.0.1:{}/Nowhere", server.port());
    let key = percent(&profile_of(&activate_echo(&server)).object_key);
    let plain = format!("corbaloc::127.0.0.1:{}/{key}", server.port());
    let orb = Orb::builder().build().unwrap();
    for (url, kind) in [(unknown, SystemExceptionKind::ObjectNotExist), (plain, SystemExceptionKind::DataConversion)] {
        let object = orb.string_to_object(&url).unwrap();
        let error = narrow(&object, "\u{6771}").unwrap_err();
        assert_eq!((error.kind(), error.completed()), (kind, CompletionStatus::No), "{url}");
        let call = object.invoke_async::<(), SystemException>("narrow", |out| out.short_str("\u{6771}"), |_| Ok(()));
        let error = block_on(call).unwrap_err();
        assert_eq!((error.kind(), error.completed()), (kind, CompletionStatus::No), "{url}");
    }
}

#[test]
fn giop_1_1_has_wchars_of_one_code_unit_and_giop_1_0_none() {
    let server = Server::start();
    let ior = activate_echo(&server);
    let object = |version| Orb::builder().giop_version(version).build().unwrap().string_to_object(&ior).unwrap();
    let later = object(GiopVersion::V1_1);
    assert_eq!(wide(&later, "5 \u{20ac}", '\u{20ac}').unwrap(), (WString::from("5 \u{20ac}"), '\u{20ac}'));
    let beyond = wide(&later, "", '\u{1f600}').unwrap_err();
    assert_eq!(beyond.kind(), SystemExceptionKind::DataConversion);
    let none = wide(&object(GiopVersion::V1_0), "a", 'a').unwrap_err();
    assert_eq!((none.kind(), none.minor()), (SystemExceptionKind::Marshal, minor::WCHAR_BY_GIOP_1_0_CLIENT));
}

#[test]
fn a_reference_without_code_sets_accepts_latin1_and_no_wide_characters() {
    let server = Server::start();
    let key = profile_of(&activate_echo(&server)).object_key;
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/{}", server.port(), percent(&key));
    let object = Orb::builder().build().unwrap().string_to_object(&url).unwrap();
    assert_eq!(narrow(&object, "caf\u{e9}").unwrap(), "caf\u{e9}");
    assert_eq!(narrow(&object, "5 \u{20ac}").unwrap_err().kind(), SystemExceptionKind::DataConversion);
    let refused = wide(&object, "a", 'a').unwrap_err();
    assert_eq!((refused.kind(), refused.minor()), (SystemExceptionKind::InvObjref, minor::CODE_SETS_REQUIRED));
    assert_eq!(refused.completed(), CompletionStatus::No);
}

fn percent(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("%{octet:02x}")).collect()
}

fn profile_of(ior: &str) -> IiopProfile {
    let orb = Orb::builder().build().unwrap();
    let object = orb.string_to_object(ior).unwrap();
    let ior = spandrel_cdr::Reference::ior(&object);
    IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap()
}

/// A reference to this port with these components.
fn reference(port: u16, components: &[Component]) -> String {
    let components = components.iter().map(|component| component.encode().unwrap()).collect();
    let (host, object_key) = ("127.0.0.1".to_owned(), b"key".to_vec());
    let profile = IiopProfile { version: GiopVersion::V1_2, host, port, object_key, components };
    ior_to_string(&Ior { type_id: String::new(), profiles: vec![profile.encode().unwrap()] })
}

/// The CodeSets contexts of consecutive requests over one connection, as received by a fake server.
fn received_contexts(components: &[Component], native: CharSet, requests: usize) -> Vec<Option<TransmissionCodeSets>> {
    let (send, receive) = mpsc::channel();
    let port = fake_server(move |_, mut stream| {
        while let Ok(octets) = read_message(&mut stream) {
            let message = message(&octets);
            let mut input = message.decoder(spandrel_cdr::Limits::default());
            let header = RequestHeader::decode(&mut input).unwrap();
            let context = header.service_contexts.find(CONTEXT_CODE_SETS);
            send.send(context.map(|data| TransmissionCodeSets::from_context(data).unwrap())).unwrap();
        }
    });
    let orb = Orb::builder().native_char_set(native).build().unwrap();
    let object = orb.string_to_object(&reference(port, components)).unwrap();
    let contexts = (0..requests).map(|_| {
        object.send_oneway("note", |_| Ok(())).unwrap();
        receive.recv_timeout(TEST_TIMEOUT).unwrap()
    });
    contexts.collect()
}

fn message(octets: &[u8]) -> Message {
    let block = MessageBlock::from(octets);
    let mut assembler = spandrel_giop::Assembler::new(1 << 20, 1);
    let header = MessageHeader::parse(octets[..12].try_into().unwrap()).unwrap();
    assembler.accept(header, block).unwrap().expect("one whole message")
}

#[test]
fn only_the_first_request_of_a_connection_has_a_code_sets_context() {
    let ours = [Component::OrbType(ids::ORB_TYPE), OwnCodeSets::default().component()];
    assert_eq!(received_contexts(&ours, CharSet::Latin1, 3), [Some(UTF8_AND_UTF16), None, None]);
    assert_eq!(received_contexts(&[], CharSet::Latin1, 2), [None, None], "without code sets in the reference");
}

#[test]
fn the_negotiated_code_set_follows_the_order_of_the_standard() {
    const LATIN1: u32 = 0x0001_0001;
    const UTF8: u32 = 0x0501_0001;
    const EBCDIC: u32 = 0x1002_0025;
    const UTF16: u32 = 0x0001_0109;
    let server = |native, conversion: &[u32], wide| {
        let char_data = CodeSets { native, conversion: conversion.to_vec() };
        [Component::CodeSets { char_data, wchar_data: CodeSets { native: wide, conversion: Vec::new() } }]
    };
    let chosen =
        |server: [Component; 1], own| received_contexts(&server, own, 1)[0].expect("the first request has the context");
    for (native, conversion, own, expected) in [
        // The server's native code set if the client converts to it: omniORB, which converts to UTF-8, is
        // answered so.
        (LATIN1, &[UTF8][..], CharSet::Utf8, CharSet::Latin1),
        (UTF8, &[LATIN1], CharSet::Latin1, CharSet::Utf8),
        // The client's native set if the server converts from it; else a common conversion set; else the
        // fallback set.
        (EBCDIC, &[LATIN1, UTF8], CharSet::Utf8, CharSet::Utf8),
        (EBCDIC, &[LATIN1, UTF8], CharSet::Latin1, CharSet::Latin1),
        (EBCDIC, &[LATIN1], CharSet::Utf8, CharSet::Latin1),
        (EBCDIC, &[], CharSet::Latin1, CharSet::Utf8),
    ] {
        let sets = chosen(server(native, conversion, UTF16), own);
        assert_eq!(
            sets,
            TransmissionCodeSets { char_set: expected.standard(), wchar_set: WcharSet::Utf16 },
            "{native:x} {conversion:x?}"
        );
    }
    assert_eq!(chosen(server(LATIN1, &[], 0), CharSet::Latin1).wchar_set, WcharSet::Unknown);
}

/// A connection whose messages are encoded by the test.
struct RawConnection {
    stream: TcpStream,
    template: RequestTemplate,
}

impl RawConnection {
    fn to(server: &Server) -> Self {
        let profile = profile_of(&activate_echo(server));
        let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, template: RequestTemplate::new(Wire::default(), &profile.object_key) }
    }

    /// Calls `wide`; on an exception returns its kind and minor code.
    fn call_wide(&mut self, context: Option<&[u8]>) -> Result<(), (SystemExceptionKind, u32)> {
        use std::io::Write;
        let contexts: Vec<_> =
            context.map(|data| ServiceContext { id: CONTEXT_CODE_SETS, data: data.to_vec() }).into_iter().collect();
        let mut out = Encoder::new(self.template.wire());
        let body = self.template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "wide", &contexts);
        Wide("\u{20ac}").encode(&mut out).unwrap();
        '\u{20ac}'.encode(&mut out).unwrap();
        body.end(&mut out).unwrap();
        self.stream.write_all(&out.to_vec()).unwrap();
        let answer = message(&read_message(&mut self.stream).unwrap());
        let mut input = answer.decoder(spandrel_cdr::Limits::default());
        let header = ReplyHeader::decode(&mut input).unwrap();
        if header.status == spandrel_giop::ReplyStatus::NoException {
            assert_eq!(
                (WString::decode(&mut input).unwrap().into_inner(), input.wchar().unwrap()),
                ("\u{20ac}".into(), '\u{20ac}')
            );
            return Ok(());
        }
        let id = input.str().unwrap();
        let exception = SystemException::decode(&id, &mut input).unwrap();
        Err((exception.kind(), exception.minor()))
    }
}

#[test]
fn a_server_keeps_the_first_code_sets_context_of_a_connection() {
    let server = Server::start();
    let mut raw = RawConnection::to(&server);
    assert_eq!(
        raw.call_wide(None),
        Err((SystemExceptionKind::BadParam, minor::NO_WCHAR_CODE_SET)),
        "no context was sent yet"
    );
    let both = UTF8_AND_UTF16.to_context().data;
    assert_eq!(raw.call_wide(Some(&both)), Ok(()));
    assert_eq!(raw.call_wide(None), Ok(()), "the first context applies to the connection");
    assert_eq!(raw.call_wide(Some(&both)), Ok(()), "the same context may be repeated");
    let latin1 = TransmissionCodeSets { char_set: CharSet::Latin1, ..UTF8_AND_UTF16 }.to_context().data;
    assert_eq!(raw.call_wide(Some(&latin1)), Err((SystemExceptionKind::Marshal, minor::CODE_SETS_CHANGED)));
    assert_eq!(raw.call_wide(None), Ok(()), "the connection keeps the first context");
}

#[test]
fn a_server_refuses_unknown_code_sets() {
    let server = Server::start();
    let mut raw = RawConnection::to(&server);
    let incompatible = Err((SystemExceptionKind::CodesetIncompatible, minor::UNSUPPORTED_CODE_SET));
    for context in [
        &[0, 0, 0, 0, 0x10, 0x02, 0x00, 0x25, 0x00, 0x01, 0x01, 0x09][..],
        &[0, 0, 0, 0, 0x05, 0x01, 0x00, 0x01, 0x00, 0x01, 0x01, 0x08],
    ] {
        assert_eq!(raw.call_wide(Some(context)), incompatible, "{context:02x?}");
    }
    for malformed in [&[][..], &[0], &[0, 0, 0, 0, 0x05, 0x01, 0x00, 0x01, 0, 1]] {
        assert_eq!(raw.call_wide(Some(malformed)).unwrap_err().0, SystemExceptionKind::Marshal, "{malformed:02x?}");
    }
    assert_eq!(raw.call_wide(Some(&UTF8_AND_UTF16.to_context().data)), Ok(()), "a refused context changes nothing");
}
