//! `spandrel dump` on captures, on live connections, and on malformed input.

use crate::support;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use etherparse::PacketBuilder;
use spandrel::{
    CompletionStatus,
    dynamic::{DynAny, DynamicObject, TextContext},
};
use spandrel::{
    Orb, SystemException,
    cdr::{ByteOrder, GiopVersion},
    minor,
    types::IiopProfile,
};
use spandrel_cdr::{Encode, Encoder, Wire};
use spandrel_giop::component::Component;
use spandrel_giop::local_address::LocalAddress;
use spandrel_giop::{
    Body, Fragments, MessageType, ReplyStatus, RequestHeader, ResponseFlags, ServiceContext, Target, bare_message,
    begin_reply,
};
use spandrel_test_support::ChildProcess;
use support::bank::{Bank, Certificates, IDL};
use support::{check_code, spandrel, stderr, stdout};

/// The ports of the client and the server in a capture.
const PORTS: [u16; 2] = [40_000, 2809];

/// Writes messages in this byte order and version.
#[derive(Clone, Copy)]
struct Writer(ByteOrder, GiopVersion);

impl Writer {
    fn wire(self) -> Wire {
        Wire::new(self.0, self.1)
    }

    fn begin(self, out: &mut Encoder<'_>, id: u32, operation: &str, contexts: &[ServiceContext]) -> Body {
        let header = RequestHeader {
            request_id: id,
            response: ResponseFlags::TWO_WAY,
            target: Target::Key(b"some key"),
            operation: operation.into(),
            service_contexts: contexts.into(),
        };
        header.encode(out).unwrap()
    }

    fn request(
        self,
        id: u32,
        operation: &str,
        contexts: &[ServiceContext],
        write: impl Fn(&mut Encoder<'_>),
    ) -> Vec<u8> {
        let mut out = Encoder::new(self.wire());
        let body = self.begin(&mut out, id, operation, contexts);
        write(&mut out);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    fn reply(self, id: u32, status: ReplyStatus, write: impl Fn(&mut Encoder<'_>)) -> Vec<u8> {
        let mut out = Encoder::new(self.wire());
        let body = begin_reply(&mut out, id, status, &[]);
        write(&mut out);
        body.end(&mut out).unwrap();
        out.to_vec()
    }

    fn close(self) -> Vec<u8> {
        bare_message(self.1, self.0, MessageType::CloseConnection).to_vec()
    }
}

const LITTLE: Writer = Writer(ByteOrder::Little, GiopVersion::V1_2);
const BIG_1_0: Writer = Writer(ByteOrder::Big, GiopVersion::V1_0);

/// `deposit(100, "rent")`, and its result.
fn deposit(by: Writer, id: u32) -> [Vec<u8>; 2] {
    let request = by.request(id, "deposit", &[], |out| {
        out.i64(100);
        "rent".encode(out).unwrap();
    });
    let reply = by.reply(id, ReplyStatus::NoException, |out| {
        out.i64(200);
        "RENT".encode(out).unwrap();
        out.u32(1);
        "food".encode(out).unwrap();
        out.i64(-3);
    });
    [request, reply]
}

/// The header in front of IP.
#[derive(Clone, Copy, Debug)]
enum Front {
    Ethernet,
    Null,
    Raw6,
    Cooked,
    Cooked2,
}

/// A capture, packet by packet.
struct Capture {
    front: Front,
    ports: [u16; 2],
    /// The next sequence number of each side.
    sequence: [u32; 2],
    packets: Vec<Vec<u8>>,
}

impl Capture {
    fn new(front: Front) -> Self {
        let mut capture = Self { front, ports: PORTS, sequence: [u32::MAX - 20, 7], packets: Vec::new() };
        capture.open();
        capture
    }

    fn open(&mut self) {
        for from in [0, 1] {
            self.packet(from, self.sequence[from], b"", true);
            self.sequence[from] = self.sequence[from].wrapping_add(1);
        }
    }

    fn packet(&mut self, from: usize, sequence: u32, payload: &[u8], opens: bool) {
        let [source, target] = [self.ports[from], self.ports[1 - from]];
        let acknowledged = self.sequence[1 - from];
        let mut packet = match self.front {
            Front::Cooked => [&[0; 14][..], &[8, 0]].concat(),
            Front::Cooked2 => [&[8, 0][..], &[0; 18]].concat(),
            Front::Null => vec![2, 0, 0, 0],
            Front::Ethernet | Front::Raw6 => Vec::new(),
        };
        macro_rules! write {
            ($ip:expr) => {{
                let tcp = $ip.tcp(source, target, sequence, 64_000);
                let tcp = if opens { tcp.syn() } else { tcp };
                // Only the very first segment acknowledges nothing.
                let tcp = if opens && from == 0 { tcp } else { tcp.ack(acknowledged) };
                tcp.write(&mut packet, payload).unwrap();
            }};
        }
        match self.front {
            Front::Ethernet => {
                write!(PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64))
            }
            Front::Raw6 => write!(PacketBuilder::ipv6([1; 16], [1; 16], 64)),
            _ => write!(PacketBuilder::ipv4([127, 0, 0, 1], [127, 0, 0, 1], 64)),
        }
        self.packets.push(packet);
    }

    fn send(&mut self, from: usize, payload: &[u8]) {
        self.packet(from, self.sequence[from], payload, false);
        self.sequence[from] = self.sequence[from].wrapping_add(u32::try_from(payload.len()).unwrap());
    }

    /// The format of tcpdump: a packet each millisecond.
    fn pcap(&self) -> Vec<u8> {
        let link: u32 = match self.front {
            Front::Ethernet => 1,
            Front::Null => 0,
            Front::Raw6 => 101,
            Front::Cooked => 113,
            Front::Cooked2 => 276,
        };
        let mut file: Vec<u8> =
            [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, link].iter().flat_map(|n| n.to_le_bytes()).collect();
        for (number, packet) in (0_u32..).zip(&self.packets) {
            let len = u32::try_from(packet.len()).unwrap();
            file.extend([3600, number * 1000 % 1_000_000, len, len].iter().flat_map(|n: &u32| n.to_le_bytes()));
            file.extend(packet);
        }
        file
    }

    /// The format of Wireshark.
    fn pcapng(&self) -> Vec<u8> {
        fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
            let len = u32::try_from(body.len().next_multiple_of(4) + 12).unwrap();
            file.extend(kind.to_be_bytes());
            file.extend(len.to_be_bytes());
            file.extend(body);
            file.resize(file.len().next_multiple_of(4), 0);
            file.extend(len.to_be_bytes());
        }
        let mut file = Vec::new();
        block(&mut file, 0x0a0d_0d0a, &[&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat());
        block(&mut file, 1, &[0, 1, 0, 0, 0, 4, 0, 0]);
        for (number, packet) in (0_u32..).zip(&self.packets) {
            let micros = 3_600_000_000 + u64::from(number) * 1000;
            let len = u32::try_from(packet.len()).unwrap().to_be_bytes();
            block(&mut file, 6, &[&[0; 4][..], &micros.to_be_bytes(), &len, &len, packet].concat());
        }
        file
    }
}

/// A folder with the IDL and a capture.
struct Case(tempfile::TempDir);

impl Case {
    fn new(capture: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("bank.idl"), IDL).unwrap();
        fs::write(folder.path().join("capture"), capture).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The output with these additional options.
    fn dump(&self, options: &[&str]) -> String {
        let [capture, idl] = ["capture", "bank.idl"].map(|name| self.path(name).to_str().unwrap().to_owned());
        let output = spandrel(&[&["dump", &capture, "--idl", &idl][..], options].concat());
        check_code(&output, 0);
        stdout(&output)
    }
}

const DEPOSIT: &str = "\
#1 127.0.0.1:40000 -> 127.0.0.1:2809
01:00:00.002000 #1 -> Request 7 deposit (GIOP 1.2, little-endian, 73 octets)
    interface IDL:Bank/Account:1.0
    to \"some key\"
    amount: 100
    note: \"rent\"
01:00:00.003000 #1 <- Reply 7 deposit NO_EXCEPTION (GIOP 1.2, little-endian, 72 octets) after 1ms
    return: 200
    note: \"RENT\"
    all: [{what: \"food\", amount: -3}]
";

#[test]
fn an_exchange_is_shown_with_its_types_for_each_link_layer() {
    for front in [Front::Ethernet, Front::Null, Front::Raw6, Front::Cooked, Front::Cooked2] {
        let mut capture = Capture::new(front);
        let [request, reply] = deposit(LITTLE, 7);
        capture.send(0, &request);
        capture.send(1, &reply);
        let expected = match front {
            Front::Raw6 => DEPOSIT.replace("127.0.0.1", "[101:101:101:101:101:101:101:101]"),
            _ => DEPOSIT.to_owned(),
        };
        assert_eq!(Case::new(&capture.pcap()).dump(&[]), expected, "{front:?}");
        if matches!(front, Front::Ethernet) {
            assert_eq!(Case::new(&capture.pcapng()).dump(&[]), expected, "pcapng");
        }
    }
}

/// Values of derived types, cyclic values, and abstract interfaces.
#[test]
fn values_are_shown_with_their_types() {
    let idl = spandrel::dynamic::describe(IDL).unwrap();
    let octets = |of: &str, text: &str| {
        let of = idl.type_code(of).unwrap();
        let types = idl.value_types();
        DynAny::from_text_with(&of, text, &TextContext::new().value_types(&types)).unwrap().to_any().unwrap()
    };
    let circle = r#"{_id: 1, _type: "IDL:Bank/Urgent:1.0", text: "a", next: {text: "b", next: {_ref: 1}}, days: 3}"#;
    for by in [LITTLE, Writer(ByteOrder::Big, GiopVersion::V1_2)] {
        for (operation, of, text) in [
            ("keep", "Bank::Note", circle),
            ("keep", "Bank::Note", "null"),
            ("pass", "Bank::Holder", circle),
            ("pass", "Bank::Holder", "null"),
        ] {
            let value = octets(of, text);
            let mut out = Encoder::new(by.wire());
            value.write_value(&mut out).unwrap();
            let octets = out.to_vec();
            let mut capture = Capture::new(Front::Ethernet);
            capture.send(0, &by.request(7, operation, &[], |out| out.octets(&octets)));
            capture.send(1, &by.reply(7, ReplyStatus::NoException, |out| out.octets(&octets)));
            let shown = Case::new(&capture.pcap()).dump(&[]);
            assert!(shown.contains(&format!("    what: {text}\n")), "{shown}");
            assert!(shown.contains(&format!("    return: {text}\n")), "{shown}");
        }
    }
}

#[test]
fn segments_are_sorted_and_gaps_skipped() {
    let [request, reply] = deposit(LITTLE, 7);
    let mut capture = Capture::new(Front::Ethernet);
    let start = capture.sequence[0];
    let at = |offset: usize| start.wrapping_add(u32::try_from(offset).unwrap());
    // The end, the beginning twice, the middle.
    capture.packet(0, at(60), &request[60..], false);
    capture.packet(0, at(0), &request[..30], false);
    capture.packet(0, at(0), &request[..30], false);
    capture.packet(0, at(20), &request[20..60], false);
    capture.sequence[0] = at(request.len());
    capture.send(1, &reply);
    let text = Case::new(&capture.pcap()).dump(&[]);
    assert!(text.contains("Request 7 deposit") && text.contains("    note: \"RENT\"\n"), "{text}");

    // The middle is missing in the capture, but was received, since the other side answers; the following
    // messages are decoded again.
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &deposit(LITTLE, 1)[0][..40]);
    capture.sequence[0] = capture.sequence[0].wrapping_add(52);
    capture.send(1, &deposit(LITTLE, 1)[1]);
    let [request, reply] = deposit(LITTLE, 2);
    capture.send(0, &request);
    capture.send(1, &reply);
    let text = Case::new(&capture.pcap()).dump(&[]);
    assert!(text.contains("! its request is not in the capture\n"), "{text}");
    assert!(text.contains("Request 2 deposit") && text.contains("Reply 2 deposit NO_EXCEPTION"), "{text}");
}

/// The output and the remarks of a dump of a capture.
fn dumped(file: &[u8], code: i32) -> [String; 2] {
    let case = Case::new(file);
    let output = spandrel(&["dump", case.path("capture").to_str().unwrap()]);
    check_code(&output, code);
    [stdout(&output), stderr(&output)]
}

#[test]
fn a_message_whose_end_is_not_captured_is_shown() {
    let [request, reply] = deposit(LITTLE, 7);
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &request);
    capture.send(1, &reply[..40]);
    let [text, _] = dumped(&capture.pcap(), 0);
    assert!(text.ends_with("#1 <- … 40 octets of a message whose end is missing\n"), "{text}");
    // Also of the only message, and behind a gap.
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &request[..40]);
    let [text, _] = dumped(&capture.pcap(), 0);
    assert!(text.ends_with("#1 -> … 40 octets of a message whose end is missing\n"), "{text}");
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &request);
    capture.sequence[0] = capture.sequence[0].wrapping_add(5);
    capture.send(0, &request);
    let [text, _] = dumped(&capture.pcap(), 0);
    assert!(
        text.contains("5 octets outside of messages, or missing") && text.matches("Request 7").count() == 2,
        "{text}"
    );
}

#[test]
fn what_is_left_out_is_told_with_counts() {
    let [request, reply] = deposit(LITTLE, 7);
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &request);
    capture.send(1, &reply);
    let whole = capture.packets.clone();
    // The first of two fragments, SCTP, an unknown protocol, and MIOP.
    let mut fragment = whole[2].clone();
    fragment[14 + 6] = 0x20;
    let [mut sctp, mut unknown] = [whole[2].clone(), whole[2].clone()];
    sctp[14 + 9] = 132;
    unknown[12..14].copy_from_slice(&[0x88, 0xcd]);
    let mut miop = Vec::new();
    let builder = PacketBuilder::ethernet2([0; 6], [0; 6]).ipv4([127, 0, 0, 1], [224, 0, 0, 1], 64).udp(9, 10);
    builder.write(&mut miop, b"MIOP\x10\x00").unwrap();
    capture.packets.extend([fragment, sctp.clone(), sctp, unknown, miop.clone()]);
    let [text, remark] = dumped(&capture.pcap(), 0);
    assert!(text.contains("Reply 7 deposit"), "{text}");
    let expected = "left out: 1 IP fragment of incomplete datagrams, 1 packet of EtherType 0x88cd, 2 packets of IP protocol 132 \
                    (SCTP), 1 datagram of MIOP\n";
    assert_eq!(remark, expected);
    // Without any message, they are the reason.
    capture.packets = vec![miop.clone(), miop];
    let [_, error] = dumped(&capture.pcap(), 1);
    assert_eq!(error, "error: there is no GIOP in this capture; left out: 2 datagrams of MIOP\n");
    capture.packets = Vec::new();
    let [_, error] = dumped(&capture.pcap(), 1);
    assert_eq!(error, "error: there is no GIOP in this capture: it has no packet of TCP\n");
    // A snapshot length that cuts messages.
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &request);
    capture.send(1, &reply);
    let mut file = capture.pcap()[..24].to_vec();
    for packet in &capture.packets {
        let (len, kept) = (packet.len() as u32, packet.len().min(96));
        file.extend([3600, 0, kept as u32, len].iter().flat_map(|n: &u32| n.to_le_bytes()));
        file.extend(&packet[..kept]);
    }
    let [text, remark] = dumped(&file, 0);
    assert!(text.contains("octets of a message whose end is missing"), "{text}");
    assert_eq!(remark, "left out: 2 packets cut by the snapshot length\n");
}

#[test]
fn compressed_messages_are_named() {
    let [request, reply] = deposit(LITTLE, 7);
    let mut capture = Capture::new(Front::Ethernet);
    let mut compressed = request;
    compressed[0] = b'Z';
    capture.send(0, &compressed);
    capture.send(1, &reply);
    let [text, _] = dumped(&capture.pcap(), 0);
    let expected =
        "#1 -> Request (ZIOP) (GIOP 1.2, little-endian, 73 octets)\n    ! it is compressed (ZIOP), and not decoded\n";
    assert!(text.contains(expected) && text.contains("Reply 7"), "{text}");
}

#[test]
fn contexts_exceptions_and_bare_messages_are_shown_by_name() {
    let mut capture = Capture::new(Front::Ethernet);
    let code_sets = vec![1, 0, 0, 0, 1, 0, 1, 5, 9, 1, 1, 0];
    let mut trace = Encoder::new(Wire::new(ByteOrder::Big, GiopVersion::V1_0));
    trace.u8(0);
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".encode(&mut trace).unwrap();
    "".encode(&mut trace).unwrap();
    // A `wstring` of GIOP 1.2, big-endian, without a byte order mark (CORBA 3.3 Part 2, 9.3.2.7).
    let detail = b"\0\0\0\0\0\0\0\x06\0n\0o\x20\xac".to_vec();
    let contexts = [
        ServiceContext { id: 1, data: code_sets },
        ServiceContext { id: spandrel_giop::CONTEXT_EXCEPTION_DETAIL, data: detail },
        ServiceContext { id: spandrel_giop::ids::CONTEXT_TRACE, data: trace.to_vec() },
        ServiceContext { id: 0xdead_beef, data: vec![1, 2, 3] },
    ];
    capture.send(0, &LITTLE.request(1, "nothing", &contexts, |_| {}));
    let raised = SystemException::object_not_exist(minor::NO_SUCH_ADAPTER, CompletionStatus::No);
    capture.send(1, &LITTLE.reply(1, ReplyStatus::SystemException, |out| raised.encode(out).unwrap()));
    capture.send(0, &deposit(BIG_1_0, 2)[0]);
    capture.send(
        1,
        &BIG_1_0.reply(2, ReplyStatus::UserException, |out| {
            "IDL:Bank/Broke:1.0".encode(out).unwrap();
            out.i64(5);
        }),
    );
    capture.send(1, &LITTLE.close());
    let text = Case::new(&capture.pcap()).dump(&[]);
    for line in [
        "    context CodeSets: char UTF-8, wchar UTF-16",
        "    context ExceptionDetailMessage: \"no€\"",
        "    context TraceContext: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "    context 0xdeadbeef: 010203",
        &format!("    raised: {raised}"),
        "    raised: IDL:Bank/Broke:1.0 {missing: 5}",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.contains(" #1 -> Request 2 deposit (GIOP 1.0, big-endian, "), "{text}");
    assert!(text.contains(" #1 <- CloseConnection (GIOP 1.2, little-endian, 12 octets)\n"), "{text}");
}

#[test]
fn fragments_are_joined() {
    let long = "x".repeat(5000);
    let mut request = Encoder::new(LITTLE.wire());
    let body = LITTLE.begin(&mut request, 3, "deposit", &[]);
    request.i64(1);
    long.encode(&mut request).unwrap();
    body.end(&mut request).unwrap();
    let parts = Fragments::of(&request, 1024).unwrap();
    let octets = parts.to_vec(&request);
    let mut capture = Capture::new(Front::Ethernet);
    let mut start = 0;
    for end in parts.boundaries() {
        capture.send(0, &octets[start..end]);
        start = end;
    }
    assert!(parts.count() > 3 && start == octets.len());
    let text = Case::new(&capture.pcap()).dump(&[]);
    assert_eq!(text.matches("Request 3 deposit").count(), 1, "{text}");
    assert!(text.contains(&format!("    note: \"{}\"\n", "x".repeat(5000))));
}

#[test]
fn without_types_octets_are_shown_and_all_of_them_with_hex() {
    let mut capture = Capture::new(Front::Ethernet);
    capture.send(0, &LITTLE.request(1, "unheard_of", &[], |out| "some text".encode(out).unwrap()));
    let case = Case::new(&capture.pcap());
    let text = case.dump(&[]);
    assert!(text.contains("    body: 0a000000736f6d65207465787400\n"), "{text}");
    let hex = case.dump(&["--hex"]);
    assert!(hex.contains("    000000  0a 00 00 00 73 6f 6d 65 20 74 65 78 74 00        ....some.text.\n"), "{hex}");
}

#[test]
fn json_says_the_same() {
    let mut capture = Capture::new(Front::Ethernet);
    let [request, reply] = deposit(LITTLE, 7);
    capture.send(0, &request);
    capture.send(1, &reply);
    let text = Case::new(&capture.pcap()).dump(&["--json"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["client"], "127.0.0.1:40000");
    assert_eq!((&lines[1]["operation"], &lines[1]["values"]["amount"]), (&"deposit".into(), &100.into()));
    let results = serde_json::json!({ "return": 200, "note": "RENT", "all": [{ "what": "food", "amount": -3 }] });
    assert_eq!(lines[2]["values"], results);
    assert_eq!((&lines[2]["status"], &lines[2]["from"]), (&"NO_EXCEPTION".into(), &"server".into()));
}

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn spoil(&mut self, octets: &mut [u8]) {
        for _ in 0..=self.below(4) {
            let at = self.below(octets.len());
            octets[at] = u8::try_from(self.below(256)).unwrap();
        }
    }
}

#[test]
fn corrupt_messages_do_not_fail_the_dump() {
    let mut random = Random(1);
    let mut capture = Capture::new(Front::Ethernet);
    for port in 1..2000 {
        capture.ports[0] = port;
        capture.open();
        let by = if port % 3 == 0 { BIG_1_0 } else { LITTLE };
        let [mut request, mut reply] = deposit(by, port.into());
        if port % 2 == 0 {
            random.spoil(&mut request);
        }
        random.spoil(&mut reply);
        capture.send(0, &request);
        capture.send(1, &reply);
    }
    let text = Case::new(&capture.pcap()).dump(&["--hex"]);
    assert!(text.matches("Request").count() > 1000);
}

#[test]
fn a_corrupt_capture_is_an_error_and_no_panic() {
    let mut capture = Capture::new(Front::Ethernet);
    let [request, reply] = deposit(LITTLE, 7);
    capture.send(0, &request);
    capture.send(1, &reply);
    let mut random = Random(2);
    for round in 0..120 {
        let mut file = if round % 2 == 0 { capture.pcap() } else { capture.pcapng() };
        random.spoil(&mut file);
        file.truncate(file.len() - random.below(3) * random.below(file.len()) / 3);
        let case = Case::new(&file);
        let output = spandrel(&["dump", case.path("capture").to_str().unwrap()]);
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "round {round}: {code:?}\n{}", stderr(&output));
    }
}

#[test]
fn a_file_that_is_no_capture_or_has_no_giop_is_an_error() {
    for (file, message) in [
        (&b"#!/bin/sh\nthis is no capture"[..], "the file is neither pcap nor pcapng"),
        (b"", "the capture is too short for a header"),
        (&Capture::new(Front::Ethernet).pcap(), "there is no GIOP in this capture"),
    ] {
        let case = Case::new(file);
        let output = spandrel(&["dump", case.path("capture").to_str().unwrap()]);
        check_code(&output, 1);
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    check_code(&spandrel(&["dump"]), 2);
    check_code(&spandrel(&["dump", "--listen", "127.0.0.1:0"]), 2);
}

/// The bank's reference with another port.
fn by_way_of(bank: &Bank, port: u16) -> String {
    let orb = Orb::builder().build().unwrap();
    let mut ior = orb.string_to_object(&bank.reference).unwrap().ior().clone();
    let mut profile = IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    (profile.host, profile.port) = ("127.0.0.1".to_owned(), port);
    // Other transports would bypass the relay.
    profile.components.clear();
    ior.profiles = vec![profile.encode().unwrap()];
    spandrel::types::ior_to_string(&ior)
}

/// Deposits 100 at the account.
fn call(reference: &str, idl: &Path) {
    let described = spandrel::dynamic::describe_file(idl, []).unwrap();
    let orb = Orb::builder().build().unwrap();
    let account =
        DynamicObject::new(orb.string_to_object(reference).unwrap(), described.interface("Bank::Account").unwrap());
    let arguments = [spandrel::types::Any::new(100_i64).unwrap(), spandrel::types::Any::new("rent").unwrap()];
    assert_eq!(account.call("deposit", &arguments).unwrap().result::<i64>().unwrap(), 200);
}

/// The output of a relay to a server, for one call.
fn relayed(bank: &Bank, to: &str, options: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel"));
    command.args(["dump", "--listen", "127.0.0.1:0", "--to", to, "--count", "2"]);
    let mut relay = ChildProcess::start(command.args(options).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut message = String::new();
    BufReader::new(relay.stderr.take().unwrap()).read_line(&mut message).unwrap();
    let port = message.strip_prefix("listening on 127.0.0.1:").and_then(|rest| rest.split(',').next());
    call(&by_way_of(bank, port.expect(&message).parse().unwrap()), &bank.file);
    let mut text = String::new();
    relay.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(relay.wait().unwrap().success());
    text
}

#[test]
fn dump_takes_interfaces_from_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let orb = Orb::builder().listen(spandrel::Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let options = spandrel_repository::RepositoryOptions::new(folder.path());
    let repository = spandrel_repository::InterfaceRepository::start(&orb, options).unwrap();
    let bank = Bank::open();
    let idl = spandrel::dynamic::describe_file(&bank.file, []).unwrap();
    spandrel::services::repository::fill(&repository.reference().clone(), &idl).unwrap();
    let url = repository.reference().to_string();
    let text = relayed(&bank, &format!("127.0.0.1:{}", bank.port()), &["--repository", &url]);
    for line in ["    interface IDL:Bank/Account:1.0", "    amount: 100", "    note: \"rent\"", "    return: 200"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    repository.stop().unwrap();
    orb.shutdown().unwrap();
}

#[test]
fn dump_relays_between_a_client_and_a_server() {
    let bank = Bank::open();
    let text = relayed(&bank, &format!("127.0.0.1:{}", bank.port()), &["--idl", bank.file.to_str().unwrap()]);
    for line in ["    interface IDL:Bank/Account:1.0", "    amount: 100", "    note: \"rent\"", "    return: 200"] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(text.contains("    to adapter "), "{text}");
}

/// The client calls without TLS, so that the relay can read the messages.
#[test]
fn dump_relays_to_a_server_of_another_transport() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = Certificates::new(folder.path());
    if cfg!(feature = "tls") {
        let bank = Bank::listening("ssliop://127.0.0.1:0", &certificates);
        let components = bank.profile().components;
        let tls = components.iter().find_map(|component| match Component::decode(component) {
            Ok(Some(Component::SslSecTrans(tls))) => Some(tls.port),
            _ => None,
        });
        let to = format!("ssliop://127.0.0.1:{}", tls.unwrap());
        let text = relayed(
            &bank,
            &to,
            &["--ca", certificates.authority.to_str().unwrap(), "--idl", bank.file.to_str().unwrap()],
        );
        assert!(text.contains(&format!("-> {to}\n")) && text.contains("    return: 200\n"), "{text}");
    }
    if cfg!(target_os = "linux") {
        for scheme in ["uds", "shm"] {
            let bank = Bank::listening(&format!("{scheme}://"), &certificates);
            let components = bank.profile().components;
            let local = components.iter().find_map(|component| LocalAddress::decode(component).ok().flatten());
            let text = relayed(
                &bank,
                &format!("{scheme}://{}", local.unwrap().address),
                &["--idl", bank.file.to_str().unwrap()],
            );
            assert!(text.contains("    return: 200\n"), "{text}");
        }
    }
    let output = spandrel(&["dump", "--listen", "127.0.0.1:0", "--to", "pipe://x"]);
    check_code(&output, 2);
    assert!(stderr(&output).contains("unknown transport `pipe`"), "{}", stderr(&output));
}

#[test]
#[cfg(target_os = "linux")]
fn dump_captures_an_interface_where_permitted() {
    let bank = Bank::open();
    let port = bank.port().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spandrel"));
    command.args(["dump", "--interface", "lo", "--port", &port, "--count", "2", "--idl"]).arg(&bank.file);
    let mut watching = ChildProcess::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut message = String::new();
    BufReader::new(watching.stderr.take().unwrap()).read_line(&mut message).unwrap();
    if message.starts_with("error: ") {
        // Without the permission, the error names the needed capability.
        assert!(message.contains("CAP_NET_RAW"), "{message}");
        assert_eq!(watching.wait().unwrap().code(), Some(1));
        return;
    }
    assert_eq!(message, "watching lo\n");
    call(&bank.reference, &bank.file);
    let mut text = String::new();
    watching.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(watching.wait().unwrap().success());
    assert!(text.contains("    note: \"rent\"\n") && text.contains("    return: 200\n"), "{text}");
}
