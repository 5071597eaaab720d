//! Calls in flight on one connection over plain sockets: requests are written as soon as replies have made
//! room, those of one read together.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use spandrel_measure::histogram::Histogram;

use super::load::{Driven, send_all, thread_cpu};
use crate::call_times::SLOWEST;
use crate::raw::{self, Socket};

/// A connection to a server of plain messages.
pub(in crate::bench) struct Pipeline {
    socket: Socket,
    message_octets: usize,
    answer_octets: usize,
}

/// The octets of a read.
const BUFFER_OCTETS: usize = 16 << 10;

impl Pipeline {
    /// Connects to a server that answers messages of one length with answers of another.
    ///
    /// # Errors
    /// If it cannot be reached.
    pub(super) fn connect(
        server: SocketAddr,
        message_octets: usize,
        answer_octets: usize,
        limit: Duration,
    ) -> io::Result<Self> {
        let socket = raw::socket(&server)?;
        raw::set_recv_timeout(&socket, limit.as_secs().clamp(1, 3600) as u32)?;
        raw::connect(&socket, &server)?;
        raw::set_no_delay(&socket)?;
        Ok(Self { socket, message_octets, answer_octets })
    }

    /// Keeps that many messages in flight for a time, and then waits for the outstanding answers.
    ///
    /// # Errors
    /// If the connection fails, or no answer arrives within the limit.
    pub(in crate::bench) fn run(&self, in_flight: usize, time: Duration) -> io::Result<Driven> {
        let (mut nanos, cpu_before) = (Histogram::new(SLOWEST), thread_cpu());
        let messages = vec![0; in_flight * self.message_octets];
        let mut buffer = vec![0; BUFFER_OCTETS];
        let start = Instant::now();
        let end = start + time;
        let mut sent_at: VecDeque<Instant> = std::iter::repeat_n(start, in_flight).collect();
        send_all(&self.socket, &messages)?;
        let (mut partial, mut answers, mut last) = (0, 0, start);
        while !sent_at.is_empty() {
            partial += match raw::recv(&self.socket, &mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
                received => received?,
            };
            let now = Instant::now();
            let whole = partial / self.answer_octets;
            partial %= self.answer_octets;
            for sent in sent_at.drain(..whole.min(sent_at.len())) {
                nanos.record((now - sent).as_nanos() as u64);
            }
            if now < end {
                (answers, last) = (answers + whole as u64, now);
                sent_at.extend(std::iter::repeat_n(now, whole));
                send_all(&self.socket, &messages[..whole * self.message_octets])?;
            }
        }
        let load_cpu = (thread_cpu() - cpu_before).as_secs_f64();
        Ok(Driven { nanos, seconds: (last - start).as_secs_f64(), answers: vec![answers], load_cpu })
    }
}
