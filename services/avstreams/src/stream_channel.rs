//! Connections that carry flows in order: TCP, and TLS inside of it. Their establishment and the admission of the sender.
//!
//! The sender of a flow shows its token as the first 32 octets. Inside of TLS, the receiver confirms it with `SPOK`: with
//! TLS 1.3 a client would not learn otherwise that its certificate is rejected.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::SockRef;
use spandrel::bulk::wire::{TOKEN_OCTETS, Token};
use spandrel::net::ipc::inet::{self, Inet};
use spandrel::net::ipc::{Transfer, is_timeout};
use spandrel::net::transport::{Address, Protocol as _, SocketSettings};
use spandrel::ssliop::{Ssliop, tls};

use crate::admission::{CONFIRM, is_token, is_wait};
use crate::flow_spec::{Carrier, FlowAddress};
use crate::flow_state::{Command, FlowShared};
use crate::statistics::add;

/// The wait for connections and their tokens.
const ACCEPT_TICK: Duration = Duration::from_millis(5);

/// A connection of a flow.
#[derive(Debug)]
pub(crate) enum StreamChannel {
    Tcp(inet::Stream),
    Tls(Box<tls::Stream<inet::Stream>>),
}

impl StreamChannel {
    /// Connects to a receiver and shows its token.
    ///
    /// # Errors
    /// A receiver that cannot be reached, has no valid certificate, refuses the token or does not answer within the limit.
    pub(crate) fn connect(shared: &FlowShared, to: &FlowAddress) -> io::Result<Self> {
        let within = shared.limits.connect;
        let begin = Instant::now();
        let late = |error: io::Error, missing: &str| match is_timeout(&error) {
            true => {
                io::Error::new(error.kind(), format!("the receiver at {} has not {missing} within {within:?}", to.data))
            }
            false => error,
        };
        let channel = if to.carrier == Carrier::Tls {
            let ssliop = shared.tls.as_ref().ok_or_else(without_tls)?;
            let address = Address::at_port("ssliop", &to.data.ip().to_string(), to.data.port());
            let stream = ssliop.connect(&address, Some(within), &SocketSettings::default());
            Self::Tls(Box::new(stream.map_err(|error| late(error, "completed the handshake of TLS"))?))
        } else {
            let connector = inet::Connector::new().timeout(within).no_delay(true);
            let stream = connector.open(&inet::Addr::from(to.data));
            Self::Tcp(stream.map_err(|error| late(error, "accepted the connection"))?)
        };
        let Some(token) = &to.token else { return Ok(channel) };
        channel.transfer().send_n_within(&token.0, within)?;
        if to.carrier == Carrier::Tls {
            let mut answer = [0; CONFIRM.len()];
            let left = within.saturating_sub(begin.elapsed());
            let received = channel.transfer().recv_n_within(&mut answer, left);
            received.map_err(|error| match error.cause.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                    io::Error::new(io::ErrorKind::PermissionDenied, "the receiver has refused the token of the flow")
                }
                _ => late(error.cause, "confirmed the token of the flow"),
            })?;
            if answer != *CONFIRM {
                return Err(io::Error::other("the receiver does not confirm the token of the flow"));
            }
        }
        Ok(channel)
    }

    pub(crate) fn transfer(&self) -> &dyn Transfer {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => &**stream,
        }
    }

    fn tcp(&self) -> &inet::Stream {
        match self {
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream.inner(),
        }
    }

    /// The socket, for its class of service.
    pub(crate) fn socket(&self) -> SockRef<'_> {
        SockRef::from(self.tcp())
    }

    pub(crate) fn is_ipv4(&self) -> bool {
        self.tcp().local_addr().is_ok_and(|addr| addr.ip().is_ipv4())
    }

    /// Ends sending, and reads until the receiver closes as well: a connection that is closed with unread octets loses those
    /// that the receiver has not read.
    pub(crate) fn close_after_reading(&self, within: Duration) {
        let begin = Instant::now();
        let mut buffer = [0; 1_024];
        if self.transfer().close_writer().is_err() {
            return;
        }
        while let Some(left) = within.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
            match self.transfer().recv_within(&mut buffer, left) {
                Ok(0) => return,
                Err(error) if !is_wait(&error) => return,
                _ => {}
            }
        }
    }
}

/// The reason for which a flow does not go by TLS.
pub(crate) fn without_tls() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "this party has no TLS for flows (AvOptions::tls)")
}

/// The address at which a receiver waits for its sender.
pub(crate) struct StreamListener {
    acceptor: inet::Acceptor,
    tls: Option<Box<tls::Tls<Inet>>>,
}

impl StreamListener {
    /// Listens at a free port. `ssliop` has the certificate of a receiver by TLS.
    ///
    /// # Errors
    /// No free port; no certificate.
    pub(crate) fn open(host: IpAddr, ssliop: Option<&Ssliop>, handshake: Duration) -> io::Result<Self> {
        let family = |ssliop: &Ssliop| {
            let family = ssliop.server_family();
            let family = family.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Ok::<_, io::Error>(Box::new(family.handshake_timeout(handshake)))
        };
        let tls = ssliop.map(family).transpose()?;
        let acceptor = inet::Acceptor::open(&inet::Addr::from(SocketAddr::new(host, 0)))?;
        acceptor.set_nonblocking(true)?;
        Ok(Self { acceptor, tls })
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.acceptor.local_addr()?.into())
    }

    fn accept_one(&self) -> io::Result<StreamChannel> {
        let (stream, _) = self.acceptor.accept()?;
        match &self.tls {
            None => Ok(StreamChannel::Tcp(stream)),
            Some(family) => Ok(StreamChannel::Tls(Box::new(family.serve(stream)?))),
        }
    }

    /// Accepts the connection that shows the token. Others are closed: at most so many wait at a time, and the oldest one
    /// makes room.
    ///
    /// # Errors
    /// No such connection within the limit; the end of the flow.
    pub(crate) fn accept(self, shared: &FlowShared, token: Option<&Token>) -> io::Result<StreamChannel> {
        let begin = Instant::now();
        let mut unknown: Vec<UnknownConnection> = Vec::new();
        let mut refusal = None;
        loop {
            // Also while connections come without end.
            if begin.elapsed() > shared.limits.connect {
                let mut text = format!("no sender has connected within {:?}", shared.limits.connect);
                if let Some(reason) = refusal {
                    text += &format!("; the last connection was refused: {reason}");
                }
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            if shared.command() == Command::End {
                return Err(io::Error::other("the flow was closed"));
            }
            let mut refuse = |reason: String| {
                tracing::debug!(flow = shared.definition.name, reason, "a connection of a flow was refused");
                add(&shared.counters.refused, 1);
                refusal = Some(reason);
            };
            match self.accept_one() {
                Ok(channel) => {
                    if unknown.len() >= shared.limits.unknown_connections {
                        unknown.remove(0);
                        refuse(format!("{} connections have shown no token", shared.limits.unknown_connections));
                    }
                    unknown.push(UnknownConnection { channel, begin: Instant::now(), octets: Vec::new() });
                }
                Err(error) => {
                    // A connection that ended before it was accepted, or no descriptor is free.
                    if !is_wait(&error) {
                        tracing::debug!(%error, "a connection of a flow was lost");
                    }
                    std::thread::sleep(ACCEPT_TICK);
                }
            }
            let mut index = 0;
            while index < unknown.len() {
                match unknown[index].admit(token, shared.limits.connect) {
                    Ok(false) => index += 1,
                    Ok(true) => return Ok(unknown.swap_remove(index).channel),
                    Err(error) => {
                        unknown.remove(index);
                        refuse(error.to_string());
                    }
                }
            }
        }
    }
}

/// A connection that has not shown the whole token.
struct UnknownConnection {
    channel: StreamChannel,
    begin: Instant,
    octets: Vec<u8>,
}

impl UnknownConnection {
    /// Whether the connection was admitted, as far as its octets have come.
    ///
    /// # Errors
    /// The reason of its refusal.
    fn admit(&mut self, token: Option<&Token>, within: Duration) -> io::Result<bool> {
        let is_over = self.begin.elapsed() > within;
        let open = |error: io::Error| match is_wait(&error) && !is_over {
            true => Ok(false),
            false => Err(error),
        };
        if let StreamChannel::Tls(stream) = &self.channel
            && stream.is_handshaking()
            && let Err(error) = stream.try_handshake()
        {
            return open(error);
        }
        let Some(token) = token else { return Ok(true) };
        let mut buffer = [0; TOKEN_OCTETS];
        let missing = TOKEN_OCTETS - self.octets.len();
        match self.channel.transfer().try_recv(&mut buffer[..missing]) {
            Ok(0) => return Err(io::Error::other("it has closed before the token")),
            Ok(length) => self.octets.extend_from_slice(&buffer[..length]),
            Err(error) => return open(error),
        }
        if self.octets.len() < TOKEN_OCTETS {
            return Ok(false);
        }
        if !is_token(token, &self.octets) {
            return Err(io::Error::other("it has shown another token"));
        }
        if matches!(self.channel, StreamChannel::Tls(_)) {
            // Nothing was sent by it before, so that there is room.
            self.channel.transfer().send_n_within(CONFIRM, ACCEPT_TICK)?;
        }
        Ok(true)
    }
}
