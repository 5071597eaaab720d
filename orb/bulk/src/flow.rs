//! The octets of one bulk connection: sending and receiving, each within its time limits.

use std::{
    io,
    time::{Duration, Instant},
};

use spandrel_ipc::Interest;
use spandrel_sync::time::Deadline;

use crate::{
    channel::{Channel, Route},
    error::{BulkError, Party},
    sink::Sink,
    source::{BUFFER, Digest, Source},
    wire::{
        ANSWER_OCTETS, Answer, END_OCTETS, End, ErrorCode, FrameHeader, FrameKind, GREETING_OCTETS, Greeting,
        HEADER_OCTETS, MAX_CONTROL, UNKNOWN_LENGTH, WireError, cancel_frame, control_frame, decode_error, decode_text,
        error_frame,
    },
};

/// The octets of a DATA frame that the kernel sends from a file.
const FILE_FRAME: u64 = 4 << 20;
/// The octets of an END frame.
const END_FRAME: usize = HEADER_OCTETS + END_OCTETS;
/// The longest wait before the reasons to stop are looked at again.
const SLICE: Duration = Duration::from_millis(50);
/// The time for telling a peer the reason of the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// The result of a complete transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The length of the data, all parts of a resumed transfer together.
    pub octets: u64,
    /// The CRC-32 of the data, computed by the receiving party.
    pub checksum: u32,
    /// Whether the sending party has stated the same checksum.
    pub is_verified: bool,
    /// The route of the last octets: a resumed transfer may have had several.
    pub route: Route,
}

/// Limits and observers of a transfer.
pub(crate) struct Pace<'a> {
    /// The end of the whole transfer.
    pub(crate) deadline: Deadline,
    /// The longest time without progress.
    pub(crate) idle: Duration,
    /// The reason to stop, once there is one.
    pub(crate) stop: &'a dyn Fn() -> Option<BulkError>,
    /// Called with the number of octets that this side has sent or received.
    pub(crate) progress: &'a dyn Fn(u64),
}

/// The receiving side of a transfer, over all its connections.
pub(crate) struct Reception<'s> {
    sink: Box<dyn Sink + 's>,
    digest: Digest,
    limit: u64,
}

impl<'s> Reception<'s> {
    pub(crate) fn new(sink: Box<dyn Sink + 's>, limit: u64) -> Self {
        Self { sink, digest: Digest::default(), limit }
    }

    pub(crate) fn octets(&self) -> u64 {
        self.digest.position
    }

    pub(crate) fn checksum(&self) -> u32 {
        self.digest.value()
    }

    pub(crate) fn take(&mut self, octets: &[u8], limit: u64) -> Result<(), BulkError> {
        let limit = limit.min(self.limit);
        if octets.len() as u64 > limit.saturating_sub(self.octets()) {
            return Err(WireError::TooLong { limit }.into());
        }
        self.sink.write(octets).map_err(|error| BulkError::Storage("destination", error))?;
        self.digest.add(octets);
        Ok(())
    }

    /// Compares what has come with what was sent, and completes the destination.
    pub(crate) fn finish(&mut self, end: End) -> Result<(), BulkError> {
        if end.length != self.octets() {
            let (received, expected) = (end.length, self.octets());
            return Err(WireError::Contradiction { what: "length", received, expected }.into());
        }
        let received = self.checksum();
        match end.checksum {
            Some(sent) if sent != received => Err(BulkError::Checksum { received, sent }),
            _ => self.sink.finish().map_err(|error| BulkError::Storage("destination", error)),
        }
    }
}

/// One side of a bulk connection.
pub(crate) struct Conversation<'a> {
    channel: &'a Channel,
    pace: &'a Pace<'a>,
    /// The time of the last progress.
    progressed: Instant,
    /// The octets of the data so far, for errors and observers.
    octets: u64,
    /// Received octets of a frame that may interrupt sending.
    inbox: Vec<u8>,
    /// Whether this side may send a frame now: not inside of one.
    is_between_frames: bool,
    /// Octets that go with the next ones.
    outbox: Vec<u8>,
    /// The buffer of received data, which the next transfer of a connection uses again.
    pub(crate) buffer: Vec<u8>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(channel: &'a Channel, pace: &'a Pace<'a>) -> Self {
        let (inbox, outbox, buffer) = (Vec::new(), Vec::new(), Vec::new());
        Self { channel, pace, progressed: Instant::now(), octets: 0, inbox, is_between_frames: true, outbox, buffer }
    }

    pub(crate) fn receive_greeting(&mut self) -> Result<Greeting, BulkError> {
        let mut octets = [0; GREETING_OCTETS];
        self.receive_exactly(&mut octets, "a greeting")?;
        Ok(Greeting::decode(&octets)?)
    }

    pub(crate) fn greet(&mut self, greeting: &Greeting) -> Result<Answer, BulkError> {
        self.send_all(&greeting.encode(), "a greeting")?;
        let mut octets = [0; ANSWER_OCTETS];
        self.receive_exactly(&mut octets, "an answer")?;
        let answer = Answer::decode(&octets)?;
        if answer.status == 0 {
            return Ok(answer);
        }
        let header = self.receive_header()?;
        Err(self.unexpected(header))
    }

    /// Answers a greeting of the party that sends.
    pub(crate) fn answer(&mut self, offset: u64) -> Result<(), BulkError> {
        let answer = Answer { status: 0, offset, length: UNKNOWN_LENGTH };
        self.send_all(&answer.encode(), "an answer")
    }

    /// Answers a greeting of the party that receives, together with the first frame.
    pub(crate) fn answer_with_data(&mut self, offset: u64, length: Option<u64>) {
        let answer = Answer { status: 0, offset, length: length.unwrap_or(UNKNOWN_LENGTH) };
        self.outbox.extend(answer.encode());
    }

    /// Refuses a greeting, and gives the reason.
    pub(crate) fn refuse(&mut self, code: ErrorCode, text: &str) {
        let answer = Answer { status: 1, offset: 0, length: 0 }.encode();
        self.part(&[&answer[..], &error_frame(code, text)].concat());
    }

    /// Sends all octets from `offset` on. The peer has confirmed them when this returns.
    pub(crate) fn send(&mut self, source: &dyn Source, offset: u64, may_pass: bool) -> Result<Outcome, BulkError> {
        let result = self.send_data(source, offset, may_pass);
        if let Err(error) = &result {
            self.tell(error);
        }
        result
    }

    fn send_data(&mut self, source: &dyn Source, offset: u64, may_pass: bool) -> Result<Outcome, BulkError> {
        let length = source.length();
        if let Some(expected) = length.filter(|length| offset > *length) {
            return Err(WireError::Contradiction { what: "offset", received: offset, expected }.into());
        }
        self.octets = offset;
        let mut route = self.channel.route();
        let end = match (source.file().filter(|_| self.channel.sends_files()), length) {
            (Some(file), Some(length)) => {
                if may_pass && source.is_passable() && self.pass(file, length)? {
                    route = Route::PassedFile;
                } else {
                    // The answer, the file and its end leave in whole packets.
                    self.channel.hold_back(true);
                    self.send_file(file, length)?;
                }
                End { length, checksum: source.checksum() }
            }
            _ => self.send_read(source, offset, length)?,
        };
        self.send_all(&control_frame(FrameKind::End, &end.encode()), "sending")?;
        if source.file().is_some() {
            self.channel.hold_back(false);
        }
        let header = self.receive_header()?;
        if header.kind() != FrameKind::Done {
            return Err(self.unexpected(header));
        }
        let done = self.receive_end()?;
        if done.length != end.length {
            return Err(WireError::Contradiction { what: "length", received: done.length, expected: end.length }.into());
        }
        let received = done.checksum.ok_or(WireError::Checksum(0))?;
        match end.checksum {
            Some(sent) if sent != received => Err(BulkError::Checksum { received, sent }),
            sent => Ok(Outcome { octets: end.length, checksum: received, is_verified: sent.is_some(), route }),
        }
    }

    /// Sends octets that this process reads.
    fn send_read(&mut self, source: &dyn Source, offset: u64, length: Option<u64>) -> Result<End, BulkError> {
        let failed = |error| BulkError::Storage("source", error);
        let mut digest = Digest::read_to(source, offset).map_err(failed)?;
        let mut frame = vec![0; HEADER_OCTETS + BUFFER];
        loop {
            self.look_for_frames()?;
            let left = length.map_or(u64::MAX, |length| length - digest.position);
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BUFFER);
            let count = match most {
                0 => 0,
                most => source.read_at(&mut frame[HEADER_OCTETS..][..most], digest.position).map_err(failed)?,
            };
            if count == 0 {
                return match length {
                    Some(length) if length != digest.position => Err(failed(io::ErrorKind::UnexpectedEof.into())),
                    _ => Ok(End { length: digest.position, checksum: Some(digest.value()) }),
                };
            }
            let header = FrameHeader::new(FrameKind::Data, count as u32)?;
            frame[..HEADER_OCTETS].copy_from_slice(&header.encode());
            digest.add(&frame[HEADER_OCTETS..][..count]);
            self.send_all(&frame[..HEADER_OCTETS + count], "sending")?;
            self.advance(count as u64);
        }
    }

    /// Sends the rest of a file by the kernel.
    fn send_file(&mut self, file: &std::fs::File, length: u64) -> Result<(), BulkError> {
        while self.octets < length {
            self.look_for_frames()?;
            let end = length.min(self.octets + FILE_FRAME);
            let header = FrameHeader::new(FrameKind::Data, (end - self.octets) as u32)?;
            self.send_all(&header.encode(), "sending")?;
            self.is_between_frames = false;
            while self.octets < end {
                match self.channel.try_send_file(file, self.octets..end) {
                    Ok(count) => self.advance(count),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.wait(Interest::OUTPUT, "sending")?
                    }
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                        return Err(BulkError::Storage("source", io::Error::new(error.kind(), "the file was cut")));
                    }
                    Err(cause) => return Err(self.broken(cause)),
                }
            }
            self.is_between_frames = true;
        }
        Ok(())
    }

    /// Passes the open file itself, where the connection can.
    #[cfg(unix)]
    fn pass(&mut self, file: &std::fs::File, length: u64) -> Result<bool, BulkError> {
        let Channel::Unix(stream) = self.channel else { return Ok(false) };
        self.send_all(&control_frame(FrameKind::File, &length.to_be_bytes()), "sending")?;
        loop {
            match stream.send_handle(file) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Interest::OUTPUT, "sending")?,
                Err(cause) => return Err(self.broken(cause)),
            }
        }
        self.advance(length - self.octets);
        Ok(true)
    }

    #[cfg(not(unix))]
    fn pass(&mut self, _file: &std::fs::File, _length: u64) -> Result<bool, BulkError> {
        Ok(false)
    }

    /// Receives all octets that are missing, at most up to `length` in all, and confirms them.
    pub(crate) fn receive(
        &mut self,
        reception: &mut Reception<'_>,
        length: Option<u64>,
        takes_files: bool,
    ) -> Result<Outcome, BulkError> {
        let result = self.receive_data(reception, length, takes_files);
        if let Err(error) = &result {
            self.tell(error);
        }
        result
    }

    fn receive_data(
        &mut self,
        reception: &mut Reception<'_>,
        length: Option<u64>,
        takes_files: bool,
    ) -> Result<Outcome, BulkError> {
        self.octets = reception.octets();
        let limit = length.unwrap_or(u64::MAX);
        let mut route = self.channel.route();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(BUFFER, 0);
        loop {
            let header = self.receive_header()?;
            match header.kind() {
                FrameKind::Data => {
                    let mut left = header.length() as usize;
                    if left as u64 > limit.saturating_sub(self.octets) {
                        return Err(WireError::TooLong { limit }.into());
                    }
                    while left > 0 {
                        // The end of the data may come with its last octets.
                        let most = (left + END_FRAME).min(BUFFER);
                        let received = self.receive_some(&mut buffer[..most], "receiving")?;
                        let (data, next) = buffer[..received].split_at(received.min(left));
                        drop(self.inbox.splice(..0, next.iter().copied()));
                        reception.take(data, limit)?;
                        self.advance(data.len() as u64);
                        left -= data.len();
                    }
                }
                FrameKind::File if takes_files && route == Route::Unix => {
                    self.take_file(reception, limit, &mut buffer)?;
                    route = Route::PassedFile;
                }
                FrameKind::End => {
                    let end = self.receive_end()?;
                    require_length(end.length, length)?;
                    reception.finish(end)?;
                    let done = End { length: end.length, checksum: Some(reception.checksum()) };
                    self.send_all(&control_frame(FrameKind::Done, &done.encode()), "confirming")?;
                    let is_verified = end.checksum.is_some();
                    let (octets, checksum) = (end.length, reception.checksum());
                    self.buffer = buffer;
                    return Ok(Outcome { octets, checksum, is_verified, route });
                }
                _ => return Err(self.unexpected(header)),
            }
        }
    }

    /// Reads a passed file in place of DATA.
    #[cfg(unix)]
    fn take_file(&mut self, reception: &mut Reception<'_>, limit: u64, buffer: &mut [u8]) -> Result<(), BulkError> {
        let Channel::Unix(stream) = self.channel else { return Err(WireError::Unexpected(FrameKind::File).into()) };
        let mut octets = [0; 8];
        self.receive_exactly(&mut octets, "receiving")?;
        let length = u64::from_be_bytes(octets);
        if length > limit {
            return Err(WireError::TooLong { limit }.into());
        }
        let left = self.time_left("receiving")?;
        let file: std::fs::File = stream.recv_handle_within(left).map_err(|cause| self.broken(cause))?;
        let failed = |error| BulkError::Storage("passed file", error);
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file")));
        }
        while reception.octets() < length {
            self.time_left("reading the passed file")?;
            let most = usize::try_from(length - reception.octets()).unwrap_or(usize::MAX).min(buffer.len());
            match crate::source::read_file_at(&file, &mut buffer[..most], reception.octets()).map_err(failed)? {
                0 => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
                count => {
                    reception.take(&buffer[..count], limit)?;
                    self.advance(count as u64);
                }
            }
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn take_file(&mut self, _: &mut Reception<'_>, _: u64, _: &mut [u8]) -> Result<(), BulkError> {
        Err(WireError::Unexpected(FrameKind::File).into())
    }

    fn advance(&mut self, count: u64) {
        self.octets += count;
        self.progressed = Instant::now();
        (self.pace.progress)(self.octets);
    }

    fn receive_header(&mut self) -> Result<FrameHeader, BulkError> {
        let mut octets = [0; HEADER_OCTETS];
        self.receive_exactly(&mut octets, "receiving")?;
        Ok(FrameHeader::decode(&octets)?)
    }

    fn receive_end(&mut self) -> Result<End, BulkError> {
        let mut octets = [0; END_OCTETS];
        self.receive_exactly(&mut octets, "receiving")?;
        Ok(End::decode(&octets)?)
    }

    /// The error for a frame that ends the transfer: the peer's reason, if it has one.
    fn unexpected(&mut self, header: FrameHeader) -> BulkError {
        if !matches!(header.kind(), FrameKind::Error | FrameKind::Cancel) {
            return WireError::Unexpected(header.kind()).into();
        }
        let mut payload = vec![0; header.length() as usize];
        match self.receive_exactly(&mut payload, "receiving") {
            Ok(()) => given_reason(header.kind(), &payload),
            Err(error) => error,
        }
    }

    /// Looks for a frame of the peer that ends sending, without waiting.
    fn look_for_frames(&mut self) -> Result<(), BulkError> {
        self.time_left("sending")?;
        let mut octets = [0; HEADER_OCTETS + MAX_CONTROL];
        loop {
            let room = octets.len() - self.inbox.len();
            match self.channel.stream().try_recv(&mut octets[..room]) {
                Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.inbox.extend_from_slice(&octets[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(self.broken(cause)),
            }
            let Some((header, payload)) = self.inbox.split_first_chunk::<HEADER_OCTETS>() else { continue };
            let header = FrameHeader::decode(header)?;
            if !matches!(header.kind(), FrameKind::Error | FrameKind::Cancel) {
                return Err(WireError::Unexpected(header.kind()).into());
            }
            if let Some(payload) = payload.get(..header.length() as usize) {
                return Err(given_reason(header.kind(), payload));
            }
        }
    }

    fn send_all(&mut self, data: &[u8], action: &'static str) -> Result<(), BulkError> {
        let mut first = std::mem::take(&mut self.outbox);
        if first.is_empty() {
            return self.send_octets(data, action);
        }
        // Short ones go together; a frame with its data is not copied.
        if data.len() <= END_FRAME {
            first.extend_from_slice(data);
            return self.send_octets(&first, action);
        }
        self.send_octets(&first, action)?;
        self.send_octets(data, action)
    }

    fn send_octets(&mut self, mut data: &[u8], action: &'static str) -> Result<(), BulkError> {
        let whole = data.len();
        while !data.is_empty() {
            match self.channel.stream().try_send(data) {
                Ok(count) => {
                    data = &data[count..];
                    self.progressed = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_between_frames = data.len() == whole;
                    self.wait(Interest::OUTPUT, action)?;
                }
                Err(cause) => return Err(self.lost_while_sending(cause)),
            }
        }
        self.is_between_frames = true;
        Ok(())
    }

    /// The peer's reason for closing, if it has given one; else the error of the system.
    fn lost_while_sending(&mut self, cause: io::Error) -> BulkError {
        match self.look_for_frames() {
            Err(error @ (BulkError::GaveUp { .. } | BulkError::Cancelled { .. })) => error,
            _ => self.broken(cause),
        }
    }

    fn receive_exactly(&mut self, mut buffer: &mut [u8], action: &'static str) -> Result<(), BulkError> {
        while !buffer.is_empty() {
            let count = self.receive_some(buffer, action)?;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }

    fn receive_some(&mut self, buffer: &mut [u8], action: &'static str) -> Result<usize, BulkError> {
        // What was read before comes first.
        if !self.inbox.is_empty() {
            let count = buffer.len().min(self.inbox.len());
            buffer[..count].copy_from_slice(&self.inbox[..count]);
            self.inbox.drain(..count);
            return Ok(count);
        }
        loop {
            match self.channel.stream().try_recv(buffer) {
                Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    self.progressed = Instant::now();
                    self.time_left(action)?;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(Interest::INPUT, action)?,
                Err(cause) => return Err(self.broken(cause)),
            }
        }
    }

    /// Waits for a part of the time. While it waits for room, a frame of the peer ends the wait as well.
    fn wait(&mut self, interest: Interest, action: &'static str) -> Result<(), BulkError> {
        let left = self.time_left(action)?;
        if interest == Interest::OUTPUT && self.inbox.is_empty() {
            self.look_for_frames()?;
        }
        self.channel.wait(interest, left.min(SLICE)).map_err(|cause| self.broken(cause))?;
        Ok(())
    }

    /// The time that the peer has for its next octet.
    fn time_left(&self, action: &'static str) -> Result<Duration, BulkError> {
        if let Some(error) = (self.pace.stop)() {
            return Err(error);
        }
        let idle = self.pace.idle.saturating_sub(self.progressed.elapsed());
        match self.pace.deadline.remaining() {
            Some(Duration::ZERO) => {
                Err(BulkError::TimedOut { action, limit: self.pace.deadline.limit().unwrap_or_default() })
            }
            _ if idle.is_zero() => Err(BulkError::TimedOut { action, limit: self.pace.idle }),
            left => Ok(left.map_or(idle, |left| left.min(idle))),
        }
    }

    fn broken(&self, cause: io::Error) -> BulkError {
        BulkError::Broken { octets: self.octets, cause }
    }

    /// Tells the peer why this side gives up.
    fn tell(&mut self, error: &BulkError) {
        let frame = match error {
            BulkError::Cancelled { by: Party::Own, reason } => cancel_frame(reason),
            BulkError::Broken { .. } | BulkError::Cancelled { .. } | BulkError::GaveUp { .. } => return,
            other => error_frame(code_of(other), &spandrel_error::report_in_line(other)),
        };
        if self.is_between_frames {
            self.part(&frame);
        }
    }

    /// Sends the last octets, and reads what still comes for a short time: a socket that is closed with unread octets
    /// takes back what it has sent.
    fn part(&mut self, octets: &[u8]) {
        let limit = FAREWELL.min(self.pace.idle);
        let deadline = Deadline::after(limit);
        let stream = self.channel.stream();
        self.outbox.extend_from_slice(octets);
        if stream.send_n_within(&self.outbox, limit).is_err() || stream.close_writer().is_err() {
            return;
        }
        let mut buffer = vec![0; BUFFER];
        while let Some(left) = deadline.remaining().filter(|left| !left.is_zero()) {
            match stream.recv_within(&mut buffer, left) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}

/// Requires that all octets of a known length have come.
pub(crate) fn require_length(received: u64, length: Option<u64>) -> Result<(), BulkError> {
    match length {
        Some(expected) if expected != received => {
            Err(WireError::Contradiction { what: "length", received, expected }.into())
        }
        _ => Ok(()),
    }
}

fn given_reason(kind: FrameKind, payload: &[u8]) -> BulkError {
    if kind == FrameKind::Cancel {
        return BulkError::Cancelled { by: Party::Peer, reason: decode_text(payload) };
    }
    let (code, text) = decode_error(payload);
    BulkError::GaveUp { code, text }
}

fn code_of(error: &BulkError) -> ErrorCode {
    match error {
        BulkError::Wire(WireError::TooLong { .. }) => ErrorCode::TooLong,
        BulkError::Wire(WireError::Contradiction { what: "offset", .. }) => ErrorCode::Offset,
        BulkError::Wire(WireError::Contradiction { .. }) | BulkError::Checksum { .. } => ErrorCode::Corrupt,
        BulkError::TimedOut { .. } => ErrorCode::TimeOut,
        BulkError::TooMany(_) => ErrorCode::Busy,
        BulkError::Storage(..) => ErrorCode::Storage,
        _ => ErrorCode::Protocol,
    }
}
