//! Several reactors, each with its own thread, that serve one address together.

use std::io;

use spandrel_ipc::Family;
use spandrel_sync::thread;

use crate::strategy::{Acceptance, Concurrency, Creation};
use crate::{Acceptor, Options, Reactor, Server};

/// Independent reactors, each run by its own thread.
///
/// A connection belongs to the reactor that accepted it, so that none of its state is shared between threads.
/// The system distributes connections over acceptors that share an address (`SO_REUSEPORT`): open the family
/// with that option ([`AcceptorOptions::reuse_port`](spandrel_ipc::inet::AcceptorOptions)).
#[derive(Debug)]
pub struct Shards {
    reactors: Vec<Reactor>,
    threads: Vec<thread::JoinHandle<io::Result<()>>>,
}

impl Shards {
    /// Starts `count` reactors.
    ///
    /// A reactor that fails is closed, with its connections and acceptors, so that the system gives new
    /// connections to the others; [`stop`](Self::stop) returns the error.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for none; those of [`Reactor::with`], and when a thread cannot be
    /// started.
    pub fn start(count: usize, options: &Options) -> io::Result<Self> {
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the number of reactors must be at least 1"));
        }
        let mut shards = Self { reactors: Vec::new(), threads: Vec::new() };
        for number in 0..count {
            let reactor = Reactor::with(options)?;
            let running = reactor.clone();
            let builder = thread::Builder::new().name(format!("spandrel-shard-{number}"));
            shards.threads.push(builder.spawn(move || run(&running))?);
            shards.reactors.push(reactor);
        }
        Ok(shards)
    }

    /// The reactors, in the order of their threads.
    #[must_use]
    pub fn reactors(&self) -> &[Reactor] {
        &self.reactors
    }

    /// Listens at `addr` once in each reactor, with the acceptor that `make` returns for its index. If the
    /// system chooses a port for the first, the others share it.
    ///
    /// # Errors
    /// The errors of [`Acceptor::open`]; [`io::ErrorKind::AddrInUse`] if the family does not share addresses.
    pub fn open<F, C, A, K>(
        &self,
        addr: &F::Addr,
        mut make: impl FnMut(usize) -> Acceptor<F, C, A, K>,
    ) -> io::Result<Vec<Server<F>>>
    where
        F: Family,
        C: Creation<F>,
        A: Acceptance<F>,
        K: Concurrency<F, C::Handler>,
    {
        let mut servers: Vec<Server<F>> = Vec::new();
        for (number, reactor) in self.reactors.iter().enumerate() {
            let shared = servers.first().map_or(addr, Server::addr).clone();
            match make(number).open(reactor.registry(), &shared) {
                Ok(server) => servers.push(server),
                Err(error) => {
                    servers.iter().for_each(Server::close);
                    return Err(error);
                }
            }
        }
        Ok(servers)
    }

    /// Waits until all reactors have ended, each by [`Reactor::stop`] or by an error, and closes all
    /// connections.
    ///
    /// # Errors
    /// The first error with which a reactor ended.
    pub fn wait(mut self) -> io::Result<()> {
        self.join()
    }

    /// Stops all reactors, waits for their threads, and closes all connections. ([`Server::drain`] shows how
    /// to let them finish before.)
    ///
    /// # Errors
    /// The first error with which a reactor ended.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.reactors.iter().for_each(Reactor::stop);
        self.join()
    }

    fn join(&mut self) -> io::Result<()> {
        let mut first = Ok(());
        for thread in self.threads.drain(..) {
            let end = thread.join().unwrap_or_else(|_| Err(io::Error::other("a reactor's thread panicked")));
            first = first.and(end);
        }
        self.reactors.iter().for_each(Reactor::close);
        first
    }
}

fn run(reactor: &Reactor) -> io::Result<()> {
    let end = reactor.run();
    if let Err(error) = &end {
        tracing::error!(%error, "a reactor cannot go on");
        reactor.close();
    }
    end
}

impl Drop for Shards {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
