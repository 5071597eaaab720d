//! The common part of the event-driven architectures: sessions as handlers of a reactor.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::time::Duration;

use spandrel_ipc::Shutdown;
use spandrel_ipc::inet::{Acceptor, Inet};
use spandrel_reactor::{Expired, Options, Peer, Reactor, ServiceHandler, ThreadStrategy, TimerId};
use spandrel_sync::{Arc, ThreadContext, ThreadManager};

use crate::listening::PortLimit;
use crate::session::{Phase, Protocol, Session};
use crate::{Port, Server, Settings};

/// The room for octets of one receive.
const ROOM: usize = 16 << 10;
/// The number of pieces that one connection sends before others are served.
const PIECES: usize = 16;
/// The handlers of a reactor besides connections.
const OTHER_HANDLERS: usize = 16;
/// The time for threads to end after the reactor is stopped.
const END: Duration = Duration::from_secs(1);

thread_local! {
    /// The receive buffer of a thread of the reactor: a buffer on the stack would be set to zero for each receive.
    static BUFFER: RefCell<[u8; ROOM]> = const { RefCell::new([0; ROOM]) };
}

/// A server whose connections are handlers of one reactor, which `threads` threads run.
pub(crate) struct EventDrivenServer<P: Protocol> {
    port: Port,
    protocol: Arc<P>,
    reactor: Reactor,
    server: spandrel_reactor::Server<Inet>,
    threads: ThreadManager,
}

impl<P: Protocol> fmt::Debug for EventDrivenServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventDrivenServer").field("reactor", &self.reactor).finish_non_exhaustive()
    }
}

impl<P: Protocol> EventDrivenServer<P> {
    pub(crate) fn start(
        port: &Port,
        protocol: P,
        settings: &Settings,
        strategy: ThreadStrategy,
        threads: usize,
    ) -> io::Result<Self> {
        settings.check()?;
        port.prepare(settings)?;
        let handlers = settings.max_connections.saturating_add(OTHER_HANDLERS);
        let options = Options::new().backend(settings.backend).threads(strategy).max_handlers(handlers);
        let reactor = Reactor::with(&options)?;
        let (protocol, limits) = (Arc::new(protocol), Limits::new(settings));
        let sessions = Arc::clone(&protocol);
        let server =
            spandrel_reactor::Acceptor::new(Inet::default(), move || SessionHandler::new(sessions.open(), limits))
                .acceptance(PortLimit(port.clone(), settings.max_connections))
                .check_every(limits.interval())
                .adopt(reactor.registry(), duplicate(port)?)?;
        let this = Self { port: port.clone(), protocol, reactor, server, threads: ThreadManager::with_limit(threads) };
        let reactor = this.reactor.clone();
        let run = move |_: &ThreadContext| {
            if let Err(error) = reactor.run() {
                tracing::error!(%error, "the reactor of a server has failed");
                reactor.close();
            }
        };
        this.threads.group("reactor").spawn_n(threads, "reactor", run).map_err(io::Error::other)?;
        Ok(this)
    }
}

impl<P: Protocol> Server for EventDrivenServer<P> {
    fn connections(&self) -> usize {
        self.server.connections()
    }

    fn retire(&self) {
        self.server.close();
        self.protocol.begin_drain();
        self.port.shut_if_exclusive();
    }

    fn wait_closed(&self, timeout: Duration) -> bool {
        self.server.wait_closed(timeout)
    }

    fn stop(&self, timeout: Duration) -> usize {
        self.retire();
        let cut = self.server.drain(timeout);
        self.reactor.stop();
        if let Err(error) = self.threads.wait_for(END) {
            tracing::warn!(%error, "threads of a reactor have not ended");
        }
        self.reactor.close();
        cut
    }
}

impl<P: Protocol> Drop for EventDrivenServer<P> {
    fn drop(&mut self) {
        let _ = self.stop(Duration::ZERO);
    }
}

/// Another handle of the listening socket, which the reactor owns.
fn duplicate(port: &Port) -> io::Result<Acceptor> {
    let acceptor = &**port.acceptor();
    #[cfg(unix)]
    let handle = std::os::fd::AsFd::as_fd(acceptor).try_clone_to_owned()?;
    #[cfg(windows)]
    let handle = std::os::windows::io::AsSocket::as_socket(acceptor).try_clone_to_owned()?;
    Acceptor::try_from(handle)
}

/// The checks of idle connections within the time limit.
const CHECKS: u32 = 4;

/// The time limits of connections.
#[derive(Clone, Copy)]
struct Limits {
    idle: Duration,
    request: Duration,
}

impl Limits {
    fn new(settings: &Settings) -> Self {
        let Settings { idle, request, .. } = *settings;
        Self { idle, request }
    }

    /// The interval of the checks.
    fn interval(&self) -> Duration {
        self.idle / CHECKS
    }
}

/// Serves one session as a handler.
struct SessionHandler<S> {
    session: S,
    limits: Limits,
    /// There was a transfer since the last check.
    is_active: bool,
    /// The number of checks since a transfer.
    quiet_checks: u32,
    /// The end of the time for the rest of the present request. A request that arrives at once has none.
    request_timer: Option<TimerId>,
    is_input_open: bool,
    is_sending_open: bool,
}

impl<S: Session> SessionHandler<S> {
    fn new(session: S, limits: Limits) -> Self {
        Self {
            session,
            limits,
            is_active: false,
            quiet_checks: 0,
            request_timer: None,
            is_input_open: true,
            is_sending_open: true,
        }
    }

    /// Sends output until there is no more, or the client takes no more now.
    fn send_output(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        self.is_active = true;
        for _ in 0..PIECES {
            if peer.waiting() > 0 {
                return Ok(()); // `handle_sent` continues
            }
            let piece = self.session.output();
            let len = piece.len();
            if len == 0 {
                if self.is_sending_open && self.session.has_ended_output() {
                    peer.stream().shutdown(Shutdown::Write)?;
                    self.is_sending_open = false;
                }
                return self.wait_for_input(peer);
            }
            peer.put(piece)?;
            self.session.sent(len);
            self.end_request(peer);
        }
        peer.notify_sent();
        Ok(())
    }

    /// All output is sent.
    fn wait_for_input(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        match self.session.phase() {
            Phase::Closing => self.end_connection(peer)?,
            _ if !self.is_input_open => self.end_connection(peer)?,
            Phase::Idle => self.end_request(peer),
            Phase::InRequest if self.request_timer.is_none() => {
                self.request_timer = Some(peer.schedule(self.limits.request, None, 0)?);
            }
            Phase::InRequest => {}
        }
        Ok(())
    }

    fn end_connection(&self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        if self.session.may_be_reset() {
            peer.stream().set_linger(Some(Duration::ZERO))?;
        }
        peer.close();
        Ok(())
    }

    /// The present request has arrived as a whole.
    fn end_request(&mut self, peer: &mut Peer<'_, Inet>) {
        if let Some(timer) = self.request_timer.take() {
            peer.cancel(timer);
        }
    }

    /// The client has exceeded a time limit.
    fn time_out(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        self.session.time_out();
        self.end_request(peer); // what remains of the request has a time of its own
        self.send_output(peer)
    }
}

// ANCHOR: handler
impl<S: Session> ServiceHandler<Inet> for SessionHandler<S> {
    fn open(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        self.send_output(peer)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        if !self.session.output().is_empty() {
            return Ok(()); // `handle_sent` continues with the output, before further input
        }
        BUFFER.with_borrow_mut(|buffer| {
            match peer.recv(buffer)? {
                0 => {
                    self.is_input_open = false;
                    self.session.end_input();
                }
                count => self.session.receive(&buffer[..count]),
            }
            io::Result::Ok(())
        })?;
        self.send_output(peer)
    }

    fn handle_sent(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        self.send_output(peer)
    }

    fn handle_timeout(&mut self, peer: &mut Peer<'_, Inet>, _request: Expired) -> io::Result<()> {
        self.time_out(peer)
    }

    fn handle_check(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        self.quiet_checks = if std::mem::take(&mut self.is_active) { 0 } else { self.quiet_checks + 1 };
        if self.quiet_checks < CHECKS {
            return Ok(());
        }
        if peer.waiting() > 0 {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes no reply"));
        }
        if self.session.output().is_empty() { self.time_out(peer) } else { Ok(()) }
    }
}
// ANCHOR_END: handler
