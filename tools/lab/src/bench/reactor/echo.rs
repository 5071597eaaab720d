//! Echo servers over this project's own reactor: as two event handlers, which work like the plain C program,
//! and with the Acceptor pattern, as its users would write it, in one reactor or in one for each processor.

use std::cell::RefCell;
use std::io::{self, Write};
use std::thread;

use spandrel_ipc::inet::{Acceptor, AcceptorOptions, Addr, Connector, Inet, Stream};
use spandrel_ipc::{Interest, Pollable};
use spandrel_reactor::{
    Backend, Context, EventHandler, Options, Peer, Reactor, ServiceHandler, Shards, ThreadStrategy,
};

use crate::LabError;
use crate::peer::EchoServer;

impl EchoServer {
    /// Prints the port on one line, and serves until the process ends.
    ///
    /// # Errors
    /// If the back end cannot be used, or the server cannot listen.
    pub fn serve(self) -> Result<(), LabError> {
        let served = match self {
            Self::Handlers(backend) => serve_by_handlers(backend),
            Self::Pattern => serve_by_pattern(),
            Self::Shards => serve_by_shards(),
        };
        served.map_err(LabError::io(format!("serve echoes ({self})")))
    }
}

/// The same backlog as the other servers.
const BACKLOG: u16 = 4096;
const BUFFER_OCTETS: usize = 16 << 10;

thread_local! {
    /// One for all connections: input is echoed before the next connection is handled.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BUFFER_OCTETS]);
}

fn print_line(port: u16) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{port}")?;
    out.flush()
}

fn serve_by_handlers(backend: Backend) -> io::Result<()> {
    let options = Options::new().backend(backend).threads(ThreadStrategy::Reactive).max_events_per_wait(256);
    let reactor = Reactor::with(&options)?;
    let acceptor = Acceptor::open_with(&Addr::loopback(0), &AcceptorOptions::default().backlog(BACKLOG))?;
    acceptor.set_nonblocking(true)?;
    let port = acceptor.local_addr()?.port();
    reactor.registry().register(Listener(acceptor), Interest::INPUT)?;
    print_line(port)?;
    reactor.run()
}

fn serve_by_pattern() -> io::Result<()> {
    let reactor = Reactor::new()?;
    let family = Inet::new(AcceptorOptions::default().backlog(BACKLOG), Connector::new());
    let pattern = spandrel_reactor::Acceptor::new(family, || Service);
    let server = pattern.open(reactor.registry(), &Addr::loopback(0))?;
    print_line(server.addr().port())?;
    reactor.run()
}

fn serve_by_shards() -> io::Result<()> {
    let shards = Shards::start(thread::available_parallelism()?.get(), &Options::new())?;
    let options = AcceptorOptions::default().backlog(BACKLOG);
    #[cfg(unix)]
    let options = options.reuse_port(true);
    let family = Inet::new(options, Connector::new());
    let servers = shards.open(&Addr::loopback(0), |_| spandrel_reactor::Acceptor::new(family, || Service))?;
    print_line(servers[0].addr().port())?;
    shards.wait()
}

struct Service;

impl ServiceHandler<Inet> for Service {
    fn open(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        peer.stream().set_no_delay(true)
    }

    fn handle_input(&mut self, peer: &mut Peer<'_, Inet>) -> io::Result<()> {
        BUFFER.with_borrow_mut(|buffer| match peer.recv(buffer)? {
            0 => {
                peer.close();
                Ok(())
            }
            received => peer.put(&buffer[..received]),
        })
    }
}

struct Listener(Acceptor);

impl EventHandler for Listener {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.0)
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        loop {
            let (stream, _) = self.0.accept()?; // until the queue is empty, which is no failure
            stream.set_no_delay(true)?;
            // A connection that cannot be registered is dropped.
            _ = cx.register(Echo { stream, rest: Vec::new() }, Interest::INPUT);
        }
    }
}

struct Echo {
    stream: Stream,
    /// Octets that the peer has not taken yet.
    rest: Vec<u8>,
}

impl EventHandler for Echo {
    fn pollable(&self) -> Option<&dyn Pollable> {
        Some(&self.stream)
    }

    fn handle_input(&mut self, cx: &Context<'_>) -> io::Result<()> {
        BUFFER.with_borrow_mut(|buffer| {
            let received = self.stream.try_recv(buffer)?;
            if received == 0 {
                cx.close();
                return Ok(());
            }
            let data = &buffer[..received];
            let sent = self.send(data)?;
            if sent < received {
                self.rest.extend_from_slice(&data[sent..]);
                cx.set_interest(Interest::OUTPUT);
            }
            Ok(())
        })
    }

    fn handle_output(&mut self, cx: &Context<'_>) -> io::Result<()> {
        let sent = self.send(&self.rest)?;
        self.rest.drain(..sent);
        if self.rest.is_empty() {
            self.rest = Vec::new();
            cx.set_interest(Interest::INPUT);
        }
        Ok(())
    }
}

impl Echo {
    fn send(&self, data: &[u8]) -> io::Result<usize> {
        match self.stream.try_send(data) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent,
        }
    }
}
