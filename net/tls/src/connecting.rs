//! A pending connection: first that of the underlying family, then the handshake over it.

use std::io;
use std::time::Duration;

use rustls::{ClientConfig, ClientConnection, Connection};
use rustls_pki_types::ServerName;
use spandrel_ipc::inet::Inet;
use spandrel_ipc::{Connecting as _, Family, Handle, Interest, Pollable, Prepared, Transfer};
use spandrel_sync::Arc;
use spandrel_sync::time::Deadline;

use crate::Stream;
use crate::stream::StreamSettings;

/// The peer, and the settings for connecting to it.
#[derive(Clone, Debug)]
pub(crate) struct ClientSettings {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
    pub(crate) stream: StreamSettings,
}

impl ClientSettings {
    /// The client's side of a connection over a stream.
    pub(crate) fn over<S: Transfer>(&self, inner: S) -> io::Result<Stream<S>> {
        let connection =
            ClientConnection::new(Arc::clone(&self.config), self.name.clone()).map_err(io::Error::other)?;
        Ok(Stream::new(inner, Connection::Client(connection), self.stream))
    }
}

/// A pending TLS connection; it completes with the handshake.
#[derive(Debug)]
pub struct Connecting<F: Family = Inet> {
    below: F::Connecting,
    settings: ClientSettings,
    stage: Stage<F>,
}

#[derive(Debug)]
enum Stage<F: Family> {
    Below,
    Handshake(Box<Stream<F::Stream>>),
    Ended,
}

const OVER: &str = "a connection attempt ends when its stream or its error is returned";

impl<F: Family> Connecting<F> {
    pub(crate) fn new(below: F::Connecting, settings: ClientSettings) -> Self {
        Self { below, settings, stage: Stage::Below }
    }

    fn advance(&mut self) -> io::Result<Option<Stream<F::Stream>>> {
        if let Stage::Below = self.stage {
            let Some(stream) = self.below.try_complete()? else { return Ok(None) };
            // `below` is kept: if it has its own handle, the waiting code must be able to deregister that
            // first.
            self.stage = Stage::Handshake(Box::new(self.settings.over(stream)?));
        }
        let Stage::Handshake(stream) = &self.stage else { return Err(io::Error::other(OVER)) };
        match stream.try_handshake() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            result => result?,
        }
        let Stage::Handshake(stream) = std::mem::replace(&mut self.stage, Stage::Ended) else {
            unreachable!("the stage has just been checked")
        };
        Ok(Some(*stream))
    }
}

impl<F: Family> spandrel_ipc::Connecting for Connecting<F> {
    type Stream = Stream<F::Stream>;

    fn try_complete(&mut self) -> io::Result<Option<Self::Stream>> {
        self.advance()
    }

    fn complete(mut self, timeout: Option<Duration>) -> io::Result<Self::Stream> {
        let end = Deadline::after(timeout);
        loop {
            if let Some(stream) = self.try_complete()? {
                return Ok(stream);
            }
            let mut end_now = end;
            if let Stage::Handshake(stream) = &self.stage {
                end_now = end.earlier(stream.handshake_end);
            }
            if end.is_over() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            spandrel_ipc::wait_ready(&self, Interest::OUTPUT, end_now.remaining())?;
        }
    }
}

impl<F: Family> Pollable for Connecting<F> {
    fn handle(&self) -> Handle<'_> {
        match &self.stage {
            Stage::Below => self.below.handle(),
            Stage::Handshake(stream) => stream.handle(),
            Stage::Ended => panic!("{OVER}"),
        }
    }

    fn is_plain(&self) -> bool {
        false
    }

    fn prepare(&self, wanted: Interest) -> Prepared {
        match &self.stage {
            Stage::Below => self.below.prepare(wanted),
            Stage::Handshake(stream) => stream.prepare(wanted),
            Stage::Ended => Prepared { wait_for: Interest::NONE, ready: wanted },
        }
    }

    fn interpret(&self, seen: Interest, wanted: Interest) -> Interest {
        match &self.stage {
            Stage::Below => self.below.interpret(seen, wanted),
            Stage::Handshake(stream) => stream.interpret(seen, wanted),
            Stage::Ended => wanted,
        }
    }
}
