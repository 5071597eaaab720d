//! The services of RFC 862 to 868, logging, and the gateway.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use spandrel_test_support::{TEST_TIMEOUT, eventually, free_port, read_some, retry_interrupted};

use crate::Process;

const LONG: Duration = TEST_TIMEOUT;

fn connect(address: &str) -> TcpStream {
    let client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    client
}

/// Sends octets and the end; returns all that comes back.
fn exchange(address: &str, octets: &[u8]) -> Vec<u8> {
    let mut client = connect(address);
    client.write_all(octets).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    answer
}

fn datagram(address: &str, octets: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.send_to(octets, address).unwrap();
    let mut answer = [0; 2048];
    let count = retry_interrupted(|| socket.recv(&mut answer)).unwrap();
    answer[..count].to_vec()
}

#[test]
fn echo_sends_back_and_discard_sends_nothing() {
    let process = Process::new();
    process.process("static Echo '-p 0 -u'\nstatic Discard '-p 0 -u'").unwrap();
    let text = vec![b'x'; 300_000];
    let mut client = connect(&process.address("Echo"));
    let mut sending = client.try_clone().unwrap();
    let sent = text.clone();
    let sender = std::thread::spawn(move || {
        sending.write_all(&sent).unwrap();
        sending.shutdown(Shutdown::Write).unwrap();
    });
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    sender.join().unwrap();
    assert_eq!(answer.len(), text.len());
    assert_eq!(datagram(&process.address("Echo"), b"hello"), b"hello");
    assert_eq!(exchange(&process.address("Discard"), b"hello"), b"");
    assert!(process.info("Echo").contains("/tcp,udp # echo"));
}

#[test]
fn daytime_and_time_tell_the_time() {
    let process = Process::new();
    process.process("static Daytime '-p 0 -u'\nstatic Time '-p 0 -u'").unwrap();
    let text = String::from_utf8(exchange(&process.address("Daytime"), b"")).unwrap();
    assert!(text.starts_with("20") && text.ends_with("Z\r\n"), "{text}");
    assert_eq!(datagram(&process.address("Daytime"), b"").len(), text.len());
    let seconds = u64::from(u32::from_be_bytes(exchange(&process.address("Time"), b"").try_into().unwrap()));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // The lower 32 bits of the seconds since 1900.
    assert!((now + 2_208_988_800 - seconds) % (1 << 32) < 10, "{seconds}");
    assert_eq!(datagram(&process.address("Time"), b"").len(), 4);
}

#[test]
fn an_exchange_with_another_service_of_datagrams_ends() {
    let process = Process::new();
    process.process("static Echo '-p 0 -u'\nstatic Daytime '-p 0 -u'\nstatic Time '-p 0 -u'").unwrap();
    for name in ["Echo", "Daytime", "Time"] {
        // A service that answers all, after a datagram in its name.
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.connect(process.address(name)).unwrap();
        other.set_read_timeout(Some(LONG)).unwrap();
        other.send(b"forged").unwrap();
        let mut octets = [0; 2048];
        let answers = (0..1_000).take_while(|number| {
            if *number == 64 {
                other.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            }
            let Ok(count) = retry_interrupted(|| other.recv(&mut octets)) else { return false };
            other.send(&octets[..count]).is_ok()
        });
        let answers = answers.count();
        assert!((64..1_000).contains(&answers), "{name}: {answers}");
        let address = process.address(name);
        eventually(|| {
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            client.send_to(b"x", &address).unwrap();
            client.recv(&mut octets).is_ok()
        });
    }
}

#[test]
fn chargen_sends_lines_as_long_as_they_are_read() {
    let process = Process::new();
    process.process("static Chargen '-p 0'").unwrap();
    let mut client = connect(&process.address("Chargen"));
    let mut octets = vec![0; 3_000_000];
    client.read_exact(&mut octets).unwrap();
    let lines: Vec<&[u8]> = octets.chunks_exact(74).take(96).collect();
    assert!(
        lines[0].starts_with(b"!\"#$%&") && lines[0].ends_with(b"gh\r\n"),
        "{:?}",
        String::from_utf8_lossy(lines[0])
    );
    assert!(lines[1].starts_with(b"\"#$%&'") && lines[93].starts_with(b"~!\"#"));
    assert_eq!(lines[94], lines[0]);
    let refused = process.process("static Chargen '-p 0 -u'").unwrap_err();
    assert!(refused.ends_with("the chargen service answers no datagrams"), "{refused}");
}

#[test]
fn connections_are_bounded_in_number_and_time() {
    let process = Process::new();
    process.process("static Echo '-p 0 -m 1 -i 1'").unwrap();
    let mut first = connect(&process.address("Echo"));
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    assert_eq!(read_some(connect(&process.address("Echo")), &mut [0]).unwrap_or(0), 0, "a second one is closed");
    assert_eq!(read_some(&first, &mut [0]).unwrap_or(0), 0, "an idle one is closed");
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    let process = Process::new();
    for (directive, reason) in [
        ("static Echo '-p x'", "invalid value 'x' for '-p <PORT>': invalid digit found in string"),
        ("static Echo '-z'", "unexpected argument '-z' found"),
        ("static Gateway", "the following required arguments were not provided: -r <LISTEN=TARGET,…>"),
        ("static Gateway '-r 127.0.0.1:1'", "expected LISTEN=TARGET[,TARGET…]"),
        ("static Administration", "expected a place: -u PATH, -p PORT or -o SERVICE"),
        ("static Naming '--data x'", "there is no ORB `ORB` before it (-o)"),
    ] {
        let text = process.process(directive).unwrap_err();
        assert!(text.ends_with(reason) && text.lines().count() == 1, "{text}");
    }
    let occupied = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = process.process(&format!("static Echo '-a {}'", occupied.local_addr().unwrap())).unwrap_err();
    assert!(text.contains("cannot listen at 127.0.0.1:"), "{text}");
}

#[test]
fn logging_writes_the_records_of_many_processes() {
    let process = Process::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("log");
    process.process(&format!("static Logging '-p 0 -o {}'", file.display())).unwrap();
    let address = process.address("Logging");
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut stream = connect(&address);
                for record in 0..50 {
                    writeln!(stream, r#"{{"message":"record {record} of {client}","level":"INFO"}}"#).unwrap();
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let wrong = b"no record\n[1]\n{}\n{\"message\":1}\n{\"fields\":{}}\n{\"message\":\"\xff\"}\n";
    connect(&address).write_all(wrong).unwrap();
    // The form of a web page ends its connection before the fields.
    _ = connect(&address).write_all(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n{\"message\":\"=\"}\n");
    eventually(|| process.info("Logging").ends_with("0 connections, 400 records, 6 refused"));
    let records: Vec<Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 400);
    assert!(records.iter().all(|record| record["peer"].as_str().unwrap().starts_with("127.0.0.1:")));

    // A record may speak of HTTP.
    connect(&address).write_all("{\"message\":\"GET / HTTP/1.1\",\"escape\":\"\u{9b}\"}\n".as_bytes()).unwrap();
    eventually(|| process.info("Logging").ends_with("401 records, 6 refused"));
    assert!(!fs::read_to_string(&file).unwrap().contains('\u{9b}'));

    // A renamed file is left alone after a suspension.
    fs::rename(&file, folder.path().join("old")).unwrap();
    process.process("suspend Logging").unwrap();
    process.process("resume Logging").unwrap();
    connect(&address).write_all(b"{\"message\":\"new\"}\n").unwrap();
    eventually(|| fs::read_to_string(&file).is_ok_and(|text| text.contains("\"new\"")));
}

#[test]
fn the_gateway_forwards_both_ways_and_passes_failed_targets_over() {
    let process = Process::new();
    process.process("static Echo '-p 0'").unwrap();
    let unused = free_port();
    let rule = format!("127.0.0.1:0=127.0.0.1:{unused},{}", process.address("Echo"));
    process.process(&format!("static Gateway '-r {rule}'")).unwrap();
    let address = process.address("Gateway");
    for _ in 0..4 {
        assert_eq!(exchange(&address, b"through"), b"through");
    }
    eventually(|| process.info("Gateway").contains(", 0 connections, 56 octets, 0 without a target"));
    let mut open = connect(&address);
    open.write_all(b"x").unwrap();
    open.read_exact(&mut [0]).unwrap();
    process.process("remove Gateway").unwrap();
    assert_eq!(read_some(&open, &mut [0]).unwrap_or(0), 0, "connections end with the gateway");
    let rule = format!("127.0.0.1:0={}", process.address("Echo"));
    process.process(&format!("static Gateway '-r {rule} -i 1'")).unwrap();
    let idle = connect(&process.address("Gateway"));
    assert_eq!(read_some(&idle, &mut [0]).unwrap_or(0), 0, "an idle connection is closed");
    eventually(|| process.info("Gateway").contains(", 0 connections"));
    process.process(&format!("static Gateway '-r 127.0.0.1:0=127.0.0.1:{unused}'")).unwrap();
    assert_eq!(read_some(connect(&process.address("Gateway")), &mut [0]).unwrap_or(0), 0);
    eventually(|| process.info("Gateway").ends_with("1 without a target"));
}
