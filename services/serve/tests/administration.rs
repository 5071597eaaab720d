//! The administration by commands and as a CORBA object.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use spandrel::Orb;
use spandrel_serve::remote::ServiceConfigurator;
use spandrel_test_support::eventually;

use crate::Process;

/// Sends a command; returns the lines of the answer.
fn command(address: &str, command: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    writeln!(stream, "{command}").unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let is_last = line == "ok" || line.starts_with("error: ");
        lines.push(line);
        if is_last {
            break;
        }
    }
    lines
}

#[test]
fn commands_list_and_change_the_services() {
    let process = Process::new();
    process.process("static Administration '-p 0'").unwrap();
    let address = process.info("Administration").split(' ').next().unwrap().to_owned();
    let command = |text: &str| command(&address, text);
    assert_eq!(command("static Echo '-p 0'"), ["added Echo", "ok"]);
    let list = command("list");
    assert_eq!(list.len(), 3);
    assert!(
        list[1].starts_with("Echo active static 127.0.0.1:") && list[1].ends_with("# echo, 0 connections"),
        "{list:?}"
    );
    assert_eq!(command("suspend Echo"), ["suspended Echo", "ok"]);
    assert!(command("list")[1].starts_with("Echo suspended "));
    assert_eq!(command("resume Echo"), ["resumed Echo", "ok"]);
    assert!(command("info Echo")[0].contains("# echo"));
    assert_eq!(command("info X"), ["error: there is no service `X`"]);
    assert_eq!(command("info \u{1b}[2J\u{9b}"), [r"error: there is no service `\u001b[2J\u009b`"]);
    assert_eq!(command("remove Echo"), ["removed Echo", "ok"]);
    assert_eq!(command("libraries"), ["ok"]);
    assert_eq!(command("reconfigure"), ["nothing has changed", "ok"]);
    assert!(command("help").len() > 5);
    assert!(command("statc X")[0].starts_with("error: directive:1:1: expected a directive"));
    assert_eq!(command(""), ["ok"]);
}

/// Sends octets; returns all lines of the answer, up to the end of the connection. (A reset after the last one is an end.)
fn conversation(address: &str, octets: &[u8]) -> Vec<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
    _ = stream.write_all(octets);
    BufReader::new(stream).lines().map_while(Result::ok).collect()
}

#[test]
fn a_connection_ends_at_the_first_line_that_is_no_command() {
    let process = Process::new();
    process.process("static Administration '-p 0'\nstatic Echo '-p 0'").unwrap();
    let address = process.info("Administration").split(' ').next().unwrap().to_owned();
    let header = "Host: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nremove Echo\r\n";
    // A form of a web page; methods that a page may choose for its own host; a client of TLS.
    for first in ["POST / HTTP/1.1", "list / HTTP/1.1", "# / HTTP/1.1", "static X HTTP/1.1"] {
        let answer = conversation(&address, format!("{first}\r\n{header}").as_bytes());
        assert_eq!(answer, ["error: this is no HTTP server"], "{first}");
    }
    let answer = conversation(&address, b"\x16\x03\x01\xff\xff\nremove Echo\n");
    assert_eq!(answer, ["error: the command is no text in UTF-8"]);
    let answer = conversation(&address, b"\x16\x03\x01remove Echo\n");
    assert_eq!(answer, ["error: the command begins with a control character"]);
    let answer = conversation(&address, b"USER x\nremove Echo\n");
    assert!(answer.len() == 1 && answer[0].starts_with("error: directive:1:1: expected a directive"), "{answer:?}");
    assert!(process.info("Echo").contains("# echo"), "no line of a body is a command");
    // A command that fails is one.
    let answer = conversation(&address, b"info X\nremove X\nsuspend Echo\nX\n");
    assert_eq!(answer[0], "error: there is no service `X`");
    assert!(answer.len() == 5 && answer[3] == "ok", "{answer:?}");
}

#[test]
fn a_connection_without_commands_ends_and_one_beyond_the_limit_learns_why() {
    let process = Process::new();
    process.process("static Administration '-p 0 -i 2'").unwrap();
    let address = process.info("Administration").split(' ').next().unwrap().to_owned();
    let idle: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let refused = conversation(&address, b"");
    assert_eq!(refused, ["error: all 8 connections are in use; one without a command ends after 2 seconds"]);
    // Parts of a command are none.
    (&idle[0]).write_all(b"li").unwrap();
    for stream in &idle {
        stream.set_read_timeout(Some(spandrel_test_support::TEST_TIMEOUT)).unwrap();
        let lines: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
        assert_eq!(lines, ["error: no command in 2 seconds"]);
    }
    eventually(|| command(&address, "list").last().is_some_and(|line| line == "ok"));
}

#[cfg(unix)]
#[test]
fn the_local_socket_belongs_to_its_owner() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixStream;

    let process = Process::new();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("admin");
    process.process(&format!("static Administration '-u {}'", socket.display())).unwrap();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"\xff\nlist\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "error: the command is no text in UTF-8");
    assert!(lines.next().is_none_or(|line| line.is_err()));
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"list\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("Administration active static "));
}

#[test]
fn a_corba_object_answers_queries_from_afar() {
    let process = Process::new();
    process.process("static ORB '-ORBListenEndpoints iiop://127.0.0.1:0'\nstatic Administration '-o ORB'").unwrap();
    let address = process.info("ORB").split('/').next().unwrap().to_owned();
    let orb = Orb::builder().build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc::{address}/ServiceConfigurator")).unwrap();
    let remote = ServiceConfigurator::narrow(&object).unwrap();
    let names = || -> Vec<String> { remote.list().unwrap().into_iter().map(|service| service.name).collect() };
    assert_eq!(names(), ["ORB", "Administration"]);
    assert_eq!(remote.process("static Echo '-p 0'").unwrap(), "added Echo");
    assert!(remote.info("Echo").unwrap().contains("# echo"));
    remote.suspend("Echo").unwrap();
    assert!(remote.list().unwrap()[2].is_suspended);
    remote.resume("Echo").unwrap();
    remote.remove("Echo").unwrap();
    assert_eq!(names(), ["ORB", "Administration"]);
    assert!(remote.info("Echo").unwrap_err().to_string().contains("Refused"));
    assert!(remote.process("nonsense").is_err() && remote.remove("ORB").is_err() && remote.suspend("ORB").is_err());
    assert_eq!(remote.reconfigure().unwrap(), "nothing has changed");
    process.process("remove Administration").unwrap();
    assert!(remote.list().is_err());
}
