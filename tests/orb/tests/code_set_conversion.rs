//! Conversion between code sets: negotiated sets, converted text, and refusals with their reasons on either
//! side.

use std::io::Write;

use spandrel::{
    CompletionStatus, InitError, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind,
    cdr::{CharSet, GiopVersion, WcharSet},
    generated::{Replied, Servant, ServerCall},
    minor,
    types::{IiopProfile, WString, ior_to_string},
};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Encoder, Ior, Limits, Wire};
use spandrel_giop::{
    Assembler, CONTEXT_CODE_SETS, Message, MessageHeader, ReplyHeader, ReplyStatus, RequestHeader, RequestTemplate,
    ResponseFlags, ServiceContext, TransmissionCodeSets,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    support::{fake_server, read_message, without_local_addresses},
};

/// A servant that converts between narrow and wide text.
struct TextServant;

impl Servant for TextServant {
    fn repository_id(&self) -> &'static str {
        "IDL:tests/Teller:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let mut arguments = call.arguments()?;
        match operation {
            "widen" => {
                let text = String::decode(&mut arguments)?;
                call.reply(|out| out.wstr(&text))
            }
            "narrow" => {
                let text = WString::decode(&mut arguments)?;
                call.reply(|out| out.short_str(&text))
            }
            "length" => {
                let text = String::decode(&mut arguments)?;
                let length = u32::try_from(text.chars().count()).expect("a short text");
                call.reply(|out| {
                    out.u32(length);
                    Ok(())
                })
            }
            _ => call.implicit(self),
        }
    }
}

fn widen(object: &ObjectRef, text: &str) -> Result<WString, SystemException> {
    object.invoke("widen", |out| out.short_str(text), WString::decode)
}

fn narrow(object: &ObjectRef, text: &str) -> Result<String, SystemException> {
    object.invoke("narrow", |out| out.wstr(text), String::decode)
}

fn length(object: &ObjectRef, text: &str) -> Result<u32, SystemException> {
    object.invoke("length", |out| out.short_str(text), u32::decode)
}

/// A builder with these command-line options.
fn builder(options: &[&str]) -> OrbBuilder {
    let mut options = options.iter().map(ToString::to_string).collect();
    Orb::builder().take_args(&mut options).unwrap()
}

fn server_with(options: &[&str]) -> (Server, String) {
    let server = Server::with(builder(options));
    let ior = server.poa.activate(TextServant).unwrap().to_string();
    (server, ior)
}

fn client_with(options: &[&str], ior: &str) -> ObjectRef {
    builder(options).build().unwrap().string_to_object(ior).unwrap()
}

/// Asserts kind, minor code and completion status, and that the text contains all words.
#[track_caller]
fn assert_exception(error: &SystemException, expected: (SystemExceptionKind, u32, CompletionStatus), words: &[&str]) {
    assert_eq!((error.kind(), error.minor(), error.completed()), expected, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` in: {error}");
    }
}

const NOT_ENCODABLE: (SystemExceptionKind, u32) =
    (SystemExceptionKind::DataConversion, minor::CHARACTER_NOT_IN_CODE_SET);
const INCOMPATIBLE: (SystemExceptionKind, u32) = (SystemExceptionKind::CodesetIncompatible, minor::NO_COMMON_CODE_SET);

#[test]
fn narrow_text_is_converted_to_the_servers_native_code_set() {
    for (set, text) in [
        ("ISO-8859-2", "Łódź"),
        ("ISO-8859-5", "Жук"),
        ("0x00010007", "Ωμέγα"),
        ("windows-1252", "“5 €”"),
        ("KOI8-R", "Жук"),
        ("Shift_JIS", "表示 ｶﾅ"),
        ("EUC-JP", "日本語 丂"),
        ("EUC-KR", "한국어"),
        ("GB18030", "中文 😀"),
        ("Big5", "中文許功蓋"),
    ] {
        let (_server, ior) = server_with(&["-ORBNativeCharCodeSet", set, "-ORBConversionCodeSets", "none"]);
        for order in ["big", "little"] {
            let object = client_with(&["-ORBByteOrder", order], &ior);
            assert_eq!(&*widen(&object, text).unwrap(), text, "{set}");
            assert_eq!(narrow(&object, text).unwrap(), text, "{set}");
        }
        let object = client_with(&["-ORBGiopVersion", "1.1"], &ior);
        assert_eq!(&*widen(&object, text).unwrap(), text, "{set} in GIOP 1.1");
    }
}

#[test]
fn wide_text_is_converted_to_the_servers_native_code_set() {
    for set in ["UTF-16", "UCS-4", "UTF-8", "GB18030"] {
        let (_server, ior) = server_with(&["-ORBNativeWCharCodeSet", set]);
        let object = client_with(&[], &ior);
        assert_eq!(narrow(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}");
        assert_eq!(&*widen(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}");
        let object = client_with(&["-ORBGiopVersion", "1.1"], &ior);
        assert_eq!(narrow(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}: UTF-16 in GIOP 1.1");
    }
    let (_server, ior) = server_with(&["-ORBNativeWCharCodeSet", "UCS-2"]);
    let object = client_with(&[], &ior);
    assert_eq!(narrow(&object, "5 €").unwrap(), "5 €");
    let refused = narrow(&object, "😀").unwrap_err();
    let (kind, minor) = NOT_ENCODABLE;
    assert_exception(&refused, (kind, minor, CompletionStatus::No), &["U+1F600", "UCS-2", "-ORBNativeWCharCodeSet"]);
}

#[test]
fn unencodable_text_is_completed_no_in_requests_and_completed_yes_in_replies() {
    let (_server, ior) = server_with(&["-ORBNativeCharCodeSet", "KOI8-R", "-ORBConversionCodeSets", "none"]);
    let object = client_with(&[], &ior);
    let (kind, minor) = NOT_ENCODABLE;
    let refused = widen(&object, "5 €").unwrap_err();
    assert_exception(
        &refused,
        (kind, minor, CompletionStatus::No),
        &["U+20AC", "'€'", "KOI8-R", "-ORBNativeCharCodeSet"],
    );
    let refused = narrow(&object, "5 €").unwrap_err();
    assert_exception(&refused, (kind, minor, CompletionStatus::Yes), &[]);
    assert_eq!(&*widen(&object, "Жук").unwrap(), "Жук", "the connection is unaffected");
}

#[test]
fn without_a_common_code_set_the_call_raises_codeset_incompatible() {
    let greek = ["-ORBNativeCharCodeSet", "ISO-8859-7", "-ORBConversionCodeSets", "none"];
    let (_server, ior) = server_with(&["-ORBNativeCharCodeSet", "KOI8-R", "-ORBConversionCodeSets", "none"]);
    let object = client_with(&greek, &ior);
    let (kind, minor) = INCOMPATIBLE;
    for _ in 0..2 {
        let words = ["KOI8-R (0x1002036e)", "ISO 8859-7", "-ORBConversionCodeSets"];
        assert_exception(&widen(&object, "a").unwrap_err(), (kind, minor, CompletionStatus::No), &words);
    }
    // Another profile of the same reference may have a common code set.
    let (_other, compatible) = server_with(&["-ORBConversionCodeSets", "ISO-8859-7"]);
    let profiles = [&ior, &compatible].map(|ior| ior_of(ior).profiles);
    let both = ior_to_string(&Ior { type_id: String::new(), profiles: profiles.concat() });
    assert_eq!(&*widen(&client_with(&greek, &both), "Ω").unwrap(), "Ω");
}

#[test]
fn wide_text_without_a_common_code_set_is_refused_only_when_sent() {
    let none = &["-ORBConversionWCharCodeSets", "none"];
    let refused = |server: &[&str], client: &[&str]| {
        let (_server, ior) = server_with(server);
        let object = client_with(client, &ior);
        assert_eq!(length(&object, "narrow").unwrap(), 6, "narrow text is not affected");
        narrow(&object, "a").unwrap_err()
    };
    let (kind, minor) = INCOMPATIBLE;
    let error = refused(
        &[&["-ORBNativeWCharCodeSet", "ISO-8859-5"][..], none].concat(),
        &[&["-ORBNativeWCharCodeSet", "ISO-8859-7"][..], none].concat(),
    );
    assert_exception(
        &error,
        (kind, minor, CompletionStatus::No),
        &["ISO 8859-5", "ISO 8859-7", "-ORBNativeWCharCodeSet"],
    );
    let error = refused(&["-ORBNativeWCharCodeSet", "none"], &[]);
    let expected = (SystemExceptionKind::InvObjref, minor::WCHAR_NOT_SUPPORTED, CompletionStatus::No);
    assert_exception(&error, expected, &["-ORBDefaultWCharCodeSet"]);
    let error = refused(&[], &["-ORBNativeWCharCodeSet", "none"]);
    let expected = (SystemExceptionKind::BadParam, minor::NO_WCHAR_CODE_SET, CompletionStatus::No);
    assert_exception(&error, expected, &["-ORBNativeWCharCodeSet"]);
}

#[test]
fn a_reference_without_code_sets_uses_the_default_code_sets() {
    let (server, ior) = server_with(&[]);
    let key: String = profile_of(&ior).object_key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/{key}", server.port());
    let (kind, minor) = NOT_ENCODABLE;
    let refused = widen(&client_with(&[], &url), "5 €").unwrap_err();
    assert_exception(
        &refused,
        (kind, minor, CompletionStatus::No),
        &["U+20AC", "ISO 8859-1", "-ORBDefaultCharCodeSet"],
    );
    let assumed = ["-ORBDefaultCharCodeSet", "windows-1252", "-ORBDefaultWCharCodeSet", "UTF-16"];
    let object = client_with(&assumed, &url);
    assert_eq!(&*widen(&object, "5 €").unwrap(), "5 €");
    assert_eq!(narrow(&object, "5 €").unwrap(), "5 €");
    let refused = widen(&object, "Ω").unwrap_err();
    assert_exception(&refused, (kind, minor, CompletionStatus::No), &["U+03A9", "windows-1252"]);
}

#[test]
fn code_set_options_accept_known_sets_only() {
    let refused = |option: &str, value: &str| {
        let mut words = vec![option.to_owned(), value.to_owned()];
        matches!(Orb::builder().take_args(&mut words), Err(InitError::BadValue { .. }))
    };
    assert!(refused("-ORBNativeCharCodeSet", "EBCDIC") && refused("-ORBNativeCharCodeSet", "UTF-16"));
    assert!(refused("-ORBConversionCodeSets", "UTF-8,") && refused("-ORBConversionWCharCodeSets", "UTF-8;UTF-16"));
    let ior = |options: &[&str]| {
        let (_server, ior) = server_with(options);
        let components: Vec<_> = profile_of(&ior).components;
        components
            .iter()
            .find_map(|component| {
                let text = spandrel_giop::component::ComponentDisplay(component).to_string();
                text.strip_prefix("code sets ").map(str::to_owned)
            })
            .unwrap()
    };
    assert_eq!(ior(&[]), "char ISO 8859-1 or UTF-8; wchar UTF-16");
    let options = ["-ORBConversionCodeSets", "0x00010002,KOI8-R", "-ORBConversionWCharCodeSets", "ucs2,ucs4"];
    assert_eq!(ior(&options), "char ISO 8859-1 or ISO 8859-2 or KOI8-R; wchar UTF-16 or UCS-2 or UCS-4");
    assert!(ior(&["-ORBConversionCodeSets", "all"]).contains("GB18030"));
}

fn ior_of(text: &str) -> Ior {
    Orb::builder().build().unwrap().string_to_object(text).unwrap().ior().clone()
}

fn profile_of(text: &str) -> IiopProfile {
    without_local_addresses(&ior_of(text).profiles[0])
}

fn message(octets: &[u8]) -> Message {
    let header = MessageHeader::parse(octets[..12].try_into().unwrap()).unwrap();
    Assembler::new(1 << 20, 1).accept(header, MessageBlock::from(octets)).unwrap().expect("one whole message")
}

#[test]
fn octets_invalid_in_their_code_set_raise_data_conversion_at_the_reader() {
    // The server receives an incomplete character.
    let (server, ior) = server_with(&["-ORBNativeCharCodeSet", "Shift_JIS"]);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let code_sets = TransmissionCodeSets { char_set: "SJIS".parse().unwrap(), wchar_set: WcharSet::Utf16 };
    let contexts = [ServiceContext { id: CONTEXT_CODE_SETS, data: code_sets.to_context().data }];
    let template = RequestTemplate::new(Wire::default(), &profile_of(&ior).object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "length", &contexts);
    out.octet_sequence(&[b'a', 0x81, 0]).unwrap();
    body.end(&mut out).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    let answer = message(&read_message(&mut stream).unwrap());
    let mut input = answer.decoder(Limits::default());
    assert_eq!(ReplyHeader::decode(&mut input).unwrap().status, ReplyStatus::SystemException);
    let id = input.str().unwrap();
    let (kind, minor) = NOT_ENCODABLE;
    assert_exception(&SystemException::decode(&id, &mut input).unwrap(), (kind, minor, CompletionStatus::No), &[]);

    // The client receives one.
    let port = fake_server(|_, mut stream| {
        while let Ok(octets) = read_message(&mut stream) {
            let request = message(&octets);
            let id = RequestHeader::decode(&mut request.decoder(Limits::default())).unwrap().request_id;
            let mut out = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_2));
            let body = spandrel_giop::begin_reply(&mut out, id, ReplyStatus::NoException, &[]);
            out.octet_sequence(&[b'a', 0x81, 0]).unwrap();
            body.end(&mut out).unwrap();
            stream.write_all(&out.to_vec()).unwrap();
        }
    });
    let orb = Orb::builder().default_char_set("SJIS".parse::<CharSet>().unwrap()).build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key")).unwrap();
    let read: Result<String, SystemException> = object.invoke("any", |_| Ok::<_, CdrError>(()), String::decode);
    assert_exception(&read.unwrap_err(), (kind, minor, CompletionStatus::Yes), &["Shift_JIS"]);
}
