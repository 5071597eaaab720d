//! The clients: plain sockets in threads with native priorities.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spandrel::rt::{Priority, Scheduling, contexts};
use spandrel::types::IiopProfile;
use spandrel_cdr::{ByteOrder, Encoder, GiopVersion, Wire};
use spandrel_giop::{RequestTemplate, ResponseFlags, ior_from_string};

use super::settings::{HIGH, LOW, Load, OCTETS, READERS, SPIN, Settings, scheduling};
use crate::LabError;
use crate::peer::child::ChildHandle;

/// The time for which the others call before the first measured call.
const WARM_UP: Duration = Duration::from_millis(100);
/// The longest reply in octets, without its header.
const LONGEST_REPLY: usize = 4_096;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    High,
    Low,
    Spin,
}

impl Kind {
    fn priority(self) -> i16 {
        match self {
            Self::High => HIGH,
            Self::Low => LOW,
            Self::Spin => SPIN,
        }
    }
}

/// A server as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    address: ServerAddress,
    /// The key of its object; `None` for plain messages.
    object_key: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Target {
    /// Parses a server's first line: a port, `ready`, or a reference. With a path, clients connect there.
    pub(super) fn from_line(line: &str, path: Option<&Path>) -> Option<Self> {
        let (port, object_key) = if let Ok(port) = line.parse() {
            (port, None)
        } else if line == "ready" && path.is_some() {
            (0, None)
        } else {
            let reference = ior_from_string(line).ok()?;
            let profile = reference.profiles.iter().find_map(|profile| IiopProfile::decode(profile).ok().flatten())?;
            (profile.port, Some(profile.object_key))
        };
        let address = match path {
            Some(path) => ServerAddress::Unix(path.to_owned()),
            None => ServerAddress::Tcp((Ipv4Addr::LOCALHOST, port).into()),
        };
        Some(Self { address, object_key })
    }

    /// Whether its messages are those of an ORB.
    pub(super) fn is_orb(&self) -> bool {
        self.object_key.is_some()
    }

    fn message(&self, kind: Kind) -> Vec<u8> {
        let Some(object_key) = &self.object_key else {
            let mut message = vec![0; OCTETS];
            message[0] = match kind {
                Kind::High => b'h',
                Kind::Low => b'l',
                Kind::Spin => b's',
            };
            return message;
        };
        let template = RequestTemplate::new(Wire::new(ByteOrder::NATIVE, GiopVersion::V1_2), object_key);
        let mut out = Encoder::new(template.wire());
        let operation = match kind {
            Kind::High => "ping",
            Kind::Low => "sendOctetSeq",
            Kind::Spin => "sendStructSeq",
        };
        let priority = Priority::from_number(kind.priority()).expect("the constants are priorities");
        let body =
            template.begin(&mut out, 1, ResponseFlags::TWO_WAY, operation, &[contexts::encode_priority(priority)]);
        if kind != Kind::High {
            out.len(0).expect("zero is a length");
        }
        body.end(&mut out).expect("the operation's name is plain");
        out.to_vec()
    }

    fn connect(&self, kind: Kind, limit: Duration) -> io::Result<Connection> {
        let stream: Box<dyn Stream> = match &self.address {
            ServerAddress::Tcp(addr) => {
                let stream = TcpStream::connect_timeout(addr, limit)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(limit))?;
                Box::new(stream)
            }
            ServerAddress::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(limit))?;
                Box::new(stream)
            }
        };
        Ok(Connection { stream, message: self.message(kind), is_giop: self.object_key.is_some() })
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A connection with requests of one kind.
struct Connection {
    stream: Box<dyn Stream>,
    message: Vec<u8>,
    is_giop: bool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("is_giop", &self.is_giop).finish_non_exhaustive()
    }
}

impl Connection {
    fn call(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.message)?;
        if !self.is_giop {
            return self.stream.read_exact(&mut [0; OCTETS]);
        }
        let mut header = [0; 12];
        self.stream.read_exact(&mut header)?;
        let number = |octets: &[u8]| {
            let octets: [u8; 4] = octets.try_into().expect("four octets");
            if header[6] & 1 == 1 { u32::from_le_bytes(octets) } else { u32::from_be_bytes(octets) }
        };
        let refuse = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
        let len = number(&header[8..]) as usize;
        if &header[..4] != b"GIOP" || header[7] != 1 || !(12..=LONGEST_REPLY).contains(&len) {
            return refuse("the server's message is no reply of GIOP 1.2");
        }
        let mut body = [0; LONGEST_REPLY];
        self.stream.read_exact(&mut body[..len])?;
        if number(&body[4..8]) == 0 { Ok(()) } else { refuse("the server replied with an exception") }
    }
}

/// The calls of a run.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The response times in nanoseconds, in the order of the calls.
    pub(super) nanos: Vec<u64>,
    /// Periods whose call ended after its deadline, or was not begun because an earlier one took so long.
    pub(super) missed: u64,
    /// Calls of the others.
    pub(super) others: u64,
}

/// Makes the calls of a run. `foreign`: the other ORB's program that floods the server, if the load has one.
///
/// # Errors
/// If a call fails, or takes longer than the limit.
pub(super) fn run(
    target: &Target,
    load: Load,
    settings: &Settings,
    foreign: Option<Command>,
) -> Result<Calls, LabError> {
    let mut foreign = foreign.map(|command| ChildHandle::start("flooding clients", command)).transpose()?;
    if let Some(clients) = &mut foreign {
        clients.line(settings.limit())?;
    }
    let mut calls = run_own(target, load, settings)?;
    if let Some(clients) = &mut foreign {
        clients.send_line("end")?;
        let line = clients.line(settings.limit())?;
        let protocol = |_| LabError::Protocol { role: "flooding clients".to_owned(), found: line.clone() };
        calls.others = line.trim().parse().map_err(protocol)?;
    }
    Ok(calls)
}

/// Makes the calls of the clients in this program.
fn run_own(target: &Target, load: Load, settings: &Settings) -> Result<Calls, LabError> {
    let scheduling = scheduling();
    let is_over = AtomicBool::new(false);
    let limit = settings.limit() + settings.run_time();
    let (is_over, scheduling) = (&is_over, &scheduling);
    thread::scope(|scope| {
        let start = |kind: Kind| {
            let mut connection = target.connect(kind, limit).map_err(LabError::io("connect to the server"))?;
            let calls = move || {
                apply(scheduling, kind.priority());
                if kind == Kind::Spin {
                    thread::sleep(settings.run_time() / 10); // it begins during the measured calls
                }
                let mut calls = 0;
                loop {
                    connection.call()?;
                    calls += 1;
                    if kind == Kind::Spin || is_over.load(Ordering::Relaxed) {
                        return Ok::<u64, io::Error>(calls);
                    }
                }
            };
            let thread = thread::Builder::new().name("client".to_owned()).spawn_scoped(scope, calls);
            thread.map_err(LabError::io("start a thread"))
        };
        let mut measured = target.connect(Kind::High, limit).map_err(LabError::io("connect to the server"))?;
        // The server's threads and buffers exist afterwards.
        measured.call().map_err(LabError::io("call the server at a high priority"))?;
        let call = move || {
            apply(scheduling, READERS);
            let calls = measure(&mut measured, settings);
            is_over.store(true, Ordering::Relaxed);
            calls
        };
        let mut others = Vec::new();
        if let Load::Flood(clients @ 1..) | Load::Nested(clients @ 1..) = load {
            for _ in 0..clients {
                others.push(start(Kind::Low).inspect_err(|_| is_over.store(true, Ordering::Relaxed))?);
            }
            thread::sleep(WARM_UP);
        } else if load == Load::Spin {
            others.push(start(Kind::Spin)?);
        }
        let thread = thread::Builder::new().name("measured".to_owned()).spawn_scoped(scope, call);
        let thread = thread.inspect_err(|_| is_over.store(true, Ordering::Relaxed));
        let calls = thread
            .map_err(LabError::io("start a thread"))?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let mut calls = calls.map_err(LabError::io("call the server at a high priority"))?;
        for thread in others {
            let made = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            calls.others += made.map_err(LabError::io("call the server beside the measured client"))?;
        }
        Ok(calls)
    })
}

/// Without rights the thread keeps its priority; the report has the class in force.
fn apply(scheduling: &Scheduling, priority: i16) {
    _ = Priority::from_number(priority).map(|priority| scheduling.apply(priority));
}

/// Begins a call in each period. A period that passes during a call is missed.
fn measure(connection: &mut Connection, settings: &Settings) -> io::Result<Calls> {
    let (period, start) = (settings.period(), Instant::now());
    let periods = (settings.run_time().as_nanos() / period.as_nanos()).max(1) as u64;
    let begin = |at: u64| start + Duration::from_nanos(period.as_nanos() as u64 * at);
    let mut calls = Calls { nanos: Vec::with_capacity(periods as usize), ..Calls::default() };
    let mut at = 0;
    while at < periods {
        thread::sleep(begin(at).saturating_duration_since(Instant::now()));
        connection.call()?;
        let took = begin(at).elapsed();
        calls.nanos.push(took.as_nanos() as u64);
        let passed = (took.as_nanos() / period.as_nanos()) as u64;
        // This one, and those that could not begin.
        calls.missed += u64::from(took > period) + passed.saturating_sub(1).min(periods - at - 1);
        at += passed.max(1);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_first_line_of_a_server_is_a_port_a_word_or_a_reference() {
        let tcp = Target::from_line("42", None).unwrap();
        assert_eq!((tcp.object_key.as_deref(), tcp.message(Kind::Low)[0]), (None, b'l'));
        let path = Path::new("/nowhere");
        assert_eq!(Target::from_line("ready", Some(path)).unwrap().address, ServerAddress::Unix(path.to_owned()));
        for line in ["ready", "", "IOR:00", "70000"] {
            assert_eq!(Target::from_line(line, None), None, "{line}");
        }
    }

    /// A server that takes twice the period for its third reply, and answers the others at once.
    #[test]
    fn periods_that_pass_during_a_call_are_missed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut octets = [0; OCTETS];
            let mut requests = 0;
            while stream.read_exact(&mut octets).is_ok() {
                requests += 1;
                if requests == 3 {
                    thread::sleep(Duration::from_millis(500));
                }
                stream.write_all(&octets).unwrap();
            }
            requests
        });
        let settings =
            Settings { run_millis: 1_000, period_micros: 200_000, ..super::super::series::tests::settings() };
        let target = Target::from_line(&port.to_string(), None).unwrap();
        let calls = run(&target, Load::Alone, &settings, None).unwrap();
        // One call before, then the periods 0, 1 (which lasts for 2.5) and the rest.
        assert!(calls.missed >= 2 && calls.nanos.len() as u64 + calls.missed >= 5, "{calls:?}");
        assert!(calls.nanos[1] >= 500_000_000, "{calls:?}");
        assert_eq!(server.join().unwrap(), 1 + calls.nanos.len());
    }
}
