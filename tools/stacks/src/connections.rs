//! The connections of a TCP module, with the locks that its process architecture needs.

use std::net::SocketAddrV4;
use std::time::Duration;

use spandrel_message::MessageBlock;
use spandrel_stream::{MapManager, Message};
use spandrel_sync::{Arc, Guarded, Monitor, NullMutex};

use crate::tcp::{Segment, Tcb};

/// The place of a message in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) connection: TcpAddr,
    /// Counts the messages of the connection from zero.
    pub(crate) number: u64,
}

/// The addresses of both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TcpAddr {
    /// The end of this stack.
    pub(crate) local: SocketAddrV4,
    /// The address and port of the other end.
    pub(crate) remote: SocketAddrV4,
}

/// A connection: its control block, and the message that its octets will be.
pub(crate) struct Connection {
    pub(crate) tcb: Tcb,
    assembler: Assembler,
}

impl Connection {
    pub(crate) fn new(tcb: Tcb, message: usize) -> Self {
        Self { tcb, assembler: Assembler { message, waiting: None, octets: 0, next: 0 } }
    }

    /// Takes out what goes up and down.
    pub(crate) fn exchange(&mut self, address: TcpAddr, now: Duration, output: &mut Output) {
        while let Some(block) = self.tcb.receive() {
            self.assembler.push(block, |number, block| {
                output.up.push(Message::data(block).with_control(Record { connection: address, number }));
            });
        }
        while let Some(segment) = self.tcb.transmit(now) {
            output.down.push(segment);
        }
    }
}

/// Divides the octets of a connection into messages of one length, without copying them.
struct Assembler {
    message: usize,
    waiting: Option<MessageBlock>,
    octets: usize,
    next: u64,
}

impl Assembler {
    fn push(&mut self, mut block: MessageBlock, mut emit: impl FnMut(u64, MessageBlock)) {
        while !block.is_empty() {
            let part = block.split_to(block.len().min(self.message - self.octets));
            self.octets += part.len();
            match &mut self.waiting {
                Some(waiting) => waiting.append(part),
                None => self.waiting = Some(part),
            }
            if self.octets == self.message
                && let Some(message) = self.waiting.take()
            {
                self.octets = 0;
                emit(self.next, message);
                self.next += 1;
            }
        }
    }
}

/// The messages that a segment leads to.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) up: Vec<Message>,
    pub(crate) down: Vec<Segment>,
}

/// The connections of a TCP module: the locks around their control blocks.
pub(crate) trait Connections: Send + Sync + 'static {
    /// Calls `act` with a connection, which `create` may make.
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R>;
    fn for_each(&self, act: impl FnMut(TcpAddr, &mut Connection));
    fn remove(&self, address: TcpAddr);
}

/// Connections for any number of threads: a map with a lock, and a lock for each control block (the `MP_Map_Manager` of
/// paper 002, 3.4).
pub(crate) struct Shared<L: Monitor>(MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>);

impl<L: Monitor> Shared<L> {
    pub(crate) fn new() -> Self {
        Self(MapManager::new())
    }
}

impl<L: Monitor> Connections for Shared<L>
where
    MapManager<TcpAddr, Arc<Guarded<Connection, L>>, L>: Send + Sync,
{
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let connection = self.0.find(&address).or_else(|| {
            let created = Arc::new(Guarded::new(create()?));
            match self.0.bind(address, Arc::clone(&created)) {
                Ok(()) => Some(created),
                Err(_) => self.0.find(&address), // another thread was faster
            }
        })?;
        Some(act(&mut connection.lock()))
    }

    fn for_each(&self, mut act: impl FnMut(TcpAddr, &mut Connection)) {
        for (address, connection) in self.0.bindings() {
            act(address, &mut connection.lock());
        }
    }

    fn remove(&self, address: TcpAddr) {
        self.0.unbind(&address);
    }
}

/// Connections of one thread, without locks (the `LP_Map_Manager` of paper 002, 3.4): each thread has its own.
pub(crate) struct OwnedByThread;

spandrel_sync::thread_local! {
    static OWNED: MapManager<TcpAddr, Connection, NullMutex> = MapManager::new();
}

impl Connections for OwnedByThread {
    fn with<R>(
        &self,
        address: TcpAddr,
        create: impl FnOnce() -> Option<Connection>,
        act: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        OWNED.with(|connections| {
            let mut act = Some(act);
            let mut once = |connection: &mut Connection| act.take().map(|act| act(connection));
            if let Some(result) = connections.find_with(&address, &mut once) {
                return result;
            }
            connections.bind(address, create()?).ok()?;
            connections.find_with(&address, once)?
        })
    }

    fn for_each(&self, mut act: impl FnMut(TcpAddr, &mut Connection)) {
        OWNED.with(|connections| {
            connections.retain(|address, connection| {
                act(*address, connection);
                true
            });
        });
    }

    fn remove(&self, address: TcpAddr) {
        OWNED.with(|connections| _ = connections.unbind(&address));
    }
}
