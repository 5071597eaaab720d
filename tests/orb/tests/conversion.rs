//! Text in code sets besides the usual: what two ORBs agree on, what arrives, and what is refused, on which side and in which words.

use std::io::Write;

use spandrel::{
    CharSet, CompletionStatus, GiopVersion, IiopProfile, InitError, ObjectRef, Orb, OrbBuilder, SystemException,
    SystemExceptionKind, WString, WcharSet,
    generated::{Replied, Servant, ServerCall},
    ior_to_string, minor,
};
use spandrel_cdr::{ByteOrder, CdrError, Decode, Encoder, Ior, Limits, Wire};
use spandrel_giop::{
    Assembler, CONTEXT_CODE_SETS, Message, MessageHeader, ReplyHeader, ReplyStatus, RequestHeader, RequestTemplate,
    ResponseFlags, ServiceContext, TransmissionCodeSets,
};
use spandrel_message::MessageBlock;
use spandrel_orb_tests::{
    Server,
    support::{iiop_alone, pretend, read_message},
};

/// Hears a text in one kind of characters, and says it in the other.
struct Teller;

impl Servant for Teller {
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

/// With the options of a command line.
fn builder(options: &[&str]) -> OrbBuilder {
    let mut options = options.iter().map(ToString::to_string).collect();
    Orb::builder().take_args(&mut options).unwrap()
}

fn serving(options: &[&str]) -> (Server, String) {
    let server = Server::with(builder(options));
    let teller = server.poa.activate(Teller).unwrap().to_string();
    (server, teller)
}

fn calling(options: &[&str], teller: &str) -> ObjectRef {
    builder(options).build().unwrap().string_to_object(teller).unwrap()
}

/// Kind, minor code and completion, and whether all words are told.
#[track_caller]
fn check(error: &SystemException, expected: (SystemExceptionKind, u32, CompletionStatus), words: &[&str]) {
    assert_eq!((error.kind(), error.minor(), error.completed()), expected, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "`{word}` in: {error}");
    }
}

const UNSAYABLE: (SystemExceptionKind, u32) = (SystemExceptionKind::DataConversion, minor::CHARACTER_NOT_IN_CODE_SET);
const INCOMPATIBLE: (SystemExceptionKind, u32) = (SystemExceptionKind::CodesetIncompatible, minor::NO_COMMON_CODE_SET);

#[test]
fn text_goes_in_the_servers_native_code_set_and_means_the_same() {
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
        let (_server, teller) = serving(&["-ORBNativeCharCodeSet", set, "-ORBConversionCodeSets", "none"]);
        for order in ["big", "little"] {
            let object = calling(&["-ORBByteOrder", order], &teller);
            assert_eq!(&*widen(&object, text).unwrap(), text, "{set}");
            assert_eq!(narrow(&object, text).unwrap(), text, "{set}");
        }
        let object = calling(&["-ORBGiopVersion", "1.1"], &teller);
        assert_eq!(&*widen(&object, text).unwrap(), text, "{set} in GIOP 1.1");
    }
}

#[test]
fn wide_text_goes_in_what_the_server_prefers_and_means_the_same() {
    for set in ["UTF-16", "UCS-4", "UTF-8", "GB18030"] {
        let (_server, teller) = serving(&["-ORBNativeWCharCodeSet", set]);
        let object = calling(&[], &teller);
        assert_eq!(narrow(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}");
        assert_eq!(&*widen(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}");
        let object = calling(&["-ORBGiopVersion", "1.1"], &teller);
        assert_eq!(narrow(&object, "5 € 😀").unwrap(), "5 € 😀", "{set}: UTF-16 instead");
    }
    let (_server, teller) = serving(&["-ORBNativeWCharCodeSet", "UCS-2"]);
    let object = calling(&[], &teller);
    assert_eq!(narrow(&object, "5 €").unwrap(), "5 €");
    let refused = narrow(&object, "😀").unwrap_err();
    let (kind, minor) = UNSAYABLE;
    check(&refused, (kind, minor, CompletionStatus::No), &["U+1F600", "UCS-2", "-ORBNativeWCharCodeSet"]);
}

#[test]
fn what_a_request_cannot_say_is_refused_before_it_is_sent_and_what_a_reply_cannot_after_the_call() {
    let (_server, teller) = serving(&["-ORBNativeCharCodeSet", "KOI8-R", "-ORBConversionCodeSets", "none"]);
    let object = calling(&[], &teller);
    let (kind, minor) = UNSAYABLE;
    let refused = widen(&object, "5 €").unwrap_err();
    check(&refused, (kind, minor, CompletionStatus::No), &["U+20AC", "'€'", "KOI8-R", "-ORBNativeCharCodeSet"]);
    let refused = narrow(&object, "5 €").unwrap_err();
    check(&refused, (kind, minor, CompletionStatus::Yes), &[]);
    assert_eq!(&*widen(&object, "Жук").unwrap(), "Жук", "the connection is as it was");
}

#[test]
fn without_code_sets_in_common_nothing_is_sent() {
    let greek = ["-ORBNativeCharCodeSet", "ISO-8859-7", "-ORBConversionCodeSets", "none"];
    let (_server, teller) = serving(&["-ORBNativeCharCodeSet", "KOI8-R", "-ORBConversionCodeSets", "none"]);
    let object = calling(&greek, &teller);
    let (kind, minor) = INCOMPATIBLE;
    for _ in 0..2 {
        let words = ["KOI8-R (0x1002036e)", "ISO 8859-7", "-ORBConversionCodeSets"];
        check(&widen(&object, "a").unwrap_err(), (kind, minor, CompletionStatus::No), &words);
    }
    // Another profile of the same reference may do.
    let (_other, knows) = serving(&["-ORBConversionCodeSets", "ISO-8859-7"]);
    let profiles = [&teller, &knows].map(|ior| ior_of(ior).profiles);
    let both = ior_to_string(&Ior { type_id: String::new(), profiles: profiles.concat() });
    assert_eq!(&*widen(&calling(&greek, &both), "Ω").unwrap(), "Ω");
}

#[test]
fn wide_text_is_refused_only_where_it_is_sent() {
    let none = &["-ORBConversionWCharCodeSets", "none"];
    let refused = |server: &[&str], client: &[&str]| {
        let (_server, teller) = serving(server);
        let object = calling(client, &teller);
        assert_eq!(length(&object, "narrow").unwrap(), 6, "narrow text is as ever");
        narrow(&object, "a").unwrap_err()
    };
    let (kind, minor) = INCOMPATIBLE;
    let error = refused(
        &[&["-ORBNativeWCharCodeSet", "ISO-8859-5"][..], none].concat(),
        &[&["-ORBNativeWCharCodeSet", "ISO-8859-7"][..], none].concat(),
    );
    check(&error, (kind, minor, CompletionStatus::No), &["ISO 8859-5", "ISO 8859-7", "-ORBNativeWCharCodeSet"]);
    let error = refused(&["-ORBNativeWCharCodeSet", "none"], &[]);
    let expected = (SystemExceptionKind::InvObjref, minor::WCHAR_NOT_SUPPORTED, CompletionStatus::No);
    check(&error, expected, &["-ORBDefaultWCharCodeSet"]);
    let error = refused(&[], &["-ORBNativeWCharCodeSet", "none"]);
    let expected = (SystemExceptionKind::BadParam, minor::NO_WCHAR_CODE_SET, CompletionStatus::No);
    check(&error, expected, &["-ORBNativeWCharCodeSet"]);
}

#[test]
fn a_reference_without_code_sets_takes_what_is_assumed() {
    let (server, teller) = serving(&[]);
    let key: String = profile_of(&teller).object_key.iter().map(|octet| format!("%{octet:02x}")).collect();
    let url = format!("corbaloc:iiop:1.2@127.0.0.1:{}/{key}", server.port());
    let (kind, minor) = UNSAYABLE;
    let refused = widen(&calling(&[], &url), "5 €").unwrap_err();
    check(&refused, (kind, minor, CompletionStatus::No), &["U+20AC", "ISO 8859-1", "-ORBDefaultCharCodeSet"]);
    let assumed = ["-ORBDefaultCharCodeSet", "windows-1252", "-ORBDefaultWCharCodeSet", "UTF-16"];
    let object = calling(&assumed, &url);
    assert_eq!(&*widen(&object, "5 €").unwrap(), "5 €");
    assert_eq!(narrow(&object, "5 €").unwrap(), "5 €");
    let refused = widen(&object, "Ω").unwrap_err();
    check(&refused, (kind, minor, CompletionStatus::No), &["U+03A9", "windows-1252"]);
}

#[test]
fn an_option_takes_what_is_known_and_no_other() {
    let refused = |option: &str, value: &str| {
        let mut words = vec![option.to_owned(), value.to_owned()];
        matches!(Orb::builder().take_args(&mut words), Err(InitError::BadValue { .. }))
    };
    assert!(refused("-ORBNativeCharCodeSet", "EBCDIC") && refused("-ORBNativeCharCodeSet", "UTF-16"));
    assert!(refused("-ORBConversionCodeSets", "UTF-8,") && refused("-ORBConversionWCharCodeSets", "UTF-8;UTF-16"));
    let ior = |options: &[&str]| {
        let (_server, teller) = serving(options);
        let components: Vec<_> = profile_of(&teller).components;
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
    iiop_alone(&ior_of(text).profiles[0])
}

fn message(octets: &[u8]) -> Message {
    let header = MessageHeader::parse(octets[..12].try_into().unwrap()).unwrap();
    Assembler::new(1 << 20, 1).accept(header, MessageBlock::from(octets)).unwrap().expect("one whole message")
}

#[test]
fn octets_that_are_no_text_are_refused_by_who_reads_them() {
    // A server gets half a character.
    let (server, teller) = serving(&["-ORBNativeCharCodeSet", "Shift_JIS"]);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    let said = TransmissionCodeSets { char_set: "SJIS".parse().unwrap(), wchar_set: WcharSet::Utf16 };
    let contexts = [ServiceContext { id: CONTEXT_CODE_SETS, data: said.to_context().data }];
    let template = RequestTemplate::new(Wire::default(), &profile_of(&teller).object_key);
    let mut out = Encoder::new(Wire::default());
    let body = template.begin(&mut out, 1, ResponseFlags::TWO_WAY, "length", &contexts);
    out.octet_sequence(&[b'a', 0x81, 0]).unwrap();
    body.end(&mut out).unwrap();
    stream.write_all(&out.to_vec()).unwrap();
    let answer = message(&read_message(&mut stream).unwrap());
    let mut input = answer.decoder(Limits::default());
    assert_eq!(ReplyHeader::decode(&mut input).unwrap().status, ReplyStatus::SystemException);
    let id = input.str().unwrap();
    let (kind, minor) = UNSAYABLE;
    check(&SystemException::decode(&id, &mut input).unwrap(), (kind, minor, CompletionStatus::No), &[]);

    // A client does.
    let port = pretend(|_, mut stream| {
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
    check(&read.unwrap_err(), (kind, minor, CompletionStatus::Yes), &["Shift_JIS"]);
}
