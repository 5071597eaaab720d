//! Clients without an ORB: those of the channel in C, of NATS and of MQTT, which speak their protocols by hand.
//!
//! One thread reads the connections of all consumers with epoll, as it does in the reactive ORB of the other consumers.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use spandrel_error::output;

use super::ledger::{Event, Ledger, OCTETS};
use super::target::Supplier;

/// The subject of NATS, and the topic of MQTT.
const SUBJECT: &str = "events";
/// The octets that one read may bring.
const BUFFER: usize = 64 << 10;
/// The octets of events that a supplier without replies writes together.
const WRITTEN_TOGETHER: usize = 4 << 10;
/// The time limit of one answer of a server.
const ANSWER: Duration = Duration::from_secs(20);

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Protocol {
    /// The protocol of `peers/fanout-c`, with fixed lengths.
    Plain,
    /// The text protocol of NATS, without JetStream.
    Nats,
    /// MQTT 3.1.1 with this quality of service, 0 or 1.
    Mqtt(u8),
}

/// Connects to a server, and exchanges one octet or message, by which the connection has its part.
fn connect(protocol: Protocol, address: SocketAddr, role: char) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ANSWER))?;
    match protocol {
        Protocol::Plain => {
            stream.write_all(&[role as u8])?;
            let mut echo = [0];
            stream.read_exact(&mut echo)?;
            ensure!(echo[0] == role as u8, "the server did not echo the part {role}");
        }
        Protocol::Nats => {
            let subscription = if role == 'C' { format!("SUB {SUBJECT} 1\r\n") } else { String::new() };
            let options = r#"{"verbose":false,"pedantic":false,"tls_required":false}"#;
            stream.write_all(format!("CONNECT {options}\r\n{subscription}PING\r\n").as_bytes())?;
            // No event comes before the answer to the PING.
            let mut lines = BufReader::new(&stream);
            loop {
                let mut line = String::new();
                ensure!(lines.read_line(&mut line)? > 0, "nats-server has closed the connection");
                match line.trim_end() {
                    "PONG" => break,
                    line if line.starts_with("-ERR") => bail!("nats-server: {line}"),
                    _ => {}
                }
            }
        }
        Protocol::Mqtt(quality) => {
            // A client with the name of another one would end its connection.
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("{role}{}", NEXT.fetch_add(1, Ordering::Relaxed));
            // Clean session, no keep-alive.
            let mut variable = b"\x00\x04MQTT\x04\x02\x00\x00".to_vec();
            put_text(&mut variable, &name);
            stream.write_all(&packet(0x10, &variable))?;
            let mut answer = [0; 4];
            stream.read_exact(&mut answer)?;
            ensure!(answer == [0x20, 2, 0, 0], "CONNACK is {answer:?}");
            if role == 'C' {
                let mut variable = vec![0, 1];
                put_text(&mut variable, SUBJECT);
                variable.push(quality);
                stream.write_all(&packet(0x82, &variable))?;
                let mut answer = [0; 5];
                stream.read_exact(&mut answer)?;
                ensure!(answer == [0x90, 3, 0, 1, quality], "SUBACK is {answer:?}");
            }
        }
    }
    Ok(stream)
}

fn put_text(octets: &mut Vec<u8>, text: &str) {
    octets.extend((text.len() as u16).to_be_bytes());
    octets.extend(text.as_bytes());
}

/// A packet of MQTT with fewer than 128 octets behind its fixed header.
fn packet(first: u8, variable: &[u8]) -> Vec<u8> {
    debug_assert!(variable.len() < 128);
    [&[first, variable.len() as u8], variable].concat()
}

/// The supplier of a server.
pub(super) struct PlainSupplier {
    protocol: Protocol,
    stream: TcpStream,
    /// Events that are not written yet.
    unsent: Vec<u8>,
    /// The identifier of the next packet of MQTT; never 0.
    packet: u16,
}

impl PlainSupplier {
    pub(super) fn connect(protocol: Protocol, address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self { protocol, stream: connect(protocol, address, 'S')?, unsent: Vec::new(), packet: 1 })
    }
}

impl Supplier for PlainSupplier {
    fn push(&mut self, event: &Event) -> anyhow::Result<()> {
        match self.protocol {
            Protocol::Plain => {
                self.stream.write_all(event)?;
                self.stream.read_exact(&mut [0]).context("the event was not acknowledged")?;
                return Ok(());
            }
            Protocol::Nats => {
                write!(self.unsent, "PUB {SUBJECT} {OCTETS}\r\n")?;
                self.unsent.extend_from_slice(event);
                self.unsent.extend_from_slice(b"\r\n");
            }
            Protocol::Mqtt(quality) => {
                let mut variable = Vec::with_capacity(OCTETS + 16);
                put_text(&mut variable, SUBJECT);
                if quality > 0 {
                    variable.extend(self.packet.to_be_bytes());
                }
                variable.extend_from_slice(event);
                self.unsent.extend(packet(0x30 | (quality << 1), &variable));
                if quality > 0 {
                    self.flush()?;
                    let mut answer = [0; 4];
                    self.stream.read_exact(&mut answer).context("the event was not acknowledged")?;
                    let [high, low] = self.packet.to_be_bytes();
                    ensure!(answer == [0x40, 2, high, low], "PUBACK is {answer:?}");
                    self.packet = self.packet.checked_add(1).unwrap_or(1);
                }
            }
        }
        if self.unsent.len() >= WRITTEN_TOGETHER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.stream.write_all(&self.unsent)?;
        self.unsent.clear();
        Ok(())
    }
}

/// The connection of one consumer.
struct PlainConsumer {
    protocol: Protocol,
    stream: TcpStream,
    /// Octets of a message that has not come in full.
    partial: Vec<u8>,
}

impl PlainConsumer {
    /// Takes the messages of these octets, and answers them. Returns the octets of whole messages.
    fn take(&self, octets: &[u8], mut receive: impl FnMut(&[u8])) -> anyhow::Result<usize> {
        let (mut at, mut answers) = (0, Vec::new());
        while let Some(length) = match self.protocol {
            Protocol::Plain => take_plain(&octets[at..], &mut answers, &mut receive),
            Protocol::Nats => take_nats(&octets[at..], &mut answers, &mut receive)?,
            Protocol::Mqtt(_) => take_mqtt(&octets[at..], &mut answers, &mut receive)?,
        } {
            at += length;
        }
        if !answers.is_empty() {
            (&self.stream).write_all(&answers)?;
        }
        Ok(at)
    }

    /// Reads once. Returns whether the connection is open.
    fn read(&mut self, buffer: &mut [u8], mut receive: impl FnMut(&[u8])) -> anyhow::Result<bool> {
        let count = match self.stream.read(buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if self.partial.is_empty() {
            let length = self.take(&buffer[..count], &mut receive)?;
            self.partial.extend_from_slice(&buffer[length..count]);
        } else {
            self.partial.extend_from_slice(&buffer[..count]);
            let whole = std::mem::take(&mut self.partial);
            let length = self.take(&whole, &mut receive)?;
            self.partial.extend_from_slice(&whole[length..]);
        }
        Ok(true)
    }
}

/// The octets of the first message, if it is whole: an event of the channel in C.
fn take_plain(octets: &[u8], answers: &mut Vec<u8>, mut receive: impl FnMut(&[u8])) -> Option<usize> {
    receive(octets.get(..OCTETS)?);
    answers.push(0);
    Some(OCTETS)
}

/// The octets of the first message, if it is whole: `MSG SUBJECT SID LENGTH`, with the event behind it, or another line.
fn take_nats(octets: &[u8], answers: &mut Vec<u8>, mut receive: impl FnMut(&[u8])) -> anyhow::Result<Option<usize>> {
    let Some(end) = octets.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &octets[..end];
    if let Some(words) = line.strip_prefix(b"MSG ") {
        let length = words.rsplit(|octet| *octet == b' ').next().unwrap_or_default();
        let length: usize = std::str::from_utf8(length)?.parse()?;
        let begin = end + 2;
        let Some(event) = octets.get(begin..begin + length).filter(|_| octets.len() >= begin + length + 2) else {
            return Ok(None);
        };
        receive(event);
        return Ok(Some(begin + length + 2));
    }
    if line == b"PING" {
        answers.extend_from_slice(b"PONG\r\n");
    }
    ensure!(!line.starts_with(b"-ERR"), "nats-server: {}", String::from_utf8_lossy(line));
    Ok(Some(end + 2))
}

/// The octets of the first packet, if it is whole: PUBLISH, or one that is skipped.
fn take_mqtt(octets: &[u8], answers: &mut Vec<u8>, mut receive: impl FnMut(&[u8])) -> anyhow::Result<Option<usize>> {
    let (Some(first), Some(length)) = (octets.first(), octets.get(1)) else { return Ok(None) };
    ensure!(*length < 128, "a packet is longer than those of this measurement");
    let end = 2 + usize::from(*length);
    let Some(variable) = octets.get(2..end) else { return Ok(None) };
    if first >> 4 == 3 {
        let quality = (first >> 1) & 3;
        let topic = variable.first_chunk().map_or(0, |length: &[u8; 2]| usize::from(u16::from_be_bytes(*length)));
        let rest = variable.get(2 + topic..).context("a PUBLISH without its topic")?;
        let event = if quality > 0 {
            let (packet, event) = rest.split_at_checked(2).context("a PUBLISH without its identifier")?;
            answers.extend([0x40, 2, packet[0], packet[1]]);
            event
        } else {
            rest
        };
        receive(event);
    }
    Ok(Some(end))
}

/// Connects the consumers of a ledger, and reads them in a thread that lives as long as the process.
pub(super) fn connect_consumers(protocol: Protocol, address: SocketAddr, ledger: &Arc<Ledger>) -> anyhow::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC).context("cannot create an epoll")?;
    let mut consumers = Vec::new();
    for nth in 0..ledger.consumers() {
        let stream = connect(protocol, address, 'C')?;
        epoll::add(&epoll, &stream, EventData::new_u64(nth as u64), EventFlags::IN)?;
        consumers.push(PlainConsumer { protocol, stream, partial: Vec::new() });
    }
    let ledger = Arc::clone(ledger);
    let mut read = move || -> anyhow::Result<()> {
        let (mut ready, mut buffer) = (Vec::with_capacity(256), vec![0; BUFFER]);
        loop {
            match epoll::wait(&epoll, spare_capacity(&mut ready), None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for event in ready.drain(..) {
                let nth = event.data.u64() as usize;
                let is_open = consumers[nth].read(&mut buffer, |octets| {
                    ledger.count_call();
                    ledger.receive(nth, octets);
                })?;
                ensure!(is_open, "the server has closed the connection of consumer {nth}");
            }
        }
    };
    thread::Builder::new().name("consumers".to_owned()).spawn(move || {
        // The deliveries that are missing then fail the point.
        if let Err(error) = read() {
            output::remark(&format!("consumers: {error:#}\n"));
        }
    })?;
    Ok(())
}
