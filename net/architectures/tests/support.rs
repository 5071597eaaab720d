//! Clients, and the executable as a server.

#[cfg(unix)]
use std::io::{BufRead as _, BufReader};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
#[cfg(unix)]
use std::path::Path;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::time::Duration;

use spandrel_architectures::transfer::GREETING;
use spandrel_architectures::{Architecture, Protocol, Session};
#[cfg(unix)]
use spandrel_test_support::ChildProcess;
use spandrel_test_support::TEST_TIMEOUT;

/// The architectures that the platform has and the system permits: it may forbid io_uring.
pub(crate) fn permitted() -> Vec<Architecture> {
    #[cfg(proactor)]
    let has_proactor = spandrel_reactor::Proactor::new(1).is_ok();
    #[cfg(not(proactor))]
    let has_proactor = false;
    let all = Architecture::ALL.iter().copied().filter(|architecture| architecture.is_available());
    all.filter(|architecture| *architecture != Architecture::Asynchronous || has_proactor).collect()
}

/// A session's output for input that arrives at once; and whether it closes then.
pub(crate) fn exchange<P: Protocol>(protocol: &P, parts: &[&[u8]]) -> (Vec<u8>, bool) {
    let mut session = protocol.open();
    let mut output = take_output(&mut session);
    for part in parts {
        if session.phase() == spandrel_architectures::Phase::Closing {
            break;
        }
        session.receive(part);
        output.extend(take_output(&mut session));
    }
    (output, session.phase() == spandrel_architectures::Phase::Closing)
}

/// Takes all output, as a client does that takes up to 1,000 octets at a time.
pub(crate) fn take_output(session: &mut impl Session) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let piece = session.output();
        assert!(piece.len() <= spandrel_architectures::MAX_PIECE, "a piece of {} octets", piece.len());
        let count = piece.len().min(1_000);
        if count == 0 {
            return all;
        }
        all.extend_from_slice(&piece[..count]);
        session.sent(count);
    }
}

/// Connects to a server.
pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&server, TEST_TIMEOUT).expect("the server listens");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Connects, and receives the greeting.
pub(crate) fn greeted(server: SocketAddr) -> TcpStream {
    let mut stream = connect(server);
    let mut greeting = [0; GREETING.len()];
    stream.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(&greeting, GREETING);
    stream
}

/// Sends the parts of a request for `length` octets, and checks the reply.
pub(crate) fn request(mut stream: &TcpStream, parts: &[&[u8]], length: usize) {
    for part in parts {
        stream.write_all(part).unwrap();
    }
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply).unwrap_or_else(|error| panic!("a reply of {length} octets: {error}"));
    assert!(reply.iter().all(|octet| *octet == b'A'), "the reply consists of `A`s");
}

/// One exchange of the paper: the client closes first.
pub(crate) fn transfer(server: SocketAddr) {
    let stream = greeted(server);
    request(&stream, &[b"4000"], 4_000);
}

/// Whether one exchange of the paper succeeds before the server drops the connection.
pub(crate) fn is_in_time(server: SocketAddr) -> bool {
    let mut stream = connect(server);
    let mut octets = [0; GREETING.len() + 4_000];
    stream.write_all(b"4000").and_then(|()| stream.read_exact(&mut octets)).is_ok()
}

/// Waits for the end of a connection, and returns the octets before it.
pub(crate) fn rest(mut stream: &TcpStream) -> Vec<u8> {
    let mut octets = Vec::new();
    match stream.read_to_end(&mut octets) {
        Ok(_) => octets,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => octets,
        Err(error) => panic!("the connection has not ended: {error}"),
    }
}

#[cfg(unix)]
/// One HTTP exchange: the head and the body of the response.
pub(crate) fn http(server: SocketAddr, text: &str) -> (String, Vec<u8>) {
    let stream = connect(server);
    (&stream).write_all(text.as_bytes()).unwrap();
    split(&rest(&stream))
}

/// Divides a response into its head and its body.
pub(crate) fn split(response: &[u8]) -> (String, Vec<u8>) {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n").expect("the end of a head");
    (String::from_utf8(response[..end].to_vec()).unwrap(), response[end + 4..].to_vec())
}

/// Runs `work` in `count` threads at once, and fails if one of them does.
pub(crate) fn at_once(count: usize, work: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn({
                    let work = &work;
                    move || work(number)
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a client has failed");
        }
    });
}

#[cfg(unix)]
/// The running executable; killed when dropped.
pub(crate) struct Running {
    child: ChildProcess,
    pub(crate) address: SocketAddr,
}

#[cfg(unix)]
impl Running {
    /// Starts the executable, and waits until it listens.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_program(Path::new(env!("CARGO_BIN_EXE_transfer-server")), arguments)
    }

    /// Starts the executable from another file.
    pub(crate) fn start_program(program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = ChildProcess::start(&mut command);
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("listening ").and_then(|rest| rest.trim().parse().ok());
        let address = address.unwrap_or_else(|| panic!("transfer-server {arguments:?} says `{line}`"));
        Self { child, address }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, waits for the end, and checks that it is successful.
    pub(crate) fn terminate(self) {
        use rustix::process::{Pid, Signal, kill_process};
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.wait_successful();
    }

    /// Closes its standard input, waits for the end, and checks that it is successful.
    pub(crate) fn close_stdin(mut self) {
        drop(self.child.stdin.take());
        self.wait_successful();
    }

    /// Waits for the end, and checks that it is successful.
    pub(crate) fn wait_successful(mut self) {
        let child = &mut self.child;
        spandrel_test_support::wait_until("the server ends", || child.try_wait().unwrap().is_some());
        let status = child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

/// A short time limit, for servers that drop silent clients.
pub(crate) const SHORT: Duration = Duration::from_millis(50);
