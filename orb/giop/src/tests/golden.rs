//! Messages and references recorded from omniORB and JacORB: decoded, compared with the recorder's
//! description, and encoded again.
//!
//! `golden/README.md` describes the files. An encoding without free choices must give the same octets, except
//! that padding is zero here. An octet may differ only if it is zero here and the message means the same with
//! either value.

use crate::tests::support;

use std::{collections::HashMap, fs, path::PathBuf};

use spandrel_cdr::{ByteOrder, Decode, Decoder, Encoder, GiopVersion, Ior, Limits};
use spandrel_giop::{
    Assembler, Body, CancelRequest, GiopError, HEADER_LEN, HeaderPositions, IiopProfile, LocateReplyHeader,
    LocateRequestHeader, Message, MessageHeader, MessageType, ReplyHeader, ReplyStatus, RequestHeader, RequestTemplate,
    ServiceContext, SystemException, Target, bare_message, begin_reply, ior_from_string, ior_to_string,
};
use spandrel_message::MessageBlock;
use support::hex;

/// One message of a file: the recorder's description of it, and its octets.
struct Golden {
    file: String,
    words: HashMap<String, String>,
    octets: Vec<u8>,
}

impl Golden {
    fn word(&self, name: &str) -> &str {
        self.find(name).unwrap_or_else(|| panic!("{}: no `{name}`", self.file))
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.words.get(name).map(String::as_str)
    }

    #[track_caller]
    fn check(&self, name: &str, found: impl ToString) {
        assert_eq!(self.word(name), found.to_string(), "{}: `{name}`", self.file);
    }

    fn number(&self, name: &str) -> usize {
        self.word(name).parse().unwrap_or_else(|_| panic!("{}: `{name}` is no number", self.file))
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn files(extension: &str) -> Vec<(String, String)> {
    let mut found: Vec<_> = fs::read_dir(folder())
        .expect("the golden folder")
        .map(|entry| entry.expect("an entry of the golden folder").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    found
}

/// A word's value: `%xx` is an octet, shown as its Latin-1 character.
fn unescape(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push(char::from(u8::from_str_radix(&part[..2], 16).expect("two digits after %")));
        plain.push_str(&part[2..]);
    }
    plain
}

fn words(line: &str) -> HashMap<String, String> {
    line.split_whitespace()
        .map(|word| word.split_once('=').unwrap_or_else(|| panic!("no `=` in {word}")))
        .map(|(name, value)| (name.to_owned(), unescape(value)))
        .collect()
}

fn parse(file: &str, text: &str) -> Vec<Golden> {
    let mut found: Vec<Golden> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        if line.contains('=') {
            found.push(Golden { file: file.to_owned(), words: words(line), octets: Vec::new() });
        } else {
            let golden = found.last_mut().unwrap_or_else(|| panic!("{file}: octets before any words"));
            golden.octets.extend(hex(line));
        }
    }
    found
}

#[track_caller]
fn check_header(golden: &Golden) -> MessageHeader {
    let header = MessageHeader::parse(golden.octets.first_chunk().expect("twelve octets")).unwrap();
    golden.check("type", header.message_type);
    golden.check("version", header.version);
    golden.check("order", if header.order == ByteOrder::Big { "big" } else { "little" });
    golden.check("size", header.size);
    golden.check("octets", header.total_len());
    if header.version > GiopVersion::V1_0 {
        golden.check("more", header.more_fragments);
    }
    assert_eq!(header.to_octets(), golden.octets[..HEADER_LEN], "{}", golden.file);
    header
}

/// Decodes a message, whole or joined, and encodes it again.
fn check_message(golden: &Golden, message: &Message) {
    let mut input = message.decoder(Limits::default());
    match message.header.message_type {
        MessageType::Request => check_request(golden, message, &mut input),
        MessageType::Reply => check_reply(golden, message, &mut input),
        MessageType::LocateRequest => check_locate_request(golden, message, &mut input),
        MessageType::LocateReply => {
            let header = LocateReplyHeader::decode(&mut input).unwrap();
            golden.check("id", header.request_id);
            golden.check("status", header.status);
            let body = input.rest();
            check_written(golden, message, |out| Ok(header.encode(out)), body);
        }
        MessageType::CancelRequest => {
            let cancel = CancelRequest::decode(&mut input).unwrap();
            golden.check("id", cancel.request_id);
            let mut out = Encoder::new(input.wire());
            cancel.encode(&mut out).unwrap();
            assert_eq!(out.to_vec(), message.octets());
        }
        kind => {
            assert!(
                matches!(kind, MessageType::CloseConnection | MessageType::MessageError),
                "{}: {kind}",
                golden.file
            );
            assert_eq!(bare_message(message.header.version, message.header.order, kind), message.octets());
        }
    }
}

fn check_request(golden: &Golden, message: &Message, input: &mut Decoder<'_>) {
    let header = RequestHeader::decode(input).unwrap_or_else(|error| panic!("{}: {error:?}", golden.file));
    golden.check("id", header.request_id);
    golden.check("response", header.response.is_expected());
    golden.check("operation", &header.operation);
    golden.check("key", to_hex(&header.target.object_key().expect("a key")));
    golden.check("body", input.position());
    if message.header.version >= GiopVersion::V1_2 {
        golden.check("flags", format!("{:#x}", header.response.to_octet()));
        check_target(golden, &header.target);
    }
    let contexts = check_contexts(golden, header.service_contexts.iter().map(|context| (context.id, context.data)));
    let positions = HeaderPositions::of(&header, message.octets());
    assert_eq!(positions.is_some(), contexts.is_empty() && matches!(header.target, Target::Key(_)), "{}", golden.file);
    if let Some(positions) = positions {
        assert_eq!(positions.header(&Vec::from(message.octets())), Some(header.clone()), "{}", golden.file);
        assert_eq!(positions.header(&message.octets()[..HEADER_LEN]), None, "{}", golden.file);
    }
    let body = input.rest();
    check_written(golden, message, |out| header.encode(out), body);
    let Target::Key(key) = header.target else { return };
    let template = RequestTemplate::new(input.wire(), key);
    let begin = |out: &mut Encoder<'_>| {
        Ok(template.begin(out, header.request_id, header.response, &header.operation, &contexts))
    };
    check_written(golden, message, begin, body);
    if contexts.is_empty() || message.header.version >= GiopVersion::V1_2 {
        let complete = template.complete(&header.operation, &contexts).expect("a name that was read");
        check_written(golden, message, |out| Ok(complete.begin(out, header.request_id, header.response)), body);
    }
}

fn check_target(golden: &Golden, target: &Target<'_>) {
    let kind = match target {
        Target::Key(_) => "key",
        Target::Profile(profile) => {
            golden.check("profile_tag", profile.tag);
            golden.check("profile", to_hex(&profile.data));
            "profile"
        }
        Target::Reference { ior, selected } => {
            golden.check("profile_index", selected);
            check_ior(golden, ior);
            "reference"
        }
    };
    golden.check("target", kind);
}

fn check_reply(golden: &Golden, message: &Message, input: &mut Decoder<'_>) {
    let header = ReplyHeader::decode(input).unwrap_or_else(|error| panic!("{}: {error:?}", golden.file));
    golden.check("id", header.request_id);
    golden.check("status", header.status);
    golden.check("body", input.position());
    let contexts = check_contexts(golden, header.service_contexts.iter().map(|context| (context.id, context.data)));
    let body = input.rest();
    check_written(golden, message, |out| Ok(begin_reply(out, header.request_id, header.status, &contexts)), body);
    match header.status {
        ReplyStatus::NoException => {}
        ReplyStatus::UserException => golden.check("exception", input.str().unwrap()),
        ReplyStatus::SystemException => {
            let id = input.str().unwrap();
            golden.check("exception", &id);
            let exception = SystemException::decode(&id, input).unwrap();
            assert_eq!(exception.kind().repository_id(), id);
            golden.check("minor", format!("{:#x}", exception.minor()));
            golden.check("completed", format!("{:?}", exception.completed()).to_uppercase());
            let begin = |out: &mut Encoder<'_>| {
                let body = begin_reply(out, header.request_id, header.status, &contexts);
                exception.encode(out).map(|()| body)
            };
            // JacORB appends a text to the standard's fields.
            let more = input.rest();
            assert!(more.is_empty() || golden.file.starts_with("jacorb-"), "{}", golden.file);
            check_written(golden, message, begin, more);
            return;
        }
        ReplyStatus::LocationForward => check_ior(golden, &Ior::decode(input).unwrap()),
        status => panic!("{}: no such reply was recorded: {status}", golden.file),
    }
    if header.status != ReplyStatus::NoException && header.status != ReplyStatus::UserException {
        assert_eq!(input.remaining(), 0, "{}", golden.file);
    }
}

fn check_locate_request(golden: &Golden, message: &Message, input: &mut Decoder<'_>) {
    let header = LocateRequestHeader::decode(input).unwrap();
    golden.check("id", header.request_id);
    golden.check("key", to_hex(&header.target.object_key().expect("a key")));
    if message.header.version >= GiopVersion::V1_2 {
        check_target(golden, &header.target);
    }
    let mut out = Encoder::new(input.wire());
    header.encode(&mut out).unwrap();
    check_same(golden, message, &out.to_vec());
}

fn check_contexts<'m>(golden: &Golden, found: impl Iterator<Item = (u32, &'m [u8])>) -> Vec<ServiceContext> {
    let contexts: Vec<_> = found.map(|(id, data)| ServiceContext { id, data: data.to_vec() }).collect();
    let text: Vec<_> = contexts.iter().map(|context| format!("{:#x}:{}", context.id, to_hex(&context.data))).collect();
    golden.check("contexts", if text.is_empty() { "none".to_owned() } else { text.join(",") });
    contexts
}

fn check_ior(golden: &Golden, ior: &Ior) {
    golden.check("ior_type", &ior.type_id);
    let profiles: Vec<_> =
        ior.profiles.iter().map(|profile| format!("{:#x}:{}", profile.tag, to_hex(&profile.data))).collect();
    golden.check("ior_profiles", profiles.join(","));
}

/// Encodes headers with `begin` and adds `body`: the octets must equal the message's.
fn check_written(
    golden: &Golden,
    message: &Message,
    begin: impl FnOnce(&mut Encoder<'_>) -> Result<Body, spandrel_cdr::CdrError>,
    body: &[u8],
) {
    let wire = spandrel_cdr::Wire::new(message.header.order, message.header.version);
    let mut out = Encoder::new(wire);
    let begun = begin(&mut out).unwrap();
    out.octets(body);
    begun.end(&mut out).unwrap();
    check_same(golden, message, &out.to_vec());
}

fn check_same(golden: &Golden, message: &Message, ours: &[u8]) {
    let theirs = message.octets();
    assert_eq!(ours.len(), theirs.len(), "{}: {}", golden.file, message);
    assert_eq!(meaning(ours), meaning(theirs), "{}", golden.file);
    for at in (0..ours.len()).filter(|at| ours[*at] != theirs[*at]) {
        assert_eq!(ours[at], 0, "{}: octet {at} is no padding", golden.file);
        let mut flipped = ours.to_vec();
        flipped[at] = theirs[at];
        assert_eq!(meaning(&flipped), meaning(ours), "{}: octet {at} means something", golden.file);
    }
}

/// The content of a message, as text.
fn meaning(octets: &[u8]) -> String {
    let header = MessageHeader::parse(octets.first_chunk().expect("a header")).unwrap();
    let message =
        Assembler::new(1 << 20, 1).accept(header, MessageBlock::from(octets)).unwrap().expect("a whole message");
    let mut input = message.decoder(Limits::default());
    let said = match header.message_type {
        MessageType::Request => format!("{:?}", RequestHeader::decode(&mut input).unwrap()),
        MessageType::Reply => {
            let reply = ReplyHeader::decode(&mut input).unwrap();
            if reply.status == ReplyStatus::SystemException {
                let id = input.str().unwrap();
                format!("{reply:?} {:?}", SystemException::decode(&id, &mut input).unwrap())
            } else {
                format!("{reply:?}")
            }
        }
        MessageType::LocateRequest => format!("{:?}", LocateRequestHeader::decode(&mut input).unwrap()),
        MessageType::LocateReply => format!("{:?}", LocateReplyHeader::decode(&mut input).unwrap()),
        _ => String::new(),
    };
    format!("{header:?} {said} {:02x?}", input.rest())
}

fn to_hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[test]
fn recorded_messages_are_decoded_and_encoded_alike() {
    let mut checked = 0;
    for (file, text) in files("hex") {
        let mut assemblers =
            HashMap::from([("client", Assembler::new(1 << 20, 4)), ("server", Assembler::new(1 << 20, 4))]);
        let mut begun: HashMap<&str, &Golden> = HashMap::new();
        let messages = parse(&file, &text);
        assert!(!messages.is_empty(), "{file}");
        for golden in &messages {
            assert_eq!(golden.number("octets"), golden.octets.len(), "{file}");
            if let Ok(value) = golden.word("type").parse::<u8>() {
                let version = GiopVersion::V1_0;
                let refused = MessageHeader::parse(golden.octets.first_chunk().unwrap());
                assert_eq!(refused, Err(GiopError::UnknownMessageType { version, value }), "{file}");
                continue;
            }
            let header = check_header(golden);
            let from = golden.word("from");
            let assembler = assemblers.get_mut(from).expect("client or server");
            let accepted = assembler.accept(header, MessageBlock::from(golden.octets.as_slice())).unwrap();
            match accepted {
                Some(message) => {
                    let first = begun.remove(from).unwrap_or(golden);
                    assert_eq!(first.number("octets") == message.octets().len(), std::ptr::eq(first, golden), "{file}");
                    check_message(first, &message);
                    checked += 1;
                }
                None => {
                    begun.entry(from).or_insert(golden);
                }
            }
        }
        assert!(begun.is_empty(), "{file}: a message is unfinished");
    }
    assert!(checked >= 100, "only {checked} messages were found");
}

/// The messages of one file, joined.
fn joined(stem: &str) -> Vec<Message> {
    let file = format!("{stem}.hex");
    let text = fs::read_to_string(folder().join(&file)).expect("a golden file");
    let mut assembler = Assembler::new(1 << 20, 1);
    let accept = |golden: Golden| {
        let header = MessageHeader::parse(golden.octets.first_chunk().unwrap()).unwrap();
        assembler.accept(header, MessageBlock::from(golden.octets.as_slice())).unwrap()
    };
    parse(&file, &text).into_iter().filter_map(accept).collect()
}

#[test]
fn alignment_counts_anew_in_the_1_1_fragments_of_omniorb() {
    let messages = joined("fragments-structs-1.1");
    let mut input = messages[0].decoder(Limits::default());
    RequestHeader::decode(&mut input).unwrap();
    assert_eq!((input.u32(), input.u32()), (Ok(13), Ok(339)), "the seed, and the number of structs");
    for n in 0..339_i16 {
        let (s, _c, l, _o, d) = (input.i16(), input.u8(), input.i32(), input.u8(), input.f64());
        assert_eq!((s, l, d), (Ok(n), Ok(13_000 + i32::from(n)), Ok(f64::from(n) / 8.0)));
    }
    assert_eq!((input.u32(), input.remaining()), (Ok(41_666), 0), "the length of the answer");
}

#[test]
fn arrays_of_numbers_continue_across_the_fragments_of_omniorb() {
    let messages = joined("fragments-reply-1.1");
    let mut input = messages[0].decoder(Limits::default());
    ReplyHeader::decode(&mut input).unwrap();
    let numbers = Vec::<f64>::decode(&mut input).unwrap();
    assert_eq!(input.remaining(), 0);
    assert!(numbers.len() > 1000 && numbers.windows(2).all(|pair| pair[1] - pair[0] == 0.25), "{numbers:?}");
}

#[test]
fn recorded_references_are_decoded_and_encoded_alike() {
    let found = files("ior");
    assert!(found.len() >= 3);
    for (file, text) in found {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let golden = Golden { file, words: words(lines.next().expect("words")), octets: Vec::new() };
        let reference = lines.next().expect("a reference");
        let ior = ior_from_string(reference).unwrap();
        check_ior(&golden, &ior);
        let profile = IiopProfile::decode(&ior.profiles[0]).unwrap().expect("an IIOP profile");
        golden.check("profile_version", profile.version);
        golden.check("host", &profile.host);
        golden.check("port", profile.port);
        golden.check("key", to_hex(&profile.object_key));
        if let Some(components) = golden.find("components") {
            let found: Vec<_> =
                profile.components.iter().map(|c| format!("{:#x}:{}", c.tag, to_hex(&c.data))).collect();
            assert_eq!(if found.is_empty() { "none".to_owned() } else { found.join(",") }, components);
        }
        let again = ior_to_string(&ior);
        assert_eq!(ior_from_string(&again), Ok(ior.clone()));
        let order = if reference.to_lowercase().starts_with("ior:00") { ByteOrder::Big } else { ByteOrder::Little };
        if ByteOrder::NATIVE == order {
            assert_eq!(again.to_lowercase(), reference.trim().to_lowercase());
            assert_eq!(profile.encode().unwrap(), ior.profiles[0], "{}", golden.file);
        }
    }
}
