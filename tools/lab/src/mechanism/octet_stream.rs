//! The common loops of the mechanisms over plain octet streams.
//!
//! The loops are generic over [`OctetStream`], so that each mechanism gets its own compiled copy with its
//! calls inlined: they differ only in those calls.

use std::io;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Job, Mechanism, Receiver, SocketOptions, Transmitter, Work};
use crate::LabError;
use crate::call_times::CallTimes;
use crate::workload::{ANSWER_OCTETS, CallKind, Flood, MAX_BUFFER_OCTETS, PingPong};

/// The receiver's buffer, as in the papers; longer only where one transfer is longer.
const RECEIVE_BUFFER_OCTETS: usize = 64 << 10;

/// A kind of connected socket.
pub(super) trait OctetStream: Sized + Send + 'static {
    /// The endpoint that accepts such streams.
    type Listener: Send + Sync + 'static;

    /// Listens at a free address of this machine, and returns it in the syntax of `connect`.
    fn listen(host: IpAddr, options: &SocketOptions) -> io::Result<(Self::Listener, String)>;
    fn accept(listener: &Self::Listener) -> io::Result<Self>;
    /// Ends the wait of a thread in `accept`.
    fn stop(listener: &Self::Listener) -> io::Result<()>;
    fn connect(endpoint: &str, options: &SocketOptions) -> io::Result<Self>;
    /// One call: sends as many octets as are taken at once.
    fn send(&self, data: &[u8]) -> io::Result<usize>;
    /// One call: receives available octets; zero at the end of file.
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn close_writer(&self) -> io::Result<()>;
}

#[inline]
fn send_all(stream: &impl OctetStream, mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let sent = stream.send(data)?;
        data = &data[sent..];
    }
    Ok(())
}

#[inline]
fn recv_all(stream: &impl OctetStream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.recv(buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            received => buffer = &mut buffer[received..],
        }
    }
    Ok(())
}

/// The mechanism over one kind of stream.
pub(super) struct Streams<S>(PhantomData<fn() -> S>);

impl<S> Streams<S> {
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<S: OctetStream> Mechanism for Streams<S> {
    fn listen(&self, host: IpAddr, job: &Job) -> Result<Box<dyn Receiver>, LabError> {
        let listen = S::listen(host, &job.sockets);
        let (listener, endpoint) = listen.map_err(LabError::io(format!("listen at {host} ({})", job.mechanism)))?;
        let (job, listener) = (*job, Arc::new(listener));
        let shared = Arc::clone(&listener);
        let server = thread::Builder::new().name("receiver".to_owned()).spawn(move || serve::<S>(&shared, &job));
        let server = server.map_err(LabError::io("start the receiver's thread"))?;
        Ok(Box::new(StreamReceiver::<S> { endpoint, listener, server: Some(server) }))
    }

    fn connect(&self, endpoint: &str, job: &Job) -> Result<Box<dyn Transmitter>, LabError> {
        let connect = || {
            let stream = S::connect(endpoint, &job.sockets)?;
            recv_all(&stream, &mut [0])?; // the receiver has accepted and is ready
            Ok(stream)
        };
        Ok(Box::new(StreamTransmitter(
            connect().map_err(LabError::io(format!("connect to {endpoint} ({})", job.mechanism)))?,
        )))
    }
}

struct StreamReceiver<S: OctetStream> {
    endpoint: String,
    listener: Arc<S::Listener>,
    server: Option<JoinHandle<io::Result<u64>>>,
}

impl<S: OctetStream> Receiver for StreamReceiver<S> {
    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn finish(mut self: Box<Self>) -> Result<u64, LabError> {
        let server = self.server.take().expect("a receiver finishes once");
        drop(self);
        let received = server
            .join()
            .map_err(|_| LabError::Peer { role: "receiver's thread".to_owned(), detail: "it panicked".to_owned() })?;
        received.map_err(LabError::io("receive"))
    }
}

impl<S: OctetStream> Drop for StreamReceiver<S> {
    fn drop(&mut self) {
        // The transmitter has closed, or never connected: the wait ends. An accepted connection is not
        // affected.
        _ = S::stop(&self.listener);
    }
}

/// Serves one connection, and counts the received octets of user data.
fn serve<S: OctetStream>(listener: &S::Listener, job: &Job) -> io::Result<u64> {
    let stream = S::accept(listener)?;
    send_all(&stream, &[0])?;
    match job.work {
        Work::Flood(flood) if flood.call == CallKind::OneWay => absorb(&stream, flood.sent_octets()),
        Work::Flood(flood) => answer(&stream, flood.sent_octets(), ANSWER_OCTETS),
        Work::PingPong(work) => answer(&stream, work.request_octets, work.reply_octets),
        Work::Wire(_) => Ok(0),
    }
}

/// Receives until the end of file, then acknowledges.
fn absorb<S: OctetStream>(stream: &S, transfer: usize) -> io::Result<u64> {
    let mut buffer = vec![0; transfer.clamp(RECEIVE_BUFFER_OCTETS, MAX_BUFFER_OCTETS)];
    let mut total = 0;
    loop {
        match stream.recv(&mut buffer)? {
            0 => break,
            received => total += received as u64,
        }
    }
    send_all(stream, &[0])?;
    Ok(total)
}

/// Answers each `request` octets with `reply` octets, until the end of file.
fn answer<S: OctetStream>(stream: &S, request: usize, reply: usize) -> io::Result<u64> {
    if request == 0 || request > MAX_BUFFER_OCTETS || reply > MAX_BUFFER_OCTETS {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut buffer = vec![0; request.max(RECEIVE_BUFFER_OCTETS)];
    let reply = vec![0; reply];
    let mut total = 0;
    loop {
        let mut pending = 0;
        while pending < request {
            match stream.recv(&mut buffer[pending..])? {
                0 if pending == 0 => return Ok(total),
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                received => pending += received,
            }
        }
        if pending > request {
            return Err(io::ErrorKind::InvalidData.into()); // no sender may send before the answer
        }
        total += request as u64;
        send_all(stream, &reply)?;
    }
}

struct StreamTransmitter<S>(S);

impl<S: OctetStream> Transmitter for StreamTransmitter<S> {
    fn flood(&mut self, flood: &Flood) -> Result<Duration, LabError> {
        let buffer = pattern(flood.sent_octets());
        let time = match flood.call {
            CallKind::OneWay => send_flood(&self.0, &buffer, flood.buffers),
            CallKind::TwoWay => exchange_flood(&self.0, &buffer, flood.buffers),
        };
        time.map_err(LabError::io("transmit"))
    }

    fn ping_pong(&mut self, work: &PingPong) -> Result<CallTimes, LabError> {
        let request = pattern(work.request_octets);
        let mut reply = vec![0; work.reply_octets];
        let stream = &self.0;
        let mut call = || {
            send_all(stream, &request)?;
            recv_all(stream, &mut reply)
        };
        CallTimes::measure(work, &mut call).map_err(LabError::io("call"))
    }
}

fn send_flood<S: OctetStream>(stream: &S, buffer: &[u8], buffers: u64) -> io::Result<Duration> {
    let start = Instant::now();
    for _ in 0..buffers {
        send_all(stream, buffer)?;
    }
    stream.close_writer()?;
    recv_all(stream, &mut [0])?;
    Ok(start.elapsed())
}

fn exchange_flood<S: OctetStream>(stream: &S, buffer: &[u8], buffers: u64) -> io::Result<Duration> {
    let mut reply = [0; ANSWER_OCTETS];
    let start = Instant::now();
    for _ in 0..buffers {
        send_all(stream, buffer)?;
        recv_all(stream, &mut reply)?;
    }
    Ok(start.elapsed())
}

/// Nonzero octets, so that no layer below can take shortcuts.
fn pattern(octets: usize) -> Vec<u8> {
    (0..octets).map(|index| (index % 251) as u8).collect()
}
