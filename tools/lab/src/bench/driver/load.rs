//! The load: one thread that keeps many connections busy over plain sockets.
//!
//! One clock reading per event: the end of one exchange is the start of the next.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use spandrel_measure::histogram::Histogram;

use super::exchange::Exchange;
use crate::bench::reactor::{Echoed, Load};
use crate::raw::{self, Epoll, Socket};

/// The upper limit of recorded times in nanoseconds.
const SLOWEST: u64 = 60_000_000_000;

/// Connections to one server.
pub(in crate::bench) struct Connections {
    _idle: Vec<Socket>,
    active: Vec<Active>,
    epoll: Epoll,
    exchange: Exchange,
    reply: Vec<u8>,
    limit: Duration,
}

struct Active {
    socket: Socket,
    received: usize,
    sent_at: Instant,
}

impl Connections {
    /// Opens all connections, and checks that each is served.
    ///
    /// # Errors
    /// If a connection cannot be made, or is not answered within the limit.
    pub(in crate::bench) fn open(
        server: SocketAddr,
        load: Load,
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
        let idle = (0..load.idle).map(|_| connect()).collect::<io::Result<Vec<_>>>()?;
        let epoll = Epoll::open(load.active as usize)?;
        let now = Instant::now();
        let mut active = Vec::with_capacity(load.active as usize);
        for token in 0..load.active as usize {
            let socket = connect()?;
            epoll.add(&socket, token)?;
            active.push(Active { socket, received: 0, sent_at: now });
        }
        let served: Vec<&Socket> = idle.iter().chain(active.iter().map(|active| &active.socket)).collect();
        all_are_served(&served, exchange)?;
        let (exchange, reply) = (exchange.clone(), vec![0; exchange.reply_octets]);
        Ok(Self { _idle: idle, active, epoll, exchange, reply, limit })
    }

    /// Keeps the active ones busy for `time`, and then waits for the outstanding answers.
    ///
    /// # Errors
    /// If a connection fails, or no answer arrives within the limit.
    pub(in crate::bench) fn run(&mut self, time: Duration) -> io::Result<Echoed> {
        let mut histogram = Histogram::new(SLOWEST);
        let start = Instant::now();
        let end = start + time;
        let mut last = start;
        for active in &mut self.active {
            active.sent_at = Instant::now();
            send_all(&active.socket, &self.exchange.message)?;
        }
        let mut due = self.active.len();
        let millis = self.limit.as_millis().clamp(1, 1 << 30) as i32;
        while due > 0 {
            let mut no_event = true;
            for token in self.epoll.wait(millis)? {
                no_event = false;
                let active = &mut self.active[token];
                if !active.receive(&mut self.reply)? {
                    continue;
                }
                let now = Instant::now();
                if now >= end {
                    due -= 1;
                    continue;
                }
                histogram.record((now - active.sent_at).as_nanos() as u64);
                last = now;
                active.sent_at = now;
                send_all(&active.socket, &self.exchange.message)?;
            }
            if no_event && last.max(start).elapsed() >= self.limit {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(Echoed::from_histogram(&histogram, (last - start).as_secs_f64()))
    }
}

impl Active {
    /// One call; returns whether the whole message has arrived.
    #[inline]
    fn receive(&mut self, reply: &mut [u8]) -> io::Result<bool> {
        match raw::recv(&self.socket, &mut reply[self.received..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            received => {
                self.received += received;
                let whole = self.received == reply.len();
                if whole {
                    self.received = 0;
                }
                Ok(whole)
            }
        }
    }
}

/// One octet to each connection, then one octet from each; or a whole call, where smaller messages are not
/// answered.
fn all_are_served(sockets: &[&Socket], exchange: &Exchange) -> io::Result<()> {
    let (message, octets) =
        if exchange.is_echo { (&[1][..], 1) } else { (&exchange.message[..], exchange.reply_octets) };
    for socket in sockets {
        send_all(socket, message)?;
    }
    let mut reply = vec![0; octets];
    for socket in sockets {
        let mut received = 0;
        while received < octets {
            received += match raw::recv(socket, &mut reply[received..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
                received => received?,
            };
        }
    }
    Ok(())
}

#[inline]
fn send_all(socket: &Socket, mut data: &[u8]) -> io::Result<()> {
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
        Connections::open(addr, Load { idle, active }, &Exchange::echo(3000), Duration::from_secs(20))
    }

    #[test]
    fn active_connections_exchange_messages_until_the_deadline() {
        let mut connections = open(server(7, echo), 3, 4).unwrap();
        let time = Duration::from_millis(500);
        for _ in 0..2 {
            let echoed = connections.run(time).unwrap();
            assert!(echoed.events >= 1, "{echoed:?}");
            assert!(echoed.seconds > 0.0 && echoed.seconds <= time.as_secs_f64(), "{echoed:?}");
            assert!(0.0 < echoed.p50_us && echoed.p50_us <= echoed.p99_us && echoed.p99_us <= echoed.max_us);
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
        let load = Load { idle: 0, active: 1 };
        let limit = Duration::from_secs(1);
        let mut connections = Connections::open(server(1, answers_once), load, &Exchange::echo(64), limit).unwrap();
        let error = connections.run(Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
