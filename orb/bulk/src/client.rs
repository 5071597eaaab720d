//! The side that received an offer: it chooses the route, and transfers the octets in the calling thread.

use std::{fmt, io, sync::Arc, time::Duration};

use spandrel_ipc::{Interest, inet, wait_ready};
use spandrel_orb::{CancellationToken, ReferencePolicies};
use spandrel_sync::{thread, time::Deadline};

use crate::{
    bulk::{Direction, Failed, FailedError, FailureCode, Offer, StreamEnd},
    channel::{Channel, Route},
    endpoint::Endpoint,
    error::{BulkError, Party},
    flow::{Conversation, Outcome, Pace, Reception, require_length},
    idle_connections::{Connection, IdleConnections},
    sink::Sink,
    source::{Digest, Source},
    token::new_token,
    wire::{ErrorCode, Greeting, Role, Token, UNKNOWN_LENGTH, WireError},
};

/// The greetings with a wrong token that a listening client refuses before it gives up.
const MAX_STRANGERS: u32 = 16;
/// The time for telling the other party that this side gives up.
const FAREWELL: Duration = Duration::from_secs(1);

type Observer = Arc<dyn Fn(u64) + Send + Sync>;
type StopCheck = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// Settings with which offers are taken up. The transfers of a thread end when the request that it serves is
/// cancelled or its deadline passes.
#[derive(Clone)]
pub struct BulkClient {
    time_limit: Option<Duration>,
    idle: Duration,
    connect: Duration,
    resumptions: u32,
    part: u32,
    dials: bool,
    calls: bool,
    takes_files: bool,
    /// Connections that wait for a further transfer; `None` if they end with the first one.
    connections: Option<Arc<IdleConnections>>,
    listen: Option<inet::Addr>,
    tls: Option<spandrel_ssliop::Ssliop>,
    progress: Option<Observer>,
    stop: Option<StopCheck>,
}

impl fmt::Debug for BulkClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BulkClient").field("time_limit", &self.time_limit).finish_non_exhaustive()
    }
}

impl Default for BulkClient {
    /// A client without a limit of the whole transfer, which neither listens nor has TLS, and uses connections again.
    fn default() -> Self {
        Self {
            time_limit: None,
            idle: Duration::from_secs(30),
            connect: Duration::from_secs(3),
            resumptions: 3,
            part: 256 << 10,
            dials: true,
            calls: true,
            takes_files: true,
            connections: Some(Arc::default()),
            listen: None,
            tls: None,
            progress: None,
            stop: None,
        }
    }
}

/// The octets at this side.
enum Local<'s> {
    Sending(&'s dyn Source),
    Receiving(Reception<'s>),
}

impl Local<'_> {
    fn greeting(&self, token: Token, takes_files: bool, reuses: bool) -> Greeting {
        match self {
            Self::Sending(_) => Greeting { role: Role::Sends, takes_files: false, reuses, token, offset: 0 },
            Self::Receiving(reception) => {
                Greeting { role: Role::Receives, takes_files, reuses, token, offset: reception.octets() }
            }
        }
    }

    fn way(&self) -> Direction {
        if matches!(self, Self::Sending(_)) { Direction::Upload } else { Direction::Download }
    }
}

impl BulkClient {
    /// Limits the time of a transfer with all its connections.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Limits the time without progress (default 30 s).
    #[must_use]
    pub fn idle_limit(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// The most connections after the first one, each of which goes on where the one before it broke (default 3).
    #[must_use]
    pub fn resumptions(mut self, most: u32) -> Self {
        self.resumptions = most;
        self
    }

    /// Whether this side opens connections to the endpoints of offers (default yes).
    #[must_use]
    pub fn dials(mut self, on: bool) -> Self {
        self.dials = on;
        self
    }

    /// Listens at this address when no endpoint of an offer can be reached, so that the offering party opens the
    /// connection. The address is the one that the other party sees; port 0 is chosen by the system.
    #[must_use]
    pub fn listen(mut self, addr: inet::Addr) -> Self {
        self.listen = Some(addr);
        self
    }

    /// Whether calls over the GIOP connection transfer the octets when there is no other route (default yes).
    #[must_use]
    pub fn calls(mut self, on: bool) -> Self {
        self.calls = on;
        self
    }

    /// Whether it takes open files over UNIX-domain sockets in place of the octets (default yes).
    #[must_use]
    pub fn takes_files(mut self, on: bool) -> Self {
        self.takes_files = on;
        self
    }

    /// Whether a connection that this side has opened waits for a further transfer of this client or its clones to the
    /// same endpoint (default yes). At most eight wait, each with a buffer of up to 256 KiB. One that has waited for four
    /// seconds has no further transfer; it is closed at the next transfer of the client, or with the client.
    #[must_use]
    pub fn reuse(mut self, on: bool) -> Self {
        self.connections = on.then(Arc::default);
        self
    }

    /// The octets of one call (default 256 KiB, at most 1 MiB).
    #[must_use]
    pub fn part(mut self, octets: u32) -> Self {
        self.part = octets.clamp(1, 1 << 20);
        self
    }

    /// Uses TLS with the certificate and the authorities of this protocol, and no other bulk connections.
    #[must_use]
    pub fn tls(mut self, ssliop: &spandrel_ssliop::Ssliop) -> Self {
        self.tls = Some(ssliop.clone());
        // Those without TLS are not for this client.
        self.connections = self.connections.map(|_| Arc::default());
        self
    }

    /// Calls a function with the number of octets so far, after each part of the transfer.
    #[must_use]
    pub fn on_progress(mut self, observer: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(observer));
        self
    }

    /// Cancels the transfer once this function returns a reason; it is called at least every 50 ms.
    #[must_use]
    pub fn stop_when(mut self, check: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.stop = Some(Arc::new(check));
        self
    }

    /// Receives the octets of an offer.
    ///
    /// # Errors
    /// [`BulkError`] with the reason of the end; the other party is told of it.
    pub fn receive(&self, offer: &Offer, sink: &mut dyn Sink) -> Result<Outcome, BulkError> {
        self.transfer(offer, Local::Receiving(Reception::new(Box::new(sink), u64::MAX)))
    }

    /// Sends octets to the party that made an offer.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn send(&self, offer: &Offer, source: &dyn Source) -> Result<Outcome, BulkError> {
        self.transfer(offer, Local::Sending(source))
    }

    fn transfer(&self, offer: &Offer, mut local: Local<'_>) -> Result<Outcome, BulkError> {
        if offer.way != local.way() {
            return Err(BulkError::Direction);
        }
        let Some(control) = &offer.control else {
            return Err(BulkError::Unreachable("the offer has no stream end".to_owned()));
        };
        let request = CancellationToken::current();
        let stop = || {
            let of_request = || request.reason().map(|reason| format!("the request has ended: {reason:?}"));
            let reason = self.stop.as_ref().and_then(|check| check()).or_else(of_request)?;
            Some(BulkError::Cancelled { by: Party::Own, reason })
        };
        let progress = |octets| {
            if let Some(observer) = &self.progress {
                observer(octets);
            }
        };
        let pace =
            Pace { deadline: Deadline::after(self.time_limit), idle: self.idle, stop: &stop, progress: &progress };
        let mut token = Token(offer.secret);
        let mut left = self.resumptions;
        let result = loop {
            match self.attempt(offer, control, token, &mut local, &pace) {
                Err(error) if error.is_resumable() && left > 0 => {
                    tracing::debug!(%error, "a bulk transfer goes on over another connection");
                    thread::park_timeout(Duration::from_millis(20 << (self.resumptions - left).min(6)));
                    left -= 1;
                    match self.limited(control, &pace)?.renew() {
                        Ok(ticket) => token = Token(ticket.secret),
                        Err(FailedError::Failed(Failed { code: FailureCode::Complete, .. })) => {
                            break self.completed(&local, error);
                        }
                        Err(failed) => break Err(failed.into()),
                    }
                }
                result => break result,
            }
        };
        if let Err(error) = &result
            && !matches!(error, BulkError::Cancelled { by: Party::Peer, .. } | BulkError::GaveUp { .. })
        {
            _ = control.with_timeout(FAREWELL).cancel(&spandrel_error::report_in_line(error));
        }
        result
    }

    /// The result of sending, if the other party says that it is complete: its confirmation was lost.
    fn completed(&self, local: &Local<'_>, error: BulkError) -> Result<Outcome, BulkError> {
        let Local::Sending(source) = local else { return Err(error) };
        let Some(octets) = source.length() else { return Err(error) };
        let digest = Digest::read_to(*source, octets).map_err(|error| BulkError::Storage("source", error))?;
        Ok(Outcome { octets, checksum: digest.value(), is_verified: false, route: Route::Tcp })
    }

    /// One attempt by each route, until one can be had.
    fn attempt(
        &self,
        offer: &Offer,
        control: &StreamEnd,
        token: Token,
        local: &mut Local<'_>,
        pace: &Pace<'_>,
    ) -> Result<Outcome, BulkError> {
        let mut reasons = Vec::new();
        for text in offer.at.iter().filter(|_| self.dials) {
            let Some(endpoint) = Endpoint::parse(text) else { continue };
            let open = self.connections.as_ref().and_then(|connections| connections.take(text));
            let broken = match open.map(|connection| self.converse(connection, token, local, pace, offer)) {
                // The other party may have ended it at the same time. If it has not received the token, that is still good.
                Some(Err(error @ BulkError::Broken { .. })) => Some(error),
                Some(result) => return result,
                None => None,
            };
            match self.dial(&endpoint).and_then(Channel::prepared) {
                Ok(channel) => {
                    let result = self.converse(Connection::new(text, channel), token, local, pace, offer);
                    let is_used = |code: u16| code == ErrorCode::Token as u16;
                    return match (result, broken) {
                        (Err(BulkError::GaveUp { code, .. }), Some(broken)) if is_used(code) => Err(broken),
                        (result, _) => result,
                    };
                }
                Err(error) => reasons.push(format!("{endpoint}: {error}")),
            }
        }
        if let Some(addr) = &self.listen {
            match self.listen_for(addr, control, pace) {
                Ok(Some((channel, greeting))) => return self.serve(&channel, greeting, local, pace, offer),
                Ok(None) => reasons.push("the other party did not reach this side".to_owned()),
                Err(error @ BulkError::Cancelled { .. }) => return Err(error),
                Err(error) => reasons.push(spandrel_error::report_in_line(&error)),
            }
        }
        if self.calls {
            return self.by_calls(control, local, pace, known_length(offer.length));
        }
        reasons.push("calls are not permitted (BulkClient::calls)".to_owned());
        Err(BulkError::Unreachable(format!("no route to the other party: {}", reasons.join("; "))))
    }

    fn dial(&self, endpoint: &Endpoint) -> io::Result<Channel> {
        if let Some(ssliop) = &self.tls {
            use spandrel_transport::{Address, Protocol, SocketSettings};
            let Endpoint::Tls(host, port) = endpoint else {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not encrypted"));
            };
            let address = Address::at_port("ssliop", host, *port);
            let stream = ssliop.connect(&address, Some(self.connect), &SocketSettings::default())?;
            return Ok(Channel::Tls(Box::new(stream)));
        }
        match endpoint {
            Endpoint::Tcp(host, port) => {
                let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
                for addr in inet::Addr::resolve(host, *port)? {
                    result = inet::Connector::connect_timeout(&addr, self.connect).map(Channel::Tcp);
                    if result.is_ok() {
                        break;
                    }
                }
                result
            }
            #[cfg(unix)]
            Endpoint::Unix(path) => {
                let addr = spandrel_ipc::unix::Addr::path(path)?;
                spandrel_ipc::unix::Connector::connect_timeout(&addr, self.connect).map(Channel::Unix)
            }
            #[cfg(target_os = "linux")]
            Endpoint::Shm(path) => {
                let addr = spandrel_ipc::shm::Addr::path(path)?;
                let stream = spandrel_ipc::shm::Connector::connect_timeout(&addr, self.connect)?;
                Ok(Channel::Shm(Box::new(stream)))
            }
            _ => Err(io::Error::new(io::ErrorKind::Unsupported, "this side has no such connections")),
        }
    }

    /// Transfers over a connection that this side has opened, which then waits for a further transfer.
    fn converse(
        &self,
        mut connection: Connection,
        token: Token,
        local: &mut Local<'_>,
        pace: &Pace<'_>,
        offer: &Offer,
    ) -> Result<Outcome, BulkError> {
        let connections = self.connections.as_ref().filter(|_| connection.can_wait());
        let mut conversation = Conversation::new(&connection.channel, pace);
        conversation.buffer = std::mem::take(&mut connection.buffer);
        let answer = conversation.greet(&local.greeting(token, self.takes_files, connections.is_some()))?;
        let outcome = match local {
            Local::Sending(source) => conversation.send(*source, answer.offset, false),
            Local::Receiving(reception) => {
                let (received, expected) = (answer.offset, reception.octets());
                if received != expected {
                    return Err(WireError::Contradiction { what: "offset", received, expected }.into());
                }
                let length = known_length(offer.length).or(known_length(answer.length));
                conversation.receive(reception, length, self.takes_files)
            }
        }?;
        connection.buffer = conversation.buffer;
        if let Some(connections) = connections {
            connections.put(connection);
        }
        Ok(outcome)
    }

    /// Transfers over a connection that the other party has opened.
    fn serve(
        &self,
        channel: &Channel,
        greeting: Greeting,
        local: &mut Local<'_>,
        pace: &Pace<'_>,
        offer: &Offer,
    ) -> Result<Outcome, BulkError> {
        let mut conversation = Conversation::new(channel, pace);
        match local {
            Local::Sending(source) => {
                conversation.answer_with_data(greeting.offset, source.length());
                conversation.send(*source, greeting.offset, false)
            }
            Local::Receiving(reception) => {
                conversation.answer(reception.octets())?;
                conversation.receive(reception, known_length(offer.length), false)
            }
        }
    }

    /// Lets the other party open the connection; `None` if it does not come.
    fn listen_for(
        &self,
        addr: &inet::Addr,
        control: &StreamEnd,
        pace: &Pace<'_>,
    ) -> Result<Option<(Channel, Greeting)>, BulkError> {
        let broken = |cause| BulkError::Broken { octets: 0, cause };
        let acceptor = inet::Acceptor::open(addr).map_err(broken)?;
        acceptor.set_nonblocking(true).map_err(broken)?;
        let bound = acceptor.local_addr().map_err(broken)?;
        let token = new_token()?;
        let at = vec![Endpoint::Tcp(bound.host(), bound.port()).to_string()];
        self.limited(control, pace)?.dial(&at.try_into().unwrap_or_default(), &token.0)?;
        let deadline = Deadline::after(self.connect);
        for _ in 0..MAX_STRANGERS {
            let stream = loop {
                match acceptor.accept() {
                    Ok((stream, _)) => break stream,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(cause) => return Err(broken(cause)),
                }
                if let Some(error) = (pace.stop)() {
                    return Err(error);
                }
                match deadline.remaining() {
                    Some(Duration::ZERO) => return Ok(None),
                    left => {
                        let slice = left.unwrap_or_default().min(Duration::from_millis(50));
                        wait_ready(&acceptor, Interest::INPUT, Some(slice)).map_err(broken)?;
                    }
                }
            };
            let channel = Channel::Tcp(stream).prepared().map_err(broken)?;
            let pace = Pace { deadline, idle: self.connect, ..*pace };
            let mut conversation = Conversation::new(&channel, &pace);
            match conversation.receive_greeting() {
                Ok(greeting) if greeting.token == token => return Ok(Some((channel, greeting))),
                Ok(_) => conversation.refuse(ErrorCode::Token, "it is not the token of this endpoint"),
                Err(error @ BulkError::Cancelled { .. }) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Transfers by calls, each of which is bounded.
    fn by_calls(
        &self,
        control: &StreamEnd,
        local: &mut Local<'_>,
        pace: &Pace<'_>,
        length: Option<u64>,
    ) -> Result<Outcome, BulkError> {
        let (octets, checksum, is_verified) = match local {
            Local::Receiving(reception) => loop {
                let part = self.limited(control, pace)?.read(reception.octets(), self.part)?;
                if part.data.len() > self.part as usize || part.data.is_empty() && !part.is_last {
                    let (received, expected) = (part.data.len() as u64, self.part.into());
                    return Err(WireError::Contradiction { what: "length of a part", received, expected }.into());
                }
                reception.take(&part.data, length.unwrap_or(u64::MAX))?;
                (pace.progress)(reception.octets());
                if part.is_last {
                    require_length(reception.octets(), length)?;
                    let checksum = part.has_checksum.then_some(part.checksum);
                    let length = reception.octets();
                    reception.finish(crate::wire::End { length, checksum })?;
                    break (length, reception.checksum(), checksum.is_some());
                }
            },
            Local::Sending(source) => {
                let failed = |error| BulkError::Storage("source", error);
                let begin = self.limited(control, pace)?.state()?.octets;
                let mut digest = Digest::read_to(*source, begin).map_err(failed)?;
                let mut buffer = vec![0; self.part as usize];
                loop {
                    let count = source.read_at(&mut buffer, digest.position).map_err(failed)?;
                    if count == 0 {
                        // The peer compares it.
                        break (digest.position, digest.value(), true);
                    }
                    let data =
                        buffer[..count].to_vec().try_into().expect("a part is at most the bound of the sequence");
                    self.limited(control, pace)?.write(digest.position, &data)?;
                    digest.add(&buffer[..count]);
                    (pace.progress)(digest.position);
                }
            }
        };
        self.limited(control, pace)?.finish(octets, checksum)?;
        Ok(Outcome { octets, checksum, is_verified, route: Route::Calls })
    }

    /// The stream end with the time that is left for a call.
    fn limited(&self, control: &StreamEnd, pace: &Pace<'_>) -> Result<StreamEnd, BulkError> {
        if let Some(error) = (pace.stop)() {
            return Err(error);
        }
        let left = pace.deadline.remaining().map_or(self.idle, |left| left.min(self.idle));
        if left.is_zero() {
            let limit = pace.deadline.limit().unwrap_or_default();
            return Err(BulkError::TimedOut { action: "the transfer", limit });
        }
        Ok(control.with_timeout(left))
    }
}

fn known_length(length: u64) -> Option<u64> {
    (length != UNKNOWN_LENGTH).then_some(length)
}

impl From<FailedError> for BulkError {
    fn from(error: FailedError) -> Self {
        match error {
            FailedError::Failed(Failed { code: FailureCode::Cancelled, reason }) => {
                Self::Cancelled { by: Party::Peer, reason }
            }
            FailedError::Failed(Failed { code, reason }) => Self::Failed { code, reason },
            FailedError::System(exception) => Self::Call(exception),
        }
    }
}
