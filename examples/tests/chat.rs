//! Runs the chat: its server, its client, and clients of the test that do what a good one does not.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{ChildStdout, Stdio},
    thread,
    time::Duration,
};

use spandrel_test_support::{ChildProcess, wait_until};

use crate::programs::example;

/// No line takes longer to arrive.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The chat's server, and its address.
fn server() -> (ChildProcess, String) {
    let mut server = ChildProcess::start(example("chat-server").stdout(Stdio::piped()));
    let mut addr = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut addr).unwrap();
    (server, addr.trim().to_owned())
}

/// A chat client in a process of its own.
struct Member {
    process: ChildProcess,
    screen: BufReader<ChildStdout>,
}

impl Member {
    fn join(addr: &str, name: &str) -> Self {
        let mut client = example("chat-client");
        let client = client.arg(addr).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = ChildProcess::start(client);
        let screen = BufReader::new(process.stdout.take().unwrap());
        let mut member = Self { process, screen };
        member.expect("your name?");
        member.say(name);
        member
    }

    fn say(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    #[track_caller]
    fn expect(&mut self, expected: &str) {
        let mut line = String::new();
        self.screen.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), expected);
    }

    /// Ends its standard input, and returns its last message.
    fn leave(mut self) -> String {
        drop(self.process.stdin.take());
        let output = self.process.wait_with_output();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn members_talk_join_and_leave() {
    let (_server, addr) = server();
    let mut ada = Member::join(&addr, "Ada");
    ada.expect("welcome, Ada");
    let mut grace = Member::join(&addr, "Ada");
    grace.expect("another name?");
    grace.say("Grace");
    grace.expect("welcome, Grace");
    ada.expect("Grace has joined");
    let mut alan = Member::join(&addr, "Alan");
    alan.expect("welcome, Alan");
    ada.expect("Alan has joined");
    grace.expect("Alan has joined");
    ada.say("hello, all");
    grace.expect("Ada: hello, all");
    alan.expect("Ada: hello, all");
    alan.say("hello, Ada");
    ada.expect("Alan: hello, Ada");
    grace.expect("Alan: hello, Ada");
    assert_eq!(alan.leave(), "closed by this side\n");
    for member in [&mut ada, &mut grace] {
        member.expect("Alan has left (closed by the peer)");
    }
    // Disconnected by the server, and the others are told the reason.
    grace.say(&"x".repeat(2000));
    ada.expect("Grace has left (limit exceeded: the peer sent a line that is too long; the limit is 1024 octets)");
    assert!(grace.process.wait().unwrap().success());
    // A client ends also if no process reads its messages any more.
    drop((ada.process.stdout.take(), ada.process.stderr.take()));
    drop(ada.process.stdin.take());
    wait_until("the end of the client", || ada.process.try_wait().unwrap().is_some());
}

/// A member of the test, without a process.
fn join(addr: &str, name: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut stream = BufReader::new(stream);
    stream.get_mut().write_all(format!("{name}\n").as_bytes()).unwrap();
    for expected in ["your name?".to_owned(), format!("welcome, {name}")] {
        assert_eq!(line(&mut stream), expected);
    }
    stream
}

fn line(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn a_member_that_does_not_read_is_disconnected_and_blocks_nobody() {
    let (_server, addr) = server();
    let mut reader = join(&addr, "reader");
    let mut lazy = join(&addr, "lazy");
    let mut talker = join(&addr, "talker");
    assert_eq!(line(&mut reader), "lazy has joined");
    assert_eq!(line(&mut reader), "talker has joined");
    let words = "words ".repeat(150);
    let expected = format!("talker: {words}");
    'talking: loop {
        // The reader keeps up: the talker waits for it after some lines.
        for _ in 0..50 {
            talker.get_mut().write_all(format!("{words}\n").as_bytes()).unwrap();
        }
        for _ in 0..50 {
            let line = line(&mut reader);
            if line == "lazy has left (aborted by this side)" {
                break 'talking;
            }
            assert_eq!(line, expected.trim_end());
        }
    }
    assert_eq!(line(&mut talker), "lazy has left (aborted by this side)");
    // The messages sent to it before, and then the end.
    let rest = thread::spawn(move || lazy.read_to_end(&mut Vec::new()));
    match rest.join().unwrap() {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

#[test]
fn a_client_without_a_server_says_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let output = example("chat-client").arg(addr.to_string()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("gave up connecting after 1 failed attempt(s): "), "{said}");
}

#[test]
fn each_program_of_the_chat_fits_on_a_page() {
    for program in [include_str!("../chat/server.rs"), include_str!("../chat/client.rs")] {
        assert!(program.lines().count() <= 80);
    }
}
