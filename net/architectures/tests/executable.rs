//! Every architecture and both protocols, as the executable.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::process::Command;

use spandrel_architectures::{AcceptLock, Architecture};
use spandrel_reactor::Backend;

use crate::support::{Running, at_once, connect, greeted, http, request, rest, transfer};

/// The architectures that this system permits.
fn available() -> impl Iterator<Item = Architecture> {
    crate::support::permitted().into_iter()
}

/// The number of clients at the same time.
const CLIENTS: usize = 200;

#[test]
fn every_architecture_serves_two_hundred_clients_at_once() {
    for architecture in available() {
        let server = Running::start(&[architecture.name()]);
        at_once(CLIENTS, |_| transfer(server.address));
        server.terminate();
    }
}

#[test]
fn every_architecture_serves_files_to_two_hundred_clients_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let octets = spandrel_test_support::pattern(100_000);
    std::fs::write(folder.path().join("file.bin"), &octets).unwrap();
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--http", folder.path().to_str().unwrap()]);
        at_once(CLIENTS, |_| {
            let (head, body) = http(server.address, "GET /file.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
            assert!(head.starts_with("HTTP/1.1 200 ") && body == octets, "{architecture}: {head}");
        });
        server.terminate();
    }
}

#[test]
fn every_back_end_and_every_lock_serves() {
    for backend in Backend::KNOWN {
        let server = Running::start(&["reactive", "--backend", backend.name()]);
        at_once(20, |_| transfer(server.address));
        server.terminate();
    }
    for lock in AcceptLock::ALL {
        let server = Running::start(&["accept-pool", "--lock", lock.name()]);
        at_once(20, |_| transfer(server.address));
        server.terminate();
    }
}

#[test]
fn clients_that_misbehave_affect_no_other() {
    for architecture in available() {
        let server = Running::start(&[architecture.name()]);
        let address = server.address;
        // In parts, each of which arrives by itself.
        request(&greeted(address), &[b"4", b"00", b"0"], 4_000);
        // Closes before its request, in the middle of it, and before its reply.
        drop(connect(address));
        greeted(address).write_all(b"40").unwrap();
        greeted(address).write_all(b"9999").unwrap();
        // No request: the server closes.
        let stream = greeted(address);
        (&stream).write_all(b"GARBAGE!").unwrap();
        assert_eq!(rest(&stream), b"", "{architecture}");
        transfer(address);
        server.terminate();
    }
}

#[test]
fn without_a_greeting_an_early_and_a_late_request_are_answered() {
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--no-greeting"]);
        at_once(20, |_| request(&connect(server.address), &[b"4000"], 4_000));
        let stream = connect(server.address);
        let mut octet = [0];
        stream.set_read_timeout(Some(crate::support::SHORT)).unwrap();
        assert!(spandrel_test_support::read_some(&stream, &mut octet).is_err(), "the server waits for the request");
        stream.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
        request(&stream, &[b"4000"], 4_000);
        drop(stream);
        server.terminate();
    }
}

#[test]
fn a_silent_client_delays_no_other_except_in_the_iterative_server() {
    for architecture in available().filter(|architecture| *architecture != Architecture::Iterative) {
        let server = Running::start(&[architecture.name()]);
        let silent = greeted(server.address);
        at_once(20, |_| transfer(server.address));
        request(&silent, &[b"4000"], 4_000);
        drop(silent);
        server.terminate();
    }
}

#[test]
fn a_silent_client_is_dropped_after_its_time() {
    let all: Vec<Architecture> = available().collect();
    at_once(all.len(), |number| {
        let server = Running::start(&[all[number].name(), "--idle", "1"]);
        let silent = greeted(server.address);
        assert_eq!(rest(&silent), b"", "{}", all[number]);
        transfer(server.address);
        server.terminate();
    });
}

#[test]
fn a_client_that_takes_nothing_is_dropped_after_its_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("huge.bin"), vec![7; 64 << 20]).unwrap();
    let all: Vec<Architecture> = available().collect();
    at_once(all.len(), |number| {
        let arguments = [all[number].name(), "--idle", "1", "--http", folder.path().to_str().unwrap()];
        let server = Running::start(&arguments);
        let idle = connect(server.address);
        (&idle).write_all(b"GET /huge.bin HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        spandrel_test_support::wait_until("the connection is dropped", || is_gone(server.address, &idle));
        http(server.address, "GET / HTTP/1.0\r\n\r\n"); // an iterative server serves again
        server.terminate();
    });
}

#[test]
fn a_client_that_sends_more_than_is_accepted_receives_the_whole_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let body = vec![b'x'; 8 << 20];
    let too_large = format!("PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n", body.len());
    let endless = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n".to_owned();
    let malformed = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--http", folder.path().to_str().unwrap()]);
        for (head, status) in [(&too_large, "413"), (&endless, "501"), (&malformed, "405")] {
            let mut stream = connect(server.address);
            stream.write_all(head.as_bytes()).unwrap();
            // Once the response has come, the server has nothing to read but the body.
            let mut response = vec![0];
            stream.read_exact(&mut response).unwrap();
            stream.write_all(&body).unwrap_or_else(|error| panic!("{architecture}, {status}: {error}"));
            stream.read_to_end(&mut response).unwrap_or_else(|error| panic!("{architecture}, {status}: {error}"));
            let (head, text) = crate::support::split(&response);
            assert_eq!(&head[9..12], status, "{architecture}");
            assert!(head.contains(&format!("Content-Length: {}\r\n", text.len())) && !text.is_empty(), "{head}");
        }
        server.terminate();
    }
}

/// Whether the server has no connection of that client: its port is in no socket of another process.
fn is_gone(server: SocketAddr, client: &std::net::TcpStream) -> bool {
    let (from, to) = (server.port(), client.local_addr().unwrap().port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_open = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
        let ends = |address: &str, port: u16| address.ends_with(&format!(":{port:04X}"));
        (ends(local, from) && ends(remote, to) && state == "01").then_some(())
    };
    !table.lines().any(|line| is_open(line).is_some())
}

#[test]
fn at_its_end_a_server_answers_requests_that_have_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let octets = spandrel_test_support::pattern(20 << 20);
    std::fs::write(folder.path().join("file.bin"), &octets).unwrap();
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--http", folder.path().to_str().unwrap()]);
        let stream = connect(server.address);
        (&stream).write_all(b"GET /file.bin HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        let mut first = [0; 1];
        (&stream).read_exact(&mut first).unwrap(); // the server has begun
        let ending = std::thread::spawn(move || server.terminate());
        let mut response = first.to_vec();
        response.extend(rest(&stream));
        let (_, body) = crate::support::split(&response);
        assert!(body == octets, "{architecture}: {} of {} octets", body.len(), octets.len());
        drop(stream);
        ending.join().unwrap();
    }
}

#[test]
fn a_silent_client_does_not_delay_the_end() {
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--drain", "3600"]);
        let silent = greeted(server.address);
        server.terminate();
        assert_eq!(rest(&silent), b"");
    }
}

#[test]
fn the_end_of_standard_input_ends_a_server_that_is_told_so() {
    for architecture in available() {
        let server = Running::start(&[architecture.name(), "--until-stdin-closes"]);
        transfer(server.address);
        server.close_stdin();
    }
}

#[test]
fn wrong_usage_is_explained_in_one_line() {
    for (arguments, code, text) in [
        (&["threads"][..], 2, "unknown architecture `threads`: expected `iterative`"),
        (&["iterative", "--port", "x"], 2, "invalid value \"x\" for --port"),
        (&["iterative", "--workers"], 2, "expected a value after --workers"),
        (&["reactive", "--backend", "kqueue"], 2, "unknown back end `kqueue`"),
        (&["iterative", "--http", "/no/such"], 1, "cannot open the folder /no/such: "),
        (&["queue-pool", "--workers", "0"], 2, "\"0\" for --workers: expected a whole number from 1 to 1000"),
        (&["iterative", "--port", "-1"], 2, "\"-1\" for --port: expected a whole number from 0 to 65535"),
        (&["pre-forked", "--idle", "99999999999"], 2, "for --idle: expected a whole number from 1 to 86400"),
        (&["iterative", "--host", "nosuch"], 2, "\"nosuch\" for --host: expected an IP address"),
        (&["--port", "0", "iterative"], 2, "expected an architecture before --port"),
        (&[], 2, "expected an architecture"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_transfer-server")).args(arguments).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(text) && message.lines().count() == 1, "{arguments:?}: {message}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn output_without_a_reader_or_to_a_full_device_is_no_panic() {
    for word in ["--help", "--list"] {
        spandrel_test_support::check_output_errors(|| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_transfer-server"));
            command.arg(word);
            command
        });
    }
}
