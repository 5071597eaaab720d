//! The protocols that a program chooses by name.

use crate::http::{Http, HttpSession};
use crate::session::{Phase, Protocol, Session};
use crate::transfer::{Transfer, TransferSession};

/// A protocol chosen at run time, for programs that serve either. Servers of several processes can forward
/// its drain signal and its handles to them.
#[derive(Clone, Debug)]
pub enum Service {
    /// The paper's transfer service, of the wanted numbers of octets.
    Transfer(Transfer),
    /// Static files over HTTP/1.1.
    Http(Http),
}

/// The session of a [`Service`].
#[derive(Debug)]
pub enum ServiceSession {
    /// A session of [`Transfer`].
    Transfer(TransferSession),
    /// A session of [`Http`].
    Http(Box<HttpSession>),
}

impl Service {
    /// From now on, the signal [begins to drain](Protocol::begin_drain), also in processes that this one forks.
    ///
    /// # Errors
    /// Any error of the operating system.
    #[cfg(target_os = "linux")]
    pub(crate) fn begin_drain_after(&self, signal: spandrel_reactor::Signal) -> std::io::Result<()> {
        let flag = match self {
            Self::Transfer(_) => std::sync::Arc::default(), // without a handler, the signal would end the process
            Self::Http(http) => http.drain_flag(),
        };
        signal_hook::flag::register(signal.number(), flag).map(drop)
    }

    /// The handles that sessions use, besides those of their connections.
    #[cfg(target_os = "linux")]
    pub(crate) fn handles(&self) -> Vec<spandrel_ipc::Handle<'_>> {
        match self {
            Self::Transfer(_) => Vec::new(),
            Self::Http(http) => vec![http.handle()],
        }
    }
}

impl Protocol for Service {
    type Session = ServiceSession;

    fn open(&self) -> ServiceSession {
        match self {
            Self::Transfer(transfer) => ServiceSession::Transfer(transfer.open()),
            Self::Http(http) => ServiceSession::Http(Box::new(http.open())),
        }
    }

    fn begin_drain(&self) {
        match self {
            Self::Transfer(transfer) => transfer.begin_drain(),
            Self::Http(http) => http.begin_drain(),
        }
    }
}

/// Calls the same method of the protocol's session.
macro_rules! forward {
    ($self:ident . $method:ident ( $($argument:ident),* )) => {
        match $self {
            ServiceSession::Transfer(session) => session.$method($($argument),*),
            ServiceSession::Http(session) => session.$method($($argument),*),
        }
    };
}

impl Session for ServiceSession {
    fn receive(&mut self, octets: &[u8]) {
        forward!(self.receive(octets));
    }

    fn end_input(&mut self) {
        forward!(self.end_input());
    }

    fn time_out(&mut self) {
        forward!(self.time_out());
    }

    fn output(&mut self) -> &[u8] {
        forward!(self.output())
    }

    fn sent(&mut self, octets: usize) {
        forward!(self.sent(octets));
    }

    fn phase(&self) -> Phase {
        forward!(self.phase())
    }

    fn has_ended_output(&self) -> bool {
        forward!(self.has_ended_output())
    }

    fn may_be_reset(&self) -> bool {
        forward!(self.may_be_reset())
    }
}
