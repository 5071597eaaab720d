//! One transfer at the side that offered it, over all its connections.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use spandrel_sync::{Arc, Condition, Mutex, atomic::AtomicU64, time::Deadline};

use crate::{
    bulk::{Direction, Failed, FailureCode, Part, Progress},
    channel::{Channel, Route},
    error::{BulkError, Party},
    flow::{Conversation, Outcome, Pace, Reception},
    limits::BulkLimits,
    peer::PeerBinding,
    source::{Digest, Source},
    wire::{End, ErrorCode, Role, UNKNOWN_LENGTH, WireError},
};

/// The longest part of one call.
const MAX_PART: usize = 1 << 20;
/// The time within which a connection that was cut gives up the stream.
const HANDOVER: Duration = Duration::from_secs(5);

/// The octets at the offering side.
pub(crate) enum Flow {
    /// With the checksum of the octets before the part that a call has read last, and behind it.
    Sending(Box<dyn Source>, Option<(Digest, Digest)>),
    Receiving(Reception<'static>),
}

impl Flow {
    /// Whether the other party may get an open file in place of the octets.
    pub(crate) fn passes_file(&self) -> bool {
        matches!(self, Self::Sending(source, _) if source.is_passable() && source.file().is_some())
    }
}

/// A transfer that this side has offered.
pub(crate) struct Transfer {
    pub(crate) binding: PeerBinding,
    length: Option<u64>,
    way: Direction,
    limits: BulkLimits,
    octets: AtomicU64,
    state: Mutex<State>,
    changed: Condition,
}

struct State {
    /// `None` while a connection or a call has it, and after the end.
    flow: Option<Flow>,
    /// The number of the connection that has the stream.
    connection: u64,
    end: Option<Result<Outcome, Arc<BulkError>>>,
    touched: Instant,
}

impl Transfer {
    pub(crate) fn new(flow: Flow, binding: PeerBinding, limits: BulkLimits) -> Self {
        let (way, length) = match &flow {
            Flow::Sending(source, _) => (Direction::Download, source.length()),
            Flow::Receiving(_) => (Direction::Upload, None),
        };
        let state = State { flow: Some(flow), connection: 0, end: None, touched: Instant::now() };
        let (state, changed) = (Mutex::new(state), Condition::new());
        Self { binding, length, way, limits, octets: AtomicU64::new(0), state, changed }
    }

    pub(crate) fn way(&self) -> Direction {
        self.way
    }

    /// The role of the other party.
    pub(crate) fn peer_role(&self) -> Role {
        if self.way == Direction::Download { Role::Receives } else { Role::Sends }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length.unwrap_or(UNKNOWN_LENGTH)
    }

    /// Whether nothing has happened for longer than the time of the offer.
    pub(crate) fn has_expired(&self) -> bool {
        let state = self.state.lock();
        (state.flow.is_some() || state.end.is_some()) && state.touched.elapsed() > self.limits.valid_for
    }

    /// The time of its end, or of the last request after it; `None` while it goes on.
    pub(crate) fn ended(&self) -> Option<Instant> {
        let state = self.state.lock();
        state.end.as_ref().map(|_| state.touched)
    }

    /// Ends the transfer unless it has ended.
    pub(crate) fn end(&self, end: Result<Outcome, BulkError>) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.end = Some(end.map_err(Arc::new));
        }
        state.touched = Instant::now();
        // Sources and destinations are closed outside of the lock.
        let flow = state.flow.take();
        drop(state);
        self.changed.notify_all();
        drop(flow);
    }

    pub(crate) fn cancel(&self, by: Party, reason: &str) {
        self.end(Err(BulkError::Cancelled { by, reason: reason.to_owned() }));
    }

    pub(crate) fn wait(&self, limit: Duration) -> Option<Result<Outcome, Arc<BulkError>>> {
        let deadline = Deadline::after(limit);
        let mut state = self.state.lock();
        while state.end.is_none() {
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                break;
            }
        }
        state.end.clone()
    }

    pub(crate) fn progress(&self) -> Progress {
        let is_complete = matches!(self.state.lock().end, Some(Ok(_)));
        Progress { octets: self.octets.load(Ordering::Relaxed), length: self.length(), is_complete }
    }

    /// Makes the connection that has the stream, if any, give it up.
    pub(crate) fn cut(&self) -> Result<u64, Failed> {
        let deadline = Deadline::after(HANDOVER);
        let mut state = self.state.lock();
        state.connection += 1;
        let own = state.connection;
        loop {
            if let Some(failed) = failure(&state) {
                return Err(failed);
            }
            if state.connection != own {
                return Err(refused(FailureCode::Busy, "another connection was requested"));
            }
            if let Some(flow) = &state.flow {
                let octets = if let Flow::Receiving(reception) = flow { reception.octets() } else { 0 };
                state.touched = Instant::now();
                return Ok(octets);
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Err(refused(FailureCode::Busy, "a connection still has the stream"));
            }
        }
    }

    /// Takes the stream for one connection or call.
    fn take(&self) -> Result<(Flow, u64), Failed> {
        let mut state = self.state.lock();
        if let Some(failed) = failure(&state) {
            return Err(failed);
        }
        let flow = state.flow.take().ok_or_else(|| refused(FailureCode::Busy, "a connection has the stream"))?;
        Ok((flow, state.connection))
    }

    fn give_back(&self, flow: Flow) {
        let mut state = self.state.lock();
        state.touched = Instant::now();
        let left = if state.end.is_none() { state.flow.replace(flow) } else { Some(flow) };
        drop(state);
        self.changed.notify_all();
        drop(left);
    }

    /// The reason for which a connection or call must end now.
    fn stop(&self, connection: u64) -> Option<BulkError> {
        let state = self.state.lock();
        match &state.end {
            Some(Err(error)) => match &**error {
                BulkError::Cancelled { reason, .. } => {
                    Some(BulkError::Cancelled { by: Party::Own, reason: reason.clone() })
                }
                other => Some(BulkError::Cancelled { by: Party::Own, reason: other.to_string() }),
            },
            Some(Ok(_)) => Some(BulkError::Cancelled { by: Party::Own, reason: "it is complete".to_owned() }),
            None if state.connection != connection => {
                Some(BulkError::Cancelled { by: Party::Own, reason: "another connection goes on with it".to_owned() })
            }
            None => None,
        }
    }

    /// Transfers the octets over a connection that the other party has opened, from its greeting on. Returns whether
    /// all have come, so that the connection can have another transfer.
    pub(crate) fn serve(&self, channel: &Channel, offset: u64, takes_files: bool) -> bool {
        self.run(channel, |conversation, flow| match flow {
            Flow::Sending(source, _) => {
                if source.length().is_some_and(|length| offset > length) {
                    conversation.refuse(ErrorCode::Offset, "the offset is beyond the end");
                    return None;
                }
                conversation.answer_with_data(offset, source.length());
                Some(conversation.send(&**source, offset, takes_files))
            }
            Flow::Receiving(reception) => {
                if let Err(error) = conversation.answer(reception.octets()) {
                    return Some(Err(error));
                }
                Some(conversation.receive(reception, None, false))
            }
        })
    }

    /// Transfers the octets over a connection that this side has opened, with this token of the other party.
    pub(crate) fn call(&self, channel: &Channel, token: crate::wire::Token) {
        use crate::wire::Greeting;
        self.run(channel, |conversation, flow| {
            let (role, offset) = match flow {
                Flow::Sending(..) => (Role::Sends, 0),
                Flow::Receiving(reception) => (Role::Receives, reception.octets()),
            };
            let answer = match conversation.greet(&Greeting { role, takes_files: false, reuses: false, token, offset })
            {
                Ok(answer) => answer,
                Err(error) => return Some(Err(error)),
            };
            Some(match flow {
                Flow::Sending(source, _) => conversation.send(&**source, answer.offset, false),
                Flow::Receiving(reception) => {
                    let length = (answer.length != UNKNOWN_LENGTH).then_some(answer.length);
                    conversation.receive(reception, length, false)
                }
            })
        });
    }

    fn run(
        &self,
        channel: &Channel,
        body: impl FnOnce(&mut Conversation<'_>, &mut Flow) -> Option<Result<Outcome, BulkError>>,
    ) -> bool {
        let (mut flow, connection) = match self.take() {
            Ok(taken) => taken,
            Err(failed) => {
                let pace = Pace { stop: &|| None, progress: &|_| {}, ..self.pace() };
                Conversation::new(channel, &pace).refuse(ErrorCode::Busy, &failed.reason);
                return false;
            }
        };
        let progress = |octets| self.octets.store(octets, Ordering::Relaxed);
        let stop = || self.stop(connection);
        let pace = Pace { stop: &stop, progress: &progress, ..self.pace() };
        let result = body(&mut Conversation::new(channel, &pace), &mut flow);
        match result {
            Some(Ok(outcome)) => {
                self.end(Ok(outcome));
                drop(flow);
                return true;
            }
            // Only a broken connection can be resumed; one that was cut makes way for another.
            Some(Err(error)) if !error.is_resumable() && self.stop(connection).is_none() => {
                tracing::debug!(%error, "a bulk transfer failed");
                self.end(Err(error));
                drop(flow);
            }
            _ => self.give_back(flow),
        }
        false
    }

    fn pace(&self) -> Pace<'static> {
        Pace { deadline: Deadline::after(self.limits.total), idle: self.limits.idle, stop: &|| None, progress: &|_| {} }
    }

    /// A part of the octets, for a call.
    pub(crate) fn read(&self, offset: u64, limit: u32) -> Result<Part, Failed> {
        if self.way != Direction::Download {
            return Err(refused(FailureCode::WrongDirection, "the octets of this offer are written, not read"));
        }
        let (mut flow, _) = self.take()?;
        let result = read_part(&mut flow, offset, limit);
        if let Ok(part) = &result {
            self.octets.store(offset + part.data.len() as u64, Ordering::Relaxed);
        }
        self.give_back(flow);
        result
    }

    /// Takes a part of the octets from a call.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Result<(), Failed> {
        if self.way != Direction::Upload {
            return Err(refused(FailureCode::WrongDirection, "the octets of this offer are read, not written"));
        }
        let (mut flow, _) = self.take()?;
        let result = match &mut flow {
            Flow::Receiving(reception) if reception.octets() == offset => {
                reception.take(data, u64::MAX).map_err(|error| {
                    let code = if matches!(error, BulkError::Storage(..)) {
                        FailureCode::Storage
                    } else {
                        FailureCode::BadOffset
                    };
                    (code, error)
                })
            }
            _ => return self.misplaced(flow),
        };
        match result {
            Ok(()) => {
                self.octets.store(offset + data.len() as u64, Ordering::Relaxed);
                self.give_back(flow);
                Ok(())
            }
            Err((code, error)) => {
                let failed = refused(code, &spandrel_error::report_in_line(&error));
                self.end(Err(error));
                Err(failed)
            }
        }
    }

    fn misplaced(&self, flow: Flow) -> Result<(), Failed> {
        let octets = if let Flow::Receiving(reception) = &flow { reception.octets() } else { 0 };
        self.give_back(flow);
        Err(refused(FailureCode::BadOffset, &format!("the octets go on at {octets}")))
    }

    /// Ends a transfer by calls.
    pub(crate) fn finish(&self, length: u64, checksum: u32) -> Result<(), Failed> {
        let (mut flow, _) = self.take()?;
        let mut outcome = Outcome { octets: length, checksum, is_verified: true, route: Route::Calls };
        let result = match &mut flow {
            Flow::Receiving(reception) => reception.finish(End { length, checksum: Some(checksum) }),
            Flow::Sending(source, digests) => {
                // Octets that were not read in order have no checksum here.
                let own = digests.as_ref().map(|(_, behind)| behind).filter(|behind| behind.position == length);
                outcome.is_verified = own.is_some();
                match (own.map(Digest::value), source.length()) {
                    (Some(sent), _) if sent != checksum => Err(BulkError::Checksum { received: checksum, sent }),
                    (_, Some(expected)) if expected != length => {
                        Err(WireError::Contradiction { what: "length", received: length, expected }.into())
                    }
                    _ => Ok(()),
                }
            }
        };
        let failed = result.as_ref().err().map(|error| {
            let code =
                if matches!(error, BulkError::Storage(..)) { FailureCode::Storage } else { FailureCode::Corrupt };
            refused(code, &spandrel_error::report_in_line(error))
        });
        self.end(result.map(|()| outcome));
        failed.map_or(Ok(()), Err)
    }
}

/// Reads a part, and keeps the checksum of the octets while they are read in order. The last part may be read again.
fn read_part(flow: &mut Flow, offset: u64, limit: u32) -> Result<Part, Failed> {
    let Flow::Sending(source, digests) = flow else {
        return Err(refused(FailureCode::WrongDirection, "nothing is sent"));
    };
    let length = source.length();
    if length.is_some_and(|length| offset > length) {
        return Err(refused(FailureCode::BadOffset, "the offset is beyond the end"));
    }
    let mut data = vec![0; (limit as usize).clamp(1, MAX_PART)];
    let mut count = 0;
    while count < data.len() {
        let at = offset + count as u64;
        match source
            .read_at(&mut data[count..], at)
            .map_err(|error| refused(FailureCode::Storage, &error.to_string()))?
        {
            0 => break,
            more => count += more,
        }
    }
    let is_last = length.map_or(count < data.len(), |length| offset + count as u64 >= length);
    data.truncate(count);
    let before = match digests.take() {
        Some((before, behind)) => [before, behind].into_iter().find(|digest| digest.position == offset),
        None => (offset == 0).then(Digest::default),
    };
    *digests = before.map(|before| {
        let mut behind = before.clone();
        behind.add(&data);
        (before, behind)
    });
    let checksum = digests.as_ref().filter(|_| is_last).map(|(_, behind)| behind.value());
    let data = data.try_into().expect("a part is at most the bound of the sequence");
    Ok(Part { data, is_last, has_checksum: checksum.is_some(), checksum: checksum.unwrap_or_default() })
}

pub(crate) fn refused(code: FailureCode, reason: &str) -> Failed {
    Failed { code, reason: reason.to_owned() }
}

fn failure(state: &State) -> Option<Failed> {
    match state.end.as_ref()? {
        Ok(_) => Some(refused(FailureCode::Complete, "the transfer is complete")),
        Err(error) => {
            let code = match **error {
                BulkError::Checksum { .. } => FailureCode::Corrupt,
                BulkError::Storage(..) => FailureCode::Storage,
                _ => FailureCode::Cancelled,
            };
            Some(refused(code, &spandrel_error::report_in_line(&**error)))
        }
    }
}
