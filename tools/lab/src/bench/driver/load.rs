//! The load: one thread that keeps many connections busy over plain sockets.
//!
//! One clock reading per event: the end of one exchange is the start of the next.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use spandrel_giop::{HEADER_LEN, MessageHeader, MessageType};
use spandrel_measure::Times;
use spandrel_measure::histogram::Histogram;

use super::exchange::{Answer, Exchange, REPLY_OCTETS};
use crate::call_times::SLOWEST;
use crate::raw::{self, Epoll, Socket};

/// The least answers of a run, as a multiple of the connections: otherwise the rate would say little.
const LEAST_ANSWERS: usize = 2;
/// The least octets of a read: more than a reply to a call without results.
const LEAST_BUFFER: usize = 4096;

/// Connections to one server.
pub(in crate::bench) struct Connections {
    _idle: Vec<Active>,
    active: Vec<Active>,
    epoll: Epoll,
    exchange: Exchange,
    /// For the octets of any connection: a read brings at most one answer, since one message is in flight.
    buffer: Vec<u8>,
    limit: Duration,
}

/// A connection with a message in flight.
struct Active {
    socket: Socket,
    received: usize,
    /// The first octets of a reply, as far as they have arrived.
    header: [u8; REPLY_OCTETS],
    sent_at: Instant,
    /// Answers that arrived before the end of the run.
    answers: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(in crate::bench) struct Driven {
    /// From sending a message until its answer had arrived, in nanoseconds: of all messages, those included
    /// that were in flight at the end.
    pub(in crate::bench) nanos: Histogram,
    /// From the first message to the last answer before the end, in seconds.
    pub(in crate::bench) seconds: f64,
    /// The number of answers before the end, by connection.
    pub(in crate::bench) answers: Vec<u64>,
    /// Processor time of the thread that makes the load, in seconds.
    pub(in crate::bench) load_cpu: f64,
}

impl Driven {
    /// Answers per second before the end.
    pub(in crate::bench) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.total() as f64 / self.seconds } else { 0.0 }
    }

    /// The times of all messages in microseconds.
    pub(in crate::bench) fn times(&self) -> Times {
        Times::of(&self.nanos, Duration::from_micros(1)).unwrap_or_default()
    }

    /// The number of answers before the end.
    pub(in crate::bench) fn total(&self) -> u64 {
        self.answers.iter().sum()
    }

    /// The answers on the slowest connection, as a part of the median of all connections: 1 if all are served
    /// equally, 0 if one is not served at all.
    pub(in crate::bench) fn fairness(&self) -> f64 {
        let mut answers = self.answers.clone();
        answers.sort_unstable();
        let (least, median) = (answers.first().copied().unwrap_or(0), answers.get(answers.len() / 2).copied());
        median.filter(|median| *median > 0).map_or(0.0, |median| least as f64 / median as f64)
    }
}

impl Connections {
    /// Opens all connections, and checks that each is served.
    ///
    /// # Errors
    /// If a connection cannot be made, or is not answered within the limit.
    pub(in crate::bench) fn open(
        server: SocketAddr,
        (idle, active): (u32, u32),
        exchange: &Exchange,
        limit: Duration,
    ) -> io::Result<Self> {
        let connect = || -> io::Result<Socket> {
            let socket = raw::socket(&server)?;
            raw::set_abortive(&socket)?; // no port waits for late segments when thousands are closed at once
            raw::set_recv_timeout(&socket, limit.as_secs().clamp(1, 3600) as u32)?;
            raw::connect(&socket, &server)?;
            raw::set_no_delay(&socket)?;
            Ok(socket)
        };
        let idle = (0..idle).map(|_| connect()).collect::<io::Result<Vec<_>>>()?;
        let mut epoll = Epoll::open(active as usize)?;
        let now = Instant::now();
        let connection = |socket| Active { socket, received: 0, header: [0; REPLY_OCTETS], sent_at: now, answers: 0 };
        let mut idle = idle.into_iter().map(connection).collect::<Vec<_>>();
        let mut active = (0..active).map(|_| connect().map(connection)).collect::<io::Result<Vec<_>>>()?;
        for (token, active) in active.iter().enumerate() {
            epoll.add(&active.socket, token)?;
        }
        let mut buffer = vec![0; exchange.message_octets().max(LEAST_BUFFER)];
        all_are_served(idle.iter_mut().chain(&mut active), exchange, &mut buffer)?;
        epoll.wait(0)?.for_each(drop);
        Ok(Self { _idle: idle, active, epoll, exchange: exchange.clone(), buffer, limit })
    }

    /// Keeps the active ones busy for `time`, or until there are [`LEAST_ANSWERS`] on average if that is later,
    /// and then waits for the outstanding answers.
    ///
    /// # Errors
    /// If a connection fails, or no answer arrives within the limit.
    pub(in crate::bench) fn run(&mut self, time: Duration) -> io::Result<Driven> {
        let mut nanos = Histogram::new(SLOWEST);
        let cpu_before = thread_cpu();
        let start = Instant::now();
        let end = start + time;
        let mut last = start;
        for active in &mut self.active {
            active.answers = 0;
            active.sent_at = Instant::now();
            send_all(&active.socket, &self.exchange.message)?;
        }
        let (mut answers, least) = (0, LEAST_ANSWERS * self.active.len());
        let mut due = self.active.len();
        let millis = self.limit.as_millis().clamp(1, 1 << 30) as i32;
        while due > 0 {
            let mut no_event = true;
            for token in self.epoll.wait(millis)? {
                no_event = false;
                let active = &mut self.active[token];
                if !active.receive(&self.exchange, &mut self.buffer)? {
                    continue;
                }
                let now = Instant::now();
                nanos.record((now - active.sent_at).as_nanos() as u64);
                if now >= end && answers >= least {
                    due -= 1;
                    continue;
                }
                active.answers += 1;
                answers += 1;
                last = now;
                active.sent_at = now;
                send_all(&active.socket, &self.exchange.message)?;
            }
            if no_event && last.max(start).elapsed() >= self.limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(Driven {
            nanos,
            seconds: (last - start).as_secs_f64(),
            answers: self.active.iter().map(|active| active.answers).collect(),
            load_cpu: (thread_cpu() - cpu_before).as_secs_f64(),
        })
    }
}

impl Active {
    /// One read; returns whether the whole answer has arrived.
    #[inline]
    fn receive(&mut self, exchange: &Exchange, buffer: &mut [u8]) -> io::Result<bool> {
        let received = match raw::recv(&self.socket, buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            received => received,
        };
        let expected = match exchange.answer {
            Answer::Echo => exchange.message_octets(),
            Answer::Octets(octets) => octets,
            Answer::Reply => {
                for (slot, octet) in self.header.iter_mut().skip(self.received).zip(&buffer[..received]) {
                    *slot = *octet;
                }
                self.reply_octets(self.received + received)?
            }
        };
        self.received += received;
        match self.received.cmp(&expected) {
            std::cmp::Ordering::Less => Ok(false),
            std::cmp::Ordering::Equal => {
                self.received = 0;
                Ok(true)
            }
            std::cmp::Ordering::Greater => Err(invalid("more octets than one answer has")),
        }
    }

    /// Octets of the reply of which that many have arrived; checks its header and status.
    #[inline]
    fn reply_octets(&self, received: usize) -> io::Result<usize> {
        if received < REPLY_OCTETS {
            return Ok(REPLY_OCTETS);
        }
        let header = self.header.first_chunk::<HEADER_LEN>().and_then(|octets| MessageHeader::parse(octets).ok());
        let header = header.ok_or_else(|| invalid("no GIOP message"))?;
        if header.message_type != MessageType::Reply || header.more_fragments {
            return Err(invalid("not a whole GIOP reply"));
        }
        // The request id, then the status: zero is NO_EXCEPTION in either byte order.
        if self.header[HEADER_LEN + 4..HEADER_LEN + 8] != [0; 4] {
            return Err(invalid("a reply with an exception"));
        }
        Ok(HEADER_LEN + header.size as usize)
    }
}

fn invalid(content: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent {content}"))
}

/// Processor time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One octet to each connection, then one octet from each; or a whole message, where less is not answered.
fn all_are_served<'a>(
    connections: impl Iterator<Item = &'a mut Active>,
    exchange: &Exchange,
    buffer: &mut [u8],
) -> io::Result<()> {
    let octet = Exchange { message: vec![1], answer: Answer::Echo };
    let exchange = if exchange.answer == Answer::Echo { &octet } else { exchange };
    let connections: Vec<_> = connections.collect();
    for connection in &connections {
        send_all(&connection.socket, &exchange.message)?;
    }
    for connection in connections {
        loop {
            match connection.receive(exchange, buffer) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[inline]
pub(super) fn send_all(socket: &Socket, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let sent = raw::send(socket, data)?;
        data = &data[sent..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use super::*;

    /// Serves `count` connections, a thread each, until they close.
    fn server(count: usize, each: fn(TcpStream)) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for _ in 0..count {
                let (stream, _) = listener.accept().unwrap();
                thread::spawn(move || each(stream));
            }
        });
        addr
    }

    fn echo(mut stream: TcpStream) {
        let mut buffer = [0; 1000];
        while let Ok(received @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..received]).unwrap();
        }
    }

    fn open(addr: SocketAddr, idle: u32, active: u32) -> io::Result<Connections> {
        Connections::open(addr, (idle, active), &Exchange::echo(3000), Duration::from_secs(20))
    }

    #[test]
    fn active_connections_exchange_messages_until_the_deadline() {
        let mut connections = open(server(7, echo), 3, 4).unwrap();
        for time in [Duration::from_millis(100), Duration::ZERO] {
            let driven = connections.run(time).unwrap();
            assert!(driven.answers.len() == 4, "{driven:?}");
            assert!(driven.seconds > 0.0 && driven.total() >= 2 * 4, "{driven:?}");
            assert_eq!(driven.nanos.count(), driven.total() + 4, "those in flight at the end are timed, too");
            assert!(driven.load_cpu > 0.0 && (0.0..=1.0).contains(&driven.fairness()), "{driven:?}");
        }
    }

    #[test]
    fn a_server_that_closes_the_connection_is_an_error() {
        let addr = server(2, |mut stream| _ = stream.read(&mut [0; 1]));
        let error = open(addr, 1, 1).err().expect("no echo");
        assert!(matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset), "{error}");
    }

    #[test]
    fn calls_fail_when_a_server_stops_replying() {
        let answers_once = |mut stream: TcpStream| {
            let mut octet = [0];
            stream.read_exact(&mut octet).unwrap();
            stream.write_all(&octet).unwrap();
            while let Ok(1..) = stream.read(&mut [0; 1000]) {}
        };
        let limit = Duration::from_secs(1);
        let mut connections = Connections::open(server(1, answers_once), (0, 1), &Exchange::echo(64), limit).unwrap();
        let error = connections.run(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn fairness_compares_the_slowest_connection_with_the_median() {
        let driven = |answers: &[u64]| {
            let answers = answers.to_vec();
            Driven { nanos: Histogram::new(1), seconds: 1.0, answers, load_cpu: 0.0 }.fairness()
        };
        assert_eq!(driven(&[10, 10, 10]), 1.0);
        assert_eq!(driven(&[100, 5, 10]), 0.5);
        assert_eq!(driven(&[0, 10, 10]), 0.0);
        assert_eq!(driven(&[0, 0]), 0.0);
    }

    /// Replies with these octets, in pieces, to the first message of each connection.
    fn reply(octets: &'static [u8]) -> io::Result<Connections> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            stream.read_exact(&mut [0; 4]).unwrap();
            octets.chunks(5).for_each(|piece| stream.write_all(piece).unwrap());
            stream
        });
        let exchange = Exchange { message: b"GIOP".to_vec(), answer: Answer::Reply };
        let outcome = Connections::open(addr, (0, 1), &exchange, Duration::from_secs(20));
        drop(server.join().unwrap());
        outcome
    }

    #[test]
    fn replies_in_pieces_are_taken_and_those_with_exceptions_refused() {
        let whole = b"GIOP\x01\x02\x01\x01\x0c\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0";
        reply(whole).unwrap();
        for (octets, words) in [
            (&b"GIOP\x01\x02\x01\x01\x0c\0\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0"[..], "exception"),
            (b"GIOP\x01\x02\x01\x05\x0c\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0", "not a whole GIOP reply"),
            (b"HTTP\x01\x02\x01\x01\x0c\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0", "no GIOP message"),
            (b"GIOP\x01\x02\x01\x01\x0b\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0", "more octets"),
        ] {
            let error = reply(octets).err().expect(words);
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
