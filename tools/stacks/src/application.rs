//! The modules of the presentation layer and of the application.

use std::collections::BTreeSet;

use spandrel_stream::{
    Context, Message, MessageKind, OpenContext, PutError, QueueStrategy, Service, ServiceContext, Task, TaskError,
};
use spandrel_sync::{Arc, Guarded, Monitor};

use crate::connections::{Record, TcpAddr};
use crate::measurement::Run;
use crate::xdr::{self, Content, Element};

/// A module whose processing runs in the thread that brings a message, or in a thread of its own.
pub(crate) struct Clustered<S> {
    pub(crate) service: S,
    /// Whether it has a thread of its own, which also runs the modules above it: the start of a cluster.
    pub(crate) has_thread: bool,
    /// The processing element of that thread.
    pub(crate) element: usize,
    pub(crate) run: Arc<Run>,
}

impl<Q: QueueStrategy<Queue: Send + Sync>, S: Service<Q>> Task<Q> for Clustered<S> {
    fn open(&self, context: &OpenContext<'_>) -> Result<(), TaskError> {
        if self.has_thread { context.activate(1) } else { Ok(()) }
    }

    fn put(&self, context: &Context<'_, Q>, message: Message) -> Result<(), PutError> {
        if self.has_thread { context.putq(message) } else { self.service.process(context, message) }
    }

    fn svc(&self, context: &mut ServiceContext<'_, Q>) {
        let counted = self.run.thread_begins(self.element);
        while let Ok(message) = context.getq() {
            if self.service.process(&context.context(), message).is_err() {
                self.run.dropped();
            }
        }
        counted.end();
    }
}

/// A message after the presentation layer.
struct Decoded {
    record: Option<Record>,
    elements: Vec<Element>,
}

/// The reader of the XDR module: converts messages into arrays that it allocates.
pub(crate) struct XdrReader {
    pub(crate) run: Arc<Run>,
}

impl<Q: QueueStrategy> Service<Q> for XdrReader {
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        let record = message.take_control::<Record>().map(|record| *record);
        match message.take_block().map(|block| xdr::decode(&block)) {
            Some(Ok(elements)) => context.put_next(message.with_control(Decoded { record, elements })),
            _ => {
                self.run.dropped();
                Ok(())
            }
        }
    }
}

/// An array of the application on its way down, with the connection that sends it.
pub(crate) struct Outgoing {
    pub(crate) elements: Vec<Element>,
    pub(crate) address: TcpAddr,
}

/// The writer of the XDR module.
pub(crate) struct XdrWriter;

impl<Q: QueueStrategy> Service<Q> for XdrWriter {
    fn process(&self, context: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        let Some(outgoing) = message.take_control::<Outgoing>() else { return context.put_next(message) };
        let octets = xdr::encode(&outgoing.elements);
        context.put_next(Message::data(octets[..].into()).with_control(outgoing.address))
    }
}

/// The reader of the application: compares each message with the one that was sent, and counts it.
pub(crate) struct Receiver<L: Monitor> {
    pub(crate) content: Content,
    pub(crate) run: Arc<Run>,
    /// The number of the first message in the counts.
    pub(crate) first: usize,
    pub(crate) first_port: u16,
    /// Messages of each connection.
    pub(crate) messages: usize,
    /// The order of the messages of each connection.
    pub(crate) orders: Vec<Guarded<Order, L>>,
}

/// The messages of a connection that have come: those before `next`, and some after it.
#[derive(Debug, Default)]
pub(crate) struct Order {
    next: u64,
    early: BTreeSet<u64>,
}

impl Order {
    /// A message has come. Returns how many can be given to the application now, in order.
    fn arrived(&mut self, number: u64) -> u64 {
        if number != self.next {
            self.early.insert(number);
            return 0;
        }
        let before = self.next;
        self.next += 1;
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        self.next - before
    }
}

impl<Q: QueueStrategy, L: Monitor> Service<Q> for Receiver<L>
where
    Guarded<Order, L>: Send + Sync,
{
    fn process(&self, _: &Context<'_, Q>, mut message: Message) -> Result<(), PutError> {
        if !matches!(message.kind(), MessageKind::Data) {
            return Ok(());
        }
        let decoded = message.take_control::<Decoded>();
        let Some(decoded) = decoded else { return Err(PutError::refused(message)) };
        let number = self.content.number_of(&decoded.elements);
        match (number, decoded.record) {
            (Some(number), None) => self.run.arrived(self.first + number, 1),
            // The number that the sender has put into the message is that of its octets in the stream.
            (Some(number), Some(record)) if number as u64 == record.number && number < self.messages => {
                let index = usize::from(record.connection.remote.port().wrapping_sub(self.first_port));
                let in_order = self.orders.get(index).map(|order| order.lock().arrived(record.number));
                match in_order {
                    Some(in_order) => self.run.arrived(self.first + index * self.messages + number, in_order),
                    None => self.run.wrong(),
                }
            }
            _ => self.run.wrong(),
        }
        Ok(())
    }
}
